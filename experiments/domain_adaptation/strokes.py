"""Synthetic handwritten digits, drawn by a pen on curves through a few points: nobody's handwriting is in them.

Each digit has one to three shapes, written down by hand. Their points are moved at random, the whole is slanted, turned and
stretched, brought to the size and place that MNIST gives its digits (20 pixels high or wide, centre of mass in the
middle), and drawn with a pen of random width.
"""

import numpy as np

__all__ = ["SHAPES", "draw"]

SIDE, BOX = 28, 20  # pixels of an image, and of the box the digit fills
POINTS = 6  # of a curve between two of its given points
CHUNK = 250  # images drawn at once

# Strokes from left (0) to right (1) and from top (0) to bottom (1); a point given twice is a corner.
SHAPES = {
    0: (
        [[(0.5, 0), (0.15, 0.2), (0.05, 0.55), (0.25, 0.95), (0.6, 1), (0.9, 0.7), (0.9, 0.3), (0.65, 0.03), (0.45, 0.02)]],
    ),
    1: (
        [[(0.5, 0), (0.5, 0.5), (0.5, 1)]],
        [[(0.25, 0.25), (0.5, 0), (0.5, 0), (0.5, 0.5), (0.5, 1)]],
        [[(0.25, 0.25), (0.5, 0), (0.5, 0), (0.5, 1)], [(0.2, 1), (0.8, 1)]],
    ),
    2: (
        [[(0.1, 0.25), (0.3, 0.03), (0.7, 0.03), (0.88, 0.28), (0.65, 0.6), (0.1, 1), (0.1, 1), (0.95, 1)]],
        [[(0.1, 0.2), (0.4, 0), (0.8, 0.15), (0.75, 0.5), (0.35, 0.9), (0.1, 0.95), (0.15, 0.78), (0.4, 0.85), (0.95, 1)]],
    ),
    3: (
        [[(0.1, 0.12), (0.45, 0), (0.85, 0.15), (0.75, 0.4), (0.4, 0.48), (0.4, 0.48), (0.8, 0.55), (0.92, 0.8), (0.5, 1), (0.05, 0.88)]],
    ),
    4: (
        [[(0.25, 0), (0.05, 0.6), (0.05, 0.6), (0.5, 0.57), (0.95, 0.55)], [(0.75, 0.1), (0.72, 0.5), (0.68, 1)]],
        [[(0.7, 0), (0.05, 0.65), (0.05, 0.65), (0.95, 0.65)], [(0.7, 0), (0.7, 1)]],
    ),
    5: (
        [
            [(0.2, 0), (0.15, 0.45), (0.15, 0.45), (0.5, 0.38), (0.9, 0.62), (0.7, 0.95), (0.35, 1), (0.05, 0.88)],
            [(0.2, 0), (0.9, 0.02)],
        ],
    ),
    6: (
        [[(0.75, 0), (0.35, 0.2), (0.08, 0.6), (0.25, 0.97), (0.65, 0.97), (0.85, 0.72), (0.6, 0.5), (0.25, 0.58), (0.1, 0.72)]],
    ),
    7: (
        [[(0.05, 0.05), (0.95, 0.03), (0.95, 0.03), (0.6, 0.45), (0.4, 1)]],
        [[(0.05, 0.05), (0.95, 0.03), (0.95, 0.03), (0.6, 0.45), (0.4, 1)], [(0.3, 0.52), (0.8, 0.5)]],
    ),
    8: (
        [[(0.5, 0.48), (0.15, 0.28), (0.3, 0.02), (0.7, 0.02), (0.85, 0.25), (0.5, 0.48), (0.12, 0.72), (0.3, 1), (0.7, 1), (0.9, 0.75), (0.5, 0.48)]],
    ),
    9: (
        [[(0.85, 0.2), (0.5, 0), (0.12, 0.22), (0.3, 0.48), (0.7, 0.42), (0.88, 0.15), (0.85, 0.15), (0.8, 0.6), (0.7, 1)]],
        [[(0.85, 0.2), (0.5, 0), (0.12, 0.22), (0.3, 0.48), (0.7, 0.42), (0.88, 0.15), (0.88, 0.2), (0.85, 0.6), (0.6, 0.97), (0.2, 0.95)]],
    ),
}  # fmt: skip


