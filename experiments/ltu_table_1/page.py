"""Write the page that sets our figures beside those of the LTU paper."""

import json
from pathlib import Path

import numpy as np

from reticent.attack import Regime
from reticent.evidence import privacy_from_rounds, utility
from reticent.run import write_text

# Table 1 of the LTU paper: utility and privacy in the three regimes.
PAPER = {
    "MNIST": {
        "Logistic lbfgs": (0.92, 0.00, 0.91, 0.00, 0.91, 0.00),
        "Bayesian ridge": (0.92, 0.00, 0.92, 0.00, 0.89, 0.00),
        "Naive Bayes": (0.70, 0.00, 0.70, 0.00, 0.70, 0.00),
        "SVC": (0.91, 0.00, 0.91, 0.00, 0.88, 0.00),
        "SVC, solved exactly": None,
        "KNN": (0.86, 0.27, 0.86, 0.27, 0.83, 0.18),
        "LinearSVC": (0.92, 0.00, 0.92, 0.69, 0.91, 0.63),
        "SGD SVC": (0.90, 0.03, 0.92, 1.00, 0.89, 1.00),
        "MLP": (0.90, 0.00, 0.90, 0.97, 0.88, 0.93),
        "Perceptron": (0.90, 0.04, 0.91, 1.00, 0.92, 1.00),
        "Random Forest": (0.88, 0.00, 0.88, 0.99, 0.85, 1.00),
    },
    "CIFAR-10": {
        "Logistic lbfgs": (0.95, 0.00, 0.95, 0.00, 0.95, 0.00),
        "Bayesian ridge": (0.91, 0.00, 0.90, 0.00, 0.90, 0.00),
        "Naive Bayes": (0.89, 0.00, 0.89, 0.01, 0.89, 0.00),
        "SVC": (0.95, 0.00, 0.94, 0.00, 0.95, 0.00),
        "SVC, solved exactly": None,
        "KNN": (0.92, 0.44, 0.91, 0.49, 0.92, 0.49),
        "LinearSVC": (0.95, 0.00, 0.95, 0.26, 0.95, 0.22),
        "SGD SVC": (0.94, 0.32, 0.94, 0.98, 0.93, 0.99),
        "MLP": (0.95, 0.00, 0.94, 0.98, 0.95, 0.97),
        "Perceptron": (0.94, 0.26, 0.94, 1.00, 0.93, 0.96),
        "Random Forest": (0.92, 0.00, 0.93, 0.99, 0.91, 0.92),
    },
}


def write_page(cells: Path, out: Path, rounds: int) -> None:
    """Gather the cells; write the page."""
    found = [json.loads(p.read_text()) for p in sorted(cells.glob(f"*-{rounds}.json"))]
    trials = len({c["trial"] for c in found})
    minutes = sum(c["cpu_seconds"] for c in found) / 60
    tables = "\n\n".join(_table(found, dataset) for dataset in PAPER)
    pairing = json.loads((cells / "pairing.json").read_text())
    page = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    page = page.replace("{tables}", tables).replace("{pairing}", _pairing(pairing))
    page = page.replace("{rounds}", str(rounds)).replace("{trials}", str(trials))
    page = page.replace("{minutes}", f"{minutes:.0f}")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, page)


def _table(cells: list[dict], dataset: str) -> str:
    lines = [
        f"### {dataset}",
        "",
        "| model | utility, paper | utility, ours | original order, seeded: paper | ours | shuffled, seeded: paper | ours | shuffled, unseeded: paper | ours |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for model, paper in PAPER[dataset].items():
        its = [c for c in cells if c["dataset"] == dataset and c["model"] == model]
        if not its:
            continue
        useful = utility(
            sum(c["correct"] for c in its),
            sum(c["records"] for c in its),
            classes=10,
            level=0.95,
        )
        row = [model, f"{paper[0]:.2f}" if paper else "", f"{useful.value:.2f}"]
        for k, regime in enumerate(Regime):
            wins = np.concatenate([c["wins"][regime.value] for c in its])
            e = privacy_from_rounds(float(wins.sum()), len(wins), level=0.95)
            row += [
                f"{paper[2 * k + 1]:.2f}" if paper else "",
                f"**{e.value:.2f}** [{e.low:.2f}, {e.high:.2f}]",
            ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _pairing(rows: list[dict]) -> str:
    lines = [
        "| data | product | accuracy per record | accuracy per pair |",
        "|---|---|---|---|",
    ]
    for row in rows:
        alone, pairs = (
            "{:.1%} [{:.1%}, {:.1%}]".format(*row[key]) for key in ("alone", "pairs")
        )
        lines.append(f"| {row['dataset']} | {row['model']} | {alone} | {pairs} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_page(Path("build/ltu_table_1"), Path("docs/experiments/ltu_table_1.md"), 100)
