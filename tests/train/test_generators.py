"""Generators as trainers: what a name may say, what a stranger's file may say, and that nothing global is left changed."""

import random
import sys

import numpy as np
import pytest

from made_tables import people
from reticent.account import Terms
from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidSpec, TrainerFailed
from reticent.run import stream
from reticent.train import (
    MarginalGenerator,
    WassersteinGenerator,
    generator_of,
    parse_claimed_generator,
    parse_generator,
)
from reticent.train.marginals.columns import Numbers
from reticent.train.marginals.domain import Cells
from reticent.train.marginals.histograms import noisy_histograms

GLOBAL = """
import random
import numpy as np


def make(frame, rows, seed):
    rows = np.random.randint(len(frame), size=rows)
    return frame.iloc[rows].assign(weight=random.random()).reset_index(drop=True)


def broken(frame, rows, seed):
    np.random.seed(7)
    raise KeyError("a cell")
"""


@pytest.fixture(scope="module")
def members():
    return table_from_frame(people(300, stream(0, "test/generators")), target=None)


@pytest.fixture
def global_generator(tmp_path, monkeypatch):
    (tmp_path / "global_generator.py").write_text(GLOBAL)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "global_generator:make"
    sys.modules.pop("global_generator", None)


def parsed(text, members):
    return parse_generator(text, rows_per_record=2.0, members=members)


def test_an_epsilon_is_calibrated_to_the_members(members):
    generator = parsed("MarginalGenerator(epsilon=3, target='ill')", members)
    terms = Terms(delta=1e-4)
    assert generator.table_guarantee(members, terms).epsilon == pytest.approx(
        3, rel=0.01
    )
    assert generator.table_guarantee(members, terms).holds
    # The noise of shadows is seeded: it repeats itself, and another seed is another table.
    first, again, other = (generator.train(members, seed=s).frame for s in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert len(first) == 600
    assert list(first.columns) == list(members.features.columns)


def test_a_recipe_is_read_again_from_its_own_description(members):
    recipe = MarginalGenerator(noise_multiplier=2.0, failure=1e-6)
    by_object = generator_of(recipe, rows_per_record=2.0, members=members)
    assert parsed(recipe.recipe, members) == by_object
    # The method is that of the audited table, also for shadows of another power of ten.
    assert by_object.made_by.method == "tree"
    assert by_object.sampling(1.0).content() != by_object.content()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("os.system(x='x')", "no recipe of a synthetic table"),
        ("MarginalGenerator(noise_multiplier=open('x'))", "cannot be read"),
        ("MarginalGenerator(**{'rows': 30})", "cannot be read"),
        ("MarginalGenerator(1)", "cannot be read"),
        ("MarginalGenerator(", "cannot be read"),
        ("MarginalGenerator(noise=1, loud=2)", "does not take the arguments"),
        ("MarginalGenerator(epsilon=1, noise_multiplier=2)", "both epsilon and noise"),
        ("MarginalGenerator(delta=1e-5)", "delta but no epsilon"),
        ("MarginalGenerator(epsilon='one')", "must be numbers"),
        ("MarginalGenerator(epsilon=-1)", "epsilon must be positive"),
        ("MarginalGenerator(noise_multiplier=0)", "must be positive and finite"),
    ],
)
def test_what_is_no_generator_is_refused_in_one_sentence(members, text, match):
    with pytest.raises(InvalidInput, match=match):
        parsed(text, members)


