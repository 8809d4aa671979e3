"""The picture of the page: every bound on one scale."""

import math

__all__ = ["bars"]

WIDTH, LEFT, TOP, RIGHT, ROW = 760, 330, 54, 70, 22


def _short(value: float) -> str:
    """Return two digits, as the axis writes powers of ten: 190, 1.6e5, 4.1e-5."""
    if 10 <= value < 1e4:
        return f"{round(value, 1 - math.floor(math.log10(value))):,.0f}"
    mantissa, _, power = f"{value:.2g}".partition("e")
    return f"{mantissa}e{int(power)}" if power else mantissa


def bars(title: str, rows: dict[str, tuple[float, str]]) -> str:
    """Return one bar per number, with a colour each, on a scale of powers of ten."""
    low = math.floor(math.log10(min(value for value, _ in rows.values())))
    high = math.ceil(math.log10(max(value for value, _ in rows.values())))
    height = TOP + ROW * len(rows) + 34

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="24" font-weight="bold" font-size="14">{title}</text>',
    ]
    for power in range(low, high + 1, 2):
        at = x(10.0**power)
        parts.append(f'<line x1="{at:.1f}" y1="{TOP - 6}" x2="{at:.1f}" y2="{height - 30}" stroke="#ddd"/>')  # fmt: skip
        parts.append(f'<text x="{at:.1f}" y="{height - 14}" text-anchor="middle" fill="#555">1e{power}</text>')  # fmt: skip
    for place, (name, (value, colour)) in enumerate(rows.items()):
        y = TOP + ROW * place
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end" fill="#333">{name}</text>')  # fmt: skip
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{x(value) - LEFT:.1f}" height="{ROW - 6}" fill="{colour}"/>')  # fmt: skip
        parts.append(f'<text x="{x(value) + 5:.1f}" y="{y + 12}" fill="#333">{_short(value)}</text>')  # fmt: skip
    return "\n".join([*parts, "</svg>"]) + "\n"
