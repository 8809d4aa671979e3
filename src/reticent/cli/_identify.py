"""What `reticent identify` does once its options are parsed."""

import re
import shlex
import sys
from typing import Literal

import numpy as np

from reticent.attack import Euclidean, Gower, StructuralSimilarity
from reticent.cli._common import (
    find_own_modules,
    read_subject,
    running,
    tell_findings,
)
from reticent.cli._options import IdentifyOptions
from reticent.data import BUILTIN_NAME, Split, Table
from reticent.errors import InvalidInput
from reticent.pipeline import (
    Dissimilar,
    LargestGradient,
    Mislabelled,
    Neighbour,
    WatchPlan,
    divide,
    must_be_writable,
    relation_of,
    run_identification,
    training_to_watch,
)
from reticent.product import Provenance, Trainer, is_trained_on, read_provenance
from reticent.report import (
    Screen,
    identification_json,
    print_identification,
    save_identification,
)
from reticent.run import stream
from reticent.train import parse_claimed

__all__ = ["run"]

NEIGHBOURS = ("gradient", "mislabelled", "gower", "euclidean", "ssim")


def run(options: IdentifyOptions) -> int:
    """Watch a training, save the result, print it; return the exit status."""
    relation = relation_of(options.relation)
    table = read_subject(options.subject)
    provenance = Provenance()
    if options.product is not None:
        provenance = read_provenance(options.product)
    split = _split(table, provenance, options)
    members = _some(split.defender, options)
    # The same default as in `reticent train`, so that a product's own guarantee can be compared.
    delta = options.delta if options.delta is not None else 1 / (10 * len(members))
    training, claimed, by = _trainer(options, provenance, delta)
    trainer = training_to_watch(
        training,
        rows=len(members),
        delta=delta,
        belief=options.belief,
        relation=relation,
    )
    trainer.private.course(len(members))  # refuses a batch larger than the table
    must_be_writable(options.out)
    plan = WatchPlan(
        trainer=trainer,
        neighbour=_neighbour(options),
        relation=relation,
        runs=options.runs,
        local=_local(options.local),
        shuffled=options.shuffled,
        claimed=claimed,
        claimed_by=by,
        delta=delta,
        belief=options.belief,
        subject={
            "table": options.subject.name or BUILTIN_NAME,
            "product": str(options.product or trainer.recipe),
        },
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
    )
    with running(
        options.effort, out=options.out, seed=options.seed, quiet=options.json
    ) as carried_out:
        tell_findings(table, carried_out.say)
        identification = run_identification(
            members, plan, outside=split.reserved, run=carried_out
        )
    save_identification(identification, options.out)
    carried_out.store.clear()
    if options.json:
        sys.stdout.write(identification_json(identification))
    else:
        console = Screen()
        print_identification(identification, console)
        console.print(
            f"  Report: {options.out / 'identification.html'}", soft_wrap=True
        )
    return 1 if identification.contradicted else 0


def _trainer(
    options: IdentifyOptions, provenance: Provenance, delta: float
) -> tuple[str | Trainer | None, float | None, str]:
    """Return the training to be watched (None for the default one), what is claimed of it, and by whom."""
    claimed, by = options.claimed_epsilon, "--claimed-epsilon"
    if claimed is None:
        by = "the accounting of its recipe"
    if options.trainer is not None:
        find_own_modules()
    if options.trainer is not None or options.product is None:
        return options.trainer, claimed, by
    if not provenance.recipe:
        raise InvalidInput(
            f"the product {options.product} does not say how it was trained, so its training cannot be watched; name it with --trainer."
        )
    guarantee = provenance.guarantee
    # An epsilon at another delta is another claim.
    if claimed is None and guarantee is not None and guarantee.delta == delta:
        claimed, by = guarantee.epsilon, "whoever made the product"
    return parse_claimed(provenance.recipe), claimed, by


def _local(text: str | None) -> Literal["pair", "own"] | None:
    if text in (None, "pair", "own"):
        return text  # type: ignore[return-value]
    raise InvalidInput(
        f"the local sensitivity {text!r} is not known; use pair (distance of the two tables at hand) or own (longest gradient of the table in use)."
    )


def _neighbour(options: IdentifyOptions) -> Neighbour:
    name = options.neighbour
    if name == "gradient":
        return LargestGradient()
    if name == "mislabelled":
        return Mislabelled()
    if name == "gower":
        return Dissimilar(distance=Gower())
    if name == "euclidean":
        return Dissimilar(distance=Euclidean())
    if name == "ssim":
        size = re.fullmatch(r"(\d+)x(\d+)", options.image or "")
        if size is None:
            raise InvalidInput(
                f"ssim compares images, but their size is {options.image!r}; give it with --image, such as --image 28x28."
            )
        shape = (int(size[1]), int(size[2]))
        # The command takes pixels to be bytes; SSIM scales its constants to their range.
        return Dissimilar(
            distance=StructuralSimilarity(shape=shape, dynamic_range=255.0)
        )
    raise InvalidInput(
        f"the neighbour {name!r} is not known; use one of {', '.join(NEIGHBOURS)}."
    )


def _split(table: Table, provenance: Provenance, options: IdentifyOptions) -> Split:
    """Return the parts the product was trained with, or those of the run's seed."""
    if (
        table.parts is None
        and provenance.seed is not None
        and is_trained_on(provenance, table)
    ):
        return divide(table, seed=provenance.seed)
    return divide(table, seed=options.seed)


def _some(members: Table, options: IdentifyOptions) -> Table:
    """Return as many members as were asked for, drawn at random."""
    if options.rows is None or options.rows >= len(members):
        return members
    rng = stream(options.seed, "rows")
    # In the table's order, so that only the choice of rows is random.
    return members.take(np.sort(rng.choice(len(members), options.rows, replace=False)))
