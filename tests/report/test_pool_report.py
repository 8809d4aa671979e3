"""What many models and the worst case add to the report: figures, tables, sentences; in Chromium, too."""

import html
import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browser import browse, needs_chromium
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import reticent
from reticent.evidence import Calibration, CalibrationBin, Estimate, vulnerability_bound
from reticent.report import Dossier, render_html, render_text
from reticent.report._terminal import Screen, paragraph
from reticent.report.plots import reach, round_ticks
from reticent.report.sections.bound import bound_words
from reticent.report.sections.glossary import GLOSSARY
from reticent.report.sections.groups import (
    MOST_PAIRS,
    _lanes,
    disparity_words,
    pairs_that_differ,
    vulnerability,
)
from reticent.report.sections.people import calibration_words, posterior_words
from reticent.report.sections.pool import pool_words

GROUPS = ("north & <south>", "east", "west", "a group with a rather long name indeed")
NEW_PLOTS = {"plot-worst-case", "plot-posterior", "plot-vulnerability", "plot-convergence"}  # fmt: skip


@pytest.fixture(scope="module")
def dossier():
    X, y = make_classification(1200, n_features=8, flip_y=0.2, random_state=0)
    rng = np.random.default_rng(0)
    # One group has random classes: to be right about it is to have seen it.
    group = rng.choice(GROUPS, size=len(X))
    y = np.where(group == GROUPS[0], rng.integers(2, size=len(X)), y)
    group[:9] = "tiny"
    return reticent.audit(
        RandomForestClassifier(20), X, y, groups=group, rounds=1, pool=8, workers=1
    )


@pytest.fixture(scope="module")
def page(dossier, tmp_path_factory):
    return dossier.save(tmp_path_factory.mktemp("report")) / "report.html"


def with_pool(dossier: Dossier, **changes) -> Dossier:
    evidence = dossier.evidence
    return replace(
        dossier, evidence=replace(evidence, pool=replace(evidence.pool, **changes))
    )


def with_adjusted(dossier: Dossier, values) -> Dossier:
    found = dossier.evidence.pool.disparity
    assert len(values) == len(found.pairs)
    pairs = tuple(
        replace(pair, adjusted=value)
        for pair, value in zip(found.pairs, values, strict=True)
    )
    return with_pool(dossier, disparity=replace(found, pairs=pairs))


def claimed(dossier: Dossier, epsilon: float) -> Dossier:
    return replace(
        dossier,
        evidence=replace(
            dossier.evidence, vulnerability_bound=vulnerability_bound(epsilon)
        ),
        provenance=replace(dossier.provenance, claimed_epsilon=epsilon),
    )


def flat(text: str) -> str:
    return " ".join(text.split())


def plots(text: str) -> dict[str, str]:
    found = re.findall(r'<svg id="([\w-]+)".*?</svg>', text, re.DOTALL)
    parts = re.findall(r"<svg id=.*?</svg>", text, re.DOTALL)
    return {name: html.unescape(part) for name, part in zip(found, parts, strict=True)}


def test_the_fixture_has_what_the_report_shows(dossier):
    pool = dossier.evidence.pool
    assert pool.targets
    assert pool.convergence
    assert pool.losses
    assert pool.posterior
    assert len(pool.disparity.groups) == 4
    assert dossier.evidence.worst_case
    assert dossier.evidence.subgroup_aware


def test_every_new_figure_is_drawn(page):
    assert set(plots(page.read_text())) >= NEW_PLOTS


