"""Count misses, and say what the count shows: kept, not shown to be kept, or broken.

The arithmetic here is independent of the library: exact binomial tails by SciPy.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import beta, binom

from calibrate import settings

Once = Callable[[np.random.Generator], Sequence[bool]]

LOW, HIGH = "low end above the truth", "high end below the truth"
MISSED, ALARMED = "truth outside", "false alarm"


@dataclass(frozen=True, kw_only=True)
class Row:
    """How often one statement was wrong on one kind of data.

    ``error`` says in which way; ``nominal`` is the largest rate that the statement allows.
    """

    statement: str
    data: str
    error: str
    nominal: float
    misses: int
    repeats: int

    @property
    def share(self) -> float:
        return self.misses / self.repeats

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the Clopper-Pearson interval of the true error rate."""
        miss = (1 - level) / 2
        k, n = self.misses, self.repeats
        low = 0.0 if k == 0 else float(beta.ppf(miss, k, n - k + 1))
        high = 1.0 if k == n else float(beta.isf(miss, k + 1, n - k))
        return low, high

    @property
    def verdict(self) -> str:
        """``broken`` once in a million if the rate is as stated; ``kept`` only if 1.5 times the rate is excluded."""
        if binom.sf(self.misses - 1, self.repeats, self.nominal) < settings.ALARM:
            return "broken"
        high = self.interval()[1]
        if high > settings.TOLERATED * self.nominal:
            return "not shown to be kept"
        if high <= settings.CONSERVATIVE * self.nominal:
            return "kept, conservative"
        return "kept"

    @property
    def visible(self) -> float:
        """The smallest multiple of the stated rate that would have been called broken with a probability of 0.95."""
        needed = 1 + binom.isf(settings.ALARM, self.repeats, self.nominal)
        rate = float(beta.ppf(0.95, needed, self.repeats - needed + 1))
        return rate / self.nominal if needed <= self.repeats else float("inf")

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One statement on one kind of data; ``once`` returns, for each error, whether it was made."""

    statement: str
    data: str
    errors: tuple[tuple[str, float], ...]
    once: Once
    repeats: int

    def rows(self, *, seed: int = settings.SEED, scale: float = 1.0) -> list[Row]:
        """Return one row per error, after as many repeats as the settings say (times the scale)."""
        key = zlib.crc32(f"{self.statement}/{self.data}".encode())
        rng = np.random.default_rng([seed, key])
        repeats = max(5, round(scale * self.repeats))
        made = np.zeros(len(self.errors), dtype=np.int64)
        for _ in range(repeats):
            made += np.asarray(self.once(rng), dtype=np.int64)
        return [
            Row(
                statement=self.statement,
                data=self.data,
                error=error,
                nominal=nominal,
                misses=int(count),
                repeats=repeats,
            )
            for (error, nominal), count in zip(self.errors, made, strict=True)
        ]


def interval_case(
    statement: str,
    data: str,
    estimate: Callable[[np.random.Generator], object],
    *,
    truth: float,
    repeats: int,
    level: float = settings.LEVEL,
    sides: str = "both",
) -> Case:
    """Return the case of an interval whose ends each have half of the error, or of a bound on one side with all of it.

    ``sides`` is ``"both"``, or ``"low"`` for a lower bound and ``"high"`` for an upper one.
    """
    miss = 1 - level
    errors = {
        "both": ((LOW, miss / 2), (HIGH, miss / 2)),
        "low": ((LOW, miss),),
        "high": ((HIGH, miss),),
    }[sides]
    tolerance = 1e-9 * max(1.0, abs(truth))  # rounding is no miss

    def once(rng: np.random.Generator) -> Sequence[bool]:
        made = estimate(rng)
        above = made.low > truth + tolerance
        below = made.high < truth - tolerance
        return {"both": (above, below), "low": (above,), "high": (below,)}[sides]

    return Case(
        statement=statement, data=data, errors=errors, once=once, repeats=repeats
    )


def alarm_case(
    statement: str,
    data: str,
    alarm: Callable[[np.random.Generator], bool],
    *,
    nominal: float,
    repeats: int,
    error: str = ALARMED,
) -> Case:
    """Return the case of a test, or of intervals that must hold together."""
    return Case(
        statement=statement,
        data=data,
        errors=((error, nominal),),
        once=lambda rng: (alarm(rng),),
        repeats=repeats,
    )
