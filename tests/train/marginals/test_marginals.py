"""Soundness of the marginal generator: sensitivities by replay, the law of the noise, and flaws that must be refuted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from reticent.account import Budget as Target
from reticent.account import Relation, Terms, trade_off
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.run import Run, stream
from reticent.train import MarginalGenerator
from reticent.train.marginals import (
    domain,
    sampling,
)
from reticent.train.marginals.budget import Budget
from reticent.train.marginals.columns import Categories, Numbers
from reticent.train.marginals.noise import STEPS, Noise
from reticent.train.marginals.pairs import Binned, counts_of_pairs, pair_counts
from reticent.train.marginals.sampling import drawn

FALSE_ALARM = 1e-6
NAMES = ("age", "cost", "city", "ill")


def people(rng, n):
    age = rng.integers(18, 90, n).astype(float)
    cost = np.round(np.exp(rng.normal(3, 1, n)), 2) * (rng.random(n) < 0.7)
    city = rng.choice(["Bonn", "Köln", "Ulm"], n, p=[0.6, 0.3, 0.1])
    ill = (rng.random(n) < age / 120).astype(float)
    age[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(dict(zip(NAMES, (age, cost, city, ill), strict=True)))


def as_table(frame):
    return table_from_frame(frame, target=None)


DOMAIN = '[numbers]\nage = [0, 120]\ncost = [0, 500]\n[categories]\ncity = ["Bonn", "Köln", "Ulm"]\n'


@pytest.fixture
def declared(tmp_path):
    file = tmp_path / "domain.toml"
    file.write_text(DOMAIN, encoding="utf-8")
    return str(file)


def scored(data, frame_bins, expected, pairs):
    return Binned(bins=frame_bins, sizes=data.sizes, target=data.target).scores(
        pairs, expected, 3.0
    )


def test_a_score_moves_by_at_most_one_and_twice_that_is_refuted(seed):
    rng = stream(seed, "scores")
    bins = rng.integers(0, 4, (200, 5))
    data = Binned(bins=bins, sizes=(4,) * 5, target=2)
    pairs = data.pairs
    expected = [rng.random((4, 4)) * 25 for _ in pairs]
    whole = data.scores(pairs, expected, 3.0)
    assert (whole * STEPS == np.rint(whole * STEPS)).all()  # exact on the grid
    removed, replaced, planted = 0.0, 0.0, 0.0
    for row in range(60):
        fewer = scored(data, np.delete(bins, row, axis=0), expected, pairs)
        changed = bins.copy()
        changed[row] = rng.integers(0, 4, 5)
        swapped = scored(data, changed, expected, pairs)
        removed = max(removed, np.abs(whole - fewer).max())
        replaced = max(replaced, np.abs(whole - swapped).max())
        planted = max(planted, np.abs(2 * whole - 2 * fewer).max())
    assert removed == 1.0
    assert 1.0 < replaced <= 2.0
    # The twin: a score that counts deviations twice moves further than a choice pays for.
    assert planted > 1.0


def test_the_noise_on_counts_is_rounded_normal_noise(seed):
    n, deviation = 40_000, 5.0
    noise = Noise.seeded(seed).on_counts(np.zeros(n, dtype=np.int64), deviation)
    assert (noise == np.rint(noise)).all()
    cells = np.arange(-12, 13)
    law = norm.cdf(cells + 0.5, scale=deviation) - norm.cdf(
        cells - 0.5, scale=deviation
    )
    counts = np.array([(noise == c).sum() for c in cells])
    z = (counts - n * law) / np.sqrt(n * law * (1 - law))
    limit = norm.isf(FALSE_ALARM / (2 * len(cells)))
    assert np.abs(z).max() < limit
    # The twin: noise of a tenth less is another law.
    smaller = norm.cdf(cells + 0.5, scale=4.5) - norm.cdf(cells - 0.5, scale=4.5)
    z = (counts - n * smaller) / np.sqrt(n * smaller * (1 - smaller))
    assert np.abs(z).max() > limit


def test_a_choice_has_the_law_of_the_exponential_mechanism(seed):
    scores, epsilon, n = np.array([0.0, 1.0, 2.5]), 1.2, 6_000
    noise = Noise.seeded(seed)
    counts = np.bincount([noise.choose(scores, epsilon) for _ in range(n)], minlength=3)
    limit = norm.isf(FALSE_ALARM / 6)

    def z(factor):
        law = np.exp(factor * scores)
        law /= law.sum()
        return np.abs((counts - n * law) / np.sqrt(n * law * (1 - law))).max()

    assert z(epsilon / 2) < limit
    assert z(epsilon) > limit  # the twin: the sensitivity forgotten by a factor of two


def test_secret_noise_differs_each_time_and_seeded_noise_does_not():
    counts = np.zeros(50, dtype=np.int64)
    assert (Noise.secret().on_counts(counts, 9.0) != Noise.secret().on_counts(counts, 9.0)).any()  # fmt: skip
    assert (Noise.seeded(1).on_counts(counts, 9.0) == Noise.seeded(1).on_counts(counts, 9.0)).all()  # fmt: skip


def test_secret_noise_comes_from_the_system_and_from_nowhere_else(monkeypatch):
    """With the system's entropy held fixed a whole fit repeats itself, and with other entropy it does not: no other source protects anybody."""
    table = as_table(people(np.random.default_rng(4), 300))
    generator = MarginalGenerator(method="tree", noise_multiplier=1.0)

    def fit(entropy, seed):
        asked = []

        def randbits(bits):
            asked.append(bits)
            return entropy

        monkeypatch.setattr("secrets.randbits", randbits)
        single = generator.fit(table, run=Run(seed=seed)).single
        assert asked == [128]
        return np.concatenate(single.raw)

    assert (fit(1, 0) == fit(1, 0)).all()
    assert (fit(1, 0) == fit(1, 5)).all()  # the seed has no part in it
    assert not np.array_equal(fit(1, 0), fit(2, 0))


