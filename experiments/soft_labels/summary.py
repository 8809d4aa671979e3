"""From the answers of all models to the numbers of the page: attacks, tests, targets."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import median_test, norm
from settings import ALPHAS, MAIN, SEED, Series

from data import halves
from reticent.evidence import Comparison, Defended, compare_defences
from reticent.run import stream

__all__ = ["summarise"]

Array = NDArray[np.float64]
BINS = 100  # groups of the calibration plot, as in the thesis
GRID = np.round(np.arange(0, 5.01, 0.1), 2)  # alphas of Figures 5.10 and 5.11
FLOOR = 1e-6
TEST, VALIDATION = 4_000, 1_000
LEVEL = 0.95


class Answers:
    """What the models of one treatment answered.

    Parameters
    ----------
    files : list of mapping
        The finished splits.
    title : str
        The treatment.
    """

    def __init__(self, files: list[dict[str, NDArray]], title: str) -> None:
        both = [(file, half) for file in files for half in (0, 1)]
        self.probabilities = np.array([f[f"{h} answers {title}"] for f, h in both])
        self.test, self.validation = (
            np.array(
                [np.unpackbits(f[f"{h} {part} {title}"])[:size].mean() for f, h in both]
            )
            for part, size in (("test", TEST), ("validation", VALIDATION))
        )


def summarise(
    series: Series, labels: NDArray[np.int64], truth: NDArray[np.int64], folder: Path
) -> dict | None:
    """Return everything that the page says of a series; None if fewer than three splits are finished.

    Splits count in their order up to the first that is missing, so that which of them are finished says nothing about the results.
    """
    files = []
    for split in range(series.splits):
        path = folder / f"{split:02d}.npz"
        if not path.exists():
            break
        with np.load(path) as file:
            files.append({name: file[name] for name in file.files})
    if len(files) < 3:
        return None
    masks = np.zeros((2 * len(files), len(labels)), dtype=bool)
    for split in range(len(files)):
        for half, rows in enumerate(halves(labels, split)):
            masks[2 * split + half, rows] = True
    splits = np.arange(len(masks)) // 2
    more = [k for k in range(len(files)) if "0 answers per record" in files[k]]
    found = {
        "splits": len(files),
        "planned": series.splits,
        "seconds": float(sum(file["seconds"] for file in files)),
        "main": _compared(files, MAIN, labels, truth, masks, splits),
        "targets": _targets(files, labels, truth),
    }
    if len(more) >= 3:
        some = [files[k] for k in more]
        prefix = "0 answers "
        titles = [
            name.removeprefix(prefix)
            for name in some[0]
            if name.startswith(prefix) and not name.startswith(f"{prefix}round")
        ]
        found["more"] = _compared(
            some, titles, labels, truth, masks[: 2 * len(some)], splits[: 2 * len(some)]
        )
        found["more"]["splits"] = len(some)
    found["recursion"] = _recursion(files, labels, truth)
    return found


def _compared(
    files: list[dict[str, NDArray]],
    titles: tuple[str, ...] | list[str],
    labels: NDArray[np.int64],
    truth: NDArray[np.int64],
    masks: NDArray[np.bool_],
    splits: NDArray[np.int64],
) -> dict:
    """Return the attack on every treatment, and differences to the first."""
    answers = {title: Answers(files, title) for title in titles}
    defended, posteriors, weaker = [], {}, {}
    for title, own in answers.items():
        raw = _statistic(own.probabilities, labels)
        scores = _ratio(_centred(raw, labels), masks, splits)
        weaker[title] = _mean_auc(_ratio(raw, masks, splits), masks)
        posteriors[title] = expit(_ratio(raw, masks, splits, per_record=True))
        wrong = own.probabilities.argmax(axis=2) != truth
        defended.append(
            Defended(
                name=title,
                scores={"likelihood ratio": scores},
                errors=wrong.astype(float),
                baseline=np.full(
                    masks.shape, 0.9
                ),  # one of ten equally frequent classes
            )
        )
    comparison = compare_defences(
        defended,
        masks,
        splits=splits,
        fpr=(0.01, 0.001),
        level=LEVEL,
        rng=stream(SEED, "soft_labels/compare"),
    )
    first = titles[0]
    return {
        "treatments": {
            title: {
                **_evidence(comparison, k),
                "auc_raw": weaker[title],
                "test": answers[title].test.tolist(),
                "validation": answers[title].validation.tolist(),
                "test_difference": _paired(answers[title].test - answers[first].test),
                "posterior": _posterior(
                    posteriors[title], posteriors[first], masks, plain=title == first
                ),
            }
            for k, title in enumerate(titles)
        }
    }


def _statistic(probabilities: Array, labels: NDArray[np.int64]) -> Array:
    """Return the logit of each record's given label, centred over the classes, (models, records)."""
    logits = np.log(probabilities.astype(np.float64).clip(FLOOR, 1))
    logits -= logits.mean(axis=2, keepdims=True)
    return logits[:, np.arange(len(labels)), labels]


