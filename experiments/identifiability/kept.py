"""What is finished, kept in small files beside the code, so that a later sitting goes on where this one stopped.

A file is found by the name of the cell and the number of its first run. The setting it was made with is written into it: files of other
settings are refused, never mixed in.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from settings import Cell, Training

from reticent.pool import Side, Trace, Truth
from reticent.run import write_text

__all__ = ["CHUNK", "FOLDER", "keep_text", "keep_trained", "keep_watched", "watched"]

FOLDER = Path(__file__).parent / "results"
CHUNK = 50  # runs in one file, about a minute of work
SIDES, PARTS = ("first", "second"), tuple(field.name for field in fields(Side))


def keep_text(name: str, make: Callable[[], str]) -> str:
    """Return the text of a file, made now or before."""
    path = FOLDER / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, make())
    return path.read_text(encoding="utf-8")


def chunk_path(cell: Cell, at: int) -> Path:
    """Return the file of the runs from ``at`` on."""
    return FOLDER / "watched" / cell.name / f"{at:04d}.npz"


def keep_watched(
    cell: Cell, at: int, make: Callable[[], tuple[Trace, Truth, float]]
) -> None:
    """Write some runs of a cell unless they are there.

    Single precision leaves seven digits, of which the page shows three.
    """
    path = chunk_path(cell, at)
    if path.exists():
        return
    trace, truth, seconds = make()
    arrays: dict[str, Any] = {
        f"{s}_{p}": getattr(getattr(trace, s), p).astype(np.float32)
        for s in SIDES
        for p in PARTS
    }
    # Both sides compare with the same release, so that the residual is kept once.
    assert np.array_equal(arrays["first_residual"], arrays.pop("second_residual"))
    arrays |= {"distance": trace.distance.astype(np.float32), "size": trace.size}
    arrays |= {"used_first": truth.first, "taken": truth.taken}
    arrays |= {"seconds": seconds, "setting": repr(cell)}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.replace(path)


def watched(cell: Cell) -> tuple[int, tuple[Trace, Truth] | None, float]:
    """Return how many runs of a cell are there, all of them if the cell is complete, and the CPU seconds.

    An incomplete cell is counted and not opened any further: nobody looks at its figures.
    """
    found = []
    for at in range(0, cell.runs, CHUNK):
        path = chunk_path(cell, at)
        if path.exists():
            found.append(dict(np.load(path)))
            if str(found[-1]["setting"]) != repr(cell):
                raise ValueError(
                    f"{path} was made with other settings; remove the folder to begin the cell anew."
                )
    runs = sum(len(arrays["used_first"]) for arrays in found)
    seconds = sum(float(arrays["seconds"]) for arrays in found)
    return runs, _joined(found) if runs == cell.runs else None, seconds


def _joined(found: list[dict[str, Any]]) -> tuple[Trace, Truth]:
    def whole(name: str) -> np.ndarray:
        made = np.concatenate([arrays[name] for arrays in found])
        return made.astype(np.float64) if made.dtype == np.float32 else made

    sides = {
        s: Side(
            **{
                p: whole("first_residual" if p == "residual" else f"{s}_{p}")
                for p in PARTS
            }
        )
        for s in SIDES
    }
    trace = Trace(
        **sides, distance=whole("distance"), size=int(found[0]["size"]), rate=1.0
    )
    return trace, Truth(first=whole("used_first"), taken=whole("taken"))


def keep_trained(
    training: Training, seed: int, make: Callable[[], dict[str, float]]
) -> dict[str, float]:
    """Return the right answers of one training and the CPU seconds it took, made now or before."""
    text = keep_text(
        f"trained/{training.name}-{seed}.json", lambda: json.dumps(make()) + "\n"
    )
    return json.loads(text)
