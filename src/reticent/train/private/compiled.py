r"""Compiled loops for pools (extra ``compiled``): normal draws for seeded noise, and the tanh filter.

Sixty-four xoshiro128++ generators run side by side (Blackman & Vigna, "Scrambled linear pseudorandom number
generators", ACM TOMS 2021); pairs of their numbers become pairs of normal draws by Box and Muller's transform.
Logarithm, sine and cosine are polynomials with errors of 1e-7. Uniform numbers have 24 bits, so that no
normal draw exceeds 5.9: good enough for experiments, and never used for what is released. The noise of a step is drawn
and added to the parameters in one pass over the memory.
"""

import math
from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

__all__ = [
    "add_normal",
    "add_tanh_products",
    "fill_normal",
    "new_state",
    "tanh_squares",
]

LANES = 64  # generators side by side, so that the compiler fills the processor's vector registers
DRAWS = 256  # pairs of normal numbers at once: so many that the checks before each loop cost nothing


def _polynomial(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], degree: int
) -> tuple[np.float32, ...]:
    """Return the coefficients, constant first, of a polynomial that approximates a function on [0, 1]."""
    series = chebyshev.Chebyshev.interpolate(function, degree, domain=[0.0, 1.0])
    coefficients = series.convert(kind=np.polynomial.Polynomial).coef
    return tuple(np.float32(c) for c in coefficients)


def _rational_tanh(
    terms: int, reach: float
) -> tuple[tuple[np.float32, ...], tuple[np.float32, ...]]:
    """Return the coefficients of P and Q, constant first, with tanh(x) = x P(x^2) / Q(x^2) up to the reach.

    Q is 1 at 0. The weighted equation P = tanh(x) / x Q is solved again and again, with the Q before as the weight and with more weight
    where the relative error was large, which brings it near the smallest possible one.
    """
    points = np.geomspace(1e-3, reach, 500)
    z, ratio = (points / reach) ** 2, np.tanh(points) / points
    powers = z[:, None] ** np.arange(terms + 1)
    system = np.hstack([powers, -ratio[:, None] * powers[:, 1:]])
    below, emphasis = np.ones_like(z), np.ones_like(z)
    for _ in range(30):
        weight = emphasis / (below * ratio)
        solved = np.linalg.lstsq(system * weight[:, None], ratio * weight, rcond=None)
        p, q = solved[0][: terms + 1], np.r_[1.0, solved[0][terms + 1 :]]
        below = powers @ q
        error = np.abs(powers @ p / below / ratio - 1)
        emphasis *= np.sqrt(0.2 + error / error.max())
    scale = reach ** (-2.0 * np.arange(terms + 1))
    return tuple(np.float32(c) for c in p * scale), tuple(
        np.float32(c) for c in q * scale
    )


# ln(1 + t) on [0, 1]; sin(s pi / 2) / s and cos(s pi / 2) with s^2 = t. These degrees bring the errors down to 1e-7.
_LOG = _polynomial(np.log1p, 10)
_SIN = _polynomial(lambda t: np.pi / 2 * np.sinc(np.sqrt(t) / 2), 4)
_COS = _polynomial(lambda t: np.cos(np.sqrt(t) * np.pi / 2), 5)
_LN2 = np.float32(math.log(2))
_UNIT = np.float32(2.0**-24)  # the spacing of uniform numbers
_HALF_UNIT = np.float32(2.0**-25)
# Beyond 9, tanh is 1 in single precision; with five terms each, the relative error below is 1e-7, and rounding adds 3e-7.
_REACH = np.float32(9)
_P, _Q = _rational_tanh(4, 9.0)
# Sums in any order; and divisions that do not ask whether they divide by 0, which would forbid eight at a time.
_LOOSE = {"contract", "nsz", "reassoc"}
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


def new_state(seed: int) -> NDArray[np.uint32]:
    """Return the state of a generator, (4, 64)."""
    words = np.random.SeedSequence(seed).generate_state(4 * LANES, np.uint32)
    return np.asarray(words, np.uint32).reshape(4, LANES)


@njit(cache=True, fastmath={"contract", "nsz"})
def _draw(state: NDArray[np.uint32], out: NDArray[np.uint32]) -> None:
    for at in range(0, DRAWS, LANES):
        for i in range(LANES):
            s0, s1, s2, s3 = state[0, i], state[1, i], state[2, i], state[3, i]
            x = np.uint32(s0 + s3)
            out[at + i] = np.uint32(
                np.uint32(np.uint32(x << np.uint32(7)) | np.uint32(x >> np.uint32(25)))
                + s0
            )
            t = np.uint32(s1 << np.uint32(9))
            s2 = np.uint32(s2 ^ s0)
            s3 = np.uint32(s3 ^ s1)
            s1 = np.uint32(s1 ^ s2)
            s0 = np.uint32(s0 ^ s3)
            s2 = np.uint32(s2 ^ t)
            s3 = np.uint32(
                np.uint32(s3 << np.uint32(11)) | np.uint32(s3 >> np.uint32(21))
            )
            state[0, i], state[1, i], state[2, i], state[3, i] = s0, s1, s2, s3


@njit(cache=True, fastmath={"contract", "nsz"})
def _radius(fraction: np.float32, exponent: np.uint32) -> np.float32:
    """Return sqrt(-2 ln u) of the number u = fraction 2^(exponent - 127)."""
    t = fraction - _ONE
    log = _LOG[10]
    log = log * t + _LOG[9]
    log = log * t + _LOG[8]
    log = log * t + _LOG[7]
    log = log * t + _LOG[6]
    log = log * t + _LOG[5]
    log = log * t + _LOG[4]
    log = log * t + _LOG[3]
    log = log * t + _LOG[2]
    log = log * t + _LOG[1]
    log = log * t + _LOG[0]
    # The difference as 32 bits again: one of 64 bits could not be converted eight at a time.
    whole = np.float32(np.int32(np.int32(exponent) - np.int32(127)))
    square = -_TWO * (whole * _LN2 + log)
    return np.float32(np.sqrt(square if square > _ZERO else _ZERO))