def test_a_category_of_one_person_is_listed_no_more_often_than_stated(seed):
    """With a failure of one in twenty: the number of lists that name it is binomial, and beyond the limit once in a million."""
    frame = pd.DataFrame({"city": ["Bonn"] * 200 + ["Ulm"] * 99 + ["Nowhere"]})
    runs, failure = 2_000, 0.05

    def named(rows):
        look = domain.Look(deviation=1.0, of_categories=6.0, failure=failure)
        table = as_table(frame.iloc[[*range(299), *[299] * rows]])
        lists = (
            domain.learned_columns(table, look, Noise.seeded(seed * 10_000 + run))
            for run in range(runs)
        )
        return sum("Nowhere" in cells.columns[0].values for cells in lists)

    most = binom.isf(FALSE_ALARM, runs, failure)
    assert named(1) <= most
    # The twin: two rows of one person are listed more often, which the threshold is not for.
    assert named(4) > most


def test_categories_are_counted_once_and_what_is_not_listed_is_what_is_left():
    """The histogram of a listed column is the one it was listed by; unlisted categories have the rest of the noisy total."""
    frame = pd.DataFrame(
        {"city": ["Bonn"] * 500 + ["Ulm"] * 300 + [f"x{k}" for k in range(200)]}
    )
    generator = MarginalGenerator(noise="seeded", noise_multiplier=0.5)
    budget = generator.budget(as_table(frame))
    # One histogram and the number of records, because no column has public cells.
    assert (budget.looks, budget.lists, budget.columns) == (1, 1, 1)
    made = generator.train(as_table(frame), seed=1).frame["city"].value_counts()
    assert set(made.index) == {"Bonn", "Ulm", "(other)"}
    assert abs(made["(other)"] - 200) < 30
    assert "more than half" not in str(generator.train(as_table(frame), seed=1).warnings)  # fmt: skip


def test_a_thin_tail_beside_a_spike_keeps_its_range_and_its_bins(seed):
    """Nine of ten people have 0, and the others 3,000 to 20,000: their cells are heard together, and bins divide what the spike leaves."""
    rng = stream(seed, "tail")
    gain = np.where(rng.random(8_000) < 0.9, 0.0, np.rint(np.exp(rng.uniform(8, 9.9, 8_000))))  # fmt: skip
    frame = pd.DataFrame({"gain": gain, "rich": (gain > 8_000).astype(float)})
    generator = MarginalGenerator(
        method="tree", target="rich", noise="seeded", noise_multiplier=4.0
    )
    made = generator.train(as_table(frame), seed=seed).frame
    tail = made["gain"][made["gain"] > 0]
    assert abs(len(tail) / len(made) - 0.1) < 0.03
    assert tail.quantile(0.9) > 8_000
    # What lies high in the tail goes with the target, which one bin for the whole tail would lose.
    high, low = (made["rich"][made["gain"] > 10_000], made["rich"][made["gain"].between(1, 6_000)])  # fmt: skip
    assert high.mean() - low.mean() > 0.5


