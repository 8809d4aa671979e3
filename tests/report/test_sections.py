"""What sections say of kinds of products, of attacks that did not run, and of limits."""

import html
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import made
from browser import browse, needs_chromium

from reticent.evidence import (
    BlindEvidence,
    FileEvidence,
    InsiderEvidence,
    Outcome,
    RegimeEvidence,
    RegimeLeftOut,
    held_out_found,
)
from reticent.policy import Verdict, read_policy
from reticent.report import insider_warning, render_html, render_text, summarise
from reticent.report.sections import SECTIONS
from reticent.report.sections.blind import BlindSection
from reticent.report.sections.people import exposed_words
from reticent.report.sections.scores import scoreboard
from reticent.report.summary import outsider_does


def words_of(page: str) -> str:
    body = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_every_heading_stands_once_and_in_order():
    page = render_html(made.full())
    # A dossier that was read guarantees nothing: it repeats a claim.
    # Version 2 read no file, guessed no hidden value, and did not keep what the records alone told.
    absent = ("What is guaranteed", "What the file holds", "Guessing a hidden value", BlindSection.title)  # fmt: skip
    titles = [s.title for s in SECTIONS if s.title and s.title not in absent]
    assert "What is guaranteed" not in page
    places = [page.index(f"<h2>{title}</h2>") for title in titles]
    assert places == sorted(places)
    assert all(page.count(f"<h2>{title}</h2>") == 1 for title in titles)


def test_a_section_with_nothing_to_say_is_left_out():
    page, text = render_html(made.unclaimed()), render_text(made.unclaimed())
    for title in ("What is guaranteed", "Three epsilons", "What an insider can find out"):  # fmt: skip
        assert title not in page
        assert title not in text


def test_nobody_is_said_to_be_found_only_where_nobody_is():
    nothing = FileEvidence(
        members=600, nonmembers=600, rows=None, values=None, trees=None, rare_values=0,
        smallest_group=20, long_axes=(), parameters=9, size=99, unread=(),
    )  # fmt: skip
    seen = held_out_found("x.npy", 600, 0, factor=2.0, among=1, smallest=20)
    said = {
        "None was found": nothing,
        "has an entry for each member": replace(nothing, long_axes=("oob_",)),
        "are found in it alike": replace(nothing, held_out=seen),
    }
    for words, file in said.items():
        dossier = made.unclaimed()
        page = words_of(render_html(replace(dossier, evidence=replace(dossier.evidence, file=file))))  # fmt: skip
        assert [other for other in said if other in page] == [words]


def test_a_regressor_is_spoken_of_as_one():
    dossier = made.regressor()
    for said in (words_of(render_html(dossier)), " ".join(render_text(dossier).split())):  # fmt: skip
        assert "Always answering the mean would have a utility of 0.00." in said
        assert "The mean absolute error is 12.50 [12, 13]." in said
        assert "sees: residual" in said
        for phrase in ("most frequent class", "errs on", "c classes", "right or wrong"):
            assert phrase not in said
    page = words_of(render_html(dossier))
    assert "May this model be released?" in page
    assert "R squared: the share of the target's variance" in page
    assert "The mean loss of the product, scaled to at most 1, is 0.074 on members and 0.197 on non-members" in page  # fmt: skip


def test_a_classifier_keeps_its_words():
    page = words_of(render_html(made.unclaimed()))
    assert "Always answering the most frequent class would have a utility of 0.52." in page  # fmt: skip
    assert "The product errs on 0.0051 % of members and 14.4 % of non-members" in page
    assert "(c accuracy - 1)/(c - 1) for c classes" in page


def test_theorems_that_were_not_measured_are_not_spoken_of():
    dossier = made.unclaimed()
    bare = replace(dossier, evidence=replace(dossier.evidence, theorems={}))
    assert "Theorem 2" not in render_html(bare)


def test_attacks_that_failed_or_were_not_begun_are_said():
    dossier = made.with_gaps(made.unclaimed())
    for said in (words_of(render_html(dossier)), " ".join(render_text(dossier).split())):  # fmt: skip
        assert "The attack 'my attack' failed, so what it would have found is not known: ZeroDivisionError." in said  # fmt: skip
        assert "The attack 'slow attack' was not begun: there was no time." in said
    assert "was not begun" not in render_html(made.unclaimed())


