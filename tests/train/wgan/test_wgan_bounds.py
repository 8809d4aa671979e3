"""Bounds on the gradient of a critic hold under search, and every slip of the source is told apart from what is right."""

import math

import numpy as np
import pytest

from reticent.account import Gaussian, trade_off
from reticent.run import stream
from reticent.train.wgan.activations import LeakyReLU, MaxMin
from reticent.train.wgan.bounds import Block, blocks_of, bounds_of
from reticent.train.wgan.comparisons import box_only, printed_bounds
from reticent.train.wgan.critics import Critic, critic_of, values_and_factors
from reticent.train.wgan.penalty import (
    frobenius_penalty_bounds,
    penalty_factors,
    penalty_of,
    spectral_penalty_bounds,
)
from reticent.train.wgan.regions import Region
from reticent.train.wgan.shapes import MARGIN, SHAPES, allot
from reticent.train.wgan.spectral import projected, spectral_norm

CENTRED = Region(low=np.full(5, -0.5), high=np.full(5, 0.5), centre=np.zeros(5), radius=math.sqrt(5) / 2)  # fmt: skip
EXACT = 1e-9  # rounding of double precision, many times over


def trained(critic, rng, size=0.6):
    """Return a critic whose weights have left their initial law, biases included."""
    return critic.with_parameters(
        [p + size * rng.standard_normal(p.shape) / math.sqrt(p.shape[-1]) for p in critic.parameters]
    )  # fmt: skip


def critics(rng):
    for widths, activation in (
        ((5, 8, 6, 1), LeakyReLU(0.2)),
        ((5, 6, 8, 6, 1), LeakyReLU(0.0)),
        ((5, 8, 6, 1), MaxMin()),
        ((5, 16, 1), MaxMin()),
    ):
        critic = critic_of(widths, activation, rng)
        yield critic
        yield trained(critic, rng)


def values_at(critic, x):
    return values_and_factors(critic, x)[0]


def gradients(critic, x):
    """Return the gradient of every record, one flat row each: all weights, then all biases."""
    _, f = values_and_factors(critic, x)
    return flat(f, with_biases=True)


def flat(factors, *, with_biases):
    matrices = [
        (g[:, :, None] * x[:, None, :]).reshape(len(g), -1)
        for g, x in zip(factors.gradients, factors.inputs, strict=True)
    ]
    vectors = [g if with_biases else np.zeros_like(g) for g in factors.gradients[:-1]]
    return np.concatenate([*matrices, *vectors], axis=1)


def numerical(critic, function, step=1e-6):
    """Return the gradient of a function of a critic with respect to all parameters, by central differences."""
    slopes = []
    for place, block in enumerate(critic.parameters):
        for index in np.ndindex(block.shape):
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in critic.parameters]
                moved[place][index] += sign * step
                ends.append(function(critic.with_parameters(moved)))
            slopes.append((ends[0] - ends[1]) / (2 * step))
    return np.array(slopes)


def places(rng, region, *, count=400, data=None):
    """Return random points, corners, skewed points, and data, all in the region."""
    d = len(region.low)
    shares = np.concatenate(
        [
            rng.random((count, d)),
            rng.integers(0, 2, (count, d)),
            rng.random((count, d)) ** 8,
            np.zeros((1, d)) if data is None else data,
        ]
    )
    return region.low + shares * (region.high - region.low)


def climbed(rng, region, goal, start, rounds=40):
    """Return points at which a goal is as large as ascent finds it: by coordinates to the ends, then by small random steps."""
    best, value = start.copy(), goal(start)
    for turn in range(rounds):
        other = best.copy()
        if turn % 2:
            other += 0.1 * rng.standard_normal(best.shape)
        else:
            j = rng.integers(best.shape[1])
            other[:, j] = np.where(rng.random(len(best)) < 0.5, region.low[j], region.high[j])  # fmt: skip
        other = np.clip(other, region.low, region.high)
        reached = goal(other)
        best[reached > value], value = other[reached > value], np.maximum(value, reached)  # fmt: skip
    return best