def _centred(values: Array, labels: NDArray[np.int64]) -> Array:
    """Return values less the mean of each model and class: what a model says of all records of a class says nothing of one."""
    centred = values.copy()
    for label in np.unique(labels):
        own = labels == label
        centred[:, own] -= values[:, own].mean(axis=1, keepdims=True)
    return centred


def _ratio(
    values: Array,
    masks: NDArray[np.bool_],
    splits: NDArray[np.int64],
    *,
    per_record: bool = False,
) -> Array:
    """Return the logarithm of the likelihood ratio of member and non-member, from the models of all other splits.

    Both laws are normal, with means of their own for each record and, unless ``per_record``, deviations that all records share.
    """
    scores = np.empty_like(values)
    for split in np.unique(splits):
        shadows, own = splits != split, splits == split
        parts = []
        for inside in (True, False):
            chosen = masks[shadows] == inside
            count = chosen.sum(axis=0)
            mean = np.where(chosen, values[shadows], 0).sum(axis=0) / count
            rest = np.where(chosen, values[shadows] - mean, 0)
            if per_record:
                deviation = np.sqrt((rest**2).sum(axis=0) / (count - 1))
            else:
                deviation = np.sqrt((rest**2).sum() / (count - 1).sum())
            parts.append(norm.logpdf(values[own], mean, np.maximum(deviation, 1e-9)))
        scores[own] = parts[0] - parts[1]
    return scores


def _mean_auc(scores: Array, masks: NDArray[np.bool_]) -> float:
    """Return the mean over models of the chance that a member outranks a non-member."""
    aucs = []
    for row, mask in zip(scores, masks, strict=True):
        order = row.argsort().argsort()
        inside = int(mask.sum())
        wins = order[mask].sum() - inside * (inside - 1) / 2
        aucs.append(wins / (inside * (len(mask) - inside)))
    return float(np.mean(aucs))


def _evidence(comparison: Comparison, k: int) -> dict:
    each = comparison.defences[k]
    other = None if k == 0 else comparison.differences[k - 1]
    return {
        "auc": _numbers(each.auc),
        "privacy": _numbers(each.privacy),
        "gain": _numbers(each.gain),
        "tpr": [_numbers(rate) for rate in each.tpr],
        "exposed": None if each.exposed is None else _numbers(each.exposed),
        "ellipse": [each.ellipse.gain, each.ellipse.privacy, each.ellipse.correlation],
        "dominated": each.name in comparison.dominated,
        "privacy_difference": None if other is None else _numbers(other.privacy),
        "gain_difference": None if other is None else _numbers(other.gain),
        "privacy_p": None if other is None else other.privacy_p,
        "gain_p": None if other is None else other.gain_p,
    }


def _numbers(estimate) -> list[float]:
    return [float(estimate.value), float(estimate.low), float(estimate.high)]


def _paired(differences: Array) -> list[float]:
    """Return the mean difference of the test error over splits and its standard error; the two models of a split count as one."""
    per_split = differences.reshape(-1, 2).mean(axis=1)
    return [
        float(per_split.mean()),
        float(per_split.std(ddof=1) / np.sqrt(len(per_split))),
    ]