@pytest.mark.parametrize(
    ("families", "words"),
    [
        (("queries",), "only queries the model"),
        (("queries", "trains others"), "queries the model and trains others like it"),
        (("looks inside",), "queries the model and looks inside it"),
        (("trains others", "looks inside"), "queries the model, looks inside it and trains others like it"),
    ],
)  # fmt: skip
def test_what_the_outsider_does_follows_from_families(families, words):
    evidence = made.unclaimed().evidence
    attacks = tuple(
        replace(attack, family=family)
        for attack, family in zip(evidence.attacks, families, strict=False)
    )
    assert outsider_does(replace(evidence, attacks=attacks)) == words


def test_an_attack_of_nobodys_knowledge_is_drawn_by_its_family():
    dossier = made.unclaimed()
    first, *rest = dossier.evidence.attacks
    mine = replace(first, name="mine", family="looks inside")
    page = render_html(
        replace(dossier, evidence=replace(dossier.evidence, attacks=(mine, *rest)))
    )
    assert 'class="other inside' in page
    assert "other attacks that look inside" in page
    assert "reached: mine" in page


def test_scores_stand_with_the_limits_they_were_judged_by():
    dossier = made.full()
    drawn = scoreboard(dossier)
    assert (
        drawn.count('class="limit"') == 2
    )  # utility and privacy; the insider has none
    assert "privacy, insider" in drawn
    assert "epsilon" not in drawn  # lower is better there
    score = replace(made.own_statement("fairness"), better="higher", estimate=made.an_estimate(0.8, 0.7, 0.9))  # fmt: skip
    more = replace(dossier, statements=(*dossier.statements, score))
    assert "fairness of the training" in scoreboard(more)


def test_the_exposed_are_counted_below_what_the_policy_says():
    dossier = made.unclaimed()
    assert "below 0.1; without a leak it would be 5 %." in exposed_words(dossier)
    limits = tuple(
        replace(limit, at={"below": 0.2}) if limit.measure == "exposed" else limit
        for limit in dossier.policy.limits
    )
    other = replace(dossier, policy=replace(dossier.policy, limits=limits))
    assert "below 0.2; without a leak it would be 10 %." in exposed_words(other)
    without = replace(
        dossier, policy=replace(dossier.policy, limits=dossier.policy.limits[:1])
    )
    assert "below 0.1;" in exposed_words(without)
    assert 'class="limit-mark"' not in render_html(without)


def told(dossier, measures: set[str], verdict: Verdict = Verdict.REFUSE):
    limits = tuple(
        replace(check, outcome=Outcome.BROKEN if check.measure in measures else Outcome.KEPT)
        for check in dossier.decision.limits
    )  # fmt: skip
    decision = replace(dossier.decision, verdict=verdict, limits=limits)
    return summarise(decision, dossier.evidence, dossier.policy, dossier.statements)


def test_the_summary_says_whose_attack_broke_a_limit():
    dossier = made.full()
    shown, why = told(dossier, {"privacy", "utility"})
    assert "picks the right one in 87 of 100 cases (86 to 88), where a coin gives 50." in shown  # fmt: skip
    assert "would tell strangers" in why
    assert "refuses it for another reason" in told(dossier, {"utility"})[1]
    assert "attacks that were not run might" in told(dossier, set(), Verdict.RELEASE)[1]
    assert "not enough to decide" in told(dossier, set(), Verdict.INCONCLUSIVE)[1]
    insider = replace(
        dossier.decision.limits[0], measure="insider_privacy", outcome=Outcome.BROKEN
    )
    decision = replace(dossier.decision, limits=(insider,))
    why = summarise(decision, dossier.evidence, dossier.policy, dossier.statements)[1]
    assert "protects the people in it against such insiders too" in why


def test_a_measure_of_ones_own_speaks_of_strangers_by_its_threat():
    dossier = made.full()
    mine = replace(made.own_statement(), threat="outsider")
    check = replace(dossier.decision.limits[0], measure="carbon", outcome=Outcome.BROKEN)  # fmt: skip
    decision = replace(dossier.decision, limits=(check,))
    why = summarise(decision, dossier.evidence, dossier.policy, (mine,))[1]
    assert "would tell strangers" in why