def test_people_with_several_rows_need_a_recipe_that_covers_them(members):
    several = table_from_frame(
        members.features.assign(who=np.arange(300) // 3), target=None, unit="who"
    )
    with pytest.raises(InvalidInput, match="rows_per_person="):
        parsed("MarginalGenerator(noise_multiplier=1.0)", several)
    two = parsed("MarginalGenerator(noise_multiplier=1.0, rows_per_person=2)", several)
    assert len(two.train(several, seed=0)) == 600


@pytest.mark.parametrize(
    "text",
    [
        "global_generator:make",
        "reticent.MarginalGenerator(domain='secrets.toml')",
        "reticent.MarginalGenerator(noise='seeded')",
        "reticent.PrivateNetwork()",
        "(" * 500,
        "",
    ],
)
def test_a_strangers_recipe_starts_nothing(members, global_generator, text):
    with pytest.raises(InvalidSpec):
        parse_claimed_generator(text, rows_per_record=1.0, members=members)
    assert "global_generator" not in sys.modules


def test_global_streams_are_seeded_and_put_back(members, global_generator):
    generator = parsed(global_generator, members)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    expected = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first, again, other = (generator.train(members, seed=s).frame for s in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert np.array_equal(np.random.get_state()[1], expected[0])  # noqa: NPY002
    assert random.getstate() == expected[1]
    with pytest.raises(TrainerFailed, match="failed with KeyError"):
        parsed("global_generator:broken", members).train(members, seed=1)
    assert np.array_equal(np.random.get_state()[1], expected[0])  # noqa: NPY002


def test_a_column_that_noise_hides_is_imitated_by_what_was_counted():
    """From either side no cell of the first column is heard, and its missing values are not either."""

    class Fixed:
        counted = iter([[1.3, 1.3, 1.9, 0.0], [500.0, 500.0, 0.0]])

        def on_counts(self, counts, deviation):
            return np.array(next(self.counted))

    columns = [
        Numbers(name="x", low=(0.0, 1.0, 2.0), high=(1.0, 2.0, 3.0), whole=False),
        Numbers(name="y", low=(0.0, 1.0), high=(1.0, 2.0), whole=False),
    ]
    cells = Cells(columns=tuple(columns))
    made = noisy_histograms(np.zeros((9, 2), np.int64), cells, 1.0, Fixed())
    assert [round(c.sum(), 6) for c in made.counts] == [round(made.total, 6)] * 2
    assert (made.counts[0][:3] > 0).all()


def test_a_recipe_whose_noise_hides_a_few_people_is_run_on_them_all_the_same():
    """Attackers have fewer people than whoever made the table. What nobody sees may be guessed; what is released may not."""
    few = table_from_frame(people(120, stream(0, "few")), target=None)
    loud = MarginalGenerator(noise_multiplier=40.0)
    with pytest.raises(InvalidInput, match="noise"):
        loud.train(few, seed=0)
    made = generator_of(loud, rows_per_record=1.0, members=few).train(few, seed=0)
    assert len(made) == 120
    with pytest.raises(InvalidInput, match="which nothing pays for"):
        MarginalGenerator(lenient=True)
    # Where the recipe itself is judged, it does what it does.
    with pytest.raises(InvalidInput, match="noise"):
        generator_of(loud, rows_per_record=1.0, members=few).sampling(1.0).train(few, seed=0)  # fmt: skip
    assert list(made.frame.columns) == list(few.features.columns)


@pytest.mark.parametrize(
    "made_by",
    [
        MarginalGenerator(method="adaptive", noise_multiplier=2.0, target="ill"),
        MarginalGenerator(noise_multiplier=2.0, constraints=("weight > 0",)),
        WassersteinGenerator(noise_multiplier=0.5, mode="clip", trainings=2, fall=2.0),
    ],
    ids=lambda recipe: type(recipe).__name__,
)
def test_what_a_recipe_writes_down_proves_what_it_guarantees(made_by):
    members = table_from_frame(people(400, stream(0, "written down")), target=None)
    found = parse_claimed_generator(made_by.recipe, rows_per_record=1, members=members)
    proven = found.table_guarantee(members, Terms(delta=1e-5))
    assert proven.epsilon == made_by.guarantee_on(members, Terms(delta=1e-5)).epsilon


def test_a_critic_of_another_kind_is_no_mode():
    with pytest.raises(InvalidInput, match="the mode of the critic is a dict"):
        WassersteinGenerator(mode={})
