"""An interrupted fit goes on with the answers that it has: no noise is drawn twice for one question."""

import numpy as np
import pandas as pd
import pytest

from reticent.account import Budget as Target
from reticent.account import Relation
from reticent.data import table_from_frame
from reticent.run import Run, Store
from reticent.train import MarginalGenerator
from reticent.train.marginals import plausible
from reticent.train.marginals.noise import Noise


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 600).astype(float)
    frame = pd.DataFrame(
        {
            "age": age,
            "city": rng.choice(["Bonn", "Ulm"], 600),
            "ill": rng.random(600) < age / 120,
        }
    )
    return table_from_frame(frame, target=None)


class Mortal:
    """Counts the draws of secret noise, and ends the process's work after some of them."""

    def __init__(self, patch, dies_after=None):
        self.drawn, self.dies_after = [], dies_after
        on_counts, choose = Noise.on_counts, Noise.choose

        def counts(noise, exact, deviation):
            return self._noted(on_counts(noise, exact, deviation))

        def choice(noise, scores, epsilon):
            return self._noted(choose(noise, scores, epsilon))

        patch.setattr(Noise, "on_counts", counts)
        patch.setattr(Noise, "choose", choice)

    def _noted(self, answer):
        if self.dies_after is not None and len(self.drawn) >= self.dies_after:
            raise KeyboardInterrupt
        self.drawn.append(answer)
        return answer


def generator(method):
    recipe = MarginalGenerator(method=method, target="ill", noise_multiplier=1.5)
    assert recipe.noise == "secret"
    return recipe


@pytest.mark.parametrize("method", ["tree", "adaptive"])
def test_no_answer_is_drawn_twice_whenever_the_fit_dies(method, table, tmp_path):
    """Killed after every number of answers: what was drawn before and after together is one answer to each question."""
    # Two looks at age, three histograms, two choices and two pairs.
    steps = {"tree": 2 + 3 + 2 * 2, "adaptive": None}[method]
    killed_after = (0, 3, 6, 8)
    for after in killed_after:
        run = Run(seed=1, store=Store(folder=tmp_path / f"{method}{after}"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plausible, "MOST_STEPS", 5)
            first = Mortal(patch, dies_after=after)
            with pytest.raises(KeyboardInterrupt):
                generator(method).fit(table, run=run)
            assert len(first.drawn) == after
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plausible, "MOST_STEPS", 5)
            second = Mortal(patch)
            made, _ = generator(method).fit(table, run=run).sample(seed=1)
        if steps is not None:
            assert len(first.drawn) + len(second.drawn) == steps
        # Once more from what was kept: nothing at all is drawn, and the same rows come out.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plausible, "MOST_STEPS", 5)
            third = Mortal(patch)
            again, _ = generator(method).fit(table, run=run).sample(seed=1)
        assert third.drawn == []
        assert made.equals(again)


def test_without_a_store_the_noise_is_other_noise(table):
    """The twin: if answers were not kept, the second fit would answer the same questions with noise of its own."""
    made = [generator("tree").fit(table, run=Run(seed=1)).single for _ in range(2)]
    # With other noise a column may even be cut into another number of cells.
    assert not all(map(np.array_equal, made[0].raw, made[1].raw))


def test_other_records_other_noise_other_questions_find_nothing(table, tmp_path):
    """Answers belong to table, recipe, seed and all answers before them."""
    run = Run(seed=1, store=Store(folder=tmp_path / "kept"))
    generator("tree").fit(table, run=run)
    kept = len(list((tmp_path / "kept").glob("*.stage")))
    one_less = table.take(np.arange(599))
    louder = MarginalGenerator(method="tree", target="ill", noise_multiplier=2.0)
    for recipe, records, seed in (
        (generator("tree"), one_less, 1),
        (louder, table, 1),
        (generator("tree"), table, 2),
    ):
        with pytest.MonkeyPatch.context() as patch:
            mortal = Mortal(patch)
            recipe.fit(records, run=Run(seed=seed, store=run.store))
        assert len(mortal.drawn) == kept
    # Rows and constraints ask the records nothing, so that other ones of them spend nothing.
    cheaper = MarginalGenerator(
        method="tree", target="ill", noise_multiplier=1.5, rows=50, constraints=("age >= 20",),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        mortal = Mortal(patch)
        made, _ = cheaper.fit(table, run=run).sample(seed=1)
    assert mortal.drawn == []
    assert len(made) == 50
    assert (made["age"].dropna() >= 20).all()


def test_two_fits_at_the_same_time_are_never_mixed(table, tmp_path):
    """Another process replaced the first answer: the answers that followed the old one are not used with the new one."""
    store = Store(folder=tmp_path / "kept")
    run = Run(seed=1, store=store)
    generator("tree").fit(table, run=run)
    first = next(iter((tmp_path / "kept").glob("noisy_answers-0-*.stage")))
    kept = len(list((tmp_path / "kept").glob("*.stage")))
    first.unlink()
    with pytest.MonkeyPatch.context() as patch:
        mortal = Mortal(patch)
        generator("tree").fit(table, run=run)
    assert len(mortal.drawn) == kept


def test_what_is_kept_holds_no_exact_count(table, tmp_path):
    """The counts of two cities, 600 in all, stand in no file, neither does the state of the noise."""
    store = Store(folder=tmp_path / "kept")
    recipe = MarginalGenerator(method="tree").keeping(
        Target(epsilon=1.0, delta=1e-5), table, delta=1e-5, relation=Relation.ADD_REMOVE
    )
    recipe.fit(table, run=Run(seed=1, store=store))
    counts = np.unique(table.features["city"], return_counts=True)[1]
    exact = [values.astype(kind).tobytes() for values in (counts,) for kind in (np.float64, np.int64)]  # fmt: skip
    for file in (tmp_path / "kept").glob("*.stage"):
        content = file.read_bytes()
        assert not any(pattern in content for pattern in exact)