def test_numbers_of_the_page_are_those_of_the_dossier(dossier, page):
    evidence, text = dossier.evidence, html.unescape(page.read_text())
    drawn = plots(page.read_text())
    for found in evidence.pool.targets:
        assert f">{found.auc}</td>" in text
        assert f"{found.lowest:.3f} to {found.highest:.3f}" in text
        for tpr in found.tpr:
            assert f">{tpr}</td>" in text
    for quantile in evidence.pool.losses:
        assert f"below {quantile.loss}" in text
    for each in evidence.pool.convergence:
        tip = f"{each.attack} with {each.models} models: LTU accuracy {each.auc}"
        assert tip in drawn["plot-convergence"]
    for case in evidence.worst_case:
        assert str(case.estimate) in drawn["plot-worst-case"]
        assert f"plain estimate {case.plug_in:.3f}" in drawn["plot-worst-case"]
        assert f"chance alone shows {case.bias:.3f}" in drawn["plot-worst-case"]
    assert str(evidence.subgroup_aware) in drawn["plot-worst-case"]
    for group in evidence.groups:
        assert f">{group.vulnerability}</td><td data-head=" in text
        assert f">{group.worst_case}</td></tr>" in text
    for spread in evidence.pool.disparity.groups:
        assert f"{spread.name}, mean: {spread.vulnerability}" in drawn["plot-vulnerability"]  # fmt: skip
        assert f"the median at {spread.box.median:.3f}" in drawn["plot-vulnerability"]
    best = max(evidence.attacks, key=lambda a: a.auc.value)
    others = [a for a in evidence.attacks if a.family != best.family]
    other = max(others, key=lambda a: a.auc.value)
    words = f"reached: {other.name.replace('_', ' ')}: {other.vulnerability}"
    assert words in drawn["plot-worst-case"]


def test_numbers_of_the_text_are_those_of_the_dossier(dossier):
    evidence, text = dossier.evidence, flat(render_text(dossier, width=200))
    for found in evidence.pool.targets:
        assert f"{found.name} {found.targets} {found.auc}" in text
    for group in evidence.groups:
        assert f"{group.privacy} {group.vulnerability} {group.worst_case}" in text
    for quantile in evidence.pool.losses:
        assert f"below {quantile.loss}" in text
    assert disparity_words(evidence, most=10) in text
    assert pool_words(evidence.pool) in text


CUT = re.compile(r"\[[^\]]*$", re.MULTILINE)  # a line that ends inside an interval


@pytest.mark.parametrize(
    "width",
    [
        pytest.param(width, marks=pytest.mark.slow if width % 4 else ())
        for width in range(80, 141)
    ],
)
def test_text_fits_and_cuts_no_interval(dossier, width):
    text = render_text(dossier, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count(" [") > 50  # intervals, that is
    assert not CUT.search(text)
    # In a sentence, a value and its interval stand on one line, too. In tables the interval may stand below.
    sentence = disparity_words(dossier.evidence, most=10)
    assert f"{dossier.evidence.attacks[0].auc}".count("[") == 1
    for estimate in re.findall(r"[\d.]+ \[[^\]]*\]", sentence):
        assert estimate in text


@given(st.integers(30, 140), st.integers(0, 140))
def test_a_sentence_never_ends_inside_an_estimate(width, before):
    estimates = ("<0.01 [0, 0.13]", "+0.03 [-0.01, +0.07]", "12.5 % [<0.1 %, 40 %]")
    words = " and ".join(["a" * (before % 25), *estimates, *estimates]) + "."
    screen = Screen(file=io.StringIO(), width=width)
    screen.print(paragraph(words))
    text = screen.file.getvalue()
    assert flat(text) == flat(words)
    for estimate in estimates:
        assert text.count(estimate) == 2
    # Without the rule, some width would cut one.
    cut = [Text(words).wrap(screen, each) for each in range(30, 140)]
    assert any(CUT.search(line.plain.rstrip()) for lines in cut for line in lines)


def test_pairs_are_marked_if_and_only_if_the_adjusted_p_value_is_small(dossier):
    found = dossier.evidence.pool.disparity
    count = vulnerability(dossier).count('class="pair"')
    assert count == sum(pair.adjusted < 0.05 for pair in found.pairs)
    values = [0.0004, 0.004, 0.04, 0.05, 0.3, 1.0]
    drawn = html.unescape(vulnerability(with_adjusted(dossier, values)))
    assert drawn.count('class="pair"') == 3
    assert re.findall(r'class="pair-words"[^>]*>(\**)<', drawn) == ["***", "**", "*"]
    for pair, value in zip(found.pairs, values, strict=True):
        tip = f"{pair.first} less {pair.second}: {pair.difference}; p"
        assert (tip in drawn) == (value < 0.05)
    assert "adjusted (Holm)" in drawn


def test_without_a_pair_that_differs_nothing_is_marked(dossier):
    quiet = with_adjusted(dossier, [1.0] * 6)
    assert 'class="pair"' not in vulnerability(quiet)
    assert "No pair differs after Holm's correction." in render_html(quiet).replace(
        "&#39;", "'"
    )
    assert "joined by brackets" not in render_html(quiet)


def test_only_the_surest_of_many_pairs_are_drawn(dossier):
    found = dossier.evidence.pool.disparity
    pairs = tuple(
        replace(pair, adjusted=0.001 * (1 + k))
        for k, pair in enumerate(2 * found.pairs)
    )
    many = with_pool(dossier, disparity=replace(found, pairs=pairs))
    assert vulnerability(many).count('class="pair"') == MOST_PAIRS
    assert f"The {MOST_PAIRS} surest of {len(pairs)} such pairs" in render_html(many)
    assert "; and 2 more." in disparity_words(many.evidence, most=10)


def test_a_group_too_small_for_the_product_is_not_named_over_models(dossier):
    """The pool may count a group that is too small on one side of the product."""
    evidence = dossier.evidence
    kept = tuple(group for group in evidence.groups if group.name != "west")
    less = replace(dossier, evidence=replace(evidence, groups=kept))
    less = with_adjusted(less, [0.001] * 6)
    for text in (render_html(less), render_text(less, width=200)):
        assert "west" not in text
        assert "east" in text
    assert len(pairs_that_differ(less.evidence)) == 3


def test_a_small_group_is_in_no_figure_and_no_table_of_groups(dossier, page):
    text = page.read_text()
    groups = text[text.index("<h2>Privacy by group") : text.index("<h2>Controls")]
    assert "tiny" not in groups
    assert not any("tiny" in svg for svg in plots(text).values())
    table = render_text(dossier, width=200)
    assert (
        "tiny" not in table[table.index("Privacy by group") : table.index("Controls")]
    )


def test_no_record_appears_with_a_pool_and_groups(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "secret": [f"SECRET{k % 40}X" for k in range(n)],
            "number": rng.normal(size=n).round(6) + 7_654_321,
        }
    )
    made = reticent.audit(
        RandomForestClassifier(5),
        frame,
        rng.integers(2, size=n),
        groups=np.where(rng.random(n) < 0.5, "a", "b"),
        rounds=1,
        pool=6,
        workers=1,
    )
    assert made.evidence.pool
    folder = made.save(tmp_path)
    for name in ("dossier.json", "report.html", "report.txt"):
        text = (folder / name).read_text()
        for mark in ("SECRET", "7654321", "7,654,321", "7.65432e+06"):
            assert mark not in text


