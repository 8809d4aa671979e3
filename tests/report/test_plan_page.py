"""The interactive page of a plan, opened and moved in Chromium."""

import pytest
from browser import browse, needs_chromium

from reticent.account import Course, MaxAdvantage, Stops, Terms, make_plan, plan_table
from reticent.report import render_plan

ROWS, BATCHES, EPOCHS, RISKS = (1000, 2000), (50,), (1.0, 2.0), (0.1, 0.3)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    table = plan_table(
        lambda value: MaxAdvantage(advantage=value),
        Stops(risks=RISKS, rows=ROWS, batches=BATCHES, epochs=EPOCHS),
        Terms(delta=1e-4),
    )
    path = tmp_path_factory.mktemp("plan") / "plan.html"
    path.write_text(render_plan(table, kind="advantage", asked=(0, 0, 0, 0)))
    return path


def test_the_page_needs_nothing_from_outside(page):
    text = page.read_text()
    assert "http://www.w3.org/2000/svg" in text
    assert text.count("http") == text.count("http://www.w3.org/2000/svg")


def test_the_page_says_what_a_belief_is_not_in_law(page):
    text = page.read_text()
    assert "Recital 26" in text
    assert "not legal advice" in text


@needs_chromium
@pytest.mark.browser
def test_moving_sliders_shows_what_the_command_says(page, tmp_path):
    script = """
    const read = () => ({
      noise: document.getElementById("noise_multiplier").textContent,
      epsilon: document.getElementById("epsilon").textContent,
      steps: document.getElementById("steps").textContent,
      curve: document.querySelector("#plot-tradeoff .curve").getAttribute("points"),
    });
    const first = read();
    for (const [name, value] of [["risk", 1], ["rows", 1], ["epochs", 1]]) {
      const slider = document.getElementById(name);
      slider.value = value;
      slider.dispatchEvent(new Event("input"));
    }
    return [first, read(), document.documentElement.scrollWidth <= innerWidth];
    """
    out = browse(page, script, tmp_path)
    assert out["seen"] == []
    first, moved, fits = out["found"]
    assert fits
    assert first["curve"] != moved["curve"]
    for shown, risk, rows, epochs in ((first, 0.1, 1000, 1.0), (moved, 0.3, 2000, 2.0)):
        plan = make_plan(
            MaxAdvantage(advantage=risk),
            Course.of_epochs(rows=rows, batch=50, epochs=epochs),
            Terms(delta=1e-4),
        )
        assert float(shown["noise"]) == plan.noise_multiplier
        assert float(shown["epsilon"]) == pytest.approx(plan.epsilon, abs=1.001e-3)
        assert shown["steps"] == f"{plan.steps:,}"


@needs_chromium
@pytest.mark.browser
def test_a_phone_does_not_scroll_sideways(page, tmp_path):
    script = "return document.documentElement.scrollWidth <= innerWidth;"
    assert browse(page, script, tmp_path, frame=390)["found"]
