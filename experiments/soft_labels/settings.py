"""The thesis's setting, the series, and how many splits each has; fixed before the first model was trained."""

from dataclasses import dataclass, replace

from reticent import SGD, Clip, Network, PrivateNetwork

__all__ = [
    "ALPHAS",
    "MAIN",
    "RECORDS",
    "SERIES",
    "SERIES_BY_NAME",
    "Series",
    "network",
]

RECORDS = 800  # of which each split trains on one half, and on the other
CLASSES = 10
SWAPPED = 0.2  # share of the labels that are exchanged in pairs
VALIDATION, TEST = 1_000, 4_000  # records of CIFAR-10's test part, with true labels
HALVINGS = 25  # of a training set: 50 teachers, 25 of which did not see a given record
FEWER = 5  # halvings of the treatments with fewer teachers
ALPHAS = (1.0, 0.5, 0.25, 0.0)
EPOCHS, TEACHER_EPOCHS = 6, 12
BATCH, RATE, HIDDEN = 20, 0.05, (512, 256, 128)
DROPOUT = (0.0, 0.2, 0.0)  # after the second hidden layer only
# Keras adds l2 times the squared weights to the loss, so its l2 = 0.01 is a decay of 0.02.
DECAY = 0.02
INITIAL = "glorot"  # as Keras draws weights
NOISE, CLIP = 0.5, 3.0
MORE_NOISE = 0.7  # of the undefended baseline that trains for twice as long
SEED = 0
BLOCK = 10  # splits of one series before the next series has its turn, so that a run that is stopped early has something of each
FLOOR = 1e-6  # probabilities below it count as it; single precision answers 0 for less than 1e-38
# Splits on which the treatments beside the thesis's five are trained too. Shadow models become better with their number, so these
# are compared with the five on the same splits only.
MORE_TREATMENTS_UNTIL = 10
RECURSION_UNTIL = 5  # splits on which targets are computed three times over
RECURSION_SERIES = "raw_sgd"
ROUNDS = 3

MAIN = ("hard", *(f"alpha {alpha:g}" for alpha in ALPHAS))


@dataclass(frozen=True, kw_only=True)
class Series:
    """One series of models: the features, the training, and whether labels are swapped.

    Parameters
    ----------
    name, title : str
        By which results are kept, and what the page calls it.
    adapted : bool
        Whether features are those of a layer that was trained on other records of CIFAR-10.
    private : bool
        Whether training clips and adds noise.
    swapped : bool
        Whether a fifth of the labels is exchanged in pairs.
    splits : int
        Number of splits, each with two models per treatment.
    """

    name: str
    title: str
    adapted: bool
    private: bool
    swapped: bool
    splits: int


# In the order in which they are run.
SERIES = (
    Series(
        name="adapted_dp",
        title="adapted features, DP-SGD",
        adapted=True,
        private=True,
        swapped=True,
        splits=50,
    ),
    Series(
        name="raw_sgd",
        title="raw features, SGD",
        adapted=False,
        private=False,
        swapped=True,
        splits=50,
    ),
    Series(
        name="raw_sgd_clean",
        title="raw features, SGD, no swapped labels",
        adapted=False,
        private=False,
        swapped=False,
        splits=20,
    ),
    Series(
        name="raw_dp",
        title="raw features, DP-SGD",
        adapted=False,
        private=True,
        swapped=True,
        splits=20,
    ),
)
SERIES_BY_NAME = {series.name: series for series in SERIES}


def network(
    series: Series, *, epochs: int, noise: float = NOISE
) -> Network | PrivateNetwork:
    """Return the thesis's network: 512-256-128 hidden units, dropout after the second layer, L2 on all weights."""
    plain = Network(
        hidden=HIDDEN,
        dropout=DROPOUT,
        epochs=epochs,
        batch=BATCH,
        l2=DECAY,
        optimiser=SGD(rate=RATE),
        initial=INITIAL,
    )
    if not series.private:
        return plain
    return replace(
        PrivateNetwork(hidden=HIDDEN, batch=BATCH, l2=DECAY, optimiser=SGD(rate=RATE)),
        dropout=DROPOUT,
        initial=INITIAL,
        epochs=epochs,
        noise_multiplier=noise,
        clipping=Clip(norm=CLIP),
        noise="seeded",  # models of an experiment are not released
    )