def test_a_claim_is_drawn_and_said(dossier):
    made = claimed(dossier, 1.0)
    words = "(e^epsilon - 1 + 2 delta)/(e^epsilon + 1) = 0.462"
    assert words in bound_words(made)
    assert words in flat(render_text(made, width=200))
    for name in ("plot-worst-case", "plot-vulnerability"):
        svg = plots(render_html(made))[name]
        assert 'class="limit"' in svg
        assert words in svg
    assert "below 73.1 %" in render_html(made)
    assert bound_words(dossier) == ""
    assert 'class="limit"' not in plots(render_html(dossier))["plot-worst-case"]


def test_a_claim_that_was_beaten_is_called_untrue(dossier):
    best = max(dossier.evidence.attacks, key=lambda a: a.auc.value).vulnerability
    sentence = "the claim is not true of this product"
    assert best.low > vulnerability_bound(0.01)
    assert sentence in render_html(claimed(dossier, 0.01))
    assert sentence not in render_html(claimed(dossier, 20.0))


def test_intervals_for_one_product_are_not_passed_off_as_the_recipes(dossier):
    """The recipe's own interval stands beside them wherever a pool gives one, and only there."""
    pool = dossier.evidence.pool
    page, text = render_html(dossier), flat(render_text(dossier, width=100))
    for shown in (flat(page), text):
        assert "Intervals on attacks are for this very product" in shown
        assert "an interval that covers other runs" in shown
    assert "mean of the recipe" in page
    for target in pool.targets:
        assert str(target.auc) in flat(page[page.index("mean of the recipe") :])
        assert str(target.auc) in text.replace("\u00a0", " ")
    bare = replace(dossier, evidence=replace(dossier.evidence, pool=None))
    for shown in (render_html(bare), flat(render_text(bare, width=100))):
        assert "Only a pool of at least four models" in flat(shown)
        assert "mean of the recipe" not in flat(shown).lower()


