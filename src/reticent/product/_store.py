"""Save and load products without ever executing a stranger's code."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from reticent._write import write_text
from reticent.errors import InvalidInput, OutputRefused, UnsafeProduct
from reticent.product._fitted import FittedProduct

__all__ = ["Provenance", "load_product", "save_product", "versions"]

MODEL_FILE, PROVENANCE_FILE = "product.skops", "provenance.json"
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".sav", ".pt", ".pth")
# Types that skops does not know but that only hold parameters and trees.
_TRUSTED_PREFIXES = (
    "sklearn.",
    "numpy.",
    "scipy.",
    "xgboost.sklearn.",
    "xgboost.core.",
)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a product comes from.

    Parameters
    ----------
    recipe : str
        The trainer's description; empty if unknown.
    data_fingerprint : str
        Hash of the table the product was made from; empty if unknown.
    seed : int or None
        The run's seed.
    classes : tuple of str
        Names of the classes.
    versions : mapping of str to str
        Versions of Python packages at work.
    split : mapping of str to str
        How the table was divided: enough to divide it again.
    claimed_epsilon : float or None
        Privacy that whoever trained the product claims; None if nothing is claimed.
    """

    recipe: str = ""
    data_fingerprint: str = ""
    seed: int | None = None
    classes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    split: Mapping[str, str] = field(default_factory=dict)
    claimed_epsilon: float | None = None


def versions() -> dict[str, str]:
    """Return the versions of the packages a result depends on."""
    names = ("reticent", "numpy", "scipy", "scikit-learn", "pandas", "xgboost-cpu")
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def save_product(
    folder: Path | str, product: FittedProduct, provenance: Provenance
) -> Path:
    """Write a product and its provenance into a folder; return the folder.

    Raises
    ------
    OutputRefused
        If the folder cannot be written or the product cannot be stored without pickle.
    """
    import skops.io

    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = skops.io.dumps(product.estimator)
        part = folder / (MODEL_FILE + ".part")
        part.write_bytes(content)
        part.replace(folder / MODEL_FILE)
    except OSError as error:
        raise OutputRefused(
            f"the product cannot be written to {folder} ({error.strerror or error}); choose another folder."
        ) from error
    except Exception as error:
        raise OutputRefused(
            f"{type(product.estimator).__name__} cannot be stored without pickle ({error}); "
            "use a scikit-learn or XGBoost model."
        ) from error
    write_text(
        folder / PROVENANCE_FILE, json.dumps(asdict(provenance), indent=2) + "\n"
    )
    return folder


def load_product(
    path: Path | str, *, classes: tuple[str, ...], trust: tuple[str, ...] = ()
) -> tuple[FittedProduct, Provenance]:
    """Load a product saved with skops, after checking every type in it.

    Parameters
    ----------
    path : path
        A folder made by :func:`save_product`, or a ``.skops`` file made elsewhere.
    classes : tuple of str
        Names of the classes of the table it will be audited on.
    trust : tuple of str
        Further types the caller vouches for, by full name.

    Raises
    ------
    UnsafeProduct
        If it is a pickle, or holds a type that is not known to be harmless.
    """
    import skops.io

    path = Path(path)
    file = path / MODEL_FILE if path.is_dir() else path
    if not file.is_file():
        raise InvalidInput(
            f"there is no product at {path}; pass a folder with {MODEL_FILE} or a .skops file."
        )
    with file.open("rb") as handle:
        head = handle.read(4)
    if file.suffix.lower() in _PICKLE_ENDINGS or not head.startswith(b"PK"):
        raise UnsafeProduct(
            f"{file.name} is not a skops file{' but a pickle' if head[:1] == bytes([0x80]) or file.suffix.lower() in _PICKLE_ENDINGS else ''}: "
            "loading a pickle can execute any code, so it is refused; save the model with skops.io.dump."
        )
    try:
        unknown = [
            name
            for name in skops.io.get_untrusted_types(file=file)
            if not name.startswith(_TRUSTED_PREFIXES) and name not in trust
        ]
    except Exception as error:
        raise UnsafeProduct(
            f"{file.name} cannot be read as a skops file ({error}); save the model with skops.io.dump."
        ) from error
    if unknown:
        raise UnsafeProduct(
            f"{file.name} holds the type(s) {', '.join(sorted(unknown)[:5])}, whose loading could execute "
            "foreign code; read that code, then name each type with --trust."
        )
    estimator = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
    return FittedProduct(estimator=estimator, classes=classes), _read_provenance(
        file.parent / PROVENANCE_FILE
    )


def _read_provenance(file: Path) -> Provenance:
    if not file.is_file():
        return Provenance()
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        content["classes"] = tuple(content.get("classes", ()))
        return Provenance(**content)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"the provenance {file} cannot be read ({error}); delete it to audit the product as one of unknown origin."
        ) from error
