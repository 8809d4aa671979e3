"""What `reticent train` does once its options are parsed."""

import shlex
import sys
from dataclasses import asdict, replace

from reticent._codec import encode
from reticent._json import write_json
from reticent.cli._common import read_subject, tell_findings
from reticent.cli._options import DEFAULT_CLIPPING, TrainOptions
from reticent.data import BUILTIN_NAME, Table
from reticent.errors import InvalidInput
from reticent.pipeline import (
    Risk,
    TrainedProduct,
    TrainPlan,
    default_network,
    divide,
    run_training,
)
from reticent.product import Trainer
from reticent.report import Screen, TrainingSummary, print_training, terminal
from reticent.train import SGD, PrivateNetwork, parse_clipping, parse_trainer

__all__ = ["run"]


def run(options: TrainOptions) -> int:
    """Train a product, save it, say what it guarantees; return the exit status."""
    trainer = None if options.trainer is None else _named_trainer(options)
    table = read_subject(
        options.subject, quantity=trainer is not None and trainer.quantity
    )
    plan = TrainPlan(
        everything=options.everything,
        divided_by=options.subject.divided_by,
        seed=options.seed,
    )
    risk = Risk(**asdict(options.risk))
    if trainer is None:
        recipe = _network(options, _rows(table, options))
        plan = replace(plan, risk=risk, recipe=recipe)
    elif not risk.is_stated:
        plan = replace(plan, trainer=trainer)
    elif (watchable := trainer.watching()) is not None:
        plan = replace(plan, risk=risk, recipe=watchable.private)
    else:
        plan = replace(plan, risk=risk, trainer=trainer)
    with terminal(quiet=options.json) as screen:
        # Working out the epsilon spent so far takes time, so it is done only if somebody reads it.
        progress = screen.tell if screen.watched else None
        tell_findings(table, screen.say)
        trained = run_training(table, plan, out=options.out, progress=progress)
    if options.json:
        sys.stdout.write(_json(options, trained))
        return 0
    summary = TrainingSummary(
        subject=options.subject.name or BUILTIN_NAME,
        rows=trained.rows,
        target=trained.target,
        guarantee=trained.guarantee,
        accuracy=trained.accuracy,
        guessing=trained.guessing,
        warnings=trained.product.warnings,
        folder=str(options.out),
        audit=None if options.everything else _audit_line(options),
    )
    print_training(summary, Screen())
    return 0


def _named_trainer(options: TrainOptions) -> Trainer:
    """Return the trainer that was named; options that shape the usual network say nothing about it."""
    shaping = {
        "--hidden": options.hidden,
        "--epochs": options.epochs,
        "--batch": options.batch,
        "--rate": options.rate,
        "--domain": options.domain,
        "--seeded": options.seeded or None,
        "--clipping": None
        if options.clipping == DEFAULT_CLIPPING
        else options.clipping,
    }
    typed = [name for name, value in shaping.items() if value is not None]
    if typed:
        raise InvalidInput(
            f"{typed[0]} shapes the usual network, but --trainer names another one; write it as an argument of the trainer."
        )
    return parse_trainer(options.trainer or "")


def _rows(table: Table, options: TrainOptions) -> int:
    """Return how many rows are trained on."""
    if options.everything:
        return len(table)
    return len(divide(table, seed=options.seed).defender)


def _network(options: TrainOptions, rows: int) -> PrivateNetwork:
    """Return the recipe; what is not asked for follows from the number of rows alone."""
    usual = default_network(rows)
    return replace(
        usual,
        hidden=usual.hidden if options.hidden is None else _widths(options.hidden),
        epochs=usual.epochs if options.epochs is None else options.epochs,
        batch=usual.batch if options.batch is None else options.batch,
        optimiser=usual.optimiser if options.rate is None else SGD(rate=options.rate),
        clipping=parse_clipping(options.clipping),
        domain=None if options.domain is None else str(options.domain),
        noise="seeded" if options.seeded else "secret",
    )


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(width) for width in text.split(",") if width.strip())
    except ValueError:
        raise InvalidInput(
            f"the hidden layers are {text!r}; write their widths with commas, such as 64,32, or nothing for a linear model."
        ) from None


def _audit_line(options: TrainOptions) -> str:
    words = ["reticent", "audit"]
    subject = options.subject
    if subject.table is not None:
        words += [str(subject.table), "--target", str(subject.target)]
    columns = {"unit": subject.unit, "part": subject.part, "schema": subject.schema}
    for name, value in columns.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    for column in subject.drop or ():
        words += ["--drop", column]
    return shlex.join([*words, "--product", str(options.out)])


def _json(options: TrainOptions, trained: TrainedProduct) -> str:
    accuracy = trained.accuracy
    content = {
        "guarantee": encode(trained.guarantee),
        "accuracy": encode(accuracy),
        "rows": trained.rows,
        "recipe": trained.provenance.recipe,
        "product": str(options.out),
    }
    return write_json(content)
