"""Stages whose results are kept by the content they depend on, so a killed run goes on."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.errors import OutputRefused
from reticent.product import versions

__all__ = ["Arrays", "Stages"]

Arrays = dict[str, NDArray[np.generic]]

_README = """SENSITIVE. Intermediate results of an audit that is running or was interrupted:
scores of single records. They are removed when the audit ends. Delete the folder if it stays.
"""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """A folder of finished stages; ``None`` keeps nothing.

    Parameters
    ----------
    folder : Path or None
        Where results are kept, readable by the owner alone.
    """

    folder: Path | None

    def get(
        self, name: str, content: tuple[object, ...], make: Callable[[], Arrays]
    ) -> Arrays:
        """Return a stage's arrays, made now or found from an earlier run.

        Parameters
        ----------
        name : str
            The stage.
        content : tuple
            Everything the result depends on beside the versions of the libraries, as text,
            numbers or hashes.
        make : callable
            Computes the arrays; they may hold numbers and text, no objects.
        """
        if self.folder is None:
            return make()
        key = json.dumps([versions(), name, *map(str, content)])
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        path = self.folder / f"{name.replace('/', '-').replace(' ', '_')}-{digest}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as kept:
                return {field: kept[field] for field in kept.files}
        arrays = make()
        try:
            self._open()
            part = path.with_suffix(".part")
            with part.open("wb") as handle:
                np.savez(handle, **arrays)  # type: ignore[arg-type]
            part.replace(path)
        except OSError as error:
            raise OutputRefused(
                f"intermediate results cannot be written to {self.folder} ({error.strerror or error}); "
                "choose another folder with --out."
            ) from error
        return arrays

    def clear(self) -> None:
        """Remove everything that was kept."""
        if self.folder is not None and self.folder.exists():
            shutil.rmtree(self.folder)

    def _open(self) -> None:
        assert self.folder is not None
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            os.chmod(self.folder, 0o700)  # noqa: PTH101
            (self.folder / "README").write_text(_README)
