"""Write the page on error rates from kept results, and from nothing else."""

from pathlib import Path

from calibrate import settings
from calibrate.rows import Row
from calibrate.suite import CHEAP, KNOWN, PARTS, rows_of

TITLES = {
    "accuracy": "LTU accuracy and privacy score",
    "rates": "Rates, names and the file",
    "usefulness": "Usefulness",
    "epsilon": "Lower bounds on epsilon",
    "beliefs": "Predictions, beliefs and the insider",
    "watched": "Watched trainings",
    "groups": "Groups and trainers",
    "worst": "Worst case",
    "blind": "Blind baseline",
}


def percent(share: float) -> str:
    return f"{100 * share:.2f}" if share < 0.01 else f"{100 * share:.1f}"


def line(row: Row) -> str:
    low, high = row.interval()
    verdict = f"**{row.verdict}**" if row.verdict == "broken" else row.verdict
    visible = f"{row.visible:.1f}" if row.visible < 100 else "none"
    return (
        f"| {row.data} | {row.error} | {100 * row.nominal:.3g} | {row.misses:,} of {row.repeats:,} | "
        f"{percent(row.share)} [{percent(low)}, {percent(high)}] | {visible} | {verdict} |"
    )


HEAD = """| data | error | stated, % | seen | rate, % [95 %] | visible from | |
|---|---|---|---|---|---|---|"""


def tables(rows: list[Row]) -> str:
    """Return one table per statement, in the order in which they were measured."""
    blocks = []
    for statement in dict.fromkeys(row.statement for row in rows):
        its = [line(row) for row in rows if row.statement == statement]
        blocks.append(
            f"**{statement[0].upper()}{statement[1:]}**\n\n{HEAD}\n" + "\n".join(its)
        )
    return "\n\n".join(blocks)


def _listed(rows: list[Row], verdict: str) -> str:
    its = [row for row in rows if row.verdict == verdict]
    if not its:
        return "None."
    return "\n".join(
        f"- {row.statement}, {row.data}: {row.error} in {percent(row.share)} % where {100 * row.nominal:.3g} % are stated."
        + (f" {why}" if (why := KNOWN.get((row.statement, row.data, row.error))) else "")
        for row in its
    )  # fmt: skip


def _conservative(rows: list[Row]) -> str:
    by_statement: dict[str, list[Row]] = {}
    for row in rows:
        by_statement.setdefault(row.statement, []).append(row)
    always = [
        f"{name} (at most {percent(max(r.share / r.nominal for r in its))} % of the stated rate in {len(its)} rows)"
        for name, its in by_statement.items()
        if all(row.verdict == "kept, conservative" for row in its)
    ]
    return "\n".join(f"- {text}" for text in always) or "None."


def summary(rows: list[Row]) -> str:
    kinds = ("kept", "kept, conservative", "not shown to be kept", "broken")
    counts = [(kind, sum(row.verdict == kind for row in rows)) for kind in kinds]
    return ", ".join(f"{count} {kind}" for kind, count in counts)


def verdict_table(results: dict) -> str:
    lines = [
        f"| {v['scenario']} | {v['right']} | {v['audits']} | {v['RELEASE']} | {v['INCONCLUSIVE']} | {v['REFUSE']} | {v['lenient']} |"
        for part in PARTS
        for v in results[part]["verdicts"]
    ]
    return (
        "| audit | right | audits | RELEASE | INCONCLUSIVE | REFUSE | released by lenient limits |\n|---|---|---|---|---|---|---|\n"
        + "\n".join(lines)
    )