def test_the_insider_is_warned_of():
    regime = RegimeEvidence(name="seeded", rounds=4, wins=4, privacy=made.an_estimate(0, 0, 0.9))  # fmt: skip
    insider = InsiderEvidence(regimes=(regime,), privacy=regime.privacy)
    assert "found the member in 4 of 4 rounds (seeded): retraining gives the product away" in insider_warning(insider)  # fmt: skip
    lost = replace(insider, regimes=(replace(regime, wins=2.5),))
    assert "in 2.5 of 4 rounds (seeded): privacy score 0 [0, 0.90]." in insider_warning(lost)  # fmt: skip
    # Rounds so few that the interval reaches 1 give nothing away, although all were won.
    few = replace(insider, regimes=(replace(regime, privacy=made.an_estimate(0, 0, 1)),))  # fmt: skip
    assert "gives the product away" not in insider_warning(few)
    assert "was not played" in insider_warning(None)


def test_an_inconclusive_dossier_says_what_would_settle_it():
    dossier = made.unclaimed()
    decision = replace(
        dossier.decision, verdict=Verdict.INCONCLUSIVE, next_steps=("Ask more people.",)
    )
    said = words_of(render_html(replace(dossier, decision=decision)))
    assert "What would settle it Ask more people. The smallest leak that this audit sees with 80 % power" in said  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("make", [made.full, made.unclaimed, made.regressor])
def test_text_fits_its_width(make, width):
    lines = render_text(make(), width=width).splitlines()
    assert lines[1].startswith("REFUSE")
    assert max(map(len, lines)) <= width


def test_no_two_empty_lines_follow_each_other():
    assert "\n\n\n" not in render_text(made.with_gaps(made.full()))


SEEN = """
const cut = [...document.querySelectorAll("svg.plot")].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
  }).map(text => text.textContent);
});
return {plots: document.querySelectorAll("svg.plot").length, cut,
        broken: /NaN|undefined|Infinity/.test(document.querySelector("main").innerHTML),
        fits: document.documentElement.scrollWidth <= innerWidth};
"""


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("frame", [390, 1100])
@pytest.mark.parametrize(("make", "plots"), [(made.full, 15), (made.regressor, 10)])
def test_every_figure_draws_on_a_phone_and_on_a_screen(make, plots, frame, tmp_path):
    page = tmp_path / "report.html"
    page.write_text(render_html(make()), encoding="utf-8")
    answer = browse(page, SEEN, tmp_path, frame=frame)
    assert answer["seen"] == []
    assert answer["found"] == {"plots": plots, "cut": [], "broken": False, "fits": True}


def both_ways(dossier) -> tuple[str, str]:
    return words_of(render_html(dossier)), " ".join(render_text(dossier).split())


@pytest.mark.parametrize(
    ("changes", "said", "unsaid"),
    [
        ({}, ["No difference was seen", "0.28 standard deviations", "21.6 % of them", "drew the members at random"], ["would not have been seen", "drawn at random."]),
        ({"at_random": False}, ["What an attack finds beyond the differences of this table is due", "would not have been seen"], ["drew the members"]),
        ({"p_value": 0.003, "sign": "column 'year'"}, ["They differ: by column 'year'", "attacks cannot be judged"], ["is due to the product"]),
        ({"smallest": {}}, ["too few people"], ["standard deviations"]),
        ({"rows": 80_000, "of_rows": 1_000_000}, ["80,000 of 1,000,000 records"], []),
        ({"smallest": {"target_shift": 0.4}}, ["0.4 of its standard deviations"], ["wrong classes"]),
    ],
)  # fmt: skip
def test_the_baseline_without_the_product_says_what_it_would_have_seen(
    changes, said, unsaid
):
    blind = BlindEvidence(
        p_value=0.4, false_alarm=0.01, accuracy=0.53, sign="boosted trees", rows=1000, of_rows=1000, at_random=True,
        power=0.8, smallest={"shift": 0.28, "accuracy": 0.578, "learned_accuracy": 0.59, "wrong_classes": 0.216},
    )  # fmt: skip
    blind = replace(blind, **changes)
    full = made.full()
    dossier = replace(full, findings=(), evidence=replace(full.evidence, blind=blind))
    for words in both_ways(dossier):
        for phrase in said:
            assert phrase in words
        for phrase in unsaid:
            assert phrase not in words


