"""The commands, and what happens when something goes wrong."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli._options import (
    FPR,
    TPR,
    Advantage,
    Belief,
    Delta,
    Epsilon,
    Part,
    Prior,
    Relation,
    Schema,
    Target,
    Unit,
    Workers,
)

__all__ = ["app", "main"]

INTERNAL_ERROR, INTERRUPTED = 70, 130

app = typer.Typer(
    name="reticent",
    help="May this model be released? Attack it, measure with intervals, decide by a policy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _root() -> None:
    """May this model be released? Attack it, measure with intervals, decide by a policy."""


@app.command()
def audit(
    table: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, CSV.gz or Parquet; without it a built-in table is audited."
        ),
    ] = None,
    target: Target = None,
    group: Annotated[str | None, typer.Option(help="Column with subgroups.")] = None,
    unit: Unit = None,
    part: Part = None,
    schema: Schema = None,
    trainer: Annotated[
        str | None,
        typer.Option(
            help='"sklearn.naive_bayes.GaussianNB()" or "module:function"; '
            "by default a random forest."
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Give the trainer the columns as they are.")
    ] = False,
    product: Annotated[
        Path | None, typer.Option(help="Audit a product saved with skops instead.")
    ] = None,
    trust: Annotated[
        list[str] | None, typer.Option(help="A type in the product you vouch for.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="default, strict, or a TOML file.")
    ] = "default",
    claimed_epsilon: Annotated[
        float | None, typer.Option(help="Privacy the product claims.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for dossier and report.")] = Path(
        "reticent-audit"
    ),
    per_record: Annotated[
        Path | None, typer.Option(help="Write individual risk to this file. SENSITIVE.")
    ] = None,
    save_product: Annotated[
        Path | None, typer.Option(help="Save the trained product to this folder.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="For split, training and attacks.", min=0)
    ] = 0,
    minutes: Annotated[
        float, typer.Option(help="About how long the audit may take.", min=0.01)
    ] = 2.0,
    rounds: Annotated[
        int, typer.Option(help="Most retraining rounds per regime.", min=1)
    ] = 100,
    pool: Annotated[
        int | None,
        typer.Option(
            help="Models to train for attacks that compare; by default as many as the time allows.",
            min=0,
        ),
    ] = None,
    memory: Annotated[
        float, typer.Option(help="Gigabytes the pool may take.", min=0.01)
    ] = 2.0,
    workers: Workers = None,
    watch: Annotated[
        int | None,
        typer.Option(
            help="Trainings to watch step by step, if they are private; by default as many as the time allows.",
            min=0,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the dossier as JSON, nothing else.")
    ] = False,
) -> None:
    """Audit a product and say whether the policy lets it be released.

    Exit status: 0 release, 1 refuse, 2 wrong usage or bad input, 3 inconclusive.
    """
    with _interruptible():
        from reticent.cli._audit import AuditOptions, run
        from reticent.cli._common import Subject

        status = run(
            AuditOptions(
                subject=Subject(
                    table=table,
                    target=target,
                    group=group,
                    unit=unit,
                    part=part,
                    schema=schema,
                ),
                trainer=trainer,
                raw=raw,
                product=product,
                trust=tuple(trust or ()),
                policy=policy,
                claimed_epsilon=claimed_epsilon,
                out=out,
                per_record=per_record,
                save_product=save_product,
                seed=seed,
                minutes=minutes,
                rounds=rounds,
                pool=pool,
                memory=memory,
                workers=workers,
                watch=watch,
                json=json,
            )
        )
    raise typer.Exit(status)


@app.command()
def plan(
    belief: Belief = None,
    advantage: Advantage = None,
    tpr: TPR = None,
    fpr: FPR = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    prior: Prior = 0.5,
    rows: Annotated[int | None, typer.Option(help="Rows of the table.")] = None,
    batch: Annotated[
        int | None, typer.Option(help="Records that take part in a step, on average.")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the table.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps, in place of epochs; with --rate.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Share of records in a step; with --steps.")
    ] = None,
    relation: Relation = "add/remove",
    html: Annotated[
        Path | None, typer.Option(help="Write an interactive page to this file.")
    ] = None,
    workers: Workers = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the plan as JSON, nothing else.")
    ] = False,
) -> None:
    """Turn a risk people understand into noise, epsilon and delta of a private training.

    Exit status: 0, or 2 for wrong usage or bad input.
    """
    with _interruptible():
        import os

        from reticent.cli._plan import PlanOptions
        from reticent.cli._plan import plan as make
        from reticent.cli._risk import Risk

        status = make(
            PlanOptions(
                risk=Risk(
                    belief=belief,
                    advantage=advantage,
                    tpr=tpr,
                    fpr=fpr,
                    epsilon=epsilon,
                    delta=delta,
                    prior=prior,
                    relation=relation,
                ),
                rows=rows,
                batch=batch,
                epochs=epochs,
                steps=steps,
                rate=rate,
                html=html,
                workers=workers or os.cpu_count() or 1,
                json=json,
            )
        )
    raise typer.Exit(status)


@app.command()
def train(
    table: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, CSV.gz or Parquet; without it a built-in table is used."
        ),
    ] = None,
    target: Target = None,
    unit: Unit = None,
    part: Part = None,
    schema: Schema = None,
    belief: Belief = None,
    advantage: Advantage = None,
    tpr: TPR = None,
    fpr: FPR = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    prior: Prior = 0.5,
    relation: Relation = "add/remove",
    hidden: Annotated[
        str | None,
        typer.Option(help="Widths of hidden layers, such as 64,32; by default 32."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the rows; by default 30.", min=1)
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            help="Records in a step, on average; by default about a twentieth.", min=1
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Learning rate; by default 1.")
    ] = None,
    clipping: Annotated[
        # Version 0.1 called it a treatment.
        str,
        typer.Option(
            "--clipping", "--treatment", help="What bounds a record's gradient."
        ),
    ] = "reticent.Clip(norm=1.0)",
    domain: Annotated[
        Path | None,
        typer.Option(
            help="Values of the columns declared in TOML; else they are learned with noise."
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Use all rows, and leave none for an audit."),
    ] = False,
    seeded: Annotated[
        bool,
        typer.Option(
            "--seeded", help="Noise from the seed, for experiments: NO GUARANTEE."
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the product.")] = Path(
        "reticent-product"
    ),
    seed: Annotated[
        int, typer.Option(help="For the split and the first weights.", min=0)
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print the guarantee as JSON, nothing else.")
    ] = False,
) -> None:
    """Train a network with a privacy guarantee, and save it with that guarantee.

    Exit status: 0, or 2 for wrong usage or bad input.
    """
    with _interruptible():
        from reticent.cli._common import Subject
        from reticent.cli._risk import Risk
        from reticent.cli._train import TrainOptions
        from reticent.cli._train import train as run_training

        status = run_training(
            TrainOptions(
                subject=Subject(
                    table=table, target=target, unit=unit, part=part, schema=schema
                ),
                risk=Risk(
                    belief=belief,
                    advantage=advantage,
                    tpr=tpr,
                    fpr=fpr,
                    epsilon=epsilon,
                    delta=delta,
                    prior=prior,
                    relation=relation,
                ),
                hidden=hidden,
                epochs=epochs,
                batch=batch,
                rate=rate,
                clipping=clipping,
                domain=domain,
                everything=everything,
                seeded=seeded,
                out=out,
                seed=seed,
                json=json,
            )
        )
    raise typer.Exit(status)


@app.command()
def identify(
    table: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, CSV.gz or Parquet; without it a built-in table is used."
        ),
    ] = None,
    target: Target = None,
    unit: Unit = None,
    part: Part = None,
    schema: Schema = None,
    trainer: Annotated[
        str | None,
        typer.Option(
            help='"reticent.PrivateNetwork(...)" or "reticent.PrivateModule(...)"; by default what `reticent train --belief` trains.'
        ),
    ] = None,
    product: Annotated[
        Path | None,
        typer.Option(help="Watch the training of a product saved by `reticent train`."),
    ] = None,
    claimed_epsilon: Annotated[
        float | None, typer.Option(help="The epsilon to put to the test.")
    ] = None,
    relation: Relation = "add/remove",
    neighbour: Annotated[
        str,
        typer.Option(
            help="The record that tells the tables apart: gradient (the longest), mislabelled (a canary), or the most unlike by gower, euclidean, ssim."
        ),
    ] = "mislabelled",
    image: Annotated[
        str | None, typer.Option(help="Size of images for ssim, such as 28x28.")
    ] = None,
    local: Annotated[
        str | None,
        typer.Option(
            help="Scale noise to the records, by pair or own: empirical, NOT DP."
        ),
    ] = None,
    shuffled: Annotated[
        bool,
        typer.Option("--shuffled", help="Cut batches from a shuffled table."),
    ] = False,
    rows: Annotated[
        int | None, typer.Option(help="Watch a random part of so many rows.", min=2)
    ] = None,
    runs: Annotated[int, typer.Option(help="Trainings to watch.", min=2)] = 100,
    belief: Annotated[
        float, typer.Option(help="A belief in the truth that should be rare.")
    ] = 0.9,
    delta: Delta = None,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path(
        "reticent-identify"
    ),
    seed: Annotated[
        int, typer.Option(help="For split, coins, batches and noise.", min=0)
    ] = 0,
    workers: Workers = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, nothing else.")
    ] = False,
) -> None:
    """Watch every step of a private training as the strongest adversary would, and put its epsilon to the test.

    Exit status: 0 not refuted, 1 refuted, 2 wrong usage or bad input.
    """
    with _interruptible():
        from reticent.cli._common import Subject
        from reticent.cli._identify import IdentifyOptions, run_identify

        status = run_identify(
            IdentifyOptions(
                subject=Subject(
                    table=table, target=target, unit=unit, part=part, schema=schema
                ),
                trainer=trainer,
                product=product,
                claimed_epsilon=claimed_epsilon,
                relation=relation,
                neighbour=neighbour,
                image=image,
                local=local,
                shuffled=shuffled,
                rows=rows,
                runs=runs,
                belief=belief,
                delta=delta,
                out=out,
                seed=seed,
                workers=workers,
                json=json,
            )
        )
    raise typer.Exit(status)


@app.command()
def report(
    dossier: Annotated[Path, typer.Argument(help="A dossier.json, or its folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write report.html and report.txt to.")
    ] = None,
) -> None:
    """Print the report of an earlier audit; with --out write it anew.

    Exit status as of the audit.
    """
    from reticent.cli._audit import show

    raise typer.Exit(show(dossier, out))


@app.command()
def policy(
    name: Annotated[str, typer.Argument(help="default or strict.")] = "default",
) -> None:
    """Print a policy that ships with reticent, to copy and change."""
    from importlib import resources

    from reticent.policy import SHIPPED, read_policy

    read_policy(name)
    if name in SHIPPED:
        file = resources.files("reticent.policy").joinpath(f"{name}.toml")
        typer.echo(file.read_text(), nl=False)
    else:
        typer.echo(Path(name).read_text(), nl=False)


def main() -> None:
    """Run the command line; every failure is one sentence and an exit status of its own.

    An unexpected error must not look like a refusal (1), so it exits with 70.
    """
    from reticent.errors import ReticentError

    try:
        app()
    except ReticentError as error:
        # A name or a cause quoted in it may have several lines.
        sentence = " ".join(str(error).split())
        typer.echo(f"error: {sentence}", err=True)
        sys.exit(2)
    except Exception as error:
        import traceback

        traceback.print_exc()
        typer.echo(
            f"error: reticent itself failed ({type(error).__name__}: {error}); nothing was decided. "
            "Please report this with the lines above.",
            err=True,
        )
        sys.exit(INTERNAL_ERROR)


@contextmanager
def _interruptible() -> Iterator[None]:
    """End an interrupted command with a status of its own; the framework's 1 means "refuse"."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            "interrupted: what was finished is kept; run the same command to go on.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