def smooth_place(critic, rng):
    """Return a point that is far from every kink, where differences say what the gradient is."""
    x = rng.uniform(-0.5, 0.5, (60, 5))
    _, f = values_and_factors(critic, x)
    gaps = [
        np.abs(z[:, 0::2] - z[:, 1::2]) if critic.activation.keeps_norms else np.abs(z)
        for z in f.sums
    ]
    return x[[np.concatenate(gaps, axis=1).min(axis=1).argmax()]]


def test_factors_are_the_gradient(seed):
    rng = stream(seed, "factors")
    slips = []
    for critic in critics(rng):
        x = smooth_place(critic, rng)
        right = numerical(critic, lambda c, x=x: values_at(c, x)[0])
        assert np.abs(gradients(critic, x)[0] - right).max() < 1e-6
        _, f = values_and_factors(critic, x)
        # The slip of (3.14): the gradient with respect to the layer's input in place of the input itself.
        wrong = np.outer(f.gradients[0][0], f.gradients[0][0] @ critic.weights[0])
        slips.append(np.abs(wrong.ravel() - right[: wrong.size]).max())
    assert np.median(slips) > 1e-3  # where units are dead, both are 0


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_leaky_relu_is_its_equation(slope, seed):
    rng = stream(seed, "activation")
    sums, gradient = rng.standard_normal((2, 50, 8))
    sums[0] = 0.0  # where the derivative is the slope, (3.5)
    leaky = LeakyReLU(slope)
    naive = np.where(sums > 0, sums, slope * sums)
    assert np.array_equal(leaky.apply(sums), naive)
    back = np.where(sums > 0, gradient, slope * gradient)
    assert np.array_equal(leaky.back(gradient, sums), back)
    halves = sums.astype(np.float32), gradient.astype(np.float32)
    assert leaky.apply(halves[0]).dtype == np.float32
    assert leaky.back(halves[1], halves[0]).dtype == np.float32


def penalty_value(critic, x, strength):
    _, f = values_and_factors(critic, x)
    return strength * (np.linalg.norm(f.gradients[0] @ critic.weights[0]) - 1) ** 2


def test_the_gradient_of_the_penalty_is_exact_and_leaves_biases_alone(seed):
    rng = stream(seed, "penalty")
    for critic in critics(rng):
        x = smooth_place(critic, rng)
        right = numerical(critic, lambda c, x=x: penalty_value(c, x, 10.0))
        mine = flat(penalty_factors(critic, x, 10.0), with_biases=False)[0]
        assert np.abs(mine - right).max() < 1e-4 * (1 + np.abs(right).max())
        total = np.concatenate([p.ravel() for p in penalty_of(critic, x, 10.0)])
        assert np.allclose(total, mine)


def test_sums_norms_and_products_follow_from_the_factors(seed):
    rng = stream(seed, "sums")
    critic = critic_of((5, 8, 6, 1), MaxMin(), rng)
    x, weights = rng.uniform(-0.5, 0.5, (7, 5)), rng.random(7)
    each = gradients(critic, x)
    _, f = values_and_factors(critic, x)
    total = np.concatenate([p.ravel() for p in f.total(weights)])
    assert np.allclose(total, weights @ each)
    assert np.allclose(sum(f.squared_norms()), np.square(each).sum(axis=1))
    other = [rng.standard_normal(p.shape) for p in critic.parameters]
    named = np.concatenate([p.ravel() for p in other])
    assert np.allclose(sum(f.products(other)), each @ named)


