"""Tables as nobody would make them: every one ends in a verdict that can be meant, or in one sentence and exit status 2."""

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from in_process import run

# That an audit is given: time for a pool of the smallest size, and for some tables of the next. What is asked here is what ordinary
# and odd tables end in, not how much is found, so that two hundred audits of a few seconds each tell more than fifty long ones.
MINUTES = 0.05
FEWER_MINUTES = 0.02  # for a pool of the smallest size
# Minutes of its deadline: three seconds, in which hardly anything can be done, and two that leave less and less out.
DEADLINES = (0.05, 0.2, 1.0)
# Seconds of the processor beyond: what cannot be cut short (reading, the training of the product, its controls). A machine that is
# busy with something else takes none of them, so that this asserts no time.
SLACK = 60.0
TRAINERS = (
    "RandomForestClassifier(n_estimators=5)",
    "LogisticRegression()",
    "GaussianNB()",
    "HistGradientBoostingClassifier(max_iter=5)",
    "KNeighborsClassifier()",
)


@st.composite
def columns(draw, rows):
    """Return the cells of one column, which may be of any kind, and odd."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    normal = rng.normal(size=rows)
    kind = draw(
        st.sampled_from(
            [
                *(
                    "normal",
                    "whole",
                    "constant",
                    "empty",
                    "one",
                    "tiny",
                    "huge",
                    "infinite",
                ),
                *(
                    "few",
                    "many",
                    "booleans",
                    "dates",
                    "commas",
                    "mixed",
                    "zeros",
                    "words",
                ),
                *("copy", "identifier", "large", "unicode", "minus_zero", "quotes"),
            ]
        )
    )
    cells = {
        "normal": lambda: normal,
        "whole": lambda: rng.integers(-5, 6, size=rows),
        "constant": lambda: np.full(rows, 3.5),
        "empty": lambda: np.full(rows, ""),
        "one": lambda: np.where(np.arange(rows) == rows // 2, "7", ""),
        "tiny": lambda: normal * 1e-310,
        "huge": lambda: normal * 10.0 ** draw(st.integers(30, 300)),
        "infinite": lambda: np.where(normal > 1, np.inf, normal),
        "few": lambda: rng.choice(["a", "b", "c"], size=rows),
        "many": lambda: [f"c{k}" for k in rng.integers(rows, size=rows)],
        "booleans": lambda: rng.choice(["True", "False", ""], size=rows),
        "dates": lambda: [f"2026-01-{k:02d}" for k in rng.integers(1, 29, size=rows)],
        "commas": lambda: [
            f"{k // 1000},{k % 1000:03d}" for k in rng.integers(9999, size=rows)
        ],
        "mixed": lambda: np.where(normal > 1.5, "unknown", normal.round(2).astype(str)),
        "zeros": lambda: [f"{k:05d}" for k in rng.integers(99999, size=rows)],
        "words": lambda: rng.choice(["NA", "None", "null", "x", "?"], size=rows),
        "copy": lambda: np.arange(rows) % 2,
        "identifier": lambda: np.arange(rows),
        "large": lambda: rng.integers(2**60, 2**63 - 1, size=rows),
        "unicode": lambda: rng.choice(["å", "日本", "\u202e", "e\u0301"], size=rows),
        "minus_zero": lambda: np.where(normal > 0, "-0.0", "0"),
        "quotes": lambda: rng.choice(['"', "a\nb", "[red]", "a,b", " x "], size=rows),
    }
    values = pd.Series(cells[kind](), dtype=object)
    share = draw(st.sampled_from([0.0, 0.0, 0.1, 0.9]))
    return values.mask(pd.Series(rng.random(rows) < share), "")


@st.composite
def tables(draw):
    """Return a table, the name of its target, and further options."""
    # Refusals come early, so most tables are large enough for an audit.
    rows = draw(st.sampled_from([60, 120, 200, 90, 39, 3]))
    count = draw(st.integers(1, 5))
    names = draw(
        st.lists(
            st.sampled_from(
                [
                    "a",
                    "b",
                    "c d",
                    "e,f",
                    "",
                    "[g]",
                    "x.1",
                    "ill.1",
                    "0",
                    "--drop",
                    "ålder",
                ]
            ),
            min_size=count,
            max_size=count,
            unique=draw(st.integers(0, 9)) < 9,
        )
    )
    frame = pd.concat([draw(columns(rows)) for _ in names], axis=1)
    frame.columns = names
    target = draw(st.sampled_from(["balanced", "rare", "several", "quantity", "odd"]))
    labels = {
        "balanced": lambda: np.arange(rows) % 2,
        "rare": lambda: (np.arange(rows) % 29 == 0).astype(int),
        "several": lambda: np.array(["a", "b", "c"])[np.arange(rows) % 3],
        "quantity": lambda: np.arange(rows) / 7,
        "odd": lambda: draw(columns(rows)).to_numpy(),
    }
    frame["ill"] = labels[target]()
    trainer = draw(st.sampled_from(TRAINERS))
    # A classifier for a quantity is refused at once; so is a group without a name. Once in a while that is enough.
    if target == "quantity" and draw(st.integers(0, 9)) < 9:
        trainer = "Ridge()"
    deadline = draw(st.sampled_from([*DEADLINES, DEADLINES[-1]]))
    options = ["--trainer", trainer, "--deadline", str(deadline)]
    if draw(st.booleans()) and (names[0] or draw(st.integers(0, 9)) == 9):
        options += ["--group", names[0]]
    if count > 1 and draw(st.integers(0, 9)) == 9:
        options += ["--unit", names[-1]]
    return frame, options


def check(table, folder, minutes):
    """Audit a table in so many minutes and look at what came of it."""
    frame, options = table
    frame.to_csv(folder / "t.csv", index=False)
    command = [
        "audit",
        "t.csv",
        "--target",
        "ill",
        "--minutes",
        str(minutes),
        "--rounds",
        "2",
    ]
    command += ["--workers", "1", "--json", "--out", "out", *options]
    began = time.process_time()
    done = run(*command, folder=folder)
    deadline = float(options[options.index("--deadline") + 1])
    assert time.process_time() - began < 60 * deadline + SLACK
    assert done.returncode in (0, 1, 2, 3), done.stderr
    if done.returncode == 2:
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        return
    assert done.stderr == ""
    dossier = json.loads(done.stdout)
    verdict = dossier["verdict"]
    assert {"RELEASE": 0, "REFUSE": 1, "INCONCLUSIVE": 3}[verdict] == done.returncode
    evidence = dossier["evidence"]
    for left_out in (*evidence["skipped"], *evidence["not_computed"]):
        assert f"deadline of {deadline:g} minutes" in left_out["why"]
    if evidence["skipped"]:
        assert verdict != "RELEASE"
    for statement in dossier["statements"]:
        estimate = statement.get("estimate")
        if estimate is None:
            continue
        low, value, high = (estimate[key] for key in ("low", "value", "high"))
        assert all(
            isinstance(x, int | float) and math.isfinite(x) for x in (low, value, high)
        )
        assert low <= value <= high
    if len(frame) <= 60:
        assert verdict != "RELEASE"  # so few people prove nothing


@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    # A smaller example would take minutes to find, and each is small enough to read.
    phases=[Phase.explicit, Phase.generate],
)
@given(table=tables())
def test_some_odd_tables(table, tmp_path_factory):
    check(table, tmp_path_factory.mktemp("odd"), FEWER_MINUTES)


@pytest.mark.slow
@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    # A smaller example would take minutes to find, and each is small enough to read.
    phases=[Phase.explicit, Phase.generate],
)
@given(table=tables())
def test_two_hundred_odd_tables(table, tmp_path_factory):
    check(table, tmp_path_factory.mktemp("odd"), MINUTES)