def test_regimes_that_were_left_out_are_named_with_the_reason():
    regime = RegimeEvidence(name="unseeded", rounds=8, wins=5, privacy=made.an_estimate(0.75, 0, 1))  # fmt: skip
    insider = InsiderEvidence(
        regimes=(regime,), privacy=regime.privacy, trained_again="always the same product, and not this one",
        left_out=(RegimeLeftOut(name="seeded", why="its seed is not known"),),
    )  # fmt: skip
    full = made.full()
    dossier = replace(full, evidence=replace(full.evidence, insider=insider))
    for words in both_ways(dossier):
        assert "gave always the same product, and not this one." in words
        assert "Not played, 'seeded': its seed is not known." in words
        assert "not played" in words


def test_what_was_not_looked_at_is_a_table():
    dossier = made.full()
    page, text = both_ways(dossier)
    for kind in ("attribute inference", "reconstruction", "property inference"):
        assert re.search(rf"{kind}.*? nothing is known about it", page)
        assert f"- {kind}" in text
    assert "Nothing is known about the following." in text
    # What was run is not in it; without it, it is.
    assert "comparison with other models" not in page
    bare = replace(dossier, evidence=replace(dossier.evidence, pool=None, insider=None))
    for words in both_ways(bare):
        assert "comparison with other models" in words
        assert "retraining insider" in words


def test_the_group_that_is_worst_off_is_named_in_words():
    dossier = made.full()
    first, *others = dossier.evidence.groups
    worst = replace(first, name="north", privacy=made.an_estimate(0.2, 0.1, 0.3))
    best = replace(first, name="south", privacy=made.an_estimate(0.8, 0.7, 0.9))
    middle = [replace(g, privacy=made.an_estimate(0.5, 0.4, 0.6)) for g in others]

    def said(*groups):
        return both_ways(
            replace(dossier, evidence=replace(dossier.evidence, groups=groups))
        )

    words = "Worst off is 'north' with a privacy score of 0.20 [0.10, 0.30]; best off is 'south' with 0.80 [0.70, 0.90]."
    for text in said(best, *middle, worst):
        assert words in text
        assert "Their intervals overlap" not in text
    near = replace(best, privacy=made.an_estimate(0.8, 0.25, 0.9))
    for text in said(near, worst):
        assert "this product does not show that they differ" in text


def test_the_end_of_a_score_at_1_is_called_a_cap():
    dossier = made.full()
    cap = "the end is a cap and not a measurement"
    (privacy,) = [s for s in dossier.statements if s.measure == "privacy"]
    for high, is_cap in ((1.0, True), (0.99, False)):
        estimate = made.an_estimate(0.9, 0.8, high)
        others = [
            s for s in dossier.statements if s.estimate is None or s.estimate.high < 1
        ]
        statements = (
            *(s for s in others if s is not privacy),
            replace(privacy, estimate=estimate),
        )
        for text in both_ways(replace(dossier, statements=statements)):
            assert (cap in text) == is_cap


def test_utility_never_stands_without_that_of_a_constant_answer():
    dossier = made.full()
    baseline = dossier.evidence.utility.baseline
    for text in both_ways(dossier):
        assert f"would have a utility of {baseline:.2f}." in text
    assert f"utility {dossier.utility} (a constant answer: {baseline:.2f})" in str(dossier)  # fmt: skip
    for name in ("default", "strict"):
        limits = {limit.measure for limit in read_policy(name).limits}
        assert "gain" in limits
        assert "utility" not in limits


COLUMNS = """
return [...document.querySelectorAll("table")].flatMap(table => {
  const cells = [...table.querySelectorAll("td")].filter(cell => cell.getClientRects().length);
  return cells.filter(cell => cell.getBoundingClientRect().right > innerWidth + 1 || cell.scrollWidth > cell.clientWidth + 1)
    .map(cell => cell.textContent);
});
"""


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("make", [made.full, made.regressor])
def test_no_table_loses_a_column_on_a_phone(make, tmp_path):
    page = tmp_path / "report.html"
    page.write_text(render_html(make()), encoding="utf-8")
    assert browse(page, COLUMNS, tmp_path, frame=390)["found"] == []
    # The twin: without the style for narrow screens, some are cut off.
    text = page.read_text(encoding="utf-8")
    assert text.count("@media (max-width: 44rem)") == 1
    text = text.replace("@media (max-width: 44rem)", "@media (max-width: 1px)")
    page.write_text(text, encoding="utf-8")
    assert browse(page, COLUMNS, tmp_path, frame=390)["found"] != []
