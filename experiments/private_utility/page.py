"""Write the page that sets our accuracies beside those of others."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student
from settings import SETTINGS

from reticent.account import (
    Composition,
    Gaussian,
    Mechanism,
    PrivateTraining,
    trade_off,
)
from reticent.evidence import clopper_pearson
from reticent.run import write_text

NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "adult": "Adult"}


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """A published figure.

    Parameters
    ----------
    source, model : str
        Who trained what.
    data : str
        The data set.
    accuracy : float
        On its test records, in per cent.
    epsilon : float
        As it is stated; delta is 1e-5, neighbours differ by one record more or less.
    training : Mechanism
        What was trained, from the parameters that are given.
    """

    source: str
    model: str
    data: str
    accuracy: float
    epsilon: float
    training: Mechanism


ANCHORS = (
    Anchor(
        source="TensorFlow Privacy, tutorial",
        model="CNN",
        data="mnist",
        accuracy=95.0,
        epsilon=1.19,
        training=PrivateTraining(
            noise_multiplier=1.3, sampling_rate=256 / 60_000, steps=3516
        ),
    ),
    Anchor(
        source="Opacus, example",
        model="CNN",
        data="mnist",
        accuracy=96.78,
        epsilon=2.91,
        training=PrivateTraining(
            noise_multiplier=1.1, sampling_rate=0.004, steps=15_000
        ),
    ),
    # By their accountant the noise of their linear models reaches 3 after 40 epochs, the number they state for their CNN. They
    # count whole batches of an epoch, and on MNIST two noisy statistics beside.
    Anchor(
        source="Tramèr and Boneh",
        model="linear on scattering",
        data="mnist",
        accuracy=98.7,
        epsilon=3.0,
        training=Composition(
            parts=(
                (
                    PrivateTraining(
                        noise_multiplier=3.04,
                        sampling_rate=4096 / 60_000,
                        steps=14 * 40,
                    ),
                    1,
                ),
                (Gaussian(noise_multiplier=8.0), 2),
            )
        ),
    ),
    Anchor(
        source="Tramèr and Boneh",
        model="linear on scattering",
        data="fashion_mnist",
        accuracy=89.7,
        epsilon=3.0,
        training=PrivateTraining(
            noise_multiplier=4.05, sampling_rate=8192 / 60_000, steps=7 * 40
        ),
    ),
    Anchor(
        source="Tramèr and Boneh",
        model="CNN",
        data="fashion_mnist",
        accuracy=86.0,
        epsilon=3.0,
        training=PrivateTraining(
            noise_multiplier=2.15, sampling_rate=2048 / 60_000, steps=29 * 40
        ),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one setting reached; accuracies in per cent.

    Parameters
    ----------
    run : dict
        Of the results.
    """

    run: dict

    @property
    def data(self) -> str:
        return self.run["setting"]["data"]

    @property
    def accuracies(self) -> np.ndarray:
        hits = np.array(list(self.run["correct"].values()))
        return 100 * hits / self.run["test_records"]

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())

    @property
    def over_seeds(self) -> tuple[float, float] | None:
        """The 95 % interval over trainings by Student's t, if there are two or more."""
        several = self.accuracies
        if len(several) < 2:
            return None
        half = student.ppf(0.975, len(several) - 1) * several.std(ddof=1)
        half /= np.sqrt(len(several))
        return self.mean - half, self.mean + half

    @property
    def of_sample(self) -> tuple[float, float]:
        """The exact 95 % interval over test records, at the mean accuracy."""
        n = self.run["test_records"]
        found = clopper_pearson(self.mean / 100 * n, n, level=0.95)
        return 100 * found.low, 100 * found.high

    def against(self, accuracy: float) -> str:
        """Return what both intervals say about another accuracy."""
        both = [pair for pair in (self.over_seeds, self.of_sample) if pair]
        if min(low for low, _ in both) > accuracy:
            return f"{self.mean:.2f} %, higher"
        if max(high for _, high in both) < accuracy:
            return f"{self.mean:.2f} %, lower"
        return f"{self.mean:.2f} %, no difference shown"


def write_page(results: dict, page: Path) -> None:
    """Write the page."""
    rows = [Row(run=results["runs"][setting.name]) for setting in SETTINGS]
    features = sum(results["features"].values())
    trainings = sum(row.run["minutes"] for row in rows)
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    largest = next(row.run for row in rows if row.data == "adult")
    for name, value in {
        "ours": "\n".join(_ours(row) for row in rows),
        "anchors": "\n".join(_beside(anchor, rows) for anchor in ANCHORS),
        "minutes": f"{features + trainings:.0f}",
        "features": f"{features:.1f}",
        "trainings": f"{trainings:.1f}",
        "models": str(sum(len(row.accuracies) for row in rows)),
        "majority": f"{100 * largest['largest_class'] / largest['test_records']:.2f} %",
    }.items():
        text = text.replace("{" + name + "}", value)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, text)


def _ours(row: Row) -> str:
    run = row.run
    cells = [
        NAMES[row.data],
        f"{run['setting']['epsilon']:g}, delta {run['delta']:g}, {run['relation']}",
        f"{run['epsilon_other']:.2f}",
        f"{run['noise_multiplier']:.4f}",
        f"{run['steps']}",
        f"{len(row.accuracies)}",
        f"**{row.mean:.2f} %**",
        _interval(row.over_seeds),
        _interval(row.of_sample),
        f"{run['minutes']:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _interval(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:.2f} to {pair[1]:.2f}"


def _beside(anchor: Anchor, rows: list[Row]) -> str:
    spent = trade_off(anchor.training).epsilon(1e-5)
    own = [row for row in rows if row.data == anchor.data]
    same = next(row for row in own if row.run["setting"]["epsilon"] == anchor.epsilon)
    within = [row for row in own if row.run["epsilon"] <= spent]
    dearest = max(within, key=lambda row: row.run["epsilon"], default=None)
    said = "none of ours spends so little"
    if dearest is not None:
        budget = dearest.run["setting"]["epsilon"]
        said = f"{dearest.against(anchor.accuracy)} (at {budget:g})"
    cells = [
        NAMES[anchor.data],
        f"{anchor.source}, {anchor.model}",
        f"{anchor.accuracy} %",
        f"{anchor.epsilon:g}, delta 1e-05, add/remove",
        f"{spent:.2f}",
        same.against(anchor.accuracy),
        said,
    ]
    return f"| {' | '.join(cells)} |"
