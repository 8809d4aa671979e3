"""The blind baseline: members and non-members told apart without the product, where they do not differ."""

import numpy as np
import pandas as pd

from calibrate.rows import Case
from calibrate.settings import SLOWEST
from reticent.attack import blind_baseline
from reticent.data import Split, table_from_frame


def table(name: str, rng: np.random.Generator):
    """Return a table without any difference between the parts that it will be divided into."""
    n = 240
    units = np.arange(n)
    if name == "numbers":
        frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"])
    elif name == "binary features, heavy tails and ties":
        frame = pd.DataFrame(rng.integers(2, size=(n, 4)), columns=[*"abcd"])
        frame["e"], frame["f"] = rng.standard_cauchy(n), rng.integers(3, size=n)
    else:  # four records by which a person is recognised
        own = np.repeat(rng.normal(size=(n // 4, 2)), 4, axis=0)
        noise = rng.normal(scale=1e-3, size=own.shape)
        frame = pd.DataFrame(own + noise, columns=[*"ab"])
        units = np.repeat(np.arange(n // 4), 4)
    return table_from_frame(frame, target=rng.integers(2, size=n)[units], unit=units)


def alarms(name: str, parts: tuple[float, float, float]) -> Case:
    def once(rng: np.random.Generator) -> tuple[bool, bool]:
        split = Split.by_unit(table(name, rng), rng=rng, fractions=parts)
        p = blind_baseline(split, rng=rng).p_value
        return p <= 0.05, p <= 0.01

    return Case(
        statement="blind baseline (`blind_baseline`)",
        data=f"{name}; {240 * parts[0]:g} against {240 * parts[1]:g} rows",
        errors=(
            ("p-value at most 0.05", 0.05),
            ("p-value at most 0.01: a stop", 0.01),
        ),
        once=once,
        repeats=SLOWEST,
    )


def cases() -> list[Case]:
    return [
        alarms("numbers", (0.5, 0.5, 0.0)),
        alarms("binary features, heavy tails and ties", (0.5, 0.5, 0.0)),
        alarms("people with four rows", (0.5, 0.5, 0.0)),
        alarms("numbers", (0.15, 0.85, 0.0)),
    ]
