"""Sensitivity of every question by replay on neighbours: bounds are kept, reached, and nothing passes beside the noise."""

import numpy as np
import pandas as pd
import pytest
from replayed import moved_between

from reticent.account import Relation
from reticent.data import table_from_frame
from reticent.run import stream
from reticent.train import MarginalGenerator
from reticent.train.marginals import fitted, histograms, pairs, plausible, recipe

CITIES = ("Bonn", "Köln", "Ulm")


def people(rng, n):
    age = rng.integers(18, 90, n).astype(float)
    cost = np.round(np.exp(rng.normal(3, 1, n)), 2) * (rng.random(n) < 0.7)
    city = rng.choice(CITIES, n, p=[0.5, 0.3, 0.2])
    ill = (rng.random(n) < age / 120).astype(float)
    age[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame({"age": age, "cost": cost, "city": city, "ill": ill})


@pytest.fixture
def declared(tmp_path):
    file = tmp_path / "domain.toml"
    file.write_text(
        '[numbers]\nage = [0, 120]\ncost = [0, 500]\n[categories]\ncity = ["Bonn", "Köln", "Ulm"]\n',
        encoding="utf-8",
    )
    return str(file)


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    """Fewer steps of the fit between questions, which are the same function of the answers then as well."""
    monkeypatch.setattr(plausible, "MOST_STEPS", 2)


def far_from(row):
    """Return a row that lies in another cell of every column."""
    return {
        "age": 85.0 if not row["age"] > 50 else 20.0,
        "cost": 0.0 if row["cost"] > 0 else 35.5,
        "city": "Ulm" if row["city"] != "Ulm" else "Bonn",
        "ill": 1.0 - row["ill"],
    }


def neighbour_of(frame, row, relation):
    if relation == Relation.ADD_REMOVE:
        return frame.drop(index=row).reset_index(drop=True)
    other = frame.copy()
    other.loc[row] = pd.Series(far_from(frame.loc[row]))
    return other.astype(frame.dtypes)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("domain", ["declared", "learned"])
@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_every_question_moves_by_what_is_paid_for_and_no_less(
    method, domain, relation, declared, seed, monkeypatch
):
    """With the released answers held fixed, all questions of a fit are compared: histograms, learned cells, choices and pairs.

    The largest moves are equal to what the accounting counts, for counts all together and for each score. So the test would fail with a sensitivity half as large as
    the true one, and with one that is larger. Nothing in it is random but the tables.
    """
    rng = stream(seed, "replay")
    frame = people(rng, 400)
    generator = MarginalGenerator(
        method=method,
        target="ill",
        domain=declared if domain == "declared" else None,
        noise_multiplier=0.5,
        noise="seeded",
        rows=60,
    )
    budget = generator.budget(table_from_frame(frame, target=None))
    proven = next(p for p, _ in budget.mechanism(relation).parts).mu ** 2
    allowed = 2.0 if relation == Relation.REPLACE else 1.0
    squares, score = 0.0, 0.0
    complete = np.flatnonzero(frame["age"].notna())
    # Most records reach both bounds; a few of those that are replaced stay inside their bin of some column.
    for turn, row in enumerate(rng.choice(complete, 8, replace=False)):
        moved = moved_between(
            generator,
            frame,
            neighbour_of(frame, row, relation),
            monkeypatch,
            seed=seed + turn,
        )
        assert moved.breaks(budget, relation) == []
        squares, score = max(squares, moved.squares), max(score, moved.score)
        if turn > 0 and squares > proven * (1 - 1e-9) and score > 0.75 * allowed:
            break
    assert squares == pytest.approx(proven, rel=1e-9)
    # A move of a score is its whole bound where the counts lie further than one record from what is expected.
    assert 0.75 * allowed < score <= allowed


def total_as_it_is(codes, columns, deviation, noise, **asked):
    single = histograms.noisy_histograms(codes, columns, deviation, noise)
    return histograms.Histograms(
        total=float(len(codes)),
        counts=single.counts,
        raw=single.raw,
        deviation=deviation,
    )


def counted_twice(codes, columns, deviation, noise, **asked):
    return histograms.noisy_histograms(
        np.repeat(codes, 2, axis=0), columns, deviation, noise
    )


def bins_of_records(codes, places):
    """Planted: bins that are cut at the records' quantiles in place of the noisy ones."""
    bins = np.empty(codes.shape, dtype=np.int16)
    for j, where in enumerate(places):
        cuts = np.quantile(codes[:, j], np.arange(1, 4) / 4, method="lower")
        bins[:, j] = np.minimum(np.searchsorted(cuts, codes[:, j]), where.max())
    return bins


def doubled_scores(self, pairs_, expected, deviation):
    return 2 * HONEST_SCORES(self, pairs_, expected, deviation)


HONEST_SCORES = pairs.Binned.scores
FLAWS = {
    "none": (None, None, None, []),
    "unpaid total": (recipe, "noisy_histograms", total_as_it_is, ["rows"]),
    "records counted twice": (recipe, "noisy_histograms", counted_twice, ["counts"]),
    "bins of the records": (fitted, "_in_bins", bins_of_records, ["counts"]),
    "doubled scores": (pairs.Binned, "scores", doubled_scores, ["scores"]),
}


@pytest.mark.parametrize(("place", "name", "flaw", "found"), FLAWS.values(), ids=FLAWS)
@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_planted_flaws_are_found_by_replay(
    method, place, name, flaw, found, declared, monkeypatch
):
    """Each flaw is found with certainty, and an honest generator is not accused: nothing in the comparison is random."""
    if place is not None:
        monkeypatch.setattr(place, name, flaw)
    # Every fourth record is at a quantile of the records, so that one record less moves the cuts.
    age = np.repeat(np.arange(20.0, 60.0), 10)
    rng = np.random.default_rng(5)
    frame = people(rng, 400).assign(age=age)
    generator = MarginalGenerator(
        method=method, target="ill", domain=declared, noise_multiplier=0.5, noise="seeded",
    )  # fmt: skip
    budget = generator.budget(table_from_frame(frame, target=None))
    broken = set()
    for row in (0, 100, 399):
        neighbour = neighbour_of(frame, row, Relation.ADD_REMOVE)
        moved = moved_between(generator, frame, neighbour, monkeypatch, seed=row)
        broken |= {
            words.split(" (")[0] for words in moved.breaks(budget, Relation.ADD_REMOVE)
        }
    assert broken.issuperset(found)
    assert bool(broken) == bool(found)
