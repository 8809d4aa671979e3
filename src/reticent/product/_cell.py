"""The process in which a foreign product is loaded and asked: it opens nothing, and what it answers is bounded.

It reads requests from its parent, which it trusts, and answers with JSON and plain numbers, which its parent can read without trusting it.
"""

import contextlib
import importlib
import io
import json
import math
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
import time
import warnings
from dataclasses import asdict
from typing import Any, BinaryIO
from zipfile import ZipFile

import joblib
import numpy as np

from reticent import errors
from reticent.errors import InvalidPredictions, ReticentError
from reticent.product._fitted import FittedProduct
from reticent.product._load import load_estimator, load_network
from reticent.product._lock import Lock
from reticent.product._module import holds_module
from reticent.product._network import NetworkProduct
from reticent.product._regressor import (
    FittedRegressor,
    declares_class,
    declares_quantity,
)
from reticent.product._skops import skops_io
from reticent.product.clean import clean_product

__all__ = ["main"]

SECONDS_TO_OUTLIVE = 1.0  # how often the process looks whether its parent is alive
MOST_WORDS = 2000  # letters of an error
# Libraries that load others on import, which a locked process cannot.
_NATIVE = ("xgboost", "lightgbm", "catboost")

_Reply = tuple[dict[str, Any], list[Any]]


class _Cell:
    """The product in this process, and the products that were made of it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._model: Any = None
        self._products: list[Any] = []

    def load(
        self,
        *,
        name: str,
        data: bytes,
        trust: tuple[str, ...],
        path: list[str],
        modules: tuple[str, ...],
        vouched: bytes,
    ) -> _Reply:
        """Import what is needed, lock the process, and only then unpack the product."""
        is_network = name.endswith(".safetensors")
        _prepare(data, is_network, trust, path, modules, vouched)
        self.lock.close(size=len(data))
        if is_network:
            self._model = load_network(name, data)
            quantity: bool | None = self._model.quantity
        else:
            self._model = load_estimator(name, data, trust)
            declares = declares_class(self._model) or declares_quantity(self._model)
            quantity = declares_quantity(self._model) if declares else None
        return {"quantity": quantity}, []

    def become(self, *, classes: tuple[str, ...], learned: tuple[str, ...]) -> _Reply:
        """Make a product of the model, which answers about a table with these classes."""
        model = self._model
        if hasattr(model, "with_classes") and hasattr(model, "encoder"):
            product = model.with_classes(classes)
        elif (declares_quantity if classes else declares_class)(model):
            raise InvalidPredictions(
                f"the product is a {'regression model' if classes else 'classifier'}, but the table's target is a "
                f"{'class' if classes else 'quantity'}; audit it on a table with the target it was trained for."
            )
        elif classes:
            product = FittedProduct(estimator=model, classes=classes, learned=learned)
        else:
            product = FittedRegressor(estimator=model)
        return self._facts(product), []

    def _facts(self, product: Any) -> dict[str, Any]:
        self._products.append(product)
        return {
            "number": len(self._products) - 1,
            "warnings": list(product.warnings),
            "has_probabilities": bool(product.has_probabilities),
            "opens": isinstance(product, NetworkProduct) or hasattr(product, "module"),
        }

    def ask(self, *, number: int, method: str, features: Any) -> _Reply:
        """Return what a method of a product answers: one array, or two if they differ."""
        product = self._products[number]
        answer = getattr(product, method)(features)
        if isinstance(answer, tuple):
            answers, outputs = answer
            return {}, [answers] if answers is outputs else [answers, outputs]
        return {}, [answer]

    def stages(self, *, number: int, features: Any) -> _Reply:
        """Return the records after every step of preparation."""
        stages = self._products[number].stages(features)
        names = [stage.name for stage in stages.stages]
        matrices = [stage.matrix for stage in stages.stages]
        return {"names": names, "unseen": list(stages.unseen)}, matrices

    def internals(self, *, number: int, features: Any, labels: Any) -> _Reply:
        """Return what an attacker who opens a network sees."""
        inside = self._products[number].internals(features, labels)
        arrays = [inside.losses, inside.gradient_norms, inside.activations]
        return {"layers": list(inside.layers)}, arrays

    def clean(self, *, number: int, members: Any, rng: Any, group: int) -> _Reply:
        """Clean a product, and return the bytes of the new one and what was done."""
        product = self._products[number]
        cleaned = clean_product(product, members, rng=rng, smallest_group=group)
        new: Any = cleaned.product
        facts = {
            **self._facts(new),
            "done": [asdict(done) for done in cleaned.done],
            "kept": [asdict(kept) for kept in cleaned.kept],
            "changed": None if cleaned.changed is None else asdict(cleaned.changed),
        }
        return facts, [np.frombuffer(new.to_bytes(), dtype=np.uint8)]


def main() -> None:
    """Answer requests until the parent closes the pipe or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    _outlive_by_little(os.getppid())
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    cell = _Cell()
    _send(answers, {"ready": True}, [])
    # Threads, because processes cannot be started; the parts into which work is divided are the same.
    with joblib.parallel_config(backend="threading"):
        while size := requests.read(8):
            cell.lock.takes_request = True
            # Written by the parent, which this process may trust.
            content = requests.read(int.from_bytes(size, "big"))
            seconds, verb, arguments = pickle.loads(content)
            _allow(seconds)
            cell.lock.takes_request = False
            head, arrays = _answered(cell, verb, arguments)
            del arguments
            _send(answers, head | {"refused": cell.lock.refused}, arrays)
    os._exit(0)