def _posterior(
    own: Array, first: Array, masks: NDArray[np.bool_], *, plain: bool
) -> dict:
    """Return the median probability of membership of members, Mood's test against hard labels, and the calibration."""
    members, others = own[masks], first[masks]
    mood = None if plain else float(median_test(members, others).pvalue)
    order = np.argsort(own.ravel())
    predicted = np.array(
        [part.mean() for part in np.array_split(own.ravel()[order], BINS)]
    )
    groups = np.array_split(masks.ravel()[order], BINS)
    actual = np.array([part.mean() for part in groups])
    size = len(groups[0])
    return {
        "median": float(np.median(members)),
        "mood": mood,
        "predicted": predicted.tolist(),
        "actual": actual.tolist(),
        "group": size,
    }


def _targets(
    files: list[dict[str, NDArray]], labels: NDArray[np.int64], truth: NDArray[np.int64]
) -> dict:
    """Return what targets look like for a range of alphas: Figures 5.7, 5.8, 5.10 and 5.11."""
    given, true, mean, deviation = [], [], [], []
    for split, file in enumerate(files):
        for half, rows in enumerate(halves(labels, split)):
            given.append(labels[rows])
            true.append(truth[rows])
            mean.append(file[f"{half} mean"])
            deviation.append(file[f"{half} deviation"])
    label, real = np.concatenate(given), np.concatenate(true)
    mu, sd = np.concatenate(mean).astype(float), np.concatenate(deviation).astype(float)
    rows = np.arange(len(label))
    signs = np.full(mu.shape, -1.0)
    signs[rows, label] = 1.0
    flipped = label != real
    curves: dict[str, list[float]] = {
        name: [] for name in ("is given", "is true", "entropy given", "entropy true")
    }
    for alpha in GRID:
        target = softmax(mu + alpha * sd * signs, axis=1)
        best = target.argmax(axis=1)
        curves["is given"].append(float((best == label).mean()))
        curves["is true"].append(float((best == real).mean()))
        log = np.log(target.clip(1e-12))
        curves["entropy given"].append(float(-log[rows, label].mean()))
        curves["entropy true"].append(float(-log[rows, real].mean()))
    medians = {}
    for alpha in ALPHAS:
        target = softmax(mu + alpha * sd * signs, axis=1)
        medians[f"alpha {alpha:g}"] = {
            "label": float(np.median(target[rows, label])),
            "label of swapped": _median(target[rows, label][flipped]),
            "truth of swapped": _median(target[rows, real][flipped]),
        }
    return {"grid": GRID.tolist(), **curves, "medians": medians}


def _median(values: Array) -> float | None:
    return float(np.median(values)) if len(values) else None


def _recursion(
    files: list[dict[str, NDArray]], labels: NDArray[np.int64], truth: NDArray[np.int64]
) -> dict | None:
    """Return test errors and targets of each round, on the splits that have rounds; None if there are none."""
    some = [(k, file) for k, file in enumerate(files) if "0 answers round 2" in file]
    if not some:
        return None
    rounds = {}
    for number, title in ((1, "alpha 1"), (2, "round 2"), (3, "round 3")):
        answers = Answers([file for _, file in some], title)
        at_label, entropy = [], []
        for k, file in some:
            for half, rows in enumerate(halves(labels, k)):
                if number == 1:
                    signs = np.full((len(rows), 10), -1.0)
                    signs[np.arange(len(rows)), labels[rows]] = 1.0
                    target = softmax(
                        file[f"{half} mean"] + file[f"{half} deviation"] * signs, axis=1
                    )
                else:
                    target = file[f"{half} target {title}"]
                at_label.append(target[np.arange(len(rows)), labels[rows]])
                entropy.append(-(target * np.log(target.clip(1e-12))).sum(axis=1))
        rounds[str(number)] = {
            "test": float(answers.test.mean()),
            "error": float(
                answers.test.reshape(-1, 2).mean(axis=1).std(ddof=1)
                / np.sqrt(max(len(some), 2))
            )
            if len(some) > 1
            else None,
            "target of the label": float(np.median(np.concatenate(at_label))),
            "entropy": float(np.concatenate(entropy).mean()),
        }
    return {"splits": len(some), "rounds": rounds}
