"""The parts of the suite: what is measured together, in one process."""

from importlib import import_module

from calibrate import audits, settings
from calibrate.rows import HIGH, LOW, MISSED, Row

CHEAP = (
    "accuracy",
    "rates",
    "usefulness",
    "epsilon",
    "beliefs",
    "watched",
    "groups",
    "worst",
    "blind",
)
PARTS = (*CHEAP, *audits.PARTS)

TAILS = "The fourth moment decides, and so few people do not show it (documented). A quantity has the skill of the absolute error beside it."
# Rows that are known to be broken: (statement, data, error), and why each is still so.
KNOWN: dict[tuple[str, str, str], str] = {
    ("R² (`r_squared`)", "log-normal; 60 people", LOW): TAILS,
    ("R² (`r_squared`)", "log-normal; 60 people", HIGH): TAILS,
    ("R² (`r_squared`)", "log-normal; 500 people", LOW): TAILS,
    ("R² (`r_squared`)", "log-normal; 500 people", HIGH): TAILS,
    (
        "worst case (`worst_case_vectors`)",
        "normal in 10 dimensions, apart by 0.5 in each; 150 against 150",
        MISSED,
    ): "Nearest neighbours lean down in many dimensions, and the high end is no bound there (documented).",
}


def measure(part: str, *, seed: int = settings.SEED, scale: float = 1.0) -> dict:
    """Return ``rows``, the ``scale`` and, of audits from end to end, ``verdicts``, as JSON values."""
    if part in audits.PARTS:
        return {"scale": scale, **audits.measure(part, seed=seed, scale=scale)}
    cases = import_module(f"calibrate.parts.{part}").cases()
    rows = [row for case in cases for row in case.rows(seed=seed, scale=scale)]
    return {
        "scale": scale,
        "rows": [row.to_json() for row in rows],
        "verdicts": [],
    }


def rows_of(result: dict) -> list[Row]:
    return [Row(**row) for row in result["rows"]]


def broken_and_unknown(rows: list[Row]) -> list[Row]:
    """Return the rows that are broken without being known to be."""
    return [
        row
        for row in rows
        if row.verdict == "broken" and (row.statement, row.data, row.error) not in KNOWN
    ]
