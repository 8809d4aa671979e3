"""Options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "FPR",
    "TPR",
    "Advantage",
    "Belief",
    "Delta",
    "Epsilon",
    "Part",
    "Prior",
    "Relation",
    "Schema",
    "Target",
    "Unit",
    "Workers",
]

Target = Annotated[str | None, typer.Option(help="Column the product predicts.")]
Unit = Annotated[
    str | None, typer.Option(help="Column naming the person a row belongs to.")
]
Part = Annotated[
    str | None, typer.Option(help="Column with defender, reserved, auxiliary.")
]
Schema = Annotated[Path | None, typer.Option(help="Columns declared in TOML.")]
Belief = Annotated[
    float | None,
    typer.Option(help="Highest belief that a record was used, e.g. 0.9."),
]
Advantage = Annotated[
    float | None, typer.Option(help="Largest TPR - FPR of any attack.")
]
TPR = Annotated[
    float | None, typer.Option(help="Largest true-positive rate; with --fpr.")
]
FPR = Annotated[
    float | None, typer.Option(help="False-positive rate; 0.001 by default.")
]
Epsilon = Annotated[
    float | None, typer.Option(help="Differential privacy, with --delta.")
]
Delta = Annotated[
    float | None,
    typer.Option(help="Probability of failure; by default 1/(10 rows)."),
]
Prior = Annotated[
    float, typer.Option(help="Belief before the release.", min=0.0, max=1.0)
]
Relation = Annotated[
    str, typer.Option(help="When tables are neighbours: add/remove or replace-one.")
]
Workers = Annotated[
    int | None, typer.Option(help="Processes; by default one per core.", min=1)
]
