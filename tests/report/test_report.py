"""The dossier and its three faces: JSON, text, HTML; the page is looked at in Chromium."""

import json
import re
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browser import browse, chromium, needs_chromium
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import reticent
from reticent.errors import InvalidInput
from reticent.report import Dossier, dossier_schema, render_html, render_text

# What is asked here is how results are shown.

PLOTS = [
    "plot-scoreboard",
    "plot-roc",
    "plot-scores",
    "plot-individual",
    "plot-groups",
    "plot-calibration",
    "plot-worst-case",
    "plot-vulnerability",
]


@pytest.fixture(scope="module")
def dossier():
    X, y = make_classification(1200, n_features=8, flip_y=0.2, random_state=0)
    groups = np.where(X[:, 0] > 0, "north & <south>", "south")
    return reticent.audit(
        RandomForestClassifier(30), X, y, groups=groups, rounds=8, pool=0, workers=1
    )


@pytest.fixture(scope="module")
def page(dossier, tmp_path_factory):
    return dossier.save(tmp_path_factory.mktemp("report")) / "report.html"


def test_the_keys_others_rely_on(dossier):
    content = json.loads(dossier.to_json())
    assert content["verdict"] in ("RELEASE", "REFUSE", "INCONCLUSIVE")
    assert content["reasons"]
    for key in ("utility", "privacy"):
        assert {"value", "low", "high", "level"} <= set(content[key])
    for attack in content["attacks"]:
        assert isinstance(attack["name"], str)
        for key in ("auc", "privacy", "tpr_at_fpr"):
            assert attack[key]["low"] <= attack[key]["value"] <= attack[key]["high"]
    assert {c["name"] for c in content["controls"]} == {"memorising", "unrelated"}
    assert {"findings", "provenance", "seed", "kind", "statements"} <= set(content)


def test_the_schema_is_a_schema_and_refuses_what_is_not_a_dossier(dossier):
    jsonschema.Draft202012Validator.check_schema(dossier_schema())
    content = dossier.to_dict()
    jsonschema.validate(content, dossier_schema())
    for spoil in (
        lambda c: c.pop("privacy"),
        lambda c: c.update(verdict="MAYBE"),
        lambda c: c["privacy"].pop("level"),
        lambda c: c.update(records_of_people=[1]),
    ):
        spoiled = json.loads(dossier.to_json())
        spoil(spoiled)
        with pytest.raises(InvalidInput, match="does not obey its schema"):
            Dossier.from_json(json.dumps(spoiled))
    with pytest.raises(InvalidInput, match="not JSON"):
        Dossier.from_json("{")


def test_a_dossier_read_back_is_the_same(dossier):
    again = Dossier.from_json(dossier.to_json())
    assert again == dossier
    assert render_html(again) == render_html(dossier)


def test_text_says_the_verdict_first_and_fits_a_terminal(dossier):
    lines = render_text(dossier, width=80).splitlines()
    assert lines[1].startswith("REFUSE")
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    for sentence in dossier.summary:
        assert sentence in text
    assert repr(dossier).startswith("REFUSE")


def test_the_summary_is_two_sentences(dossier):
    assert len(dossier.summary) == 2
    for sentence in dossier.summary:
        assert sentence.endswith(".")
        assert len(re.findall(r"\.(\s|$)", sentence)) == 1


def test_the_page_is_one_file_without_addresses_under_two_megabytes(page):
    text = page.read_text()
    assert len(text.encode()) < 2_000_000
    assert "http://" not in text
    assert "https://" not in text
    assert not re.search(r"(src|href)=", text)
    assert "north &amp; &lt;south&gt;" in text  # names are escaped
    for heading in (
        "Why",
        "Utility and privacy",
        "Controls",
        "About the data",
        "Glossary",
        "How to repeat it",
    ):
        assert f"<h2>{heading}</h2>" in text


def test_no_record_appears_in_dossier_or_report(tmp_path):
    """Marked cells and numbers must not be found in anything that is written."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "secret": [f"SECRET{k % 40}X" for k in range(n)],
            "number": rng.normal(size=n).round(6) + 7_654_321,
        }
    )
    made = reticent.audit(
        RandomForestClassifier(10),
        frame,
        rng.integers(2, size=n),
        rounds=1,
        pool=0,  # with one: test_pool_report.py
        workers=1,
    )
    folder = made.save(tmp_path)
    for name in ("dossier.json", "report.html", "report.txt"):
        text = (folder / name).read_text()
        assert "SECRET" not in text
        assert "7654321" not in text
        assert "7,654,321" not in text


def test_notebooks_show_the_page_in_a_frame(dossier):
    shown = dossier._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "REFUSE" in shown


DREW = """
return [...document.querySelectorAll("svg.plot")].map(svg => ({
  id: svg.id, width: svg.getBoundingClientRect().width, height: svg.getBoundingClientRect().height,
  marks: svg.querySelectorAll("rect,circle,polyline,polygon").length,
  tips: svg.querySelectorAll("[data-tip]").length,
  broken: /NaN|undefined|Infinity/.test(svg.outerHTML),
}));
"""


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("width", [500, 1400])
def test_every_plot_draws_and_the_console_is_silent(page, tmp_path, width):
    answer = browse(page, DREW, tmp_path, width=width)
    assert answer["seen"] == []
    assert sorted(p["id"] for p in answer["found"]) == sorted(PLOTS)
    for plot in answer["found"]:
        assert plot["width"] > 200
        assert plot["height"] > 80
        assert plot["marks"] >= 2
        assert plot["tips"] >= 3
        assert not plot["broken"]


@needs_chromium
@pytest.mark.browser
def test_twin_a_page_with_an_error_is_noticed(page, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(
        page.read_text().replace("<script>", "<script>nothing.there();", 1)
    )
    assert browse(broken, "return 0;", tmp_path)["seen"]


@needs_chromium
@pytest.mark.browser
def test_hovering_shows_values_and_leaving_hides_them(page, tmp_path):
    script = """
    const mark = document.querySelector("#plot-roc .hit");
    const tip = document.getElementById("tip");
    mark.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 200, clientY: 300}));
    const shown = [tip.textContent, tip.classList.contains("on")];
    document.body.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 1, clientY: 1}));
    return [...shown, tip.classList.contains("on")];
    """
    text, on, still = browse(page, script, tmp_path)["found"]
    assert re.fullmatch(r".*: at FPR .* % TPR .* % .*", text), text
    assert on
    assert not still


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("frame", [390, 500])
def test_a_phone_does_not_scroll_sideways(page, tmp_path, frame):
    script = "return [document.documentElement.scrollWidth, innerWidth];"
    scrolled, inner = browse(page, script, tmp_path, frame=frame)["found"]
    assert inner == frame
    assert scrolled <= inner


@needs_chromium
@pytest.mark.browser
def test_light_and_dark_differ(page, tmp_path):
    script = "return getComputedStyle(document.body).backgroundColor;"
    light = browse(page, script, tmp_path)["found"]
    dark = browse(
        page, script, tmp_path, flags=("--blink-settings=preferredColorScheme=0",)
    )["found"]
    assert light != dark


@needs_chromium
@pytest.mark.browser
def test_it_prints(page, tmp_path):
    pdf = tmp_path / "report.pdf"
    chromium(tmp_path, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", page.as_uri())
    assert pdf.read_bytes()[:5] == b"%PDF-"
    assert pdf.stat().st_size > 20_000