def test_the_budget_covers_all_parts_under_both_relations(declared):
    table = as_table(people(np.random.default_rng(1), 500))
    for relation in Relation:
        target = Target(epsilon=2.0, delta=1e-5)
        for generator in (MarginalGenerator(), MarginalGenerator(domain=declared, rows_per_person=3)):  # fmt: skip
            fitted = generator.keeping(target, table, delta=1e-5, relation=relation)
            stated = fitted.guarantee_on(table, Terms(delta=1e-5, relation=relation))
            assert 1.98 < stated.epsilon <= 2.0
            assert stated.holds
    # By hand: histograms, pairs and learning are one Gaussian mechanism, the choices and the failure come on top.
    budget = Budget(
        noise_multiplier=1.5, method="tree", columns=4, looks=5, failure=1e-8
    )
    parts = dict(budget.mechanism(Relation.ADD_REMOVE).parts)
    mu_squared = (
        4 / budget.histogram_deviation**2
        + 5 / budget.learning_deviation**2
        + 3 / budget.pair_deviation**2
    )
    gaussian = next(iter(parts))
    assert gaussian.mu**2 == pytest.approx(mu_squared)
    less = budget.mechanism(Relation.REPLACE).parts[0][0]
    assert less.mu**2 == pytest.approx(2 * mu_squared)
    assert trade_off(budget.mechanism(Relation.REPLACE)).advantage > trade_off(budget.mechanism(Relation.ADD_REMOVE)).advantage  # fmt: skip


@pytest.mark.parametrize("rows", [3, 200, 5_000])
def test_pairs_counted_three_columns_at_a_time_are_those_counted_one_by_one(seed, rows):
    """Few rows: no three columns have fewer cells than there are rows. Many: all three pairs of three columns are told by one count."""
    rng, sizes = stream(seed, "counts of pairs"), (2, 7, 3, 5, 4, 6)
    bins = np.stack([rng.integers(k, size=rows) for k in sizes], axis=1)
    every = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    for wanted in (every, every[::2], every[:1], []):
        found = counts_of_pairs(bins, wanted, sizes)
        assert set(found) == set(wanted)
        for pair, counts in found.items():
            naive = np.zeros([sizes[c] for c in pair], dtype=np.int64)
            np.add.at(naive, tuple(bins[:, list(pair)].T), 1)
            assert np.array_equal(counts, naive)
            assert np.array_equal(counts, pair_counts(bins, pair, sizes))


@pytest.mark.parametrize("bits", [sampling.FEWEST_BITS, 64], ids=["keys", "by value"])
def test_states_are_tied_to_the_group_and_to_nothing_else(seed, monkeypatch, bits):
    """Two columns drawn under the same group, and two rows of different groups, are independent; both ways to put rows into a random order."""
    monkeypatch.setattr(sampling, "FEWEST_BITS", bits)
    rng, n = stream(seed, "states"), 10_000
    groups, weights = np.arange(n) % 2, np.full((2, 2), 0.5)
    limit = norm.isf(FALSE_ALARM / 4)

    def z(one, other):
        # Of n / 2 rows in a group, half have either state, so the number with both has the variance of a hypergeometric law.
        both = np.array([((one + other)[groups == g] == 0).sum() for g in range(2)])
        m = n / 2
        return np.abs((both - m / 4) / np.sqrt(m**2 / 16 / (m - 1))).max()

    assert z(drawn(weights, groups, rng), drawn(weights, groups, rng)) < limit
    # The twin: by the order in which rows were made, both columns would be the same.
    monkeypatch.setattr(sampling, "_grouped", lambda g, *_: np.argsort(g, kind="stable"))  # fmt: skip
    assert z(drawn(weights, groups, rng), drawn(weights, groups, rng)) > limit