def test_no_search_leaves_the_bounds(seed):
    """Random, corner, skewed and data points, and the ends of ascents: norms, components, steepness and penalty."""
    rng = stream(seed, "search")
    for critic in critics(rng):
        bounds = bounds_of(critic, CENTRED)
        blocks = blocks_of(bounds)
        penalties = spectral_penalty_bounds(bounds, 10.0)

        def size(x, critic=critic):
            _, f = values_and_factors(critic, x)
            return sum(f.squared_norms())

        def steepness(x, critic=critic):
            _, f = values_and_factors(critic, x)
            return np.linalg.norm(f.gradients[0] @ critic.weights[0], axis=1)

        data = rng.random((50, 5)) < 0.3
        x = places(rng, CENTRED, data=data)
        ends = [climbed(rng, CENTRED, goal, x[:200]) for goal in (size, steepness)]
        x = np.concatenate([x, *ends])
        each = gradients(critic, x)
        at = 0
        for block in blocks:
            part = each[:, at : at + block.half.size]
            at += block.half.size
            off = np.abs(part - block.middle.ravel())
            assert (off <= block.half.ravel() * (1 + EXACT) + EXACT).all()
            far = np.linalg.norm(part - block.centre.ravel(), axis=1)
            assert far.max() <= block.radius * (1 + EXACT)
            # The bound is no triviality: the middle of the range alone does not cover the gradients.
            assert far.max() > 1e-3 * block.radius
        assert steepness(x).max() <= bounds.steepness
        pulled = penalty_factors(critic, x, 10.0)
        for norms, limit in zip(pulled.squared_norms(), penalties, strict=False):
            assert math.sqrt(norms.max()) <= limit * (1 + EXACT)


def test_boxes_alone_hold_too_and_are_never_narrower(seed):
    rng = stream(seed, "boxes")
    for critic in critics(rng):
        wide, both = box_only(critic, CENTRED), bounds_of(critic, CENTRED)
        for name in ("inputs", "gradients"):
            for w, b in zip(getattr(wide, name), getattr(both, name), strict=True):
                assert (w[0] <= b[0] + EXACT).all()
                assert (w[1] >= b[1] - EXACT).all()


def test_bounds_of_a_point_are_its_gradient(seed):
    rng = stream(seed, "point")
    for critic in critics(rng):
        place = rng.uniform(-0.5, 0.5, 5)
        blocks = blocks_of(bounds_of(critic, Region.point(place)))
        exact = gradients(critic, place[None, :])[0]
        middle = np.concatenate([block.middle.ravel() for block in blocks])
        half = np.concatenate([block.half.ravel() for block in blocks])
        assert np.abs(middle - exact).max() < EXACT
        assert np.abs(half).max() < EXACT


def test_the_sums_of_intervals_run_over_the_inputs(seed):
    """The slip of (3.9), (3.10), (3.21) and (3.22): with square weights the wrong index gives numbers, and they are no bounds."""
    rng = stream(seed, "index")
    critic = trained(critic_of((6, 6, 6, 1), LeakyReLU(), rng), rng)
    region = Region.cube(6)
    x = places(rng, region)
    _, f = values_and_factors(critic, x)
    first, sums = critic.weights[0], f.sums[0]

    def leaves(matrix):
        low = np.minimum(matrix, 0).sum(axis=1) + critic.biases[0]
        high = np.maximum(matrix, 0).sum(axis=1) + critic.biases[0]
        return bool(((sums < low - EXACT) | (sums > high + EXACT)).any())

    assert not leaves(first)
    assert leaves(first.T)


def test_spectral_norms_come_from_above_and_power_iteration_does_not(seed):
    rng = stream(seed, "spectral")
    for _ in range(20):
        matrix = rng.standard_normal((30, 20))
        true = math.sqrt(np.linalg.eigvalsh(matrix.T @ matrix)[-1])
        assert true <= spectral_norm(matrix) <= true * (1 + 2e-6)
        vector = rng.standard_normal(20)
        for _ in range(3):
            vector = matrix.T @ (matrix @ vector)
            vector /= np.linalg.norm(vector)
        assert np.linalg.norm(matrix @ vector) < true
        assert spectral_norm(projected(matrix)) <= 1 + 3e-6
    small = 0.5 * np.eye(3)
    assert (projected(small) == small).all()


def test_a_projected_critic_has_a_bound_close_to_what_is_reached(seed):
    rng = stream(seed, "close")
    critic = critic_of((5, 16, 8, 1), MaxMin(), rng)
    blocks = blocks_of(bounds_of(critic, CENTRED))
    bound = math.hypot(*(block.radius for block in blocks))
    centres = np.concatenate([block.centre.ravel() for block in blocks])
    reached = np.linalg.norm(gradients(critic, places(rng, CENTRED)) - centres, axis=1)
    assert bound / 1.2 < reached.max() <= bound


