"""What is compared, fixed before the first run."""

from torch import nn

__all__ = ["ADAPTATION", "AUGMENTATION", "DELTA", "SIZES", "make"]

DELTA = 1e-5
# People are drawn from 70,000 without replacement, so that trials share nobody: neither records nor test people.
AUGMENTATION = {
    "trials": 12,
    "records": 400,  # as in Pedersen's chapter 5, which asks for this
    "rows": 800,  # synthetic ones, twice as many as there are records
    "test": 1_000,
    "epsilon": 3.0,
    "flipped": (0.0, 0.2),  # share of wrong labels among the records: none, and that of chapter 5
    "trainer": "sklearn.linear_model.LogisticRegression(max_iter=500)",
    "soft": "reticent.SoftLabels({trainer}, alpha=0.5, folds=2, repeats=4)",
}  # fmt: skip
ADAPTATION = {
    "trials": 6,
    "records": 2_000,
    "test": 2_000,
    "epsilon": 1.0,  # where the synthetic rows are known to be worse than the records, so that there is something to gain
    "supervised": 'reticent.Module("settings:make", epochs=8)',
    "source": 'reticent.AdaptedModule("settings:make", source="{source}", epochs=8, weight=0.0)',
    "adapted": 'reticent.AdaptedModule("settings:make", source="{source}", epochs=8, weight=0.5, warm_up=2)',
}  # fmt: skip

SIZES = {
    "trials": 3,
    "records": (300, 1_000, 3_000),  # the smaller ones are parts of the larger ones
    "positives": 0.1,  # of everybody, by leaving others out
    "test": 3_000,
    "epsilons": (0.5, 1.0, 3.0, 10.0),
    "trainer": AUGMENTATION["trainer"],
}  # fmt: skip


def make(inputs: int, classes: int) -> nn.Module:
    """Return a small network that treats each record by itself."""
    return nn.Sequential(
        nn.Linear(inputs, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, classes)
    )