def test_a_single_row_has_each_state_by_its_share(seed):
    rng, n = stream(seed, "single rows"), 20_000
    weights = np.tile([0.0, 3.0, 0.0, 7.0, 0.0], (n + 2, 1))
    weights[n] = 0.0  # all states alike, and nobody is in the last group
    states = drawn(weights, np.arange(n + 1), rng)
    few, most = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, 0.3)
    counts = np.bincount(states[:n], minlength=5)
    assert few <= counts[1] <= most
    assert counts.tolist() == [0, counts[1], 0, n - counts[1], 0]
    assert 0 <= states[n] < 5
    # The twin: shares that are wrong by a twentieth are seen.
    wrong = drawn(np.tile([0.0, 3.5, 0.0, 6.5, 0.0], (n, 1)), np.arange(n), rng)
    assert not few <= (wrong == 1).sum() <= most


def test_columns_of_answers_are_told_from_other_numbers():
    answers = np.tile([0.0, 1.0, np.nan], 1_000)
    late = np.append(answers, 2.0)  # behind the first ones that are looked at
    frame = pd.DataFrame({"answers": answers, "late": late[1:], "number": np.arange(3_000.0)})  # fmt: skip
    table = as_table(frame)
    assert domain.looks(table) == 2 * 2
    assert domain.looks(as_table(frame[["answers"]])) == 0


@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_without_much_noise_the_table_is_imitated(method, seed):
    rng = stream(seed, "people")
    frame = people(rng, 3_000)
    generator = MarginalGenerator(
        method=method, target="ill", noise_multiplier=0.05, noise="seeded"
    )
    made = generator.train(as_table(frame), seed=seed).frame
    assert list(made.columns) == list(NAMES)
    assert abs(len(made) - 3_000) < 30
    for name in ("city", "ill"):
        real, new = (f[name].value_counts(normalize=True) for f in (frame, made))
        assert new.sub(real, fill_value=0).abs().max() < 0.02
    assert abs(made["age"].isna().mean() - frame["age"].isna().mean()) < 0.02
    assert abs((made["cost"] == 0).mean() - (frame["cost"] == 0).mean()) < 0.03
    real, new = (f["age"].corr(f["ill"]) for f in (frame, made))
    assert abs(real - new) < 0.08
    # The twin: columns drawn by themselves lose the dependence.
    alone = made["age"].sample(frac=1, random_state=0).reset_index(drop=True)
    assert abs(real - alone.corr(made["ill"])) > 0.15


def test_values_come_back_as_they_went_in():
    column = Numbers(name="x", low=(-1.0, 0.0, 0.0), high=(0.0, 0.0, 2.0), whole=False)
    values = pd.Series([-0.5, 0.0, 1e-300, 1.9, np.nan, 7.0, -9.0])
    cells = column.code(values)
    assert cells.tolist() == [0, 1, 2, 2, 3, 2, 0]
    back = column.decode(cells, np.random.default_rng(0))
    assert column.code(back)[:5].tolist() == cells[:5].tolist()
    cities = Categories(name="c", values=("a", "b"))
    texts = pd.Series(["b", "x", None, "a"], dtype=object)
    assert cities.decode(cities.code(texts), np.random.default_rng(0)).tolist()[:2] == ["b", "(other)"]  # fmt: skip


def test_systematic_sampling_meets_shares_to_one_row(seed):
    rng = stream(seed, "systematic")
    weights = rng.random((3, 5))
    weights[1, 4] = 0.0
    groups = rng.integers(0, 3, 1_000)
    states = drawn(weights, groups, rng)
    for g in range(3):
        counts = np.bincount(states[groups == g], minlength=5)
        shares = weights[g] / weights[g].sum()
        assert np.abs(counts - shares * (groups == g).sum()).max() <= 1 + 1e-6
    assert not ((groups == 1) & (states == 4)).any()


