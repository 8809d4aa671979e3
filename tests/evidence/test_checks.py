"""Checks of a watched training: each stops a correct one as seldom as it says, and finds what it is there for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reticent.errors import InvalidInput
from reticent.evidence import Check, Sampling, check_training, stated_fact
from reticent.evidence.checks import failed
from reticent.pool import Noise, kept_places
from reticent.run import stream

ALARM = 1e-6
RUNS, STEPS, SIZES, ROWS, RATE = 2, 20, (40, 8, 15, 3), 150, 0.2


def noise_of(values, rng, sizes=SIZES, **changes):
    """Return what is kept of noise (R, T, P) over its stated deviation, with batches drawn as stated."""
    runs, steps, size = values.shape
    tensor, place = kept_places(sizes, 1024)
    parts = np.split(values, np.cumsum(sizes)[:-1], 2)
    ways = rng.standard_normal((2, size))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    given = {
        "names": tuple(f"tensor {number + 1}" for number in range(len(sizes))),
        "sizes": np.array(sizes),
        "squares": np.stack([np.square(part).sum(2) for part in parts], 2),
        "kept": values[:, :, np.cumsum([0, *sizes[:-1]])[tensor] + place].astype(
            np.float32
        ),
        "tensor": tensor,
        "place": place,
        "rounding": np.full(runs, 1e-6),
        "along_sum": values @ ways[0],
        "along_record": values @ ways[1],
        "reach": np.ones((runs, steps)),
        "records": rng.binomial(ROWS, RATE, (runs, steps)),
        "taken": rng.random((runs, steps)) < RATE,
        "rows": np.full(runs, ROWS),
    }
    return Noise(**{**given, **changes})


def drawn(rng, runs=RUNS, steps=STEPS, sizes=SIZES):
    return rng.standard_normal((runs, steps, sum(sizes)))


def checked(noise, rng, error=ALARM, taken=None):
    if taken is not None:
        noise = replace(noise, taken=taken)
    sampling = Sampling(rate=RATE, taken=noise.taken)
    found = check_training([noise], sampling=sampling, error=error)
    return {check.name: check for check in found}


def test_a_correct_training_is_stopped_as_seldom_as_stated(seed):
    """200 correct trainings, a chance of one half in all: no check stops more of them than its share allows; the false alarm of all together is 1e-6.

    The twin does not pay for the steps among which it chooses the one with the least noise.
    """
    rng, audits, error = stream(seed, "correct"), 200, 0.5
    stopped, careless, any_stopped = {}, 0, 0
    for _ in range(audits):
        noise = noise_of(drawn(rng), rng)
        checks = checked(noise, rng, error)
        for name, check in checks.items():
            stopped[name] = stopped.get(name, 0) + (not check.passed)
        any_stopped += bool(failed(list(checks.values())))
        careless += checks["noise by step"].p_value / (RUNS * STEPS) < checks["noise by step"].alarm  # fmt: skip
    shares = {name: check.alarm for name, check in checks.items()}
    assert sum(shares.values()) == pytest.approx(error)
    assert stopped.pop("share") == 0  # it rests on no chance
    for name, count in stopped.items():
        most = stats.binom.ppf(1 - ALARM / (len(shares) + 1), audits, shares[name])
        assert count <= most, name
    assert any_stopped <= stats.binom.ppf(1 - ALARM / 17, audits, error)
    assert careless > stats.binom.ppf(1 - ALARM, audits, shares["noise by step"])


# Tensors of trainings that learned other columns: the first of them has fewer numbers, or more.
LAYOUTS = ((40, 8, 15, 3), (45, 8, 15, 3), (20, 8, 15, 3))


def chunks(rng, *, runs=RUNS):
    """Return the noise of five chunks of trainings, of which two have the same sizes as an earlier one."""
    return [
        noise_of(drawn(rng, runs, sizes=sizes), rng, sizes)
        for sizes in (LAYOUTS[0], LAYOUTS[1], LAYOUTS[0], LAYOUTS[2], LAYOUTS[1])
    ]


def stops(parts, error=ALARM):
    taken = np.concatenate([part.taken for part in parts])
    sampling = Sampling(rate=RATE, taken=taken)
    found = check_training(Noise.join(parts), sampling=sampling, error=error)
    return {check.name for check in failed(found)}


def test_trainings_of_other_sizes_are_joined_by_what_they_are(seed):
    """Every run keeps its own sizes, steps and numbers, and runs of one size stand together."""
    rng = stream(seed, "sizes")
    parts = chunks(rng)
    joined = Noise.join(parts)
    assert [part.runs for part in joined] == [2 * RUNS, 2 * RUNS, RUNS]
    assert [tuple(part.sizes) for part in joined] == list(LAYOUTS)
    for one, two in zip(joined, ((0, 2), (1, 4), (3,)), strict=True):
        for name in ("squares", "kept", "taken", "along_record", "rows"):
            expected = np.concatenate([getattr(parts[k], name) for k in two])
            assert np.array_equal(getattr(one, name), expected), name
    # In units of what each part has of numbers, deviations are 1 within six standard errors.
    for part in joined:
        count = part.runs * part.steps * part.size
        assert abs(part.squares.sum() / count - 1) < 6 * np.sqrt(2 / count)


def test_correct_trainings_of_other_sizes_are_stopped_as_seldom_as_stated(seed):
    """200 audits of five chunks, a chance of one half in all: false alarm 1e-6; the twin takes the first chunk's sizes for all, and stops more."""
    rng, audits, error = stream(seed, "other sizes"), 200, 0.5
    stopped = careless = 0
    for _ in range(audits):
        parts = chunks(rng, runs=1)
        stopped += bool(stops(parts, error))
        mistaken = [
            replace(part, sizes=parts[0].sizes, kept=part.kept[:, :, :46],
                    tensor=part.tensor[:46], place=part.place[:46])
            for part in parts
        ]  # fmt: skip
        careless += "even noise" in stops(mistaken, error)
    assert stopped <= stats.binom.ppf(1 - ALARM, audits, error)
    assert careless > stats.binom.ppf(1 - ALARM, audits, error)


