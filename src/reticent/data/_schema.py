"""Read the declaration of a table's columns from a TOML file."""

import tomllib
from pathlib import Path
from typing import Any

from reticent._check import nearest
from reticent.data._table import MISSING, ColumnKind, Schema
from reticent.errors import InvalidTable

__all__ = ["read_schema"]

INFERRED = "inferred"  # the word by which the values decide what other columns hold
DATE = "date"  # a kind of column in the file; in a table it is numeric, counted in days


def read_schema(path: Path | str) -> Schema:
    """Read a schema from TOML: a table ``[columns]``, ``missing = [...]``, ``drop = [...]`` and ``others = "inferred"``, each of them optional.

    The kinds of columns are ``numeric``, ``boolean``, ``categorical`` and ``date``. With ``others = "inferred"`` the values decide what the columns hold that are not declared.

    Raises
    ------
    InvalidTable
        If the file cannot be read or holds unknown keys or kinds.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidTable(
            f"the schema {path} cannot be read ({error}); write it as TOML with a table [columns]."
        ) from error
    known = ["columns", "missing", "drop", "others"]
    for key in content:
        if key not in known:
            raise InvalidTable(
                f"the schema {path} has the unknown key {key!r}, which would be ignored; "
                f"{nearest(key, known)}."
            )
    kinds = [*(kind.value for kind in ColumnKind), DATE]
    declared = content.get("columns", {})
    if not isinstance(declared, dict):
        raise InvalidTable(
            f"columns must be a table in the schema {path}, got {declared!r}; write [columns] with name = kind."
        )
    for name, kind in declared.items():
        if kind not in kinds:
            raise InvalidTable(
                f"column {name!r} of the schema {path} is declared {kind!r}, which is not a kind of column; "
                f"{nearest(str(kind), kinds)}."
            )
    others = content.get("others")
    if others not in (None, INFERRED):
        raise InvalidTable(
            f'others must be "{INFERRED}" in the schema {path}, got {others!r}; leave it out to make a column that is not declared an error.'
        )
    if not content.keys() - {"others"} or content == {"columns": {}}:
        raise InvalidTable(
            f"the schema {path} declares no column; add a table [columns] with name = kind."
        )
    missing = _texts(content, "missing", path, '["?", "-9"]')
    return Schema(
        columns={
            name: ColumnKind.NUMERIC if kind == DATE else ColumnKind(kind)
            for name, kind in declared.items()
        },
        missing=MISSING if missing is None else missing,
        dates=tuple(name for name, kind in declared.items() if kind == DATE),
        drop=_texts(content, "drop", path, '["name"]') or (),
        infers_others=others == INFERRED,
    )


def _texts(
    content: dict[str, Any], key: str, path: Path, example: str
) -> tuple[str, ...] | None:
    """Return a list of texts of the schema, or None if it is not there."""
    if key not in content:
        return None
    if not isinstance(content[key], list):
        raise InvalidTable(
            f"{key} must be a list in the schema {path}, got {content[key]!r}; "
            f"write, for example, {key} = {example}."
        )
    return tuple(map(str, content[key]))
