"""A foreign product as its auditor sees it: a process that is asked, and is not believed."""

import contextlib
import json
import math
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent import errors
from reticent._spare import take_spare
from reticent.data import Table
from reticent.errors import (
    InvalidInput,
    InvalidPredictions,
    ReticentError,
    UnsafeProduct,
    WorkerLost,
)
from reticent.product.clean import SMALLEST_GROUP, AnswerChange, Cleaned, Done, Kept
from reticent.product.internals import MOST_UNITS, Internals
from reticent.product.stages import MOST_CELLS, MOST_STAGES, Stage, Stages
from reticent.run import write_bytes

__all__ = ["Cell", "ForeignProduct"]

# Seconds of computing that a product may take to be loaded, more of them per megabyte; to answer about its first records; and then per question and
# record. By the clock it may take so many times as long, because other processes may be at work.
LOADING, PER_MEGABYTE, FIRST, LATER, PER_RECORD, BUSY = 30.0, 0.5, 10.0, 60.0, 0.05, 8
STARTING = 300.0  # seconds by the clock in which libraries are imported
FIRST_RECORDS = 8
MOST_HEAD = 2**24  # bytes of names and sentences in one answer
_KINDS = {"<f8": np.float64, "<f4": np.float32, "|u1": np.uint8}


