"""What `reticent train` does once its options are parsed."""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from reticent.account import Guarantee, Relation
from reticent.cli._common import (
    Subject,
    must_be_writable,
    progress_bars,
    read_subject,
    silent,
)
from reticent.cli._risk import Risk, delta_of, relation_of, target_of
from reticent.data import BUILTIN_NAME, Table
from reticent.errors import InvalidInput
from reticent.evidence import Estimate, clopper_pearson
from reticent.pipeline import divide, train_seed
from reticent.product import Provenance, save_product, versions
from reticent.report import print_training
from reticent.train import (
    SGD,
    PrivateNetwork,
    PrivateNetworkTrainer,
    fitting_batch,
    guarantee_of,
    parse_clipping,
    spell,
    spent,
    with_noise_for,
)

__all__ = ["TrainOptions", "default_network", "train"]

EPOCHS, RATE = 30, 1.0
HIDDEN = (32,)
MARKS = 5  # how often the budget spent so far is worked out


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `reticent train`, as typed."""

    subject: Subject
    risk: Risk
    hidden: str | None
    epochs: int | None
    batch: int | None
    rate: float | None
    clipping: str
    domain: Path | None
    everything: bool
    seeded: bool
    out: Path
    seed: int
    json: bool


def train(options: TrainOptions) -> int:
    """Train a private network, save it, say what it guarantees; return the exit status."""
    relation = relation_of(options.risk.relation)
    table = read_subject(options.subject)
    if options.everything:
        members, others = table, None
    else:
        split = divide(table, seed=options.seed)
        members, others = split.defender, split.reserved
    rows = len(members)
    _, limit, target = target_of(options.risk, rows)
    delta = delta_of(options.risk, rows)
    asked = target(limit)
    network = _network(options, rows)
    network.course(
        rows
    )  # a batch larger than the table is told before anything is made
    must_be_writable(options.out)
    network = with_noise_for(network, asked, rows=rows, delta=delta, relation=relation)
    trainer = PrivateNetworkTrainer(network=network, recipe=spell(network))
    with progress_bars(quiet=options.json) as show:
        told = None if show is silent else _told(show, network, rows, delta, relation)
        product = trainer.train(members, seed=train_seed(options.seed), told=told)
    guarantee = guarantee_of(
        network,
        rows=rows,
        delta=delta,
        relation=relation,
        prior=options.risk.prior,
        fpr=options.risk.fpr or 0.001,
        largest_unit=_largest_unit(members),
    )
    if others is not None:
        guarantee = replace(
            guarantee, public=(*guarantee.public, "which rows were kept aside")
        )
    provenance = Provenance(
        recipe=trainer.recipe,
        data_fingerprint=table.fingerprint,
        # Without a part of its own for the audit, nobody can be called a non-member.
        seed=None if options.everything else options.seed,
        classes=table.classes,
        versions=versions(),
        split={"by": "everything"} if options.everything else options.subject.divided,
        claimed_epsilon=guarantee.epsilon if guarantee.holds else None,
        guarantee=guarantee,
    )
    save_product(options.out, product, provenance)
    useful = None
    if others is not None:
        answers = product.predict_proba(others.features).argmax(axis=1)
        hits = answers == others.target
        useful = clopper_pearson(int(hits.sum()), len(hits), level=0.95)
    if options.json:
        sys.stdout.write(_json(options, guarantee, useful, rows, trainer.recipe))
        return 0
    print_training(
        Console(highlight=False),
        subject=options.subject.name or BUILTIN_NAME,
        rows=rows,
        asked=asked.words,
        guarantee=guarantee,
        accuracy=useful,
        guessing=None
        if others is None
        else float(np.bincount(others.target).max() / len(others)),
        warnings=product.warnings,
        folder=str(options.out),
        audit=None if others is None else _audit_line(options),
    )
    return 0


def default_network(rows: int) -> PrivateNetwork:
    """Return the recipe without noise that is trained if nothing else is asked for."""
    return PrivateNetwork(
        hidden=HIDDEN,
        activation="tanh",
        epochs=EPOCHS,
        batch=fitting_batch(rows),
        optimiser=SGD(rate=RATE),
    )


def _network(options: TrainOptions, rows: int) -> PrivateNetwork:
    """Return the recipe; what is not asked for follows from the number of rows alone."""
    usual = default_network(rows)
    rate = RATE if options.rate is None else options.rate
    return replace(
        usual,
        hidden=_widths(options.hidden),
        epochs=usual.epochs if options.epochs is None else options.epochs,
        batch=usual.batch if options.batch is None else options.batch,
        optimiser=SGD(rate=rate),
        clipping=parse_clipping(options.clipping),
        domain=None if options.domain is None else str(options.domain),
        noise="seeded" if options.seeded else "secret",
    )


def _widths(text: str | None) -> tuple[int, ...]:
    if text is None:
        return HIDDEN
    try:
        return tuple(int(width) for width in text.split(",") if width.strip())
    except ValueError:
        raise InvalidInput(
            f"the hidden layers are {text!r}; write their widths with commas, such as 64,32, or nothing for a linear model."
        ) from None


def _told(
    show: Callable[..., None],
    network: PrivateNetwork,
    rows: int,
    delta: float,
    relation: Relation,
) -> Callable[[int], None]:
    """Return what shows steps done, and at some marks the epsilon spent so far."""
    steps = network.course(rows).steps
    marks = {max(1, round(steps * k / MARKS)) for k in range(1, MARKS + 1)}

    def told(done: int) -> None:
        note = ""
        if done in marks:
            epsilon = spent(
                network, rows=rows, delta=delta, relation=relation, steps=done
            )
            note = f"epsilon {epsilon:.2f} spent (delta {delta:.2g}, {relation.value})"
        show("training privately", done, steps, note)

    return told


def _largest_unit(members: Table) -> int:
    """Return the most rows one person has; what is said of it is public as the settings are."""
    return int(np.unique(members.units, return_counts=True)[1].max())


def _audit_line(options: TrainOptions) -> str:
    words = ["reticent", "audit"]
    subject = options.subject
    if subject.table is not None:
        words += [str(subject.table), "--target", str(subject.target)]
    for name in ("unit", "part", "schema"):
        value = getattr(subject, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    return shlex.join([*words, "--product", str(options.out)])


def _json(
    options: TrainOptions,
    guarantee: Guarantee,
    accuracy: Estimate | None,
    rows: int,
    recipe: str,
) -> str:
    content = {
        "guarantee": asdict(guarantee),
        "accuracy": None if accuracy is None else asdict(accuracy),
        "rows": rows,
        "recipe": recipe,
        "product": str(options.out),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"
