"""The dossier as JSON: keys, numbers that are not finite, the generated schema, sections of the user's own."""

import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import jsonschema
import pytest
from markupsafe import Markup

sys.path.insert(0, str(Path(__file__).parent))
import made

from reticent.errors import InvalidInput
from reticent.report import (
    SCHEMA_NAME,
    Dossier,
    Section,
    dossier_schema,
    render_html,
    render_short,
    render_text,
)

ROOT = Path(__file__).parents[2]
DOSSIERS = {
    "full": made.full,
    "unclaimed": made.unclaimed,
    "regressor": made.regressor,
    "gaps": lambda: made.with_gaps(made.full()),
}


@pytest.fixture(params=DOSSIERS, scope="module")
def dossier(request) -> Dossier:
    return DOSSIERS[request.param]()


def test_the_keys_others_rely_on_stand_at_the_top(dossier):
    content = json.loads(dossier.to_json())
    assert list(content)[:8] == [
        "schema",
        "verdict",
        "reasons",
        "next_steps",
        "limits",
        "utility",
        "privacy",
        "attacks",
    ]
    assert content["schema"] == SCHEMA_NAME == "reticent-dossier-4"
    assert content["privacy"]["value"] == dossier.privacy.value
    assert content["attacks"][0]["auc"]["value"] == dossier.evidence.attacks[0].auc.value  # fmt: skip
    assert "attacks" not in content["evidence"]
    assert "own_sections" not in content


def test_it_obeys_its_schema_and_comes_back_the_same(dossier):
    jsonschema.validate(dossier.to_dict(), dossier_schema())
    assert Dossier.from_json(dossier.to_json()) == dossier


def test_the_published_schema_is_the_generated_one():
    jsonschema.Draft202012Validator.check_schema(dossier_schema())
    page = ROOT / "docs" / "reference" / "dossier.schema.json"
    assert json.loads(page.read_text(encoding="utf-8")) == dossier_schema()


def not_finite() -> Dossier:
    dossier = made.full()
    evidence = dossier.evidence
    theorems = {**evidence.theorems, "theorem_1": math.nan}
    return replace(
        dossier,
        statements=(
            *dossier.statements,
            replace(
                made.own_statement(),
                estimate=made.an_estimate(-math.inf, -math.inf, math.inf),
            ),
        ),
        evidence=replace(evidence, theorems=theorems, epsilon_ceiling=math.inf),
        epsilons=replace(dossier.epsilons, proven=math.inf, ceiling=math.inf),
    )


def test_numbers_that_are_not_finite_survive():
    dossier = not_finite()
    text = dossier.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    jsonschema.validate(json.loads(text), dossier_schema())
    again = Dossier.from_json(text)
    assert math.isnan(again.evidence.theorems["theorem_1"])
    assert again.evidence.epsilon_ceiling == math.inf
    assert again.epsilons.proven == math.inf
    assert again.statement("carbon").estimate.low == -math.inf
    assert again.to_json() == text


def test_pages_and_text_are_made_of_numbers_that_are_not_finite():
    dossier = not_finite()
    page = render_html(dossier)
    assert "-inf [-inf, inf]" in page
    assert "nan" not in page[page.index("<svg") : page.rindex("</svg>")].lower()
    assert render_text(dossier)


