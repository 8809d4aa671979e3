"""A synthetic table: rows that nobody has, made to stand for those of people."""

import gzip
import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent._codec import encode
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
    notes_bytes,
    read_notes,
    write_notes_file,
)
from reticent.product.contents import BesideCells, beside_cells, with_files
from reticent.product.internals import Internals
from reticent.run import Content, content_of

__all__ = [
    "SYNTHETIC_FILE",
    "SyntheticTable",
    "clean_table",
    "is_table_file",
    "load_synthetic",
    "write_synthetic",
]

SYNTHETIC_FILE = "synthetic.parquet"
TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")
# Characters of a text in a provenance; a recipe, the longest of them, has some hundreds.
LONGEST_NOTE = 4_000
MOST_NOTES = 200  # texts in it; versions of packages are the most
LAYOUT = 1_000  # bytes by which two ways of writing the same provenance may differ
MOST_BESIDE = 2**28  # bytes of all further files in the folder of a table
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
    beside : BesideCells
        What that file, and the folder that it is in, hold besides the cells.

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
    beside: BesideCells = field(default_factory=BesideCells)

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
        """Write the cells to a Parquet file, and nothing else.

        Raises
        ------
        OutputRefused
            If a column holds what a Parquet file cannot.
        """
        try:
            _write_parquet(self.frame, file)
        except (TypeError, ValueError, pa.ArrowException) as error:
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
    # Before the cells are read: a file that claims more than memory holds is refused here.
    beside = beside_cells(file)
    others = _other_files(path) if path.is_dir() else {}
    frame, _ = read_frame(file, missing=MISSING)
    notes_file = file.parent / PROVENANCE_FILE if path.is_dir() else _side_file(file)
    notes = read_notes(notes_file)
    if notes_file.is_file():
        others[PROVENANCE_FILE] = notes_file.read_bytes()
    # Written by hand or by another version, it may be laid out differently, and hold no more.
    usual = len(others.get(PROVENANCE_FILE, b"")) <= len(notes_bytes(notes)) + LAYOUT
    texts = [*_texts_in(encode(notes.provenance))]
    usual &= (
        all(len(text) <= LONGEST_NOTE for text in texts) and len(texts) <= MOST_NOTES
    )
    named = frozenset([PROVENANCE_FILE]) if usual else frozenset()
    return SyntheticTable(
        frame,
        provenance=notes.provenance,
        file_digest=_digest(file),
        beside=with_files(beside, others, named=named) if others else beside,
    )


def _other_files(folder: Path) -> dict[str, bytes]:
    """Return the other files of a folder by their names; refuse what leads out of it, or is no file."""
    files: dict[str, bytes] = {}
    size = 0
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            entry = Path(place) / name
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                raise InvalidTable(
                    f"{entry} is a link or no file, so what is in it could change without notice; put plain files into the folder of a table."
                )
        for name in names:
            entry = Path(place) / name
            inside = entry.relative_to(folder).as_posix()
            if inside in (SYNTHETIC_FILE, PROVENANCE_FILE):
                continue
            size += entry.stat().st_size
            if size > MOST_BESIDE:
                raise InvalidTable(
                    f"the folder {folder} holds more than {MOST_BESIDE:,} bytes besides the table, {inside} among them; take out what is no part of it."
                )
            files[inside] = entry.read_bytes()
    return files


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text in the content of a provenance, names of its entries included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner)


def is_table_file(path: Path) -> bool:
    """Return whether a path is named like a table: ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``."""
    return path.name.lower().endswith(TABLE_ENDINGS)


def clean_table(source: Path | str, out: Path | str) -> tuple[str, ...]:
    """Write the cells of a table to another file, and nothing else; return what was left out.

    No metadata besides the schema, no index, no unused categories, no file name and no time is written, and the same cells give the same bytes.

    Parameters
    ----------
    source, out : path
        Files named ``.csv``, ``.csv.gz`` or ``.parquet``, each in a form of its own.

    Raises
    ------
    InvalidTable
        If there is no such table.
    OutputRefused
        If the table would replace itself, or cannot be written.
    """
    source, out = Path(source), Path(out)
    if not is_table_file(out):
        raise OutputRefused(
            f"the file {out} is none of .csv, .csv.gz and .parquet, the formats of tables; choose such a name."
        )
    if out.is_dir() or not out.parent.is_dir():
        raise OutputRefused(
            f"the cleaned table cannot be written to {out}, because that is no place for a file; choose another one."
        )
    if out.exists() and source.exists() and out.samefile(source):
        raise OutputRefused(
            f"the cleaned table would replace {source}; choose another name."
        )
    parts = beside_cells(source).parts
    frame, _ = read_frame(source, missing=("",))
    # Codes such as 007 stay what they are.
    frame, _ = read_frame(source, missing=("",), exact=[str(c) for c in frame.columns])
    SyntheticTable(frame)
    _write_cells(frame, out)
    return parts


def _write_cells(frame: pd.DataFrame, file: Path) -> None:
    """Write the cells of a frame to a file, by the ending of its name."""
    try:
        if file.name.lower().endswith((".parquet", ".pq")):
            SyntheticTable(frame).save(file)
            return
        with file.open("wb") as out:
            if file.name.lower().endswith(".gz"):
                with (
                    gzip.GzipFile(
                        filename="", fileobj=out, mode="wb", mtime=0
                    ) as packed,
                    io.TextIOWrapper(packed, encoding="utf-8", newline="") as lines,
                ):
                    frame.to_csv(lines, index=False)
            else:
                with io.TextIOWrapper(out, encoding="utf-8", newline="") as lines:
                    frame.to_csv(lines, index=False)
    except OSError as error:
        raise OutputRefused(
            f"the synthetic table cannot be written to {file} ({error.strerror or error}); choose another place."
        ) from error


def _write_parquet(frame: pd.DataFrame, file: Path) -> None:
    """Write the cells of a frame as Parquet: neither index, attributes nor statistics, and of categories those that are used, as texts."""
    plain = {
        str(name): column.astype(column.cat.categories.dtype)
        if isinstance(column.dtype, pd.CategoricalDtype)
        else column
        for name, column in frame.items()
    }
    table = pa.Table.from_pandas(pd.DataFrame(plain), preserve_index=False)
    table = table.replace_schema_metadata(None)
    pq.write_table(table, file, store_schema=False, write_statistics=False)


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
    _write_cells(table.frame, file)
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
