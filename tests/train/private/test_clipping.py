"""Treatments keep what they declare, whatever the gradient, and compute what their formulas say."""

import math

import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from per_record import TREATMENTS, close, treated

import reticent.train.private.sums as sums_module
from reticent.account import Relation
from reticent.errors import InvalidInput
from reticent.train.private.clipping import (
    Automatic,
    Clip,
    ClipThenTanh,
    PerLayer,
    Sigmoid,
    Tanh,
    TanhThenClip,
    sensitivity,
)
from reticent.train.private.sums import Column, Outer, Whole, clipped_sums

SIZES = (60, 14)


def adversarial(generator):
    """Gradients (records, parameters) that try to get past a bound."""
    n = sum(SIZES)
    ordinary = torch.randn(6, n, generator=generator)
    lone = torch.zeros(3, n)
    lone[0, 0], lone[1, -1], lone[2, 3] = 1e18, -1e18, 1e-30
    return torch.cat(
        [
            ordinary,
            ordinary * 1e6,
            ordinary * 1e-6,
            torch.full((1, n), 1e15),
            torch.full((1, n), -1e15),
            torch.full((1, n), 0.0),
            lone,
            torch.full((1, n), math.nan),
            torch.full((1, n), math.inf),
            torch.full((1, n), 3e38),  # its square is not finite
        ]
    )


def sums_of(clipping, gradients, margin=0.0):
    pieces = [
        [Whole(gradients=part[None])] for part in torch.split(gradients, SIZES, dim=1)
    ]
    present = torch.ones(1, len(gradients), dtype=torch.bool)
    sums = clipped_sums(clipping, pieces, present, margin=margin)
    return torch.cat([s.formed().flatten() for layer in sums for s in layer])


@pytest.mark.parametrize("name", TREATMENTS)
def test_no_gradient_gets_past_the_bound(name, seed):
    clipping = TREATMENTS[name]
    gradients = adversarial(torch.Generator().manual_seed(seed))
    bound = clipping.bound(SIZES)
    for gradient in gradients:
        out = sums_of(clipping, gradient[None])
        assert torch.isfinite(out).all()
        assert float(out.double().norm()) <= bound * (1 + 1e-6)
        assert float(sums_of(clipping, gradient[None], margin=1e-4).norm()) <= bound


@pytest.mark.parametrize("name", TREATMENTS)
def test_no_two_gradients_differ_by_more_than_the_sensitivity_to_a_replacement(
    name, seed
):
    clipping = TREATMENTS[name]
    gradients = adversarial(torch.Generator().manual_seed(seed))
    outs = torch.stack([sums_of(clipping, g[None]) for g in gradients]).double()
    largest = float(torch.cdist(outs, outs).max())
    declared = sensitivity(clipping, SIZES, Relation.REPLACE)
    assert largest <= declared * (1 + 1e-6)
    assert largest >= 0.4 * declared  # the bound is no idle one


@pytest.mark.parametrize("name", TREATMENTS)
def test_some_gradient_comes_close_to_the_bound(name):
    """Else noise would be wasted: the declared bound is the smallest that holds."""
    clipping = TREATMENTS[name]
    equal = torch.full((1, sum(SIZES)), 1e4)
    reached = float(sums_of(clipping, equal).norm())
    assert reached == pytest.approx(clipping.bound(SIZES), rel=1e-4)


@pytest.mark.parametrize("name", TREATMENTS)
def test_sum_equals_the_naive_one(name, seed):
    clipping = TREATMENTS[name]
    gradients = adversarial(torch.Generator().manual_seed(seed))
    naive = sum(treated(clipping, torch.split(g, SIZES)) for g in gradients[:9])
    assert close(sums_of(clipping, gradients[:9]).double(), naive)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("scale", [0.01, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("name", TREATMENTS)
def test_outer_products_equal_the_gradients_they_stand_for(
    name, scale, compiled, seed, monkeypatch
):
    """Whatever the number of terms that tanh needs, and where there are too many, compiled or not."""
    if not compiled:
        monkeypatch.setattr(sums_module, "_compiled", lambda: None)
    generator = torch.Generator().manual_seed(seed)
    above = scale * torch.randn(2, 5, 9, generator=generator)
    below = torch.randn(2, 12, 9, generator=generator)
    present = torch.rand(2, 9, generator=generator) < 0.8
    short = [[Outer(above=above, below=below), Column(above=above)]]
    weights = torch.einsum("mob,mib->mboi", above, below)
    full = [[Whole(gradients=weights), Whole(gradients=above.transpose(1, 2))]]
    clipping = TREATMENTS[name]
    found = clipped_sums(clipping, short, present, margin=0.0)
    wanted = clipped_sums(clipping, full, present, margin=0.0)
    for one, other in zip(found[0], wanted[0], strict=True):
        assert one.shape == one.formed().shape
        assert close(one.formed().flatten(), other.formed().flatten())


def test_a_record_that_breaks_arithmetic_counts_as_nothing():
    above, below = torch.ones(1, 2, 3), torch.ones(1, 4, 3)
    broken = below.clone()
    broken[0, 1, 1] = math.inf
    present = torch.ones(1, 3, dtype=torch.bool)
    without = torch.tensor([[True, False, True]])
    for name, clipping in TREATMENTS.items():
        found = clipped_sums(
            clipping, [[Outer(above=above, below=broken)]], present, margin=0.0
        )
        wanted = clipped_sums(
            clipping, [[Outer(above=above, below=below)]], without, margin=0.0
        )
        assert torch.allclose(found[0][0].formed(), wanted[0][0].formed()), name


def test_bounds_are_those_of_the_theory():
    n = sum(SIZES)
    assert Tanh(scale=2.0).bound(SIZES) == pytest.approx(2 * math.sqrt(n))
    assert TanhThenClip(scale=2.0, norm=0.5).bound(SIZES) == 0.5
    assert TanhThenClip(scale=1e-3, norm=0.5).bound(SIZES) == pytest.approx(
        1e-3 * math.sqrt(n)
    )
    assert PerLayer(norms=(3.0, 4.0)).bound(SIZES) == 5.0
    # theory.md, section 6: n = 2000, G = 1 spread over a narrow filter.
    narrow = ClipThenTanh(scale=1.0, width=1e-2, norm=1.0).bound([2000])
    assert narrow == pytest.approx(math.sqrt(2000) * math.tanh(100 / math.sqrt(2000)))
    # A wide filter is a clip.
    wide = ClipThenTanh(scale=10.0, width=10.0, norm=1.0).bound([2000])
    assert wide == pytest.approx(1.0, rel=1e-4)


def test_what_a_sigmoid_lets_through_has_one_sign():
    both = [sensitivity(Sigmoid(), SIZES, relation) for relation in Relation]
    assert both[0] == both[1]
    clip = [sensitivity(Clip(), SIZES, relation) for relation in Relation]
    assert clip[1] == 2 * clip[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Clip(norm=0.0),
        lambda: Automatic(stability=-1.0),
        lambda: Tanh(width=math.inf),
        lambda: TanhThenClip(norm=math.nan),
        lambda: PerLayer(norms=()),
        lambda: PerLayer(norms=(1.0, -1.0)),
        lambda: PerLayer(norms=(1.0, 1.0, 1.0)).bound(SIZES),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InvalidInput):
        make()


def test_a_treatment_that_cannot_be_computed_is_refused():
    class Odd:
        def bound(self, sizes):
            return 1.0

    with pytest.raises(InvalidInput, match="factor"):
        sums_of(Odd(), torch.ones(1, sum(SIZES)))
