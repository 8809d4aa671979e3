"""The chosen settings, frozen, and a record of every setting that was tried.

Noise multipliers are not written here: they follow from budget, rows, batch and epochs by
:func:`reticent.account.make_plan` (PLD, add/remove).
"""

from dataclasses import dataclass

__all__ = ["DELTA", "SETTINGS", "Setting"]

DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A softmax regression trained with DP-SGD: clip, constant rate, last iterate.

    Parameters
    ----------
    data : str
        ``"mnist"``, ``"fashion_mnist"`` or ``"adult"``: the loader of that name.
    groups : int or None
        Groups of channels for normalising scattering features; none for Adult.
    epsilon : float
        Of the budget; delta is :data:`DELTA`.
    rows, batch, epochs : int
        Training records, expected size of a Poisson batch (also the constant denominator), passes.
    rate, momentum : float
        Of SGD: v = momentum v + g, W -= rate v, with g the noisy sum over ``batch``.
    clip : float
        Largest length of a record's gradient, weights and bias together.
    """

    data: str
    groups: int | None
    epsilon: float
    rows: int
    batch: int
    epochs: int
    rate: float
    clip: float
    momentum: float = 0.9

    @property
    def name(self) -> str:
        """Data and budget, by which results are kept."""
        return f"{self.data}-{self.epsilon:g}"


def _images(data: str, groups: int, epsilon: float, rate: float) -> Setting:
    return Setting(
        data=data,
        groups=groups,
        epsilon=epsilon,
        rows=60_000,
        batch=4096,
        epochs=40,
        rate=rate,
        clip=0.1,
    )


def _adult(epsilon: float) -> Setting:
    return Setting(
        data="adult",
        groups=None,
        epsilon=epsilon,
        rows=32_561,
        batch=2048,
        epochs=40,
        rate=1.0,
        clip=1.0,
    )


# 0.86 and 2.37 are what the anchors stated at 1.19 and 3 spend by PLD; each takes the setting of the next larger budget as
# it is, and nothing was tried for them.
SETTINGS = (
    _images("mnist", 27, 0.86, 4.0),
    _images("mnist", 27, 1.19, 4.0),
    _images("mnist", 27, 2.37, 8.0),
    _images("mnist", 27, 2.91, 8.0),
    _images("mnist", 27, 3.0, 8.0),
    _images("fashion_mnist", 81, 2.37, 8.0),
    _images("fashion_mnist", 81, 3.0, 8.0),
    _adult(1.0),
    _adult(3.0),
)

# What was tried
# --------------
# The search is NOT accounted for: the budgets cover one training with a setting that was known beforehand. Choosing
# among k settings on private records costs more (Papernot & Steinke, arXiv:2110.03620). The page must say so, with these
# numbers: 40 trainings, of which MNIST 19 (13 at epsilon 3, 6 at 1.19, none at 2.91, which takes the setting of 3),
# Fashion-MNIST 11, Adult 10 (5 settings at two budgets). The first one tried on images follows Tramèr & Boneh: batch 4096,
# rate 8, clip 0.1 and 40 epochs are those of their MNIST model (which normalises by noisy statistics of all records), 27
# groups those of their Fashion-MNIST model; found on these data sets' records, and kept by MNIST at 3. The accountant was
# being rewritten meanwhile: 12 of the trainings had noise 2.6764 where later ones had 2.6768, both within the budget.
#
# Validation: images, rows 50,000 to 59,999 of the training part; Adult, 6,561 of the 32,561 in the order of
# default_rng(0).permutation. Trained on the rest, each with noise for its own rows, one seed (0). The standard error is about
# 0.11 points for MNIST, 0.30 for Fashion-MNIST, 0.43 for Adult: most neighbours in these tables are ties.
# A prototype trainer outside the package, its noise from torch's seeded generator: the figures carry no guarantee, as seeded
# noise never does. Weights began at 0; the package's engine draws them.
#
# "last" is the last iterate, by which settings were chosen since the engine has constant rates and no averaging; "mean" is the
# mean of the iterates of the second half (last quarter in the rows marked 1/4), which is post-processing and free.
# gnK: K groups; sqrt: square roots of the coefficients first. Momentum 0.9 throughout, clip 0.1 for images unless said.
#
#   data     epsilon  features  batch  epochs  rate                last   mean
#   mnist    3        gn27      4096   40      8                   98.80  98.79   <- chosen
#   mnist    3        gn27      4096   40      4                   98.69  98.57
#   mnist    3        gn27      4096   40      2                   98.52  98.38
#   mnist    3        gn27      4096   20      8                   98.51  98.42
#   mnist    3        gn27      4096   40      16                  98.59  98.68
#   mnist    3        gn27      4096   40      32                  98.05  98.51
#   mnist    3        gn27      8192   60      16                  98.68  98.67
#   mnist    3        gn27      4096   40      2, clip 1           98.16  98.55
#   mnist    3        sqrt gn27 4096   40      8                   98.58  98.55
#   mnist    3        gn27      4096   40      0.8, AUTO-S         98.74  98.75
#   mnist    3        gn27      4096   40      16 to 0, linearly   98.72  98.69   1/4
#   mnist    3        gn27      8192   80      8                   98.80  98.77   1/4
#   mnist    3        gn81      4096   40      8                   98.62  98.65
#   mnist    1.19     gn27      4096   40      8                   98.01  98.28
#   mnist    1.19     gn27      4096   40      4                   98.40  98.44   <- chosen
#   mnist    1.19     gn27      4096   20      8                   98.28  98.27
#   mnist    1.19     gn27      8192   60      8                   98.31  98.33
#   mnist    1.19     gn27      8192   60      4                   98.45  98.34   (a tie, one and a half times the work)
#   mnist    1.19     gn81      4096   40      4                   98.27  98.28
#   fashion  3        gn27      4096   40      8                   89.78  89.95
#   fashion  3        gn27      4096   40      16                  89.59  90.04
#   fashion  3        gn27      4096   40      4                   89.48  89.34
#   fashion  3        gn81      4096   40      8                   89.95  89.70   <- chosen
#   fashion  3        sqrt gn27 4096   40      8                   89.79  89.79
#   fashion  3        gn27      4096   40      0.8, AUTO-S         89.82  89.77
#   fashion  3        gn27      4096   40      16 to 0, linearly   90.01  90.01   1/4 (not in the engine)
#   fashion  3        gn27      8192   80      8                   89.83  89.88   1/4
#   fashion  3        gn81      8192   80      8                   89.99  89.75   (a tie, twice the work)
#   fashion  3        gn81      4096   60      6                   89.79  89.60
#   fashion  3        gn81      4096   40      12                  89.85  90.06
#   adult    1        -         2048   40      2, clip 1           85.38  85.61
#   adult    3        -         2048   40      2, clip 1           85.52  85.67
#   adult    1        -         2048   40      1, clip 1           85.69  85.54   <- chosen
#   adult    3        -         2048   40      1, clip 1           85.75  85.55   <- chosen
#   adult    1        -         2048   40      0.5, clip 1         85.58  85.43
#   adult    3        -         2048   40      0.5, clip 1         85.55  85.57
#   adult    1        -         2048   20      1, clip 1           85.67  85.47
#   adult    3        -         2048   20      1, clip 1           85.49  85.58
#   adult    1        -         2048   40      10, clip 0.1        85.52  85.54
#   adult    3        -         2048   40      10, clip 0.1        85.55  85.46
#
# The chosen ones, prototype, all training records, seeds 101, 102, 103; the test records were looked at once per setting.
# First interval: 95 % by Student's t over the seeds (randomness of the training only); second: Wilson's, 95 %, of the test
# sample at the mean accuracy. Seeds are the same at each budget, so that budgets of one data set share batches.
#
#   data     epsilon  noise   steps  test accuracies        mean   over seeds      of the test sample
#   mnist    1.19     5.3745  586    98.24  98.26  98.29    98.26  98.20 to 98.33  97.98 to 98.50
#   mnist    2.91     2.5202  586    98.62  98.53  98.62    98.59  98.46 to 98.72  98.34 to 98.80
#   mnist    3        2.4598  586    98.65  98.56  98.65    98.62  98.49 to 98.75  98.37 to 98.83
#   fashion  3        2.4598  586    89.62  90.24  89.96    89.94  89.17 to 90.71  89.34 to 90.51
#   adult    1        6.0220  636    85.74  85.79  85.67    85.73  85.59 to 85.88  85.19 to 86.26
#   adult    3        2.3696  636    85.87  85.89  85.85    85.87  85.82 to 85.91  85.32 to 86.39
#
# What the package's engine reached, and how it compares with others, is in results.json and on the page.
# Without noise, for comparison: the same training, clip kept, MNIST (rate 8) 98.88, Fashion-MNIST 90.84; Adult, logistic
# regression (scikit-learn, C=1) 85.87 on these features, gradient boosting (HistGradientBoosting, defaults) 87.23, the larger
# class alone 76.38.