def test_noise_that_is_wrong_in_the_runs_of_one_size_is_found(seed):
    """Flaws of one part of three by its own check, and one that each part shows too little of by itself; power above 1 - 1e-6, false alarm 1e-6."""
    rng = stream(seed, "one size")
    assert not stops(chunks(rng))
    for name in ("noise", "even noise", "tails", "lags", "repeats", "tensors"):
        parts = chunks(rng)
        parts[3] = noise_of(planted(rng)[name][..., 20:], rng, LAYOUTS[2])
        if name == "tensors":
            shared = drawn(rng, sizes=LAYOUTS[2])
            shared[:, :, 20:28] = shared[:, :, :8]
            parts[3] = noise_of(shared, rng, LAYOUTS[2])
        assert name in stops(parts), name
    moved = chunks(rng)
    moved[3] = replace(moved[3], along_sum=moved[3].along_sum + 2)
    assert "noise along the sum" in stops(moved)
    # Two hundredths too little in 150 runs of 150 sizes: by itself the first is stopped once in 100,000 times.
    sizes = [(20 + k, 8, 15, 3) for k in range(150)]
    quiet = [noise_of(0.98 * drawn(rng, 1, sizes=each), rng, each) for each in sizes]
    assert "noise" in stops(quiet)
    assert not stops(quiet[:1])


def test_few_steps_and_few_numbers_are_no_reason_to_stop(seed):
    """One step, one number, one tensor: what cannot be told is not told; false alarm 1e-6 each."""
    rng = stream(seed, "few")
    for runs, steps, sizes in ((1, 1, (1,)), (1, 1, (3, 1)), (1, 2, (1, 1)), (3, 1, (4,)), (1, 40, (1,))):  # fmt: skip
        noise = noise_of(drawn(rng, runs, steps, sizes), rng, sizes)
        assert not failed(list(checked(noise, rng).values())), (runs, steps, sizes)


def at(values, where, factor):
    changed = values.copy()
    changed[where] *= factor
    return changed


def planted(rng):
    """Return noise with one flaw each, by the check that must find it; the power of each is above 1 - 1e-6."""
    z = drawn(rng)
    tensor = slice(63, 66)  # the last one, of three numbers
    reused = z.copy()
    reused[0, 12] = z[0, 3]
    permuted = z.copy()
    permuted[1, 5] = -rng.permutation(z[1, 4])
    carried = z.copy()
    for step in range(1, STEPS):
        carried[:, step] = 0.5 * carried[:, step - 1] + np.sqrt(0.75) * z[:, step]
    shared = z.copy()
    shared[:, :, 40:48] = 0.8 * z[:, :, :8] + 0.6 * z[:, :, 40:48]
    common = np.sqrt(0.7) * z + np.sqrt(0.3) * z[:, :, :1]
    return {
        "noise": 0.8 * z,
        "noise by tensor": at(z, np.s_[:, :, tensor], 0.2),
        "noise by step": at(z, np.s_[1, 7], 0.2),
        "noise by tensor and step": at(z, np.s_[0, 3, tensor], 1e-6),
        "noise by number": at(z, np.s_[:, :, 50], 0.1),
        "even noise": at(z, np.s_[:, ::2], 1.8),
        "law": rng.uniform(-np.sqrt(3), np.sqrt(3), (8, *z.shape[1:])),
        "tails": np.clip(z, -2, 2),
        "equal values": permuted,
        "repeats": reused,
        "lags": carried,
        "directions": common,
        "tensors": shared,
    }


@pytest.mark.parametrize("name", sorted(planted(np.random.default_rng(0))))
def test_what_is_planted_in_the_noise_is_found(name, seed):
    """At an error of 1e-6 in all, the check for it finds each flaw, in 20 of 20 trainings; without the flaw none stops."""
    rng = stream(seed, name)
    for _ in range(20):
        check = checked(noise_of(planted(rng)[name], rng), rng)[name]
        assert not check.passed, check
        assert check.alarm == pytest.approx(ALARM / 16)
        assert 0 < len(check.found) < 200