class Cell:
    """A process that holds one product; it ends with this object, and with the process that started it."""

    def __init__(self) -> None:
        self._process = take_spare()
        self._end = weakref.finalize(self, _end, self._process)
        self._turn = threading.Lock()
        self._late = self._ready = False
        self.was_asked = False
        self._gone: ReticentError | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a product that is asked in a process of its own stays here")

    def load(self, name: str, data: bytes, trust: tuple[str, ...]) -> bool | None:
        """Load a product; return whether it predicts a quantity, or None if it does not say."""
        facts, _ = self.ask(
            "load",
            name=name,
            data=data,
            trust=trust,
            path=[path for path in sys.path if path] or [],
            modules=("pyarrow",) if "pyarrow" in sys.modules else (),
            vouched=_own_types(trust),
            seconds=LOADING + PER_MEGABYTE * len(data) / 2**20,
            doing="to be loaded",
        )
        quantity = facts.get("quantity")
        return quantity if isinstance(quantity, bool) else None

    def ask(
        self,
        verb: str,
        *,
        seconds: float,
        doing: str,
        most: int = 0,
        **arguments: Any,
    ) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Return the facts and the arrays, of at most ``most`` bytes, that the process answers within some seconds of computing.

        Raises
        ------
        UnsafeProduct
            If the product crashes, hangs, opens something or answers nonsense.
        """
        with self._turn:
            if self._gone is not None:
                raise self._gone
            timer = threading.Timer(
                BUSY * seconds + STARTING * (not self._ready), self._stop
            )
            timer.daemon = True
            timer.start()
            try:
                head, arrays = self._exchange((seconds, verb, arguments), most)
            except (OSError, EOFError):
                self._gone = self._why_gone(seconds, doing)
                raise self._gone from None
            except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:  # fmt: skip
                self._gone = UnsafeProduct(
                    f"the product answered with what is no answer ({' '.join(str(error).split())[:200]}), so it is damaged or was made to do harm; do not "
                    "release it."
                )
                self._end()
                raise self._gone from None
            except BaseException:
                self._end()  # interrupted in the middle: what comes next would be read as another answer
                self._gone = InvalidInput("the product was being asked when that was interrupted; load it again.")  # fmt: skip
                raise
            finally:
                timer.cancel()
                timer.join()  # it holds this object
        self._must_have_opened_nothing(head)
        if "error" in head:
            name, words = head["error"]
            kind = getattr(errors, name) if name in errors.__all__ else UnsafeProduct
            raise kind(str(words))
        return head, arrays

    def _exchange(
        self, request: Any, most: int
    ) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        writes = self._process.stdin
        assert writes is not None, "it was started with pipes"
        if not self._ready:
            self._read(0)
            self._ready = True
        content = pickle.dumps(request, protocol=5)
        writes.write(len(content).to_bytes(8, "big"))
        writes.write(content)
        writes.flush()
        return self._read(most)

    def _read(self, most: int) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Read one answer; nothing is allocated before its size is known to be allowed."""
        size = int.from_bytes(self._bytes(8), "big")
        if size > MOST_HEAD:
            raise ValueError(f"an answer begins with {size:,} bytes of text")
        head = json.loads(self._bytes(size))
        arrays = []
        for kind, shape in head["arrays"]:
            lengths = [int(length) for length in shape]
            dtype = np.dtype(_KINDS[kind])
            most -= math.prod(lengths) * dtype.itemsize
            if most < 0 or min(lengths, default=0) < 0:
                raise ValueError("it is larger than what was asked for")
            array = np.empty(lengths, dtype=dtype)
            if array.size:
                self._fill(array.reshape(-1).view(np.uint8).data)
            arrays.append(array)
        return head, arrays

    def _bytes(self, size: int) -> bytearray:
        data = bytearray(size)
        self._fill(memoryview(data))
        return data

    def _fill(self, view: memoryview) -> None:
        reads = self._process.stdout
        assert reads is not None, "it was started with pipes"
        at = 0
        while at < len(view):
            count = reads.readinto(view[at:])  # type: ignore[attr-defined]
            if not count:
                raise EOFError
            at += count

    def _stop(self) -> None:
        self._late = True
        self._process.kill()

    def _why_gone(self, seconds: float, doing: str) -> ReticentError:
        """Return why the process has ended."""
        try:
            status = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            status = 0
        self._end()
        if not self._ready:
            return WorkerLost(
                f"the process in which the product would be asked could not be started (status {status}); run python -m reticent.product._cell to see why."
            )
        if self._late or status == -getattr(signal, "SIGXCPU", 0):
            return UnsafeProduct(
                f"the product took more than {seconds:,.0f} s of computing {doing}, so it hangs or was made to; do not release it, or audit a smaller one."
            )
        if status == -signal.SIGKILL:
            return UnsafeProduct(
                f"the process of the product was killed while it was {doing.removeprefix('to be ')}, probably because it filled the memory; audit it where there is more, "
                "or a smaller one."
            )
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return UnsafeProduct(
            f"the product crashed the process in which it was asked ({how}), so it is damaged or was made to do harm; save the model anew."
        )

    def _must_have_opened_nothing(self, head: Mapping[str, Any]) -> None:
        refused = head.get("refused")
        if refused:
            self._end()
            self._gone = UnsafeProduct(
                f"the product tried to reach outside itself ({str(refused[0])[:300]}), which was refused and which no model needs to answer; do not use "
                "it, and ask whoever made it."
            )
            raise self._gone


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeignProduct:
    """A product that is loaded and asked in a process of its own.

    Parameters
    ----------
    cell : Cell
        The process.
    number : int
        Which product in it.
    data : bytes
        The real bytes of its file.
    file_name : str
        Name of the file in a folder that the product is saved to.
    classes : tuple of str
        Names of the classes, in the order of the answers; empty if it predicts a quantity.
    learned : tuple of str
        Names of the class numbers that it was trained on.
    warnings : tuple of str
        What users should know about the training.
    has_probabilities : bool
        Whether the product itself gives its answers.
    opens : bool
        Whether it is a network, which attackers may open.
    """

    cell: Cell
    number: int
    data: bytes = field(repr=False)
    file_name: str
    classes: tuple[str, ...]
    learned: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True
    opens: bool = False

    @classmethod
    def of(cls, cell: Cell, facts: Mapping[str, Any], **known: Any) -> "ForeignProduct":
        """Return the product that a process has told facts of."""
        return cls(
            cell=cell,
            number=int(facts["number"]),
            warnings=tuple(map(str, facts["warnings"])),
            has_probabilities=facts["has_probabilities"] is True,
            opens=facts["opens"] is True,
            **known,
        )

    @property
    def quantity(self) -> bool:
        """Whether it predicts a quantity; else it predicts a class."""
        return not self.classes

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        return self._asked("predict_proba", features)[0]

    def predict(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return the predicted quantity of each record, shape (n,)."""
        if not self.quantity:
            raise InvalidPredictions(
                "the product predicts a class and not a quantity; ask for predict_proba."
            )
        return self.outputs(features)[:, 0]

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two products are compared by, one row per record."""
        return self._asked("outputs", features)[0]

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return answers and outputs, of one query where both follow from it."""
        answers, *outputs = self._asked("asked", features)
        return answers, outputs[0] if outputs else answers

    def stages(self, features: pd.DataFrame) -> Stages:
        """Return the records after every step of preparation inside the product."""
        facts, arrays = self._ask("stages", features, most=MOST_STAGES * MOST_CELLS * 8)
        names = facts["names"]
        _must_fit(
            len(names) == len(arrays)
            and all(a.ndim == 2 and len(a) == len(features) for a in arrays)
            and all(a.dtype == np.float64 and a.size <= MOST_CELLS for a in arrays)
        )
        stages = (Stage(name=str(n), matrix=a) for n, a in zip(names, arrays, strict=True))  # fmt: skip
        return Stages(stages=tuple(stages), unseen=tuple(map(str, facts["unseen"])))

    def internals(
        self, features: pd.DataFrame, labels: NDArray[np.int64]
    ) -> Internals | None:
        """Return losses, gradients and activations; None if the product is no network."""
        if not self.opens:
            return None
        most = (2**12 + MOST_UNITS) * 8 * len(features)
        facts, arrays = self._ask("internals", features, most=most, labels=np.asarray(labels))  # fmt: skip
        _must_fit(len(arrays) == 3 and len(arrays[0]) == len(features))
        return Internals(
            losses=arrays[0],
            gradient_norms=arrays[1],
            layers=tuple(map(str, facts["layers"])),
            activations=arrays[2],
        )

    def cleaned(
        self,
        members: Table,
        *,
        rng: np.random.Generator,
        smallest_group: int = SMALLEST_GROUP,
    ) -> Cleaned:
        """Return the product without what its file need not tell; see :func:`reticent.product.clean_product`."""
        self._try(members.features)
        facts, arrays = self.cell.ask(
            "clean",
            number=self.number,
            members=members,
            rng=rng,
            group=smallest_group,
            seconds=10 * self._seconds(len(members)),
            doing="to be cleaned",
            most=2**30 + 8 * len(self.data),
        )
        _must_fit(len(arrays) == 1 and arrays[0].dtype == np.uint8)
        changed = facts["changed"]
        product = ForeignProduct.of(
            self.cell,
            facts,
            data=arrays[0].tobytes(),
            file_name=self.file_name,
            classes=self.classes,
            learned=self.learned,
        )
        return Cleaned(
            product=product,
            done=tuple(
                Done(what=str(entry["what"]), count=int(entry["count"]))
                for entry in facts["done"]
            ),
            kept=tuple(
                Kept(what=str(entry["what"]), why=str(entry["why"]))
                for entry in facts["kept"]
            ),
            changed=None
            if changed is None
            else AnswerChange(
                records=int(changed["records"]),
                changed=int(changed["changed"]),
                largest=float(changed["largest"]),
            ),
        )

    def save(self, file: Path) -> None:
        """Write the product's own bytes to a file."""
        write_bytes(file, self.data)

    def to_bytes(self) -> bytes:
        """Return the product's own bytes."""
        return self.data

    def _asked(self, method: str, features: pd.DataFrame) -> list[NDArray[Any]]:
        width = len(self.classes) or 1
        most = 2 * 8 * width * len(features)
        _, arrays = self._ask("ask", features, most=most, method=method)
        for array in arrays:
            _must_fit(
                array.shape == (len(features), width)
                and array.dtype == np.float64
                and bool(np.isfinite(array).all())
            )
        _must_fit(1 <= len(arrays) <= 2)
        return arrays

    def _ask(
        self, verb: str, features: pd.DataFrame, *, most: int, **arguments: Any
    ) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        self._try(features)
        return self.cell.ask(
            verb,
            number=self.number,
            features=features,
            most=most,
            seconds=self._seconds(len(features)),
            doing=f"to be asked about {len(features):,} records",
            **arguments,
        )

    def _try(self, features: pd.DataFrame) -> None:
        """Ask about the first few records before anything else: a product that hangs is found in seconds."""
        if self.cell.was_asked or len(features) <= FIRST_RECORDS:
            return
        self.cell.was_asked = True
        few = features.iloc[:FIRST_RECORDS]
        # What is wrong with its answers is said of all of them.
        with contextlib.suppress(InvalidPredictions):
            self.cell.ask(
                "ask",
                number=self.number,
                method="outputs",
                features=few,
                most=2 * 8 * FIRST_RECORDS * (len(self.classes) or 1),
                seconds=FIRST,
                doing=f"to be asked about {len(few)} records",
            )

    def _seconds(self, records: int) -> float:
        return LATER + PER_RECORD * records


def _must_fit(fits: bool) -> None:
    """Refuse an answer that is not what was asked for."""
    if not fits:
        raise InvalidPredictions(
            "the product's process answered with numbers of another shape or kind than was asked for, so nothing can be judged by them; save the "
            "model anew."
        )


def _own_types(trust: tuple[str, ...]) -> bytes:
    """Return the types of the running script that the user vouches for, which no other process can import."""
    main = sys.modules["__main__"]
    names = [name.removeprefix("__main__.") for name in trust if name.startswith("__main__.")]  # fmt: skip
    found = {name: getattr(main, name) for name in names if hasattr(main, name)}
    return bytes(cloudpickle.dumps(found)) if found else b""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process, and leave no zombie."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # what was not written yet has no reader any more
                continue
    process.wait()
