"""`reticent plan`: every option answers, bad input gets one sentence, the page agrees with the command."""

import json
import re

import in_process
import pytest

SHORT = ["--delta", "1e-4", "--steps", "50", "--rate", "0.02"]
KEYS = {
    *("epsilon", "delta", "relation", "noise_multiplier", "advantage", "belief"),
    *("tpr", "fpr", "steps", "sampling_rate"),
}


def run(*arguments, folder="."):
    return in_process.run("plan", *arguments, folder=folder)


@pytest.mark.parametrize(
    ("asked", "key", "limit"),
    [
        (["--belief", "0.9"], "belief", 0.9),
        (["--advantage", "0.1"], "advantage", 0.1),
        (["--tpr", "0.01", "--fpr", "0.001"], "tpr", 0.01),
        (["--epsilon", "2"], "epsilon", 2.0),
    ],
)
def test_every_target_is_met_and_the_keys_are_there(asked, key, limit):
    done = run(*asked, *SHORT, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert set(plan) >= KEYS
    assert 0.9 * limit < plan[key] <= limit * (1 + 1e-6)
    assert plan["relation"] == "add/remove"
    assert plan["steps"] == 50
    assert plan["sampling_rate"] == 0.02


def test_the_words_say_noise_relation_and_belief():
    done = run("--belief", "0.8", *SHORT, "--relation", "replace-one", "--prior", "0.1")
    assert done.returncode == 0, done.stderr
    for words in ("Noise multiplier", "replace-one", "except with probability", "D5.3"):
        assert words in done.stdout
    assert re.search(r"epsilon at delta 0.0001, replace-one", done.stdout)


def test_the_words_say_what_a_belief_is_not_in_law():
    done = run("--belief", "0.8", *SHORT)
    words = " ".join(done.stdout.split())
    assert "Recital 26" in words
    assert "not legal advice" in words
    # A plan as JSON is for machines: its keys are numbers, and sentences stay out.
    assert "Recital" not in run("--belief", "0.8", *SHORT, "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "1", "--delta", "0", "--steps", "5", "--rate", "0.1"], "no pure"),
        (["--belief", "0.4", *SHORT], "without a release"),
        (
            ["--epsilon", "1", "--delta", "1e-5", "--rows", "10", "--batch", "20", "--epochs", "1"],
            "larger than the table",
        ),
        (["--advantage", "1e-9", *SHORT], "no amount of noise"),
        (["--tpr", "0.1", *SHORT], "add fpr"),
        (["--epsilon", "1", "--belief", "0.9", *SHORT], "one target"),
        (["--epsilon", "1", "--delta", "1e-5"], "the length of the training"),
        (["--epsilon", "1", *SHORT, "--relation", "same"], "is not known"),
        (["--epsilon", "1", "--steps", "5", "--rate", "0.1"], "state delta"),
        (["--epsilon", "1", *SHORT, "--html", "p.html"], "sliders"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence_and_status_2(arguments, words, tmp_path):
    done = run(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
