"""What `reticent identify` does once its options are parsed."""

import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console

from reticent.account import MaxPosterior, Relation
from reticent.attack import Euclidean, Gower, StructuralSimilarity
from reticent.cli._common import (
    Subject,
    find_own_modules,
    must_be_writable,
    progress_bars,
    read_subject,
)
from reticent.cli._risk import relation_of
from reticent.cli._train import default_network
from reticent.data import BUILTIN_NAME, Split, Table
from reticent.errors import InvalidInput
from reticent.pipeline import (
    Dissimilar,
    LargestGradient,
    Mislabelled,
    Neighbour,
    Stages,
    WatchPlan,
    divide,
    identify,
    results_folder,
)
from reticent.product import Provenance, read_provenance
from reticent.report import (
    identification_json,
    print_identification,
    save_identification,
)
from reticent.run import stream
from reticent.train import (
    PrivateModuleTrainer,
    PrivateNetworkTrainer,
    parse_trainer,
    spell,
    with_noise_for,
)

__all__ = ["IdentifyOptions", "run_identify"]

NEIGHBOURS = ("gradient", "mislabelled", "gower", "euclidean", "ssim")


@dataclass(frozen=True, kw_only=True)
class IdentifyOptions:
    """The options of `reticent identify`, as typed."""

    subject: Subject
    trainer: str | None
    product: Path | None
    claimed_epsilon: float | None
    relation: str
    neighbour: str
    image: str | None
    local: str | None
    shuffled: bool
    rows: int | None
    runs: int
    belief: float
    delta: float | None
    out: Path
    seed: int
    workers: int | None
    json: bool


def run_identify(options: IdentifyOptions) -> int:
    """Watch a training, save what was found, print it; return the exit status."""
    relation = relation_of(options.relation)
    table = read_subject(options.subject)
    provenance = Provenance()
    if options.product is not None:
        provenance = read_provenance(options.product)
    split = _split(table, provenance, options)
    members = _some(split.defender, options)
    delta = options.delta if options.delta is not None else 1 / (10 * len(members))
    trainer, claimed, by = _trainer(options, provenance, len(members), delta, relation)
    trainer.private.course(len(members))  # a batch larger than the table is told first
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
        seed=options.seed,
        subject={
            "table": options.subject.name or BUILTIN_NAME,
            "product": str(options.product or trainer.recipe),
        },
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
    )
    if options.workers is not None:
        plan = replace(plan, workers=options.workers)
    stages = Stages(folder=results_folder(options.out))
    with progress_bars(quiet=options.json) as progress:
        found = identify(
            members, plan, outside=split.reserved, stages=stages, progress=progress
        )
    save_identification(found, options.out)
    stages.clear()
    if options.json:
        sys.stdout.write(identification_json(found))
    else:
        console = Console(highlight=False)
        print_identification(found, console)
        console.print(
            f"  Report: {options.out / 'identification.html'}", soft_wrap=True
        )
    return 1 if found.epsilons.refuted else 0


def _trainer(
    options: IdentifyOptions,
    provenance: Provenance,
    rows: int,
    delta: float,
    relation: Relation,
) -> tuple[PrivateNetworkTrainer | PrivateModuleTrainer, float | None, str]:
    """Return the training to be watched, what is claimed of it, and by whom."""
    claimed, by = options.claimed_epsilon, "--claimed-epsilon"
    if claimed is None:
        by = "the accounting of its recipe"
    spec = options.trainer
    if spec is None and options.product is not None:
        if not provenance.recipe:
            raise InvalidInput(
                f"the product {options.product} does not say how it was trained, so its training cannot be watched; name it with --trainer."
            )
        spec = provenance.recipe
        guarantee = provenance.guarantee
        if claimed is None and guarantee is not None and guarantee.delta == delta:
            claimed, by = guarantee.epsilon, "the product's own guarantee"
    if spec is None:
        target = MaxPosterior(belief=options.belief, failure=delta)
        network = with_noise_for(
            default_network(rows), target, rows=rows, delta=delta, relation=relation
        )
        return (
            PrivateNetworkTrainer(network=network, recipe=spell(network)),
            claimed,
            by,
        )
    find_own_modules()
    trainer = parse_trainer(spec)
    if not isinstance(trainer, PrivateNetworkTrainer | PrivateModuleTrainer):
        raise InvalidInput(
            f"{spec} is no private training, so there are no noisy steps to watch; name a reticent.PrivateNetwork(...) or "
            "reticent.PrivateModule(...), or audit it with `reticent audit`."
        )
    return trainer, claimed, by


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
                f"ssim compares images, but their size is {options.image!r}; say it with --image, such as --image 28x28."
            )
        shape = (int(size[1]), int(size[2]))
        return Dissimilar(
            distance=StructuralSimilarity(shape=shape, dynamic_range=255.0)
        )
    raise InvalidInput(
        f"the neighbour {name!r} is not known; use one of {', '.join(NEIGHBOURS)}."
    )


def _split(table: Table, provenance: Provenance, options: IdentifyOptions) -> Split:
    """Return the parts the product was trained with, or those of the run's seed."""
    known = provenance.data_fingerprint == table.fingerprint
    if table.parts is None and provenance.seed is not None and known:
        return divide(table, seed=provenance.seed)
    return divide(table, seed=options.seed)


def _some(members: Table, options: IdentifyOptions) -> Table:
    """Return as many members as were asked for, drawn at random."""
    if options.rows is None or options.rows >= len(members):
        return members
    rng = stream(options.seed, "rows")
    return members.take(np.sort(rng.choice(len(members), options.rows, replace=False)))