# --- the slips of the source (theory, section 7), each beside what is right ---


def linear(weight):
    """Return a critic without hidden layers."""
    return Critic(weights=(np.atleast_2d(weight),), biases=(), activation=LeakyReLU())


def test_value_and_penalty_add_up_linearly():
    """Algorithm 1, line 7: a record that moves both terms by their largest amounts moves their sum beyond the root of the squares."""
    critic, x = linear(np.array([0.5])), np.ones((1, 1))
    _, value = values_and_factors(critic, x)
    both = -value.total()[0] + penalty_of(critic, x, 10.0)[0]
    moves = abs(float(value.total()[0][0, 0])), abs(float(penalty_of(critic, x, 10.0)[0][0, 0]))  # fmt: skip
    assert moves == (1.0, 10.0)
    assert abs(both[0, 0]) == sum(moves) > math.hypot(*moves)
    printed = printed_bounds(critic, Region.cube(1), strength=10.0)
    assert printed.algorithm < printed.linear


def test_the_noise_of_the_algorithm_does_not_follow_its_sensitivity(seed):
    """Line 14 and the thesis's levels: noise of 2e-4 on sums that a record moves by 1 and more proves an epsilon above a million."""
    rng = stream(seed, "levels")
    critic = critic_of((12, 64, 128, 256, 1), LeakyReLU(0.2), rng)
    x = rng.random((200, 12))
    _, f = values_and_factors(critic, x)
    reached = math.sqrt(sum(f.squared_norms()).max())
    for level in (1e-7, 1e-6, 1e-5, 1e-4):
        honest = Gaussian(noise_multiplier=2 * level / reached)
        assert (
            honest.mu**2 / 2 > 1e6
        )  # of one step; epsilon exceeds mu^2 / 2 for every delta below one half
    twin = Gaussian(noise_multiplier=reached / reached)
    assert trade_off(twin).epsilon(1e-5) < 5


def test_the_penalty_is_at_the_interpolate_and_only_there_touches_data(seed):
    """Line 12: at the fake it does not depend on the record; at the interpolate it does."""
    rng = stream(seed, "interpolate")
    critic = trained(critic_of((5, 8, 6, 1), LeakyReLU(), rng), rng)
    fake, share = rng.random((200, 5)), rng.random((200, 1))
    one, other = rng.random((2, 200, 5))

    def at(record, mixed):
        place = share * record + (1 - share) * fake if mixed else fake
        return np.concatenate([p.ravel() for p in penalty_of(critic, place, 10.0)])

    assert (at(one, False) == at(other, False)).all()
    assert np.abs(at(one, True) - at(other, True)).max() > 1e-6


def test_the_bound_on_the_penalty_needs_its_factor_and_the_largest_steepness():
    """(3.27) drops 2 max(|v| - 1, 1); and the steepness at one record says nothing about another one."""
    steep = linear(np.array([3.0]))
    moved = np.linalg.norm(penalty_of(steep, np.zeros((1, 1)), 1.0)[0])
    assert moved > 1.0  # the bound of (3.27): the norm of the gradient of v
    assert moved <= spectral_penalty_bounds(bounds_of(steep, Region.cube(1)), 1.0)[0]
    # A kink at 1/2: flat on the left, steep on the right.
    kink = Critic(weights=(np.array([[4.0]]), np.array([[1.0]])), biases=(np.array([-2.0]),), activation=LeakyReLU(0.1))  # fmt: skip
    left, right = np.array([[0.1]]), np.array([[0.9]])
    _, f = values_and_factors(kink, left)
    at_left = 2 * max(1.0, float(np.abs(f.gradients[0] @ kink.weights[0])[0, 0]) - 1) * 4.0  # fmt: skip
    moved = np.linalg.norm(penalty_of(kink, right, 1.0)[1])
    assert moved > at_left  # for the last layer, the product of the other norms is 4
    assert moved <= spectral_penalty_bounds(bounds_of(kink, Region.cube(1)), 1.0)[1]


