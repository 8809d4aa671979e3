"""The options of every command, each written once: name, type, default and help stand together.

A command's options are one frozen value. Groups that commands share are values of their own inside it; on the command
line they are flat. Nothing heavy is imported here, so that ``reticent --help`` is instant.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "AuditOptions",
    "CleanOptions",
    "CompareOptions",
    "IdentifyOptions",
    "KeyOptions",
    "PlanOptions",
    "PolicyOptions",
    "ReportOptions",
    "RiskOptions",
    "SignOptions",
    "SynthesizeOptions",
    "TableOptions",
    "TrainOptions",
    "VerifyOptions",
    "WorkerOptions",
]


def option(default: Any, *names: str, **settings: Any) -> Any:
    """Return a field with its option of the command line."""
    return field(default=default, metadata={"option": typer.Option(*names, **settings)})


def argument(default: Any = ..., **settings: Any) -> Any:
    """Return a field that is a positional argument of the command line."""
    metadata = {"option": typer.Argument(**settings)}
    return (
        field(metadata=metadata)
        if default is ...
        else field(default=default, metadata=metadata)
    )


DEFAULT_CLIPPING = "reticent.Clip(norm=1.0)"  # of `reticent train`


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table and its columns, as typed."""

    table: Path | None = argument(
        None, help="CSV, CSV.gz or Parquet; without it a built-in table is used."
    )
    target: str | None = option(None, help="Column the product predicts.")
    unit: str | None = option(None, help="Column naming the person a row belongs to.")
    part: str | None = option(None, help="Column with defender, reserved, auxiliary.")
    drop: list[str] | None = option(
        None, help="A column to leave out; may be repeated."
    )
    schema: Path | None = option(None, help="Columns declared in TOML.")

    @property
    def name(self) -> str:
        """The table's file; empty for the built-in one."""
        return self.table.name if self.table else ""

    @property
    def divided_by(self) -> str:
        """How the table is divided into parts."""
        return "part" if self.part else "unit" if self.unit else "row"


