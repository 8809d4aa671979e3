"""What `reticent clean` does once its options are parsed."""

import sys
from dataclasses import asdict, fields
from pathlib import Path

from reticent._json import write_json
from reticent.cli._common import read_subject
from reticent.cli._options import CleanOptions, TableOptions
from reticent.errors import InvalidInput
from reticent.evidence import Estimate
from reticent.pipeline import CleanResult, clean
from reticent.product import SavedProduct, clean_table, is_table_file
from reticent.report import Screen

__all__ = ["run"]

# Options that mean nothing for a table.
OF_PRODUCTS = ("table", "target", "unit", "part", "schema", "drop", "group", "trust", "out", "seed")  # fmt: skip


def run(options: CleanOptions) -> int:
    """Clean a product, save it, say what was done; return the exit status."""
    if options.file is not None:
        return _clean_table(options, options.file)
    if is_table_file(options.product):
        raise InvalidInput(
            f"{options.product} is a table, and nothing says where its cells are to go; write the new file behind it: reticent clean TABLE OUT."
        )
    saved = SavedProduct(options.product, trust=tuple(options.trust or ()))
    table = read_subject(
        TableOptions(
            table=options.table,
            target=options.target,
            unit=options.unit,
            part=options.part,
            schema=options.schema,
            drop=options.drop,
        ),
        group=options.group,
        quantity=saved.quantity,
    )
    result = clean(saved, table, out=options.out, seed=options.seed)
    if options.json:
        sys.stdout.write(_json(result, options))
    else:
        _print(result, options)
    return 1 if result.still_found else 0


def _clean_table(options: CleanOptions, out: Path) -> int:
    """Write the cells of a table to another file, and say what was left out."""
    if not is_table_file(options.product):
        raise InvalidInput(
            f"{options.product} is no table, so its cells cannot be written to {out}; name a table, or save a cleaned product with --out."
        )
    defaults = {f.name: f.default for f in fields(CleanOptions)}
    given = [
        name
        for name in OF_PRODUCTS
        if getattr(options, name) not in (None, defaults[name])
    ]
    if given:
        raise InvalidInput(
            f"--{given[0]} belongs to the cleaning of a product and means nothing for a table; leave it out."
        )
    left_out = clean_table(options.product, out)
    if options.json:
        sys.stdout.write(write_json({"left_out": list(left_out), "table": str(out)}))
        return 0
    console = Screen(markup=False)
    console.print("Left out:" if left_out else "There was nothing but cells.")
    for what in left_out:
        console.print(f"    {what}", soft_wrap=True)
    console.print(
        "  The cells themselves may still tell members from others: audit the table.",
        soft_wrap=True,
    )
    console.print(f"  Table: {out}", soft_wrap=True)
    return 0


def _print(result: CleanResult, options: CleanOptions) -> None:
    console = Screen(markup=False)
    cleaned = result.cleaned

    def say(text: str, indent: str = "  ") -> None:
        console.print(indent + text, soft_wrap=True)

    say("Something is still found." if result.still_found else "Cleaned.", "")
    say("Done:")
    for done in cleaned.done:
        say(str(done), "    ")
    if not cleaned.done:
        say("nothing; there was nothing that could be taken out", "    ")
    if cleaned.kept:
        say("Could not be cleaned:")
        for kept in cleaned.kept:
            say(str(kept), "    ")
    say(f"Members: {cleaned.changed}.")
    say(f"Others: {result.nonmembers}.")
    say(
        f"The reader's AUC, members against others ({result.before.level:.0%} intervals): before {result.before}, after {result.after}; "
        "0.5 is a coin."
    )
    say("The answers themselves may still tell members from others: audit the product.")
    say(f"Product: {options.out}")


def _json(result: CleanResult, options: CleanOptions) -> str:
    cleaned = result.cleaned
    content = {
        "still_found": result.still_found,
        "done": [asdict(done) for done in cleaned.done],
        "kept": [asdict(kept) for kept in cleaned.kept],
        "members": None if cleaned.changed is None else asdict(cleaned.changed),
        "nonmembers": asdict(result.nonmembers),
        "reader": {
            "before": _estimate(result.before),
            "after": _estimate(result.after),
        },
        "counts": {
            "before": asdict(result.counts_before),
            "after": asdict(result.counts_after),
        },
        "product": str(options.out),
    }
    return write_json(content)


def _estimate(estimate: Estimate) -> dict[str, float | str]:
    return asdict(estimate)