def test_predictions_that_cannot_be_told_from_chance_are_named_and_not_drawn(dossier):
    silent = replace(dossier.evidence, calibration=None, predicted_by="learned_outputs")
    page = render_html(replace(dossier, evidence=silent))
    assert "cannot be told from chance, so no probability of membership" in flat(page)
    assert "plot-calibration" not in plots(page)
    assert "calibrated on other people" in posterior_words(dossier.evidence)
    assert "Spiegelhalter" in posterior_words(dossier.evidence)
    none = replace(silent, predicted_by="")
    assert "no attack of this audit predicts" in posterior_words(none)
    assert "Predicted membership" not in render_html(replace(dossier, evidence=none))


def test_without_a_pool_the_product_alone_is_shown(dossier):
    attacks = tuple(a for a in dossier.evidence.attacks if a.family != "trains others")
    evidence = replace(
        dossier.evidence, pool=None, attacks=attacks, predicted_by="learned_outputs"
    )
    bare = replace(dossier, evidence=evidence)
    text = render_html(bare)
    drawn = plots(text)
    assert not {"plot-posterior", "plot-convergence"} & set(drawn)
    assert "class=&quot;box" not in text
    for group in bare.evidence.groups:
        assert f"{group.name}, worst case: {group.worst_case}" in drawn["plot-vulnerability"]  # fmt: skip
    assert "Other models of the same recipe" not in text
    assert "cover the trainer" not in text
    assert "attack &#39;learned outputs&#39; gives" in text
    assert "Other models of the same recipe" not in render_text(bare)


def test_saved_outputs_have_a_worst_case_and_the_bound_of_their_claim():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300)
    sure, unsure = np.eye(2)[labels] * 0.8 + 0.1, rng.dirichlet([1, 1], size=300)
    made = reticent.audit_outputs((sure, labels), (unsure, labels), claimed_epsilon=1.0)
    assert "= 0.462 (delta 0)" in render_html(made)
    assert "plot-worst-case" in plots(render_html(made))
    assert "plot-vulnerability" not in plots(render_html(made))


def test_who_chose_the_number_of_models(dossier):
    assert "as many as were asked for" in render_html(dossier)
    by_time = with_pool(dossier, chosen="by time")
    assert "as many as the time allowed" in render_html(by_time)
    assert f"{dossier.evidence.pool.models} models were trained" in flat(
        render_text(by_time)
    )


def test_the_fine_print_says_which_intervals_cover_the_trainer(dossier):
    text = render_html(dossier)
    assert "not re-runs of its training; those of the table of other models and groups over models cover the trainer" in text  # fmt: skip
    for found in dossier.evidence.pool.targets:
        assert found.auc.covers == "trainer"
    for spread in dossier.evidence.pool.disparity.groups:
        assert spread.vulnerability.covers == "trainer"


def curve(p_value: float, *predicted: float) -> Calibration:
    observed = Estimate(value=0.5, low=0.4, high=0.6, level=0.95, method="x")
    bins = [CalibrationBin(predicted=p, observed=observed, records=50) for p in predicted]  # fmt: skip
    return Calibration(bins=tuple(bins), p_value=p_value)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (curve(0.5, 0.4, 0.6), "in all 2 bins, and Spiegelhalter's test over all people agrees (p = 0.5)"),
        (curve(0.5, 0.3, 0.6), "in 1 of 2 bins, but Spiegelhalter's test over all people agrees"),
        (curve(0.0001, 0.4, 0.5), "in all 2 bins, but Spiegelhalter's test over all people sees a departure (p < 0.001)"),
        (curve(0.0001, 0.1, 0.9), "in 0 of 2 bins, and Spiegelhalter's test over all people sees a departure"),
    ],
)  # fmt: skip
def test_words_on_calibration_follow_from_the_bins(dossier, made, words):
    evidence = replace(dossier.evidence, calibration=made)
    assert words in calibration_words(evidence)
    assert evidence.predicted_by == "combined_pool"


def test_an_unbounded_loss_is_said_and_breaks_nothing(dossier):
    first, *rest = dossier.evidence.pool.losses
    endless = replace(first, loss=replace(first.loss, high=float("inf")))
    text = render_html(with_pool(dossier, losses=(endless, *rest)))
    assert f"below {endless.loss}" in text
    assert "inf]" in text


