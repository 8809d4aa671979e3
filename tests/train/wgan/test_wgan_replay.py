"""Every query of a training on neighbouring tables, replayed: no record moves a sum further than its noise pays for, and planted flaws are seen."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from reticent.account import Gaussian
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.run import stream
from reticent.train.marginals.noise import Noise
from reticent.train.wgan import modes, recipe, training
from reticent.train.wgan.critics import critic_of
from reticent.train.wgan.modes import ClipMode, LipschitzMode, TanhMode, ThesisMode
from reticent.train.wgan.noise import Source
from reticent.train.wgan.regions import Region
from reticent.train.wgan.shapes import Allotment

FALSE_ALARM = 1e-6
RATE, STEPS = 0.5, 8
EXACT = 1e-9
DOMAIN = '[numbers]\nage = [0, 120]\ncost = [0, 500]\n[categories]\ncity = ["Bonn", "Köln", "Ulm"]\n'


class Counts(Noise):
    """Notes exact counts and answers with those of a script, so that neighbouring tables get the same answers."""

    def __init__(self, script):
        super().__init__(np.random.default_rng(0))
        self.__dict__.update(script=script, exact=[])

    def on_counts(self, counts, deviation):
        self.exact.append((np.array(counts), deviation))
        if len(self.exact) > len(self.script):
            self.script.append(super().on_counts(counts, deviation))
        return self.script[len(self.exact) - 1]


class Replayed(Source):
    """Notes exact sums and answers with those of a script; who takes part does not depend on who else is there."""

    def __init__(self, script, rng_seed):
        super().__init__(np.random.default_rng(rng_seed))
        self.__dict__.update(script=script, exact=[], seed=rng_seed)

    def sample(self, records, rate):
        lots = np.random.default_rng([self.seed, len(self.exact)]).random(10_000)
        return np.flatnonzero(lots[:records] < rate)

    def pairs(self, records, fakes):
        lots = np.random.default_rng([self.seed, len(self.exact), 1])
        # The last record is the one that differs, so the pairs of all others stay.
        return lots.integers(fakes, size=10_000)[:records], lots.random(10_000)[:records]  # fmt: skip

    def release(self, sums, allotment):
        self.exact.append((sums, allotment))
        if len(self.exact) > len(self.script):
            self.script.append(super().release(sums, allotment))
        return self.script[len(self.exact) - 1]


def people(rng, n):
    age = rng.integers(18, 90, n).astype(float)
    cost = np.round(np.exp(rng.normal(3, 1, n)), 2)
    city = rng.choice(["Bonn", "Köln", "Ulm"], n, p=[0.5, 0.3, 0.2])
    ill = (rng.random(n) < age / 120).astype(float)
    age[rng.random(n) < 0.2] = np.nan
    return pd.DataFrame({"age": age, "cost": cost, "city": city, "ill": ill})


EXTREME = {"age": 120.0, "cost": 500.0, "city": "Ulm", "ill": 1.0}


@pytest.fixture
def declared(tmp_path):
    file = tmp_path / "domain.toml"
    file.write_text(DOMAIN, encoding="utf-8")
    return str(file)


class Run:
    """One training of a recipe whose answers follow a script."""

    def __init__(self, generator, frame, monkeypatch, scripts):
        self.counts = Counts(scripts[0])
        self.sums = Replayed(scripts[1], 5)
        monkeypatch.setattr(Noise, "seeded", classmethod(lambda cls, seed: self.counts))
        monkeypatch.setattr(Source, "seeded", classmethod(lambda cls, seed: self.sums))
        generator.train(table_from_frame(frame, target=None), seed=3)


def whitened(one, other):
    """Return how far two sums lie apart in units of the deviation of their noise."""
    squares = 0.0
    for a, b, deviation in zip(one[0], other[0], one[1].deviations, strict=True):
        squares += float(np.square((a - b) / deviation).sum())
    return math.sqrt(squares)


def replayed(mode, declared, monkeypatch, seed, *, swap=False, rate=2e-3):
    """Return the largest share of the paid distance that a record moved any sum of a training by, over several neighbours."""
    rng = stream(seed, "replay of a critic")
    frame = people(rng, 150)
    frame.iloc[-1] = pd.Series(EXTREME)
    generator = recipe.WassersteinGenerator(
        mode=mode, steps=STEPS, sampling_rate=RATE, noise_multiplier=0.1, domain=declared, rows=50, noise="seeded",
    )  # fmt: skip
    settings = training.Settings(critic=(16, 8), generator=(8,), fakes=32, critic_rate=rate)  # fmt: skip
    monkeypatch.setattr(recipe, "Settings", lambda: settings)
    scripts = ([], [])
    whole = Run(generator, frame, monkeypatch, scripts)
    others = [frame.iloc[:-1]]
    if swap:
        changed = frame.copy()
        changed.iloc[-1] = pd.Series({"age": np.nan, "cost": 0.0, "city": "Bonn", "ill": 0.0})  # fmt: skip
        others = [changed]
    ((noise, _),) = generator.budget(table_from_frame(frame, target=None)).phases
    shares = []
    for other in others:
        run = Run(generator, other.reset_index(drop=True), monkeypatch, scripts)
        assert len(run.sums.exact) == len(whole.sums.exact) == STEPS
        for (a, _), (b, _) in zip(whole.counts.exact, run.counts.exact, strict=True):
            assert np.abs(a - b).sum() == (2 if swap and (a != b).any() else 0 if swap else 1)  # fmt: skip
        for one, two in zip(whole.sums.exact, run.sums.exact, strict=True):
            # The noise depends on nothing but what both tables answered before.
            for p, q in zip(one[1].deviations, two[1].deviations, strict=True):
                assert (p == q).all()
            shares.append(whitened(one, two) * noise)
    return np.array(shares)


MODES = {
    "lipschitz": LipschitzMode(),
    "lipschitz, spherical": LipschitzMode(shape="spherical"),
    "thesis": ThesisMode(),
    "thesis, its noise": ThesisMode(shape="thesis"),
    "thesis, spherical": ThesisMode(shape="spherical"),
    "thesis, penalty at data": ThesisMode(penalty_at="data", shape="layers"),
    "clip": ClipMode(),
    "tanh": TanhMode(),
}


@pytest.mark.parametrize("name", MODES)
def test_no_record_moves_a_sum_further_than_is_paid_for(
    name, declared, seed, monkeypatch
):
    shares = replayed(MODES[name], declared, monkeypatch, seed)
    assert shares.max() <= 1
    assert shares.max() > 1e-3  # the record took part
    assert (shares == 0).sum() < STEPS


@pytest.mark.parametrize("name", ["lipschitz", "thesis"])
def test_replacing_a_record_moves_a_sum_by_twice_that_at_most(
    name, declared, seed, monkeypatch
):
    assert replayed(MODES[name], declared, monkeypatch, seed, swap=True).max() <= 2


def test_the_bound_of_a_lipschitz_critic_is_nearly_reached_and_its_guard_never_fires(
    declared, seed, monkeypatch
):
    least = []
    honest = modes._scales

    def watched(squares, bound):
        scales = honest(squares, bound)
        least.append(scales.min(initial=1.0))
        return scales

    monkeypatch.setattr(modes, "_scales", watched)
    shares = replayed(LipschitzMode(), declared, monkeypatch, seed)
    assert min(least) == 1.0
    assert shares.max() > 0.3


def test_a_bound_from_other_weights_is_seen(declared, seed, monkeypatch):
    """Planted: bounds of the first critic for all steps, while weights grow; and, for the critic whose weights do not grow, of half its weights."""
    honest, first = modes.bounds_of, []

    def stale(critic, region):
        first.append(critic)
        return honest(first[0], region)

    grows = ThesisMode(strength=0.0, shape="layers")
    assert replayed(grows, declared, monkeypatch, seed, rate=0.5).max() <= 1
    monkeypatch.setattr(modes, "bounds_of", stale)
    assert replayed(grows, declared, monkeypatch, seed, rate=0.5).max() > 1

    def halved(critic, region):
        return honest(replace(critic, weights=tuple(w / 2 for w in critic.weights)), region)  # fmt: skip

    monkeypatch.setattr(modes, "bounds_of", halved)
    # Clipping at the bound keeps even a wrong bound; without it the flaw shows.
    assert replayed(LipschitzMode(), declared, monkeypatch, seed).max() <= 1
    monkeypatch.setattr(modes, "_scales", lambda squares, bound: np.ones(len(squares)))
    assert replayed(LipschitzMode(), declared, monkeypatch, seed).max() > 1


def test_a_sum_that_is_not_centred_is_seen(declared, seed, monkeypatch):
    honest = modes.allot

    def off_centre(blocks, shape, noise):
        made = honest(blocks, shape, noise)
        return replace(made, centres=tuple(np.zeros_like(c) for c in made.centres))

    mode = ThesisMode(shape="thesis", slope=0.9)  # steep on both sides: narrow intervals far from 0  # fmt: skip
    assert replayed(mode, declared, monkeypatch, seed).max() <= 1
    monkeypatch.setattr(modes, "allot", off_centre)
    assert replayed(mode, declared, monkeypatch, seed).max() > 1


def test_a_penalty_at_data_that_is_not_paid_for_is_seen(declared, seed, monkeypatch):
    mode = ThesisMode(penalty_at="data", shape="layers", strength=1e4)
    assert replayed(mode, declared, monkeypatch, seed).max() <= 1
    monkeypatch.setattr(modes, "_wider", lambda block, reach: block)
    assert replayed(mode, declared, monkeypatch, seed).max() > 1


def test_a_tanh_filter_that_pays_for_its_height_alone_is_seen(
    declared, seed, monkeypatch
):
    """Planted: noise for a sensitivity of c, as the source accounts for its filter, where a record moves every component by up to c."""
    narrow = TanhMode(width=1e-3)  # components beyond it are as large as they can be
    assert replayed(narrow, declared, monkeypatch, seed).max() <= 1
    honest = TanhMode.query

    def cheap(self, step, records):
        query = honest(self, step, records)
        size = sum(centre.size for centre in query.allotment.centres)
        fewer = tuple(d / math.sqrt(size) for d in query.allotment.deviations)
        return replace(query, allotment=replace(query.allotment, deviations=fewer))

    monkeypatch.setattr(TanhMode, "query", cheap)
    assert replayed(narrow, declared, monkeypatch, seed).max() > 1


# --- the noise itself ---


def allotment_of(seed):
    rng = stream(seed, "allotment")
    critic = critic_of((4, 6, 1), LipschitzMode().activation, rng)
    centres = tuple(np.zeros_like(p) for p in critic.parameters)
    reaches = (np.array(1.0), np.full((1, 6), 0.5), np.array(0.2))
    deviations = (np.array(3.0), np.linspace(0.5, 2, 6)[None, :], np.array(0.7))
    return Allotment(centres=centres, reaches=reaches, deviations=deviations)


class Forgetful(Source):
    """Planted: the last block goes out without noise."""

    def release(self, sums, allotment):
        return (*super().release(sums, allotment)[:-1], sums[-1])


@pytest.mark.parametrize(("kind", "right"), [(Source, True), (Forgetful, False)])
def test_every_block_carries_its_noise(kind, right, seed):
    allotment = allotment_of(seed)
    source, runs = kind(stream(seed, "law")), 400
    squares = [np.zeros(c.shape) for c in allotment.centres]
    for _ in range(runs):
        noisy = source.release(allotment.centres, allotment)
        for place, (part, s) in enumerate(zip(noisy, allotment.deviations, strict=True)):  # fmt: skip
            squares[place] += (part / s) ** 2
    fits = []
    for total in squares:
        n = runs * total.size
        low, high = chi2.ppf([FALSE_ALARM / 12, 1 - FALSE_ALARM / 12], n)
        fits.append(low < total.sum() < high)
        # The twin: noise of a fifth less is told apart where there are enough draws.
        assert n < 2_000 or not low < 0.64 * n < high
    assert all(fits) == right


def test_a_critic_that_drifted_is_refused(seed):
    rng = stream(seed, "drift")
    critic = critic_of((3, 4, 1), ClipMode().activation, rng)
    huge = tuple(1e9 * np.ones_like(p) for p in critic.parameters)
    step = modes.Step(critic=critic, region=Region.cube(3), fakes=rng.random((4, 3)), fake_mean=huge, noise=1.0, source=Source.secret())  # fmt: skip
    with pytest.raises(InvalidInput, match="clipping bound"):
        ClipMode().query(step, rng.random((5, 3)))


def test_releases_lie_on_a_public_grid(seed):
    allotment = allotment_of(seed)
    rng = stream(seed, "grid")
    sums = tuple(rng.standard_normal(c.shape) for c in allotment.centres)
    for part, reach in zip(Source.secret().release(sums, allotment), allotment.reaches, strict=True):  # fmt: skip
        spread = math.sqrt(part.size) if reach.ndim == 0 else 1.0
        grid = 2.0 ** np.floor(np.log2(1e-5 * reach / spread))
        assert (part / grid == np.rint(part / grid)).all()


def test_each_record_takes_part_by_itself(seed):
    source, n, rate, runs = Source(stream(seed, "sampling")), 40, 0.3, 3_000
    taken = np.zeros((runs, n))
    for run in range(runs):
        rows = source.sample(n, rate)
        assert len(np.unique(rows)) == len(rows)
        taken[run, rows] = 1
    limit = norm.isf(FALSE_ALARM / (4 * n))
    z = (taken.sum(axis=0) - runs * rate) / math.sqrt(runs * rate * (1 - rate))
    assert np.abs(z).max() < limit
    # The number of records varies as that of independent draws; a fixed number, as shuffled batches have, does not.
    sizes = taken.sum(axis=1)
    spread = (runs - 1) * sizes.var(ddof=1) / (n * rate * (1 - rate))
    low, high = chi2.ppf([FALSE_ALARM / 4, 1 - FALSE_ALARM / 4], runs - 1)
    # The law of a binomial variance is within a few per cent of chi-squared; widened by that.
    assert 0.95 * low < spread < 1.05 * high
    assert not 0.95 * low < 0.0 < 1.05 * high


@pytest.mark.parametrize(("share", "refuted"), [(1.0, False), (0.5, True)])
def test_one_step_is_as_private_as_stated_and_half_its_noise_is_not(
    share, refuted, seed
):
    """The worst pair of sums: an attacker who knows everything else gains what a Gaussian mechanism allows, and no more."""
    allotment = allotment_of(seed)
    less = replace(allotment, deviations=tuple(share * s for s in allotment.deviations))
    source, runs = Source(stream(seed, "attack")), 3_000
    worst = [np.zeros_like(c) for c in allotment.centres]
    for block, reach in zip(worst, allotment.reaches, strict=True):
        block[...] = reach if reach.ndim else 0.0
        if not reach.ndim:
            block.flat[0] = reach
    direction = [b / s**2 for b, s in zip(worst, allotment.deviations, strict=True)]
    seen = [
        np.array([sum(float((d * part).sum()) for d, part in zip(direction, source.release(sums, less), strict=True)) for _ in range(runs)])
        for sums in (allotment.centres, tuple(worst))
    ]  # fmt: skip
    proven = 2 * norm.cdf(allotment.mu / 2) - 1
    assert math.isclose(Gaussian(noise_multiplier=1 / allotment.mu).mu, allotment.mu)
    cut = np.median(np.concatenate(seen))
    gain = (seen[1] > cut).mean() - (seen[0] > cut).mean()
    # Hoeffding's inequality for both samples, a tenth of a per cent for the margin of the reaches.
    slack = 2 * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * runs))
    assert (gain - slack > proven * 1.001) == refuted
    assert gain > proven - slack
