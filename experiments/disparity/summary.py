"""From the decisions of the attacks to the numbers that the page needs."""

from collections.abc import Sequence

import numpy as np

from reticent.evidence import Crossed, crossed

__all__ = ["summarise"]

LEVEL = 0.95
DIGITS = 6  # a repeat's share of the smallest group is known to four


def summarise(
    wrong: np.ndarray,
    decisions: Sequence[np.ndarray],
    masks: np.ndarray,
    judged: np.ndarray,
    groups: np.ndarray,
) -> dict:
    """Return errors and vulnerabilities of every repeat and group, and the tests that cross records and trainings.

    Parameters
    ----------
    wrong : array of bool, (repeats, n)
        Whether the target answers wrongly.
    decisions : sequence of array of bool, (repeats, n)
        Whom each attack calls members.
    masks, judged : array of bool, (repeats, n)
        Members, and those whose membership is guessed.
    groups : array of str, (n,)
        Group of each record.
    """
    outside = judged & ~masks
    names = sorted(set(groups.tolist()))
    tests = [
        crossed(each, masks, groups, judged=judged, level=LEVEL) for each in decisions
    ]
    assert all(list(test.names) == names for test in tests)
    sizes = {name: int((groups == name).sum()) for name in names}
    return {
        "groups": sizes,
        "error_in": _rounded(_rates(wrong, masks)),
        "error_out": _rounded(_rates(wrong, outside)),
        "group_error_in": _by_group(wrong, masks, groups, names),
        "group_error_out": _by_group(wrong, outside, groups, names),
        "attacks": [
            {
                "vulnerability": _rounded(_rates(each, masks) - _rates(each, outside)),
                **_told(test),
            }
            for each, test in zip(decisions, tests, strict=True)
        ],
    }


def _told(test: Crossed) -> dict:
    return {
        "by_group": _rounded(np.array(test.by_model)),
        "intervals": [[e.value, e.low, e.high] for e in test.vulnerability],
        "p": test.p_value,
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "difference": [
                    pair.difference.value,
                    pair.difference.low,
                    pair.difference.high,
                ],
                "p": pair.p_value,
                "holm": pair.adjusted,
            }
            for pair in test.pairs
        ],
    }


def _rates(hits: np.ndarray, side: np.ndarray) -> np.ndarray:
    return (hits & side).sum(axis=1) / side.sum(axis=1)


def _by_group(
    hits: np.ndarray, side: np.ndarray, groups: np.ndarray, names: Sequence[str]
) -> list:
    return _rounded(
        np.array([_rates(hits[:, groups == g], side[:, groups == g]) for g in names]).T
    )


def _rounded(values: np.ndarray) -> list:
    return np.round(values, DIGITS).tolist()