def test_a_pool_too_small_for_anything_else_still_makes_a_page(dossier):
    small = with_pool(dossier, targets=(), losses=(), posterior=None, disparity=None)
    text = render_html(small)
    assert "too few to stand in for the product" in text
    assert not {"plot-posterior"} & set(plots(text))
    assert render_text(small)


def test_new_words_are_in_the_glossary():
    for word in ("pool", "worst case", "posterior", "effective privacy loss", "disparity", "vulnerability"):  # fmt: skip
        assert GLOSSARY[word].endswith(".")


def test_attacks_that_need_a_pool_are_of_the_family_that_trains_others(dossier):
    families = {attack.name: attack.family for attack in dossier.evidence.attacks}
    assert families["lira"] == families["rmia"] == "trains others"
    assert families["loss"] == "queries"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_brackets_of_one_lane_at_most_touch(spans):
    spans = [span for span in spans if span[0] != span[1]]
    lanes = _lanes(spans)
    for k, (a, b) in enumerate(spans):
        for j in range(k):
            if lanes[j] == lanes[k]:
                assert max(a, b) <= min(spans[j]) or max(spans[j]) <= min(a, b)


@given(st.lists(st.floats(-0.9, 1.0), min_size=1))
def test_an_axis_shows_all_values_between_round_ticks(values):
    low, high = reach(values)
    assert low <= min(0.0, *values)
    assert high >= max(values)
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert low - 1e-9 <= ticks[0] < ticks[-1] <= high + 1e-9
    assert 0.0 in ticks


DREW = """
return [...document.querySelectorAll("svg.plot")].map(svg => {
  const frame = svg.getBoundingClientRect();
  const cut = [...svg.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
  });
  const names = [...svg.querySelectorAll("text.row")], values = [...svg.querySelectorAll("text.row-value")];
  const crossed = names.filter(name => values.some(value => {
    const a = name.getBoundingClientRect(), b = value.getBoundingClientRect();
    return Math.abs(a.y - b.y) < 2 && a.right > b.left;
  }));
  return {id: svg.id, cut: cut.map(t => t.textContent), crossed: crossed.map(t => t.textContent),
          tips: svg.querySelectorAll("[data-tip]").length, broken: /NaN|undefined|Infinity/.test(svg.outerHTML)};
});
"""


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("frame", [390, 1100])
def test_figures_draw_and_no_word_is_cut(page, tmp_path, frame):
    answer = browse(page, DREW, tmp_path, frame=frame)
    assert answer["seen"] == []
    assert {plot["id"] for plot in answer["found"]} >= NEW_PLOTS
    for plot in answer["found"]:
        assert plot["cut"] == []
        assert plot["crossed"] == []
        assert plot["tips"] >= 3
        assert not plot["broken"]


@needs_chromium
@pytest.mark.browser
def test_brackets_of_all_pairs_and_a_claim_leave_words_whole(dossier, tmp_path):
    full = tmp_path / "full.html"
    made = with_adjusted(claimed(dossier, 1.0), [0.0004] * 6)
    full.write_text(render_html(made), encoding="utf-8")
    answer = browse(full, DREW, tmp_path, frame=390)
    assert answer["seen"] == []
    for plot in answer["found"]:
        assert plot["cut"] == []
        assert plot["crossed"] == []


@needs_chromium
@pytest.mark.browser
def test_a_phone_does_not_scroll_the_page_sideways(page, tmp_path):
    script = "return [document.documentElement.scrollWidth, innerWidth];"
    scrolled, inner = browse(page, script, tmp_path, frame=390)["found"]
    assert inner == 390
    assert scrolled <= inner


@needs_chromium
@pytest.mark.browser
def test_every_attack_answers_the_mouse_in_the_roc_plot(dossier, page, tmp_path):
    script = """
    const tip = document.getElementById("tip");
    return [...document.querySelectorAll("#plot-roc polyline.catch")].map(line => {
      line.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 9, clientY: 9}));
      return tip.textContent;
    });
    """
    told = browse(page, script, tmp_path)["found"]
    names = {attack.name.replace("_", " ") for attack in dossier.evidence.attacks}
    best = max(dossier.evidence.attacks, key=lambda a: a.auc.value).name
    assert {text.split(":")[0] for text in told} == names - {best.replace("_", " ")}