def test_noise_that_follows_the_sum_or_the_record_is_found(seed):
    rng = stream(seed, "follows")
    noise = noise_of(drawn(rng), rng)
    along = noise.along_sum + 2.0
    assert not checked(replace(noise, along_sum=along), rng)["noise along the sum"].passed  # fmt: skip
    # Less noise along the record than elsewhere, or a part of it that is released beside its share.
    name = "noise along the record"
    less = replace(noise, along_record=0.2 * noise.along_record)
    assert not checked(less, rng)[name].passed
    taken = np.zeros((RUNS, STEPS), dtype=bool)
    taken[:, ::4] = True
    beside = replace(noise, along_record=noise.along_record + 4 * taken)
    assert not checked(beside, rng, taken=taken)[name].passed
    nothing = replace(noise, along_record=np.full((RUNS, STEPS), np.nan))
    assert checked(nothing, rng)[name].passed


def test_a_share_beyond_its_bound_stops_whatever_the_error(seed):
    rng = stream(seed, "share")
    noise = noise_of(drawn(rng), rng)
    rounded = np.full((RUNS, STEPS), 1 + 5e-4)
    assert checked(replace(noise, reach=rounded), rng)["share"].passed
    beyond = noise.reach.copy()
    beyond[1, 3] = 1.01
    check = checked(replace(noise, reach=beyond), rng, error=1e-12)["share"]
    assert not check.passed
    assert "1.01 times the bound (step 4)" in check.found


def test_batches_that_are_not_poisson_samples_are_found(seed):
    """Equal batches, a record that takes part once in every epoch, and a rate that is too high; 30 epochs each."""
    rng = stream(seed, "sampling")
    runs, steps = 1, 150
    z = drawn(rng, runs, steps)
    honest = rng.random((runs, steps)) < RATE
    assert checked(noise_of(z, rng), rng, taken=honest)["sampling"].passed
    equal = noise_of(z, rng, records=np.full((runs, steps), 30))
    assert not checked(equal, rng, taken=honest)["sampling"].passed
    once = np.tile([False, False, True, False, False], (runs, steps // 5))
    assert not checked(noise_of(z, rng), rng, taken=once)["sampling"].passed
    often = rng.random((runs, steps)) < 0.5
    assert not checked(noise_of(z, rng), rng, taken=often)["sampling"].passed
    more = noise_of(z, rng, records=rng.binomial(ROWS, 0.3, (runs, steps)))
    assert not checked(more, rng, taken=honest)["sampling"].passed


def test_full_batches_and_shuffled_ones_are_not_asked_for_their_sampling(seed):
    rng = stream(seed, "full")
    noise, taken = noise_of(drawn(rng), rng), np.ones((RUNS, STEPS), dtype=bool)
    for sampling in (None, Sampling(rate=1.0, taken=taken)):
        found = check_training([noise], sampling=sampling, error=ALARM)
        assert "sampling" not in {check.name for check in found}
        assert sum(check.alarm for check in found) == pytest.approx(ALARM)


def test_our_own_generators_of_noise_pass(seed):
    """What our private training adds, from system entropy and from a seed: 60 releases of 66 numbers; false alarm 1e-6 each.

    The twin adds the noise of every release twice, in two releases.
    """
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    from reticent.train.private.randomness import SecretRandomness, SeededRandomness
    from reticent.train.private.sums import Sum

    rng, shapes = stream(seed, "own"), ((1, 8, 5), (1, 8, 1), (1, 3, 5), (1, 3, 1))
    for randomness in (SecretRandomness(), SeededRandomness([seed])):
        releases = []
        for _ in range(60):
            sums = [Sum(whole=torch.zeros(shape)) for shape in shapes]
            parts = randomness.release(sums, bound=0.5, noise_multiplier=2.0)
            releases.append(np.concatenate([p.numpy().ravel() for p in parts]))
        z = np.array(releases, dtype=np.float64)[None]
        assert not failed(list(checked(noise_of(z, rng), rng).values()))
        twice = np.repeat(z[:, ::2], 2, axis=1)
        assert not checked(noise_of(twice, rng), rng)["repeats"].passed


def test_facts_and_errors():
    fact = stated_fact("steps", "all steps are counted", "9 of 10", true=False)
    assert not fact.passed
    assert stated_fact("steps", "all steps are counted", "10 of 10", true=True).passed
    edge = Check(name="a", asked="b", found="c", p_value=0.01, alarm=0.01)
    assert edge.passed
    assert not replace(edge, p_value=0.0099).passed
    rng = np.random.default_rng(0)
    noise = noise_of(drawn(rng), rng)
    with pytest.raises(InvalidInput, match="error"):
        checked(noise, rng, error=0.0)
    other = noise_of(drawn(rng, sizes=(66,)), rng, (66,))
    with pytest.raises(InvalidInput, match="do not have the same tensors"):
        Noise.join([noise, other])
    (joined,) = Noise.join([noise, noise])
    assert joined.runs == 2 * RUNS