def test_tables_that_cannot_be_imitated_are_refused():
    rng = np.random.default_rng(0)
    frame = people(rng, 300)
    generator = MarginalGenerator(
        noise="seeded"
    )  # secret noise hears something in an empty column once in sixty times
    with pytest.raises(InvalidInput, match="fewer than 100 rows"):
        generator.train(as_table(frame[:50]), seed=0)
    text = frame.assign(note=[f"text {k}" for k in range(300)])
    with pytest.raises(InvalidInput, match="free text"):
        generator.train(as_table(text), seed=0)
    with pytest.raises(InvalidInput, match="it is empty"):
        generator.train(as_table(frame.assign(none=np.nan)), seed=0)
    loud = MarginalGenerator(noise_multiplier=500.0)
    with pytest.raises(InvalidInput, match="budget"):
        loud.train(as_table(frame), seed=0)
    with pytest.raises(InvalidInput, match="no column 'x'"):
        MarginalGenerator(target="x").train(as_table(frame), seed=0)
    twice = table_from_frame(frame.assign(who=np.arange(300) // 2), target=None, unit="who")  # fmt: skip
    with pytest.raises(InvalidInput, match="more than 1 rows"):
        generator.train(twice, seed=0)
    for wrong in ({"method": "gan"}, {"noise": "none"}, {"noise_multiplier": 0.0}, {"failure": 0.0}, {"rows": 3}, {"rows_per_person": 0}):  # fmt: skip
        with pytest.raises(InvalidInput, match=r"got|not known"):
            MarginalGenerator(**wrong)


def test_seeded_noise_repeats_and_guarantees_nothing():
    table = as_table(people(np.random.default_rng(2), 400))
    generator = MarginalGenerator(noise="seeded", noise_multiplier=0.3)
    first, again = (generator.train(table, seed=5).content() for _ in range(2))
    assert first == again
    assert generator.repeatable
    assert not MarginalGenerator().repeatable
    stated = generator.guarantee_on(table, Terms(delta=1e-5))
    assert not stated.holds
    read_off, seeded = stated.caveats
    assert "read off the records" in read_off
    assert "seed" in seeded
    assert MarginalGenerator().as_shadow().noise == "seeded"


@pytest.mark.parametrize(("deviations", "said"), [(2, True), (20, False)])
def test_a_rare_answer_of_the_target_is_said_from_noisy_counts(
    declared, seed, deviations, said
):
    """The noise is normal: crossing 8 deviations from 2 or from 20 has a chance below 1e-8."""
    frame = people(stream(seed, "rare answers"), 4_000)
    generator = MarginalGenerator(
        target="ill", domain=declared, noise_multiplier=2.0, noise="seeded"
    )
    deviation = generator.budget(as_table(frame)).histogram_deviation
    frame["ill"] = (np.arange(len(frame)) < deviations * deviation).astype(float)
    warnings = generator.train(as_table(frame), seed=seed).warnings
    assert any("rarest answer of 'ill'" in each for each in warnings) == said


def test_a_target_of_which_one_answer_is_heard_is_said():
    frame = people(stream(0, "one answer"), 2_000)
    frame["ill"] = np.where(np.arange(len(frame)) < 3, "yes", "no")
    generator = MarginalGenerator(target="ill", noise_multiplier=1.0, noise="seeded")
    warnings = generator.train(as_table(frame), seed=0).warnings
    assert any("all answers of 'ill' but one" in each for each in warnings)
    frame["ill"] = np.where(np.arange(len(frame)) < 1_000, "yes", "no")
    assert "all answers" not in str(generator.train(as_table(frame), seed=0).warnings)


@pytest.mark.parametrize(
    ("rows", "epsilon", "method"),
    [
        (1_000, 3.0, "tree"),
        (1_000, 10.0, "adaptive"),
        (1_001, 0.1, "tree"),
        (1_001, 0.5, "adaptive"),
        (9_999, 0.1, "tree"),
        (9_999, 0.5, "adaptive"),
        (10_001, 0.1, "adaptive"),
    ],
)
def test_the_method_follows_from_the_power_of_ten_of_the_rows_and_the_noise(
    rows, epsilon, method
):
    table = as_table(people(stream(0, "people"), rows))
    terms = Terms(delta=1e-5)
    recipe = MarginalGenerator().keeping(
        Target(epsilon=epsilon, delta=1e-5), table, delta=1e-5, relation=terms.relation
    )
    assert recipe.method == method
    assert recipe.guarantee_on(table, terms).epsilon == pytest.approx(epsilon, rel=1e-3)
    # A recipe whose noise is given chooses alike, and one whose method is named does not choose.
    auto = replace(recipe, method="auto")
    assert auto.settled(table).method == auto.budget(table).method == method
    assert replace(recipe, method="tree").settled(table).method == "tree"