def test_bare_constants_and_other_files_are_refused():
    text = made.full().to_json()
    with pytest.raises(InvalidInput, match="NaN must be written as a string"):
        Dossier.from_json(text.replace('"seed": 0', '"seed": NaN', 1))
    with pytest.raises(InvalidInput, match="this is not JSON"):
        Dossier.from_json("{")
    with pytest.raises(InvalidInput, match="not JSON"):
        Dossier.from_json("[" * 100_000)
    with pytest.raises(InvalidInput, match="a JSON list and not an object"):
        Dossier.from_json("[]")
    with pytest.raises(InvalidInput, match="'reticent-dossier-9', but 'reticent-dossier-4'"):  # fmt: skip
        Dossier.from_json('{"schema": "reticent-dossier-9"}')


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.pop("privacy"),
        lambda c: c.pop("attacks"),
        lambda c: c.pop("kind"),
        lambda c: c.update(verdict="MAYBE"),
        lambda c: c["privacy"].pop("level"),
        lambda c: c["attacks"][0].pop("family"),
        lambda c: c["statements"][0].update(better=1),
        lambda c: c["evidence"].update(people=[1]),
        lambda c: c["evidence"].update(scores=None),
        lambda c: c.update(evidence=[]),
        lambda c: c.update(records_of_people=[1]),
        lambda c: c["findings"][0].update(severity="awful"),
        lambda c: c["policy"]["limits"][0].update(at={"below": "low"}),
    ],
)
def test_what_breaks_the_schema_is_refused_in_one_sentence(spoil):
    content = json.loads(made.full().to_json())
    spoil(content)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, dossier_schema())
    with pytest.raises(InvalidInput, match=r"does not obey its schema at .*: .*;") as no:  # fmt: skip
        Dossier.from_json(json.dumps(content))
    assert "\n" not in str(no.value)


def test_a_score_at_the_top_that_contradicts_its_statement_is_refused():
    content = json.loads(made.full().to_json())
    content["privacy"] |= {"value": 0.99, "high": 1.0}
    with pytest.raises(InvalidInput, match=r"as its privacy at the top but 0\.255"):
        Dossier.from_json(json.dumps(content))


def test_statements_are_found_by_name():
    dossier = made.full()
    assert dossier.statement("tpr").label == "members pointed out"
    assert dossier.statement("nothing") is None
    without = replace(dossier, statements=())
    assert without.privacy is None
    assert without.to_dict()["privacy"] is None
    assert Dossier.from_json(without.to_json()) == without
    assert "privacy not measured" in render_short(without)
    assert render_html(without)
    assert render_text(without)


@dataclass(frozen=True)
class OwnSection:
    body: object
    title: str = "Of my own <i>"

    def html(self, dossier):
        return self.body

    def text(self, dossier):
        return None if self.body is None else f"{dossier.verdict} says [red] :tada:"


def test_own_sections_follow_the_statements_and_are_not_written():
    section: Section = OwnSection(Markup("<em>mine</em>"))
    dossier = made.full()
    shown = replace(dossier, own_sections=(section,))
    assert shown == dossier
    assert shown.to_json() == dossier.to_json()
    page, text = render_html(shown), render_text(shown)
    assert "<h2>Of my own &lt;i&gt;</h2><em>mine</em>" in page
    for said in (page, text):
        before = said.index("Measured without a limit")
        assert before < said.index("Of my own") < said.index("What the training would")
    assert "REFUSE says [red] :tada:" in text


def test_a_section_without_markup_is_escaped_and_an_empty_one_left_out():
    plain = replace(made.full(), own_sections=(OwnSection("<em>mine</em>"),))
    assert "&lt;em&gt;mine&lt;/em&gt;" in render_html(plain)
    assert "<em>" not in render_html(plain)
    silent = replace(made.full(), own_sections=(OwnSection(None),))
    assert "Of my own" not in render_html(silent)
    assert "Of my own" not in render_text(silent)


def test_a_measure_without_a_limit_is_shown():
    dossier = made.full()
    shown = replace(
        dossier, statements=(*dossier.statements, made.own_statement("carbon"))
    )
    assert "carbon of the training</td><td data-head=\"found\">41 [40, 42]</td>" in render_html(shown)  # fmt: skip
    assert "carbon of the training   41 [40, 42]" in render_text(shown)
    assert "carbon" not in render_html(dossier)


def test_notebooks_show_the_page_in_a_frame():
    dossier = made.full()
    assert dossier._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert repr(dossier).startswith("REFUSE")
