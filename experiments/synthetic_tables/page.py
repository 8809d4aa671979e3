"""Write docs/experiments/synthetic_tables.md from results.json.

python experiments/synthetic_tables/page.py
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from generators import DEEP, GENERATORS, NULLS
from scipy.stats import binom

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/experiments/synthetic_tables.md"
TABLES = {
    "cardio70k": "Cardio",
    "adult": "Adult",
    "stroke": "Stroke",
    "adult_categories": "Adult, categories alone",
}
WORDS = {
    "cardio70k": "Cardio (12 columns)",
    "adult": "Adult (13 columns)",
    "stroke": "Stroke (11 columns)",
    "adult_categories": "the categories of Adult alone (9 columns, on which many people are alike)",
}
COPIES = ("copies, all", "copies, all, in order")
VERSIONS = {
    "sdmetrics": "SDMetrics 0.32.0",
    "syntheval": "SynthEval 1.7.3",
    "mostlyai-qa": "mostlyai-qa 1.10.11",
    "anonymeter": "anonymeter 1.1.0",
}
# The value of each measure of a peer that stands for no risk at all.
SAFEST = {
    "SDMetrics: overfitting protection": "1",
    "SDMetrics: new rows": "1",
    "SynthEval: privacy loss": "0",
    "SynthEval: adversarial accuracy": "0.5",
    "SynthEval: identifiability": "0",
    "SynthEval: median DCR": "1",
    "SynthEval: hit rate": "0",
    "SynthEval: membership precision": "0.5",
    "mostlyai-qa: DCR share": "0.5",
    "anonymeter: singling out, univariate": "0",
    "anonymeter: singling out, multivariate": "0",
    "anonymeter: linkability": "0",
    "anonymeter: inference": "0",
}
FAR = 0.1  # so far from no risk a reader of a score between 0 and 1 would ask what is wrong
ALARM = 0.05 / 5  # five statements of ours about a table share 5 %


def first(name: str) -> Callable[[dict], float | None]:
    def read(scores: dict) -> float | None:
        found = scores.get(name)
        if isinstance(found, list):
            return found[0]
        return found if isinstance(found, int | float) else None

    return read


# Tool, what is shown, how it is read, and whether a larger value means more risk.
MEASURES = (
    ("sdmetrics", "SDMetrics: overfitting protection", first("DCROverfittingProtection"), False),
    ("sdmetrics", "SDMetrics: new rows", first("NewRowSynthesis"), False),
    ("syntheval", "SynthEval: privacy loss", first("priv_loss_nnaa"), True),
    ("syntheval", "SynthEval: adversarial accuracy", first("nnaa"), False),
    ("syntheval", "SynthEval: identifiability", first("eps_identif_risk"), True),
    ("syntheval", "SynthEval: median DCR", first("median_DCR"), False),
    ("syntheval", "SynthEval: hit rate", first("hit_rate"), True),
    ("syntheval", "SynthEval: membership precision", first("mia_precision"), True),
    ("mostlyai-qa", "mostlyai-qa: DCR share", first("DCR share"), True),
    ("anonymeter", "anonymeter: singling out, univariate", first("singling out, univariate"), True),
    ("anonymeter", "anonymeter: singling out, multivariate", first("singling out, multivariate"), True),
    ("anonymeter", "anonymeter: linkability", first("linkability"), True),
    ("anonymeter", "anonymeter: inference", first("inference"), True),
    ("ours", "privacy loss", first("privacy loss"), True),
    ("ours", "copies beyond chance", first("copies"), True),
    ("ours", "singling out by values", first("singling out, values"), True),
    ("ours", "linkability", first("linkability"), True),
    ("ours", "attribute inference", first("inference"), True),
)  # fmt: skip
OURS = (
    "privacy loss",
    "singling out, values",
    "singling out, rows",
    "linkability",
    "inference",
)


def write_page(results: dict) -> None:
    """Write the page from whatever has been judged so far."""
    names = [*GENERATORS, *DEEP]
    used = [
        words
        for table, words in WORDS.items()
        if any(k.startswith(f"{table}/") for k in results)
    ]
    tables = ", ".join(used[:-1]) + " and " + used[-1] if len(used) > 1 else used[0]
    lines = [HEAD.format(seconds=seconds(results), tables=tables)]
    lines += ["## What our statistics see\n", ours(results, names)]
    lines += ["\n## Who separates what\n", SEPARATES, separated(results, names)]
    lines += ["\n## A verbatim copy and a fresh sample\n", extremes(results)]
    asked = peers(results, names)
    lines += ["\n## What the peers report\n", asked or "Nothing was asked of them."]
    lines += ["\n## Verdicts of the whole audit\n", VERDICTS, verdicts(results, names)]
    lines += ["\n## How often nothing is taken for something\n", nulls()]
    lines += [FOOT]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def scores(results: dict, table: str, name: str, tool: str) -> list[dict]:
    start = f"{table}/{name}/"
    return [
        entry["scores"]
        for key, entry in sorted(results.items())
        if key.startswith(start) and key.endswith(f"/{tool}")
    ]


def ours(results: dict, names: list[str]) -> str:
    """One row per generator: mean over tables and repeats, and how often each alarms."""
    head = [
        "| synthetic table | tables | privacy loss | copies | values | rows | linkability | inference | any, at 5 % in all |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = []
    for name in names:
        found = [s for t in TABLES for s in scores(results, t, name, "ours")]
        if not found:
            continue
        cells = []
        for measure in (OURS[0], "copies", *OURS[1:]):
            values = [s[measure] for s in found if measure in s]
            alarms = sum(v[3] <= ALARM if len(v) > 3 else v[1] > 0 for v in values)
            cells.append(
                f"{mean(v[0] for v in values):+.3f} ({alarms})" if values else ""
            )
        alarmed = sum(any(s[m][3] <= ALARM for m in OURS if m in s) for s in found)
        rows.append(
            f"| {name} | {len(found)} | "
            + " | ".join(cells)
            + f" | {alarmed} of {len(found)} |"
        )
    return "\n".join([*head, *rows])


def separated(results: dict, names: list[str]) -> str:
    """One row per measure: which generators lie beyond all fresh samples of the same table."""
    shown = [n for n in names if n not in NULLS]
    head = ["| measure | " + " | ".join(shown) + " |", "|---|" + "---|" * len(shown)]
    rows = []
    for tool, label, read, larger in MEASURES:
        cells = []
        for name in shown:
            beyond = judged = 0
            for table in TABLES:
                nulls = [
                    read(s) for n in NULLS for s in scores(results, table, n, tool)
                ]
                values = [read(s) for s in scores(results, table, name, tool)]
                nulls, values = (
                    [v for v in vs if v is not None] for vs in (nulls, values)
                )
                if len(nulls) < 3:
                    continue
                judged += len(values)
                beyond += sum(
                    v > max(nulls) if larger else v < min(nulls) for v in values
                )
            cells.append(f"{beyond} of {judged}" if judged else "")
        if any(cells):
            rows.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join([*head, *rows])


def extremes(results: dict) -> str:
    """Return what the peers say of the two tables about which there is no doubt, and where they call the copy no riskier than the sample."""
    asked = [name for name in VERSIONS if any(k.endswith(f"/{name}") for k in results)]
    absent = [VERSIONS[name] for name in VERSIONS if name not in asked]
    parts = []
    if asked:
        parts.append(EXTREMES.format(asked=", ".join(VERSIONS[n] for n in asked)))
    if absent:
        parts.append(NOT_ASKED.format(absent=", ".join(absent)))
    columns = [
        (table, name)
        for table in TABLES
        for name in (NULLS[0], *COPIES)
        if any(scores(results, table, name, tool) for tool in asked)
    ]
    if not columns:
        return "\n".join(parts)
    rows, wrong, alarmed = [], [], []
    for tool, label, read, larger in MEASURES:
        if tool == "ours":
            continue
        none = float(SAFEST[label])
        values = {}
        for table, name in columns:
            found = [read(s) for s in scores(results, table, name, tool)]
            values[table, name] = next((v for v in found if v is not None), None)
        cells = ["" if v is None else f"{v:.3f}" for v in values.values()]
        if any(cells):
            rows.append(f"| {label} | {SAFEST[label]} | " + " | ".join(cells) + " |")
        for table, name in columns:
            fresh, copied = values.get((table, NULLS[0])), values[table, name]
            if name == NULLS[0] and fresh is not None:
                beyond = fresh - none if larger else none - fresh
                if beyond > FAR:
                    alarmed.append(f"{label} on {TABLES[table]} ({fresh:.3f}, where {SAFEST[label]} is no risk)")  # fmt: skip
            if name in COPIES and fresh is not None and copied is not None:
                safe = copied <= fresh if larger else copied >= fresh
                if safe:
                    wrong.append(f"{label} on {TABLES[table]} ({name}: {copied:.3f}, fresh people: {fresh:.3f})")  # fmt: skip
    titles = [f"{TABLES[table]}: {name}" for table, name in columns]
    head = [
        "| measure | no risk | " + " | ".join(titles) + " |",
        "|---|---|" + "---|" * len(titles),
    ]
    parts.append("\n".join([*head, *rows]))
    said = "; ".join(wrong) if wrong else "none"
    parts.append(f"\nMeasures that call a verbatim copy no riskier than fresh people: {said}.")  # fmt: skip
    far = "; ".join(alarmed) if alarmed else "none"
    parts.append(f"\nMeasures that say more of fresh people than {FAR:g} beyond no risk, on the side of risk: {far}.")  # fmt: skip
    return "\n".join(parts)


def peers(results: dict, names: list[str]) -> str:
    shown = [m for m in MEASURES if m[0] != "ours"]
    parts = []
    for table, title in TABLES.items():
        rows = []
        for name in names:
            cells = []
            for tool, _, read, _ in shown:
                found = [read(s) for s in scores(results, table, name, tool)]
                values = [v for v in found if v is not None]
                if not values:
                    cells.append("failed" if found else "")
                elif max(values) - min(values) > 0.0005:
                    cells.append(f"{min(values):.3f} to {max(values):.3f}")
                else:
                    cells.append(f"{values[0]:.3f}")
            if any(cells):
                rows.append(f"| {name} | " + " | ".join(cells) + " |")
        if rows:
            head = [
                "| synthetic table | " + " | ".join(m[1] for m in shown) + " |",
                "|---|" + "---|" * len(shown),
            ]
            parts.append(f"**{title}**\n\n" + "\n".join([*head, *rows]))
    return "\n\n".join(parts)


def verdicts(results: dict, names: list[str]) -> str:
    """Return the verdicts on each kind of table, and which of the refusals are for what the table tells about people."""
    rows = []
    for name in names:
        found = [s for t in TABLES for s in scores(results, t, name, "verdict")]
        if not found:
            continue
        counts = Counter(s["verdict"] for s in found)
        refused = [set(s["broken"]) for s in found if s["verdict"] == "REFUSE"]
        # The gain is the one limit on what a table is good for; all others are about people.
        people = sum(bool(broken - {"gain"}) for broken in refused)
        useless = sum(broken == {"gain"} for broken in refused)
        said = ", ".join(f"{number} {v}" for v, number in sorted(counts.items()))
        by = Counter(measure for broken in refused for measure in broken)
        limits = ", ".join(f"{measure} {number}" for measure, number in by.most_common())  # fmt: skip
        rows.append(f"| {name} | {said} | {people} | {useless} | {limits} |")
    if not rows:
        return "No audit has been run yet; `run.py --tools verdict` fills this table."
    head = "| synthetic table | verdicts | refused for people's sake | refused because models learn too little | limits that are broken |"
    return "\n".join([head, "|---|---|---:|---:|---|", *rows])


def nulls() -> str:
    """Return how often each statistic alarms on tables that know nobody in question."""
    file = HERE / "nulls.json"
    if not file.exists():
        return "Not counted yet; `nulls.py` does it."
    found = json.loads(file.read_text())
    by_cell: dict[tuple[str, str], list[float]] = {}
    for key, values in found.items():
        for measure, p in values.items():
            by_cell.setdefault((key.split("/")[0], measure), []).append(p)
    made = list(dict.fromkeys(name for name, _ in by_cell))
    rows = ["| statistic | " + " | ".join(made) + " |", "|---|" + "---|" * len(made)]
    for measure in OURS:
        cells = [by_cell.get((name, measure), []) for name in made]
        shown = [
            f"{sum(p <= 0.05 for p in c)}, {sum(p <= 0.01 for p in c)} of {len(c)}"
            for c in cells
        ]
        rows.append(f"| {measure} | " + " | ".join(shown) + " |")
    every = [p for c in by_cell.values() for p in c]
    tails = [
        binom.sf(sum(p <= 0.05 for p in c) - 1, len(c), 0.05) for c in by_cell.values()
    ]
    head = NULLS_HEAD.format(
        rows=next(iter(found)).split("/")[1],
        draws=len(next(iter(by_cell.values()))),
        five=sum(p <= 0.05 for p in every),
        one=sum(p <= 0.01 for p in every),
        all=len(every),
        all5=0.05 * len(every),
        all1=0.01 * len(every),
        cells=len(by_cell),
        worst=min(tails),
    )
    return "\n".join([head, *rows])


def seconds(results: dict) -> str:
    tools = {}
    for key, entry in results.items():
        tool = key.rsplit("/", 1)[1]
        if tool != "verdict":  # runs in a process of its own, which is not timed
            tools.setdefault(tool, []).append(entry["seconds"])
    return ", ".join(
        f"{tool} {mean(spent):.0f}" for tool, spent in sorted(tools.items())
    )


HEAD = """# Who catches what in synthetic tables

