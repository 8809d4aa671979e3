"""A domain is declared, or learned through noise; nothing else of the records reaches a private network."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.train.private.domain import Domain, learn_domain, read_domain

ALARM = 1e-6


def people(n=4000, seed=0, **columns):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 12, n).round(),
            "gain": np.where(rng.random(n) < 0.9, 0.0, rng.lognormal(8, 1, n)),
            "city": rng.choice(["Oslo", "Bergen", "Voss"], n, p=[0.6, 0.38, 0.02]),
            **columns,
        }
    )
    return table_from_frame(frame, target=rng.integers(0, 2, n))


def learned(table, noise=2.0, seed=0, failure=1e-6):
    return learn_domain(
        table,
        noise_multiplier=noise,
        failure=failure,
        generator=np.random.default_rng(seed),
    )


def test_numbers_are_centred_and_scaled_about_as_they_lie():
    domain = learned(people())
    places = {name: (centre, scale) for name, centre, scale in domain.numbers}
    assert places["age"][0] == pytest.approx(45, abs=3)
    assert places["age"][1] == pytest.approx(12, rel=0.3)
    # Nine in ten are 0: the others tell the scale.
    assert places["gain"][0] == pytest.approx(0, abs=1)
    assert 500 < places["gain"][1] < 10_000


def test_frequent_categories_are_listed_and_rare_ones_are_not():
    domain = learned(people(), noise=20.0)  # a threshold of some 160 records
    assert dict(domain.categories)["city"] == ("Bergen", "Oslo")


def test_a_category_of_one_record_is_listed_with_the_stated_probability(seed):
    """A threshold that forgot the noise of three columns would list it some 200 times as often."""
    trials, failure = 2000, 0.02
    table = people(60, city=["Oslo"] * 59 + ["Røst"])
    found = sum(
        "Røst"
        in dict(learned(table, noise=3.0, seed=[seed, k], failure=failure).categories)[
            "city"
        ]
        for k in range(trials)
    )
    test = stats.binomtest(found, trials, failure)
    assert test.pvalue > ALARM
    forgetful = stats.norm.sf(stats.norm.isf(failure) / np.sqrt(3))
    assert stats.binomtest(found, trials, forgetful).pvalue < ALARM


def test_counts_get_whole_noise_of_the_declared_deviation(seed):
    from reticent.train.private.domain import noisy_counts

    drawn = noisy_counts(
        np.zeros(20_000, dtype=np.int64), 30.0, np.random.default_rng(seed)
    )
    assert np.array_equal(drawn, np.rint(drawn))
    law = stats.chi2(len(drawn))
    total = float((drawn**2).sum())
    for deviation, right in ((30.0, True), (28.0, False)):
        tail = 2 * min(law.cdf(total / deviation**2), law.sf(total / deviation**2))
        assert bool(tail > ALARM) is right


def test_what_is_too_little_to_be_heard_is_said():
    domain = learned(people(60), noise=50.0)
    assert set(domain.unheard) == {"age", "gain", "city"}
    assert dict(domain.categories)["city"] == ()


def test_a_domain_that_does_not_know_a_category_scales_it_to_nothing():
    table = people()
    domain = Domain(
        numbers=(("age", 40.0, 10.0), ("gain", 0.0, 1.0)),
        categories=(("city", ("Oslo",)),),
    )
    from reticent.product import Encoder

    centre, scale = domain.standardisation(Encoder.of(table))
    assert centre.tolist() == [40, 0, 0, 0, 0]
    assert scale[2:].tolist() == pytest.approx([1e30, 1, 1e30])


DECLARED = """
[numbers]
age = [0, 100]
gain = [0, 100000]
[categories]
city = ["Voss", "Oslo", "Bergen"]
"""


def test_a_declared_domain_looks_at_no_record(tmp_path):
    file = tmp_path / "domain.toml"
    file.write_text(DECLARED)
    table = people()
    domain = read_domain(file, table)
    assert domain.numbers[0] == ("age", 50.0, 25.0)
    assert dict(domain.categories)["city"] == ("Bergen", "Oslo", "Voss")
    assert read_domain(file, people(60, seed=9)) == domain


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("age = [0, 100]", ""), "does not declare the column 'age'"),
        (("age = [0, 100]", "age = [100, 0]"), "lowest and highest"),
        (("age = [0, 100]", 'age = "old"'), "lowest and highest"),
        (("[categories]", "height = [0, 3]\n[categories]"), "'height'"),
        (('["Voss", "Oslo", "Bergen"]', "[]"), "list of names"),
        (("[numbers]", "[figures]"), "unknown key 'figures'"),
        (("[numbers]", "[numbers"), "cannot be read"),
    ],
)
def test_a_domain_that_does_not_fit_is_told(tmp_path, change, word):
    file = tmp_path / "domain.toml"
    file.write_text(DECLARED.replace(*change))
    with pytest.raises(InvalidInput, match=word.replace("[", r"\[")):
        read_domain(file, people())
