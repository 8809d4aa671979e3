"""What `reticent clean` does once its options are parsed."""

import sys
from dataclasses import asdict

from reticent._json import write_json
from reticent.cli._common import read_subject
from reticent.cli._options import CleanOptions, TableOptions
from reticent.evidence import Estimate
from reticent.pipeline import CleanResult, clean
from reticent.product import SavedProduct
from reticent.report import Screen

__all__ = ["run"]


def run(options: CleanOptions) -> int:
    """Clean a product, save it, say what was done; return the exit status."""
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
