"""A synthetic table: rows that nobody has, made to stand for those of people."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import MISSING, read_frame
from reticent.errors import (
    InvalidPredictions,
    InvalidTable,
    OutputRefused,
    ReticentError,
)
from reticent.product._provenance import (
    PROVENANCE_FILE,
    Notes,
    Provenance,
    read_notes,
    write_notes_file,
)
from reticent.product.internals import Internals
from reticent.run import Content, content_of

__all__ = ["SYNTHETIC_FILE", "SyntheticTable", "load_synthetic", "write_synthetic"]

SYNTHETIC_FILE = "synthetic.parquet"
FEWEST_ROWS = (
    20  # as many as a part of a table needs: fewer rows show nothing about anybody
)


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """A table that would be released in place of the real one.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its rows, as they would be released.
    provenance : Provenance
        Where it comes from, as whoever made it says.
    warnings : tuple of str
        What users should know about how it was made.
    critic : callable or None
        What its generator was trained against, if it is at hand: from a data frame of records to one number each, larger meaning more real.
    file_digest : str
        SHA-256 of the file that it was read from; empty if it was not read from one.

    Raises
    ------
    InvalidTable
        If it has fewer than 20 rows, or two columns of one name.

    Examples
    --------
    >>> table = SyntheticTable(pd.DataFrame({"age": range(20)}))
    >>> len(table), table.content() == SyntheticTable(table.frame).content()
    (20, True)
    """

    frame: pd.DataFrame
    provenance: Provenance = field(default_factory=Provenance)
    warnings: tuple[str, ...] = ()
    critic: Callable[[pd.DataFrame], Any] | None = None
    file_digest: str = ""

    quantity: ClassVar[bool] = False
    learned: ClassVar[tuple[str, ...]] = ()
    has_probabilities: ClassVar[bool] = True
    file_name: ClassVar[str] = SYNTHETIC_FILE

    def __post_init__(self) -> None:
        if len(self.frame) < FEWEST_ROWS:
            raise InvalidTable(
                f"the synthetic table has {len(self.frame)} rows but at least {FEWEST_ROWS} are needed to say anything; bring a larger one."
            )
        if self.frame.columns.has_duplicates:
            twice = self.frame.columns[self.frame.columns.duplicated()][0]
            raise InvalidTable(
                f"the synthetic table has two columns called {twice!r}, which cannot be told apart; rename one."
            )

    def __len__(self) -> int:
        return len(self.frame)

    def content(self) -> Content:
        """Return a hash of all rows and columns: what everything that is found out about it depends on."""
        digest = hashlib.sha256(repr(list(map(str, self.frame.columns))).encode())
        digest.update(_row_hashes(self.frame).tobytes())
        return content_of(digest.hexdigest())

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two tables are compared by: whether each record stands in it, as 0 or 1, shape (n, 1)."""
        names = [name for name in features.columns if name in self.frame.columns]
        mine = _row_hashes(_in_one_form(self.frame[names]))
        found = np.isin(_row_hashes(_in_one_form(features[names])), mine)
        return found.astype(np.float64)[:, None]

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return whether each record stands in the table, which is the output as well."""
        outputs = self.outputs(features)
        return outputs, outputs

    def criticised(self, features: pd.DataFrame) -> NDArray[np.float64] | None:
        """Return what the critic says of each record; None if there is no critic.

        Raises
        ------
        InvalidPredictions
            If it fails, or does not say one finite number of each record.
        """
        if self.critic is None:
            return None
        try:
            said = np.asarray(self.critic(features.copy()), dtype=np.float64)
        except ReticentError:
            raise
        except Exception as error:
            # The kind only: a message could quote cells of the table.
            raise InvalidPredictions(
                f"the critic failed with {type(error).__name__}; try it outside reticent first, as function(frame)."
            ) from error
        said = said.reshape(-1) if said.size == len(features) else said
        if said.shape != (len(features),) or not np.isfinite(said).all():
            raise InvalidPredictions(
                f"the critic returned an array of shape {said.shape} for {len(features)} records, and all must be finite; let it return one number per record."
            )
        return said

    def internals(
        self, features: pd.DataFrame, labels: NDArray[np.int64]
    ) -> Internals | None:
        """Return None: a table has no inside beside its rows."""
        return None

    def save(self, file: Path) -> None:
        """Write the rows to a Parquet file.

        Raises
        ------
        OutputRefused
            If a column holds what a Parquet file cannot.
        """
        try:
            self.frame.to_parquet(file, index=False)
        except (TypeError, ValueError) as error:
            raise OutputRefused(
                f"the synthetic table cannot be written as Parquet ({type(error).__name__}), because a column mixes types; make each column "
                "numbers or texts."
            ) from error


def load_synthetic(path: Path | str) -> SyntheticTable:
    """Return a synthetic table from a CSV or Parquet file, or from a folder that :func:`reticent.product.save_product` wrote.

    Raises
    ------
    InvalidTable
        If there is no such file, or it is no table.
    """
    path = Path(path)
    file = path / SYNTHETIC_FILE if path.is_dir() else path
    frame, _ = read_frame(file, missing=MISSING)
    beside = file.parent / PROVENANCE_FILE if path.is_dir() else _side_file(file)
    table = SyntheticTable(frame, file_digest=_digest(file))
    return replace(table, provenance=read_notes(beside).provenance)


def write_synthetic(
    table: SyntheticTable,
    file: Path,
    *,
    split_of: Callable[[str], Mapping[str, str]] | None = None,
) -> None:
    """Write a synthetic table to a CSV or Parquet file, and its provenance with the guarantee to a file beside it.

    Parameters
    ----------
    table : SyntheticTable
        The table.
    file : Path
        Named ``.csv``, ``.csv.gz`` or ``.parquet``; the other file has ``.provenance.json`` behind that name.
    split_of : callable, optional
        From the SHA-256 of the file to what is said of how the real table was divided, if that is to be tied to the file.

    Raises
    ------
    OutputRefused
        If it cannot be written.
    """
    try:
        if file.suffix == ".parquet":
            table.save(file)
        else:
            table.frame.to_csv(file, index=False)
    except OSError as error:
        raise OutputRefused(
            f"the synthetic table cannot be written to {file} ({error.strerror or error}); choose another place."
        ) from error
    provenance = table.provenance
    if split_of is not None:
        provenance = replace(provenance, split=split_of(_digest(file)))
    write_notes_file(_side_file(file), Notes(provenance=provenance))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _side_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.{PROVENANCE_FILE}")


def _row_hashes(frame: pd.DataFrame) -> NDArray[np.uint64]:
    hashes = pd.util.hash_pandas_object(frame, index=False)
    return np.asarray(hashes, dtype=np.uint64)


def _in_one_form(frame: pd.DataFrame) -> pd.DataFrame:
    """Return numbers in double precision and everything else as text, so that equal rows have equal hashes."""
    return pd.DataFrame(
        {
            name: frame[name].astype(np.float64)
            if pd.api.types.is_numeric_dtype(frame[name])
            else frame[name].astype(object).where(frame[name].notna(), "\0").map(str)
            for name in frame.columns
        }
    )