@dataclass(frozen=True, kw_only=True)
class RiskOptions:
    """The risk that a person accepts, as typed."""

    belief: float | None = option(
        None, help="Highest belief that a record was used, e.g. 0.9."
    )
    advantage: float | None = option(None, help="Largest TPR - FPR of any attack.")
    tpr: float | None = option(None, help="Largest true-positive rate; with --fpr.")
    fpr: float | None = option(None, help="False-positive rate; 0.001 by default.")
    epsilon: float | None = option(None, help="Differential privacy, with --delta.")
    delta: float | None = option(
        None, help="Probability of failure; by default 1/(10 rows)."
    )
    prior: float = option(0.5, help="Belief before the release.", min=0.0, max=1.0)
    relation: str = option(
        "add/remove", help="When tables are neighbours: add/remove or replace-one."
    )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Who carries out the work, as typed."""

    workers: int | None = option(
        None, help="Processes; by default one per core.", min=1
    )
    cluster: str | None = option(
        None,
        help="Address of a Dask scheduler, or local to start one (extra cluster).",
    )


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Audit a product and say whether the policy lets it be released.

    Exit status: 0 release, 1 refuse, 2 wrong usage or bad input, 3 inconclusive.
    """

    subject: TableOptions
    group: str | None = option(None, help="Column with subgroups.")
    trainer: str | None = option(
        None,
        help='"GaussianNB()", "lightgbm.LGBMClassifier()" or "module:function"; '
        "by default a random forest.",
    )
    raw: bool = option(False, "--raw", help="Give the trainer the columns as they are.")
    product: Path | None = option(
        None, help="Audit a product saved with skops instead."
    )
    trust: list[str] | None = option(
        None, help="A type in the product file that you vouch for."
    )
    synthetic: Path | None = option(
        None,
        help="Audit this synthetic table, made from TABLE: CSV, CSV.gz or Parquet.",
    )
    holdout: Path | None = option(
        None,
        help="People of the same source whom the generator of the synthetic table never saw.",
    )
    auxiliary: Path | None = option(
        None,
        help="Further such people, for attackers to compare with; by default half of the holdout.",
    )
    generator: str | None = option(
        None,
        help='What made the synthetic table, as "module:function" of (frame, rows, seed) or "reticent.MarginalGenerator(epsilon=1)": attackers then make '
        "others like it.",
    )
    critic: str | None = option(
        None,
        help='The critic of the generator, if it is released too: its file, or "module:function" from a frame to one number per record.',
    )
    policy: str = option("default", help="default, strict, or a TOML file.")
    attack: list[str] | None = option(
        None, help="An attack of your own, as module:Class; may be repeated."
    )
    measure: list[str] | None = option(
        None, help="A measure of your own, as module:Class; may be repeated."
    )
    section: list[str] | None = option(
        None, help="A section of the report of your own, as module:Class."
    )
    claimed_epsilon: float | None = option(None, help="Privacy the product claims.")
    population: int | None = option(
        None,
        help="People among whom somebody would look for members: says how often a name is right.",
        min=2,
    )
    out: Path = option(Path("reticent-audit"), help="Folder for dossier and report.")
    per_record: Path | None = option(
        None, help="Write individual risk to this file. SENSITIVE."
    )
    save_product: Path | None = option(
        None,
        help="Save the trained product to this folder; what its file tells of single people is cleaned out before it is attacked.",
    )
    as_is: bool = option(
        False, "--as-is", help="Save and attack the product as it was trained."
    )
    repair: bool = option(
        False,
        "--repair",
        help="Find the mildest change to the trainer that keeps the policy on one half of the people, and audit it on the other half.",
    )
    by: str = option("", help="Who runs the audit, for the dossier.")
    seed: int = option(0, help="For split, training and attacks.", min=0)
    minutes: float | None = option(
        None,
        help="About how long the audit may take; by default 2, or what a pool of 8 models needs.",
        min=0.01,
    )
    deadline: float | None = option(
        None,
        help="Minutes after which no attack and no statistic may end; those that would are skipped and reported.",
        min=0.01,
    )
    rounds: int = option(100, help="Most retraining rounds per regime.", min=1)
    pool: int | None = option(
        None,
        help="Models to train for attacks that compare; by default as many as the time allows.",
        min=0,
    )
    memory: float = option(
        2.0, help="Gigabytes that pool and attacks may take.", min=0.01
    )
    effort: WorkerOptions
    watch: int | None = option(
        None,
        help="Trainings to watch step by step, if they are private, or runs of a generator on neighbouring tables; by default as many as the time allows.",
        min=0,
    )
    json: bool = option(
        False, "--json", help="Print the dossier as JSON, nothing else."
    )


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Turn a risk people understand into noise, epsilon and delta of a private training.

    Exit status: 0, or 2 for wrong usage or bad input.
    """

    risk: RiskOptions
    rows: int | None = option(None, help="Rows of the table.")
    batch: int | None = option(
        None, help="Records that take part in a step, on average."
    )
    epochs: float | None = option(None, help="Passes over the table.")
    steps: int | None = option(None, help="Steps, in place of epochs; with --rate.")
    rate: float | None = option(None, help="Share of records in a step; with --steps.")
    html: Path | None = option(None, help="Write an interactive page to this file.")
    workers: int | None = option(
        None, help="Processes; by default one per core.", min=1
    )
    json: bool = option(False, "--json", help="Print the plan as JSON, nothing else.")


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Train a network with a privacy guarantee, and save it with that guarantee.

    Exit status: 0, or 2 for wrong usage or bad input.
    """

    subject: TableOptions
    risk: RiskOptions
    trainer: str | None = option(
        None,
        help='What is trained instead of a small network, such as "reticent.SoftLabels(reticent.Network(...), alpha=0.5)"; its noise is set '
        "by the risk, or without a risk stays as stated.",
    )
    hidden: str | None = option(
        None, help="Widths of hidden layers, such as 64,32; by default 32."
    )
    epochs: int | None = option(
        None, help="Passes over the rows; by default 30.", min=1
    )
    batch: int | None = option(
        None,
        help="Records in a step, on average; by default about a twentieth.",
        min=1,
    )
    rate: float | None = option(None, help="Learning rate; by default 1.")
    # Version 0.1 called it a treatment; scripts written for it keep working.
    clipping: str = option(
        DEFAULT_CLIPPING,
        "--clipping",
        "--treatment",
        help="What bounds a record's gradient.",
    )
    domain: Path | None = option(
        None,
        help="Values of the columns declared in TOML; else they are learned with noise.",
    )
    everything: bool = option(
        False, "--everything", help="Use all rows, and leave none for an audit."
    )
    seeded: bool = option(
        False, "--seeded", help="Noise from the seed, for experiments: NO GUARANTEE."
    )
    out: Path = option(Path("reticent-product"), help="Folder for the product.")
    seed: int = option(0, help="For the split and the first weights.", min=0)
    json: bool = option(
        False, "--json", help="Print the guarantee as JSON, nothing else."
    )