def required(results: dict) -> str:
    """Return, per required statement, the errors of all audits without a leak taken together."""
    total: dict[tuple[str, str], list[Row]] = {}
    for part in PARTS[len(CHEAP) :]:
        for row in rows_of(results[part]):
            total.setdefault((row.statement, row.error), []).append(row)
    lines = []
    for (statement, error), rows in total.items():
        joint = Row(
            statement=statement,
            data=f"{len(rows)} kinds of audits",
            error=error,
            nominal=max(row.nominal for row in rows),
            misses=sum(row.misses for row in rows),
            repeats=sum(row.repeats for row in rows),
        )
        lines.append(line(joint).replace(f"| {joint.data} |", f"| {statement}, {joint.data} |"))  # fmt: skip
    return HEAD.replace("| data |", "| statement |") + "\n" + "\n".join(lines)


def _scaled(results: dict) -> str:
    """Return a warning if a part was measured with fewer repeats than the settings have."""
    shorter = [part for part, result in results.items() if result["scale"] < 1]
    if not shorter:
        return ""
    least = min(results[part]["scale"] for part in shorter)
    which = "all parts" if len(shorter) == len(results) else ", ".join(shorter)
    return (
        f" **This page comes from a shorter run** ({which}, down to {least:g} of the repeats), so more rows than usual are not shown to be "
        "kept."
    )


def page(results: dict) -> str:
    """Return the page. ``results`` maps each part to its rows and verdicts."""
    cheap = [row for part in CHEAP for row in rows_of(results[part])]
    audits = [row for part in PARTS[len(CHEAP) :] for row in rows_of(results[part])]
    rows = cheap + audits
    parts = "\n\n".join(
        f"### {TITLES[part]}\n\n{tables(rows_of(results[part]))}" for part in CHEAP
    )
    return f"""# Error rates

How often is what reticent states wrong? Every estimator of [Statistics](statistics.md) is put to the test here on data whose truth is known, by closed form or by a very large sample that the library has no part in. `make test-all` measures all of it anew and writes this page;
`make calibration` does that alone. Seed and number of repeats were fixed before the run that is shown (`experiments/calibration/calibrate/settings.py`, which says what a pilot changed).{_scaled(results)}

**How to read it.** *Stated* is the largest error rate that the statement allows: an interval at the level {settings.LEVEL} may lie wholly above the truth in {100 * (1 - settings.LEVEL) / 2:g} % of cases and wholly below it in as many, a bound on one side may be wrong in {100 * (1 - settings.LEVEL):g} %. "Audit level" is the level of one interval in an audit of a
classifier with a pool, {100 * (1 - settings.AUDIT_LEVEL):.2g} % for both sides. *Rate* has the Clopper-Pearson interval of the true error rate. *Visible from* is the multiple of the stated rate that would have been called broken with a probability of 95 %: what the row could have seen.

- **kept**: {settings.TOLERATED:g} times the stated rate is excluded. Conservative: not even half of it is used, so intervals are wider than they need to be.
- **not shown to be kept**: neither that, nor broken. More repeats would tell.
- **broken**: so many errors occur once in a million suites if the stated rate is true.

Of {len(rows)} rows: {summary(rows)}.

## Broken

{_listed(rows, "broken")}

## Conservative in every row

{_conservative(rows)}

## Audits from end to end

Products that leak nothing are judged by limits that stand exactly on that truth (a privacy of 1, a true-positive rate equal to the false-positive rate), so any false claim of a leak is a REFUSE. Products with a known leak are judged by limits that it breaks, so a RELEASE is a miss. "Released by lenient
limits" counts the audits in which a privacy of 0.6 and rates of 0.35 at 0.05 would have been shown to be kept: what so small tables can show.

{verdict_table(results)}

All kinds of audits taken together:

{required(results)}

Each kind by itself:

{tables(audits)}

## Estimators

{parts}

## What these figures do not say

They hold for the distributions that were drawn, and nothing is proven about others. An interval that covers one product is counted against that product: read as a statement on its trainer it covers far less often ([what an interval covers](statistics.md#what-is-counted)). Whether an attack finds what there is to be found is not measured
here; the audits of known leaks show only that large ones are not released.
"""


def write(results: dict, path: Path) -> None:
    from reticent.run import write_text

    write_text(path, page(results))