def test_the_printed_bound_on_the_penalty_is_astronomical(seed):
    critic = critic_of((12, 64, 128, 256, 1), LeakyReLU(0.2), stream(seed, "printed"))
    bounds = bounds_of(critic, Region.cube(12))
    printed = math.hypot(*frobenius_penalty_bounds(critic, 10.0))
    spectral = math.hypot(*spectral_penalty_bounds(bounds, 10.0))
    assert 3e11 < printed < 1e13
    assert spectral < 200
    said = printed_bounds(critic, Region.cube(12), strength=10.0)
    assert said.xie == 2 * said.without_fakes
    weights = sum(w.size for w in critic.weights)
    assert math.isclose(said.without_fakes / said.in_l2, math.sqrt(weights))
    blocks = blocks_of(bounds)
    hybrid = math.hypot(*(block.radius for block in blocks))
    assert hybrid < said.of_weights / 2 < said.in_l2 < said.without_fakes


def test_centring_halves_the_reach_and_without_it_the_reach_is_left(seed):
    rng = stream(seed, "centred")
    critic = critic_of((5, 8, 6, 1), LeakyReLU(), rng)
    region = Region.cube(5)
    blocks = blocks_of(bounds_of(critic, region))
    each = gradients(critic, places(rng, region))
    middle = np.concatenate([block.middle.ravel() for block in blocks])
    half = np.concatenate([block.half.ravel() for block in blocks])
    assert (np.abs(each - middle) <= half + EXACT).all()
    assert (np.abs(each) > half + EXACT).any()
    assert (np.abs(each[:, None] - each[None, :10]) <= 2 * half + EXACT).all()


# --- shapes of noise ---


def test_every_shape_has_the_same_guarantee_and_best_has_the_least_noise(seed):
    rng = stream(seed, "shapes")
    for critic in critics(rng):
        blocks = blocks_of(bounds_of(critic, CENTRED))
        made = {shape: allot(blocks, shape, 2.0) for shape in SHAPES}
        for allotment in made.values():
            assert math.isclose(allotment.mu, 0.5)
        size = sum(block.half.size for block in blocks)
        halves = np.concatenate([block.half.ravel() for block in blocks])
        wide = 4 * (1 + MARGIN) ** 2
        assert math.isclose(made["thesis"].variance, wide * size * (halves**2).sum(), rel_tol=1e-6)  # fmt: skip
        assert made["best"].variance <= made["layers"].variance * (1 + EXACT)
        assert made["layers"].variance <= made["spherical"].variance * (1 + EXACT)
        # Components that do not move at all count as moving by a millionth of the largest number.
        assert made["best"].variance <= wide * halves.sum() ** 2 * (1 + 1e-2)


def test_the_toy_example_of_the_thesis():
    """Ranges 2 and 100 at epsilon 0.1 and delta 1e-5: 4,850 for spherical noise; 137 and 6,850; the better choice has less in total."""
    noise = Gaussian.classical(epsilon=0.1, delta=1e-5).noise_multiplier
    block = Block(middle=np.zeros(2), half=np.array([2.0, 100.0]), centre=np.zeros(2), radius=1e9)  # fmt: skip
    made = {shape: allot([block], shape, noise) for shape in SHAPES}
    assert abs(float(made["spherical"].deviations[0]) - 4850) < 10
    assert np.abs(made["thesis"].deviations[0] - [137, 6850]).max() < 10
    assert math.isclose(made["thesis"].variance, made["spherical"].variance, rel_tol=1e-3)  # fmt: skip
    assert made["best"].variance < 0.55 * made["thesis"].variance


def test_wrong_settings_are_refused():
    from reticent.errors import InvalidInput

    with pytest.raises(InvalidInput, match="slope"):
        LeakyReLU(1.5)
    with pytest.raises(InvalidInput, match="not known"):
        allot([], "round", 1.0)