@dataclass(frozen=True, kw_only=True)
class IdentifyOptions:
    """Watch every step of a private training as the strongest adversary would, and put its epsilon to the test.

    Exit status: 0 not refuted, 1 refuted, 2 wrong usage or bad input.
    """

    subject: TableOptions
    trainer: str | None = option(
        None,
        help='"reticent.PrivateNetwork(...)" or "reticent.PrivateModule(...)"; by default what `reticent train --belief` trains.',
    )
    product: Path | None = option(
        None, help="Watch the training of a product saved by `reticent train`."
    )
    claimed_epsilon: float | None = option(None, help="The epsilon to put to the test.")
    relation: str = option(
        "add/remove", help="When tables are neighbours: add/remove or replace-one."
    )
    neighbour: str = option(
        "mislabelled",
        help="The record that tells the tables apart: gradient (the longest), mislabelled (a canary), or the most unlike by gower, "
        "euclidean, ssim.",
    )
    image: str | None = option(None, help="Size of images for ssim, such as 28x28.")
    local: str | None = option(
        None, help="Scale noise to the records, by pair or own: empirical, NOT DP."
    )
    shuffled: bool = option(
        False, "--shuffled", help="Cut batches from a shuffled table."
    )
    rows: int | None = option(None, help="Watch a random part of so many rows.", min=2)
    runs: int = option(100, help="Trainings to watch.", min=2)
    belief: float = option(0.9, help="A belief in the truth that should be rare.")
    delta: float | None = option(
        None, help="Probability of failure; by default 1/(10 rows)."
    )
    out: Path = option(Path("reticent-identify"), help="Folder for the report.")
    seed: int = option(0, help="For split, coins, batches and noise.", min=0)
    effort: WorkerOptions
    json: bool = option(False, "--json", help="Print the result as JSON, nothing else.")


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Compare defences of one table under the same attacks, and say which one to take.

    Exit status: 0 a defence keeps the policy's limits, 1 every one breaks a limit, 2 wrong usage or bad input, 3 it cannot be told.
    """

    subject: TableOptions
    trainer: list[str] | None = option(
        None,
        help="A defence, as in `reticent audit`; may be repeated. The others are compared with the first. Without it a usual set is compared.",
    )
    around: str | None = option(
        None,
        help="The undefended model of the usual set; by default a random forest.",
    )
    policy: str = option("default", help="default, strict, or a TOML file.")
    models: int | None = option(
        None,
        help="Models of each defence, even; by default 16, or what --minutes allow.",
        min=4,
    )
    minutes: float | None = option(
        None, help="About how long the trainings may take.", min=0.01
    )
    memory: float = option(
        2.0, help="Gigabytes that models and attacks may take.", min=0.01
    )
    effort: WorkerOptions
    out: Path = option(Path("reticent-comparison"), help="Folder for the page.")
    seed: int = option(0, help="For halves, trainings and attacks.", min=0)
    json: bool = option(
        False, "--json", help="Print the comparison as JSON, nothing else."
    )


@dataclass(frozen=True, kw_only=True)
class SynthesizeOptions:
    """Make a synthetic table with a privacy guarantee, write it with that guarantee, and audit it.

    Exit status: 0 release, or made without an audit; 1 refuse, 2 wrong usage or bad input, 3 inconclusive. The table is written in all cases but 2.
    """

    subject: TableOptions
    risk: RiskOptions
    out: Path = option(
        Path("synthetic.csv"),
        help="File for the synthetic table: .csv, .csv.gz or .parquet.",
    )
    rows: int | None = option(
        None, help="Rows to make; by default about as many as TABLE has.", min=20
    )
    method: str = option(
        "auto",
        help="tree, adaptive, or auto to choose by the size of TABLE; wgan for a generator trained against a critic, which keeps less.",
    )
    critic: Path | None = option(
        None,
        help="File for the critic of --method wgan, if it is released with the table; the guarantee covers both together.",
    )
    rows_per_person: int = option(
        1,
        help="Rows of each person (--unit) that are used at most; more rows need more noise.",
        min=1,
    )
    domain: Path | None = option(
        None,
        help="Values of the columns declared in TOML; else they are learned with noise.",
    )
    constraint: list[str] | None = option(
        None,
        help="What every row keeps, such as 'a <= b', '0 <= age <= 120' or 'c = a + b'; may be repeated.",
    )
    audit: bool = option(
        True,
        "--audit/--no-audit",
        help="Hold people out and judge the table by them; or use all rows, without a verdict.",
    )
    held_out: float = option(
        0.2,
        help="Share of the people held out for the audit, unless --part says who is.",
    )
    policy: str = option(
        "default", help="Of the audit: default, strict, or a TOML file."
    )
    report: Path = option(
        Path("reticent-audit"), help="Folder for dossier and report of the audit."
    )
    minutes: float | None = option(
        None, help="About how long the audit may take; by default 2.", min=0.01
    )
    memory: float = option(
        2.0, help="Gigabytes that rows and attacks may take.", min=0.01
    )
    effort: WorkerOptions
    seeded: bool = option(
        False, "--seeded", help="Noise from the seed, for experiments: NO GUARANTEE."
    )
    seed: int = option(
        0, help="For the sample and the audit, never for secret noise.", min=0
    )
    json: bool = option(
        False,
        "--json",
        help="Print the guarantee and the verdict as JSON, nothing else.",
    )


@dataclass(frozen=True, kw_only=True)
class CleanOptions:
    """Make a product whose file holds less about its members, and which answers them as before; or, with two files of tables, write the cells of the first to the second and nothing else.

    Exit status: 0 all that was found is cleaned, 1 something is still found, 2 wrong usage or bad input.
    """

    product: Path = argument(
        help="A folder with a product, or a .skops file; or a table: CSV, CSV.gz or Parquet."
    )
    file: Path | None = argument(
        None,
        help="For a table: the new file, CSV, CSV.gz or Parquet, with its cells and nothing else.",
    )
    table: Path | None = option(
        None,
        help="The table that it was trained on: CSV, CSV.gz or Parquet; without it the built-in one.",
    )
    target: str | None = option(None, help="Column the product predicts.")
    unit: str | None = option(None, help="Column naming the person a row belongs to.")
    part: str | None = option(None, help="Column with defender, reserved, auxiliary.")
    schema: Path | None = option(None, help="Columns declared in TOML.")
    drop: list[str] | None = option(None, help="Column to leave out; may be repeated.")
    group: str | None = option(
        None, help="Column with subgroups, if the audit that saved the product had one."
    )
    trust: list[str] | None = option(None, help="A type in the product you vouch for.")
    out: Path = option(Path("reticent-cleaned"), help="Folder for the new product.")
    seed: int = option(
        0, help="For the reader, never for what is moved at random.", min=0
    )
    json: bool = option(False, "--json", help="Print the result as JSON, nothing else.")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Decide again by the evidence of an earlier audit, and print its report; with --out write it anew.

    Exit status: 0 release, 1 refuse, 2 wrong usage or bad input, 3 inconclusive.
    """

    dossier: Path = argument(help="A dossier.json, or its folder.")
    out: Path | None = option(
        None, help="Folder to write report.html and report.txt to."
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Print a policy that ships with reticent, to copy and change."""

    name: str = argument("default", help="default or strict.")


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """Say in one line whether the verdict of a dossier is about these files.

    Exit status: 0 yes, whatever the verdict is; 1 no; 2 wrong usage or bad input. To act on a release, add --verdict RELEASE.
    """

    dossier: Path = argument(help="A dossier.json, or its folder.")
    product: Path = argument(help="The product: its folder, or its file.")
    policy: str | None = option(
        None, help="The policy that must have decided: default, strict, or a TOML file."
    )
    table: Path | None = option(
        None, help="The table it must be about; needs the owner's key."
    )
    verdict: str | None = option(None, help="The verdict it must have, e.g. RELEASE.")
    signature: Path | None = option(
        None, help="Signature of the dossier; by default the file beside it, in .sig."
    )
    public_key: Path | None = option(
        None, help="Key of whoever must have signed it (extra sign)."
    )


@dataclass(frozen=True, kw_only=True)
class KeyOptions:
    """Make a pair of keys to sign dossiers with (extra sign).

    Exit status: 0, or 2 for wrong usage or bad input.
    """

    file: Path = argument(
        help="The private key; the public one lies beside it, in .pub."
    )


@dataclass(frozen=True, kw_only=True)
class SignOptions:
    """Sign a dossier: write dossier.json.sig beside it (extra sign).

    Exit status: 0, or 2 for wrong usage or bad input.
    """

    dossier: Path = argument(help="A dossier.json, or its folder.")
    key: Path = option(..., help="The private key that `reticent key` made.")
