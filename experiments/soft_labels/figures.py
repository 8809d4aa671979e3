"""The pictures of the page, each of which stands alone."""

from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["boxes", "calibration", "curves", "frontier"]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 350, 64, 58, 16, 50
COLOURS = ("#444444", "#1b5e8c", "#2a9d8f", "#e9a23b", "#c8553d", "#7d4f9e")
Scale = Callable[[float], float]


class _Canvas:
    """A plot with two axes."""

    def __init__(
        self,
        title: str,
        x: tuple[str, float, float],
        y: tuple[str, float, float],
        ticks: Sequence[str] = (),
    ) -> None:
        self._x, self._y = x[1:], y[1:]
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="20" font-weight="bold" font-size="13">{title}</text>',
            f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" fill="none" stroke="#bbb"/>',
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#333">{x[0]}</text>',
            f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle" fill="#333">{y[0]}</text>',
        ]
        for value in _round_ticks(*self._y):
            self.text(LEFT - 6, self.y(value) + 4, f"{value:g}", anchor="end")
        if not ticks:
            for value in _round_ticks(*self._x):
                self.text(self.x(value), HEIGHT - BOTTOM + 16, f"{value:g}")

    def x(self, value: float) -> float:
        low, high = self._x
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self._y
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        anchor: str = "middle",
        colour: str = "#555",
    ) -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'
        )

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, dashed: bool = False
    ) -> None:
        path = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 2.4) -> None:
        self.parts.append(
            f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius}" fill="{colour}" fill-opacity="0.7"/>'
        )

    def legend(self, names: Sequence[str], first: int = 0) -> None:
        """Write names in a row above the plot, where no line can cross them; colours count from ``first``."""
        at = float(LEFT)
        for k, name in enumerate(names, start=first):
            self.parts.append(
                f'<rect x="{at:.0f}" y="{TOP - 19}" width="9" height="9" fill="{COLOURS[k % len(COLOURS)]}"/>'
            )
            self.text(at + 13, TOP - 11, name, anchor="start", colour="#333")
            at += 30 + 6.2 * len(name)

    def done(self) -> str:
        return "\n".join(self.parts) + "\n</svg>\n"


def _round_ticks(low: float, high: float) -> list[float]:
    """Return three to seven round numbers between two ends."""
    raw = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * (1 - 1e-9))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [round(float(k * step), 9) + 0.0 for k in np.arange(first, last + 1)]


def calibration(treatments: dict[str, dict], title: str) -> str:
    """Draw the share of members among records with a predicted probability of membership, as Figure 5.3."""
    points = {
        name: (each["posterior"]["predicted"], each["posterior"]["actual"])
        for name, each in treatments.items()
    }
    canvas = _Canvas(title, ("predicted probability", 0, 1), ("share of members", 0, 1))
    canvas.line([(0, 0), (1, 1)], "#999", dashed=True)
    for k, (predicted, actual) in enumerate(points.values()):
        for p, a in zip(predicted, actual, strict=True):
            canvas.dot(p, a, COLOURS[k % len(COLOURS)])
    canvas.legend(list(points))
    return canvas.done()


def boxes(treatments: dict[str, dict], part: str, title: str) -> str:
    """Draw the errors of all models of each treatment as boxes, as Figures 5.5 and 5.6."""
    errors = {name: 100 * np.array(each[part]) for name, each in treatments.items()}
    low = min(e.min() for e in errors.values())
    high = max(e.max() for e in errors.values())
    pad = 0.08 * (high - low) + 0.1
    canvas = _Canvas(
        title,
        ("", -0.5, len(errors) - 0.5),
        ("error in per cent", low - pad, high + pad),
        ticks=list(errors),
    )
    for k, (name, values) in enumerate(errors.items()):
        colour = COLOURS[k % len(COLOURS)]
        first, middle, third = np.percentile(values, [25, 50, 75])
        width = 0.28
        canvas.line([(k, values.min()), (k, first)], colour)
        canvas.line([(k, third), (k, values.max())], colour)
        corners = [
            (k - width, first),
            (k + width, first),
            (k + width, third),
            (k - width, third),
            (k - width, first),
        ]
        canvas.line(corners, colour)
        canvas.line([(k - width, middle), (k + width, middle)], colour)
        canvas.text(canvas.x(k), HEIGHT - BOTTOM + 16, name)
    return canvas.done()


# What the legend calls the quantities of the targets.
LINES = {
    "is given": "it is the label as given",
    "is true": "it is the true label",
    "entropy given": "to the labels as given",
    "entropy true": "to the true labels",
}


def curves(targets: dict, names: Sequence[str], title: str, label: str) -> str:
    """Draw quantities of the targets over alpha, as Figures 5.10 and 5.11."""
    values = [targets[name] for name in names]
    high = max(max(v) for v in values)
    low = min(min(v) for v in values)
    canvas = _Canvas(
        title,
        ("alpha, in standard deviations", 0, float(targets["grid"][-1])),
        (label, min(low, 0.0) if high > 1 else low - 0.02, high * 1.02),
    )
    for k, value in enumerate(values):
        canvas.line(list(zip(targets["grid"], value, strict=True)), COLOURS[k + 1])
    canvas.legend([LINES[name] for name in names], first=1)
    return canvas.done()


def frontier(treatments: dict[str, dict], title: str) -> str:
    """Draw privacy against error with ellipses of one standard error, as Figure 5.12."""
    privacy = [each["privacy"][0] for each in treatments.values()]
    error = [100 * (1 - each["gain"][0]) * 0.9 for each in treatments.values()]
    spread = [
        (each["ellipse"][1], 90 * each["ellipse"][0]) for each in treatments.values()
    ]
    x_pad = 2 * max(*(s for s, _ in spread), 0.01)
    y_pad = 2 * max(*(s for _, s in spread), 0.3)
    canvas = _Canvas(
        title,
        ("privacy score (1 is best)", min(privacy) - x_pad, max(privacy) + x_pad),
        (
            "error on records outside, per cent",
            min(error) - y_pad,
            max(error) + y_pad,
        ),
    )
    for k in range(len(treatments)):
        colour = COLOURS[k % len(COLOURS)]
        x, y = canvas.x(privacy[k]), canvas.y(error[k])
        rx = abs(canvas.x(privacy[k] + spread[k][0]) - x)
        ry = abs(canvas.y(error[k] + spread[k][1]) - y)
        canvas.parts.append(
            f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" fill="{colour}" fill-opacity="0.18" stroke="{colour}"/>'
        )
        canvas.dot(privacy[k], error[k], colour, 3.2)
    canvas.legend(list(treatments))
    return canvas.done()