@njit(cache=True, fastmath={"contract", "nsz"})
def add_normal(
    out: NDArray[np.float32],
    state: NDArray[np.uint32],
    keep: np.float32,
    spread: np.float32,
) -> None:
    """Change an array in place to ``keep * out + spread * z`` with standard normal draws z."""
    a, b = np.empty(DRAWS, np.uint32), np.empty(DRAWS, np.uint32)
    u = np.empty(DRAWS, np.float32)
    bits = u.view(np.uint32)
    rest = np.zeros(2 * DRAWS, np.float32)
    for at in range(0, len(out), 2 * DRAWS):
        _draw(state, a)
        _draw(state, b)
        for i in range(DRAWS):
            u[i] = np.float32(np.int32(a[i] >> np.uint32(8))) * _UNIT + _HALF_UNIT
        for i in range(DRAWS):
            x = bits[i]
            a[i] = np.uint32(x >> np.uint32(23))
            bits[i] = np.uint32(
                np.uint32(x & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)
            )
        left = len(out) - at
        whole = left >= 2 * DRAWS
        here = out[at : at + 2 * DRAWS] if whole else rest
        if not whole:
            here[:left] = out[at:]
        one, two = here[:DRAWS], here[DRAWS:]
        for i in range(DRAWS):
            r = spread * _radius(u[i], a[i])
            y = b[i]
            v = np.float32(np.int32(y >> np.uint32(8))) * _UNIT
            w = v * v
            sine = _SIN[4] * w + _SIN[3]
            sine = sine * w + _SIN[2]
            sine = sine * w + _SIN[1]
            sine = sine * w + _SIN[0]
            cosine = _COS[5] * w + _COS[4]
            cosine = cosine * w + _COS[3]
            cosine = cosine * w + _COS[2]
            cosine = cosine * w + _COS[1]
            cosine = cosine * w + _COS[0]
            # The angle of a quarter turn and two random signs give a whole turn.
            first = _ONE - _TWO * np.float32(np.int32(y & np.uint32(1)))
            second = _ONE - np.float32(np.int32(y & np.uint32(2)))
            one[i] = keep * one[i] + first * r * cosine
            two[i] = keep * two[i] + second * r * (sine * v)
        if not whole:
            out[at:] = here[:left]


@njit(cache=True)
def fill_normal(out: NDArray[np.float32], state: NDArray[np.uint32]) -> None:
    """Fill an array with standard normal draws."""
    out[:] = _ZERO
    add_normal(out, state, _ZERO, _ONE)


@njit(cache=True, fastmath=_LOOSE, error_model="numpy")
def _above(z: np.float32) -> np.float32:
    return (((_P[4] * z + _P[3]) * z + _P[2]) * z + _P[1]) * z + _P[0]


@njit(cache=True, fastmath=_LOOSE, error_model="numpy")
def _below(z: np.float32) -> np.float32:
    return (((_Q[4] * z + _Q[3]) * z + _Q[2]) * z + _Q[1]) * z + _Q[0]


@njit(cache=True, fastmath=_LOOSE, error_model="numpy")
def _bounded(x: np.float32) -> np.float32:
    # Not min and max: these look for NaN, one number at a time.
    x = x if x < _REACH else _REACH
    return x if x > -_REACH else -_REACH


@njit(cache=True, fastmath=_LOOSE, error_model="numpy")
def add_tanh_products(
    above: NDArray[np.float32],
    below: NDArray[np.float32],
    weights: NDArray[np.float32],
    total: NDArray[np.float32],
) -> None:
    """Add to ``total``, (out, in), the sum over records b of ``weights[b] tanh(above[b, o] below[b, i])``; no gradient is stored.

    Records go in pairs, because two fractions brought to one denominator need one division. Deltas of 0, of units that are switched
    off, are left out.
    """
    records, outputs = above.shape
    inputs = below.shape[1]
    for o in range(outputs):
        row = total[o]
        for b in range(0, records - 1, 2):
            one, two = above[b, o], above[b + 1, o]
            if one == _ZERO and two == _ZERO:
                continue
            first, second = weights[b], weights[b + 1]
            left, right = below[b], below[b + 1]
            for i in range(inputs):
                x, y = _bounded(one * left[i]), _bounded(two * right[i])
                p, q = x * x, y * y
                low, under = _below(p), _below(q)
                over = first * x * _above(p) * under + second * y * _above(q) * low
                row[i] += over / (low * under)
        if records % 2:
            one, first, left = above[-1, o], weights[-1], below[-1]
            for i in range(inputs):
                x = _bounded(one * left[i])
                row[i] += first * x * _above(x * x) / _below(x * x)


@njit(cache=True, fastmath=_LOOSE, error_model="numpy")
def tanh_squares(
    above: NDArray[np.float32], below: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Put into ``out`` the sum over o and i of ``tanh(above[b, o] below[b, i])`` squared, for each record b."""
    records, outputs = above.shape
    inputs = below.shape[1]
    for b in range(records):
        whole = 0.0
        for o in range(outputs):
            delta = above[b, o]
            if delta == _ZERO:
                continue
            part = _ZERO
            for i in range(inputs):
                x = _bounded(delta * below[b, i])
                t = x * _above(x * x) / _below(x * x)
                part += t * t
            whole += float(part)
        out[b] = whole