Made by `python experiments/synthetic_tables/run.py`; `results.json` keeps every figure. Synthetic tables with known faults are made from 1,000 members of each of {tables}, and judged beside 1,000 non-members. Two kinds of table leak nothing about the members: **fresh people**, and **CART of other
people**, the same generator trained on people who are neither members nor non-members. CPU seconds per table: {seconds}.
"""
SEPARATES = """No peer says from which value on a table must not be released. Here a measure *separates* a table if its value lies on the risky side of all null tables (fresh people, CART of other people) of the same data. With few null tables a measure without any sense separates by chance one time in their number plus one.
"""
EXTREMES = """Asked were {asked}, each with its defaults and in an environment of its own. A table that holds every member as they are must not be released; a sample of fresh people says nothing about anybody. No peer says where the limit is; beside each measure stands the value that means no risk. Where many people are alike, a distance of 0 is common, and measures that compare strictly go wrong on either side ([ties](../pitfalls/ties-of-nearest-neighbours.md)); a peer that takes a table in the same order for the real
table itself leaves out the distance of 0 that gives the copy away.
"""
NOT_ASKED = """Not asked, so that nothing is said about them here: {absent}. `run.py --tools sdmetrics,anonymeter,mostlyai` goes on with what is missing.
"""
VERDICTS = """The command `reticent audit --synthetic`, without the generator, at the default policy, on Cardio, Adult and Stroke. With 1,000 members nobody can be released at its limits; whoever is not refused is inconclusive, with the number of people that would settle it. A table is also refused if models that learn from it are not better than a constant answer (the limit `gain`), which says nothing about its people; the columns tell the two apart. On Adult, where few people have a value of their own (survey weights are left out), tables of resampled values are refused for what models learn alone: with 1,000 members no limit about people is shown to be broken there, although singling out by values is seen (p = 0.005). On Cardio and Stroke these limits are broken, too.
"""
NULLS_HEAD = """Draws of people from Cardio, {rows} of each set, and tables that know nobody in question: fresh people, and generators trained on people who are neither members nor non-members. The number of p-values of at most 5 % and of at most 1 %, in {draws} draws each (`nulls.py`, `nulls.json`). Three alarms had been seen
once, in runs of another size: CART of other people (p = 0.02), a tree at epsilon 1 by singled-out rows (p = 0.005) and fresh people of Cardio by attribute inference (p at most 0.01). Repeated, they are as frequent as they should be: {five} of {all} p-values are at most 5 % and {one} at most 1 %, where {all5:.0f} and {all1:.0f} are expected.
The smallest of the {cells} binomial tail probabilities of the cells at 5 % is {worst:.2f}.
"""
FOOT = """
## What the figures do not say

Members and non-members are drawn once per repeat, so the tables of one repeat share their chance. Peers, where they are shown, ran with their defaults (anonymeter: 300 attacks, 3 columns; SynthEval: 5 resamplings; CTGAN and TVAE: 150 epochs). Peers were asked about one draw of people per faulty table, because each takes as long as many of ours. Differences between kinds of table are large, those between statistics are not measured. Ranges are those of the whole data, which stand for public ones. The tree of the noisy marginals is learned from other people, as if it were public. Statistics of this
page describe; the release of a table rests on the attacks of the audit.
"""


if __name__ == "__main__":
    write_page(json.loads((HERE / "results.json").read_text()))