def draw(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return so many images, uint8 (count, 28, 28), and the digits that they show.

    Parameters
    ----------
    count : int
        Digits to draw; each digit and each of its shapes is as likely as any other.
    rng : numpy.random.Generator
        Source of all that is random.
    """
    digits = rng.integers(10, size=count)
    shapes = np.array([rng.integers(len(SHAPES[d])) for d in digits])
    images = np.empty((count, SIDE, SIDE), np.uint8)
    for digit, variants in SHAPES.items():
        for k, strokes in enumerate(variants):
            rows = np.flatnonzero((digits == digit) & (shapes == k))
            for some in np.split(rows, range(CHUNK, len(rows), CHUNK)):
                images[some] = _drawn(strokes, len(some), rng)
    return images, digits


def _drawn(strokes: list, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return drawings of one shape."""
    wobble = rng.uniform(0.01, 0.07, size=(count, 1, 1))
    lines = [
        _curve(np.array(stroke) + wobble * rng.normal(size=(count, len(stroke), 2)))
        for stroke in strokes
    ]
    starts = np.concatenate([line[:, :-1] for line in lines], axis=1)
    ends = np.concatenate([line[:, 1:] for line in lines], axis=1)
    starts, ends = _placed(starts, ends, rng)
    half = rng.uniform(0.7, 1.7, size=(count, 1, 1))  # of the pen's width, in pixels
    ink = np.clip(half - _distances(starts, ends) + 0.5, 0, 1)
    return np.round(255 * ink).astype(np.uint8)


def _curve(points: np.ndarray) -> np.ndarray:
    """Return points on the Catmull-Rom curve through the given ones, (count, many, 2)."""
    padded = np.concatenate([points[:, :1], points, points[:, -1:]], axis=1)
    before, start, end, after = (
        padded[:, k : padded.shape[1] - 3 + k, None] for k in range(4)
    )
    t = np.linspace(0, 1, POINTS, endpoint=False)[:, None]
    made = 0.5 * (
        2 * start
        + (end - before) * t
        + (2 * before - 5 * start + 4 * end - after) * t**2
        + (3 * start - before - 3 * end + after) * t**3
    )
    return np.concatenate([made.reshape(len(points), -1, 2), points[:, -1:]], axis=1)


def _placed(
    starts: np.ndarray, ends: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Slant, turn and stretch lines at random; bring them to MNIST's size and place, in pixels."""
    n = len(starts)
    width, slant, turn = (
        rng.uniform(0.5, 0.95, n),
        rng.normal(0.15, 0.25, n),
        rng.normal(0, 0.12, n),
    )
    upright = np.zeros((n, 2, 2))
    upright[:, 0, 0], upright[:, 1, 1], upright[:, 0, 1] = width, 1, -slant
    turned = np.stack(
        [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    ).transpose(2, 0, 1)
    matrix = (turned @ upright).transpose(0, 2, 1)
    starts, ends = starts @ matrix, ends @ matrix
    both = np.concatenate([starts, ends], axis=1)
    extent = np.ptp(both, axis=1).max(axis=1)[:, None, None]
    starts, ends = BOX / extent * starts, BOX / extent * ends
    lengths = np.linalg.norm(ends - starts, axis=2, keepdims=True)
    mass = (lengths * (starts + ends) / 2).sum(1, keepdims=True)
    shift = (SIDE - 1) / 2 - mass / lengths.sum(1, keepdims=True)
    return starts + shift, ends + shift


def _distances(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return each pixel's distance to the nearest of the lines, (count, 28, 28)."""
    place = np.arange(SIDE, dtype=np.float32)
    nearest = np.full((len(starts), SIDE, SIDE), np.inf, np.float32)
    lines = zip(starts.swapaxes(0, 1), ends.swapaxes(0, 1), strict=True)
    for a, b in lines:  # in turn: all at once would not stay in the cache
        along = (b - a).astype(np.float32)
        right = (place - a[:, :1]).astype(np.float32)[:, None, :]
        down = (place - a[:, 1:]).astype(np.float32)[:, :, None]
        length = np.maximum((along**2).sum(1), 1e-9)[:, None, None]
        inner = right * along[:, :1, None] + down * along[:, 1:, None]
        t = np.clip(inner / length, 0, 1)
        squares = right**2 + down**2 + t * (t * length - 2 * inner)
        np.minimum(nearest, squares, out=nearest)
    return np.sqrt(np.maximum(nearest, 0))