def _answered(cell: _Cell, verb: str, arguments: dict[str, Any]) -> _Reply:
    """Return the answer to a request, or the error in its place."""
    try:
        return getattr(cell, verb)(**arguments)  # type: ignore[no-any-return]
    except ReticentError as error:
        kind = type(error).__name__
        name = kind if kind in errors.__all__ else "InvalidInput"
        words = str(error)
    except BaseException as error:  # whatever a product raises, SystemExit too
        name = "UnsafeProduct"
        words = (
            f"the product raised {type(error).__name__} ({' '.join(str(error).split())[:200]}) when it was asked, so it is damaged or was made to do "
            "harm; save the model anew."
        )
    return {"error": [name, words[:MOST_WORDS]]}, []


def _send(answers: BinaryIO, head: dict[str, Any], arrays: list[Any]) -> None:
    """Send JSON, and after it the bytes of the arrays that it describes."""
    plain = [np.ascontiguousarray(array) for array in arrays]
    head["arrays"] = [[array.dtype.str, list(array.shape)] for array in plain]
    words = json.dumps(head).encode()
    answers.write(len(words).to_bytes(8, "big"))
    answers.write(words)
    for array in plain:
        if not array.dtype.hasobject and array.size:
            answers.write(array.reshape(-1).view(np.uint8).data)
    answers.flush()


def _prepare(
    data: bytes,
    is_network: bool,
    trust: tuple[str, ...],
    path: list[str],
    modules: tuple[str, ...],
    vouched: bytes,
) -> None:
    """Import what the product needs, as long as files can be opened."""
    sys.path[:] = path
    if is_network:
        wanted = ["safetensors", "safetensors.numpy"]
        if holds_module(data):
            # The second is imported by the first operation anyway, and makes a folder then.
            wanted += ["safetensors.torch", "torch._dynamo"]
            wanted += ["reticent.product.module_internals"]
    else:
        skops_io()
        wanted = [name for name in _NATIVE if f"{name}.".encode() in _schema(data)]
    for name in (*wanted, *modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in trust:
        _import_type(name)
    if vouched:
        vars(sys.modules["__main__"]).update(pickle.loads(vouched))
    _count_cores()


def _schema(data: bytes) -> bytes:
    """Return the beginning of the schema in a skops file, in which the names of types are looked for; nothing if it is damaged."""
    try:
        with ZipFile(io.BytesIO(data)) as archive, archive.open("schema.json") as file:
            return file.read(2**28)
    except Exception:
        return b""  # why it is damaged is said when it is loaded


def _import_type(name: str) -> None:
    """Import the module of a type that the user vouches for."""
    module = name
    while "." in module:
        module = module.rpartition(".")[0]
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
            return


def _count_cores() -> None:
    """Let libraries find out now how many cores and pools of threads there are, for which they open files."""
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    with contextlib.suppress(RuntimeError, ValueError):
        # Locks of this kind of process need no helper process, which could not be started.
        multiprocessing.set_start_method("fork")
    joblib.cpu_count(only_physical_cores=True)
    _openmp_effective_n_threads()
    with contextlib.suppress(ImportError):
        from sklearn.utils.parallel import _get_threadpool_controller

        _get_threadpool_controller()


def _allow(seconds: float) -> None:
    """Allow so many more seconds of computing; then the system ends this process."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    with contextlib.suppress(OSError, ValueError):
        soft = math.ceil(used + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, most))


def _outlive_by_little(parent: int) -> None:
    """End this process when its parent is gone, even in the middle of a question."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_TO_OUTLIVE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
