"""The scatter plots of Figures 7.2 and 7.4, one panel per cell of the grid, as a picture that stands alone."""

import numpy as np

__all__ = ["scatter"]

PANEL, GAP, LEFT, TOP = 190, 22, 96, 62
Grid = list[tuple[str, int, dict | None]]


def scatter(grid: Grid, title: str) -> str:
    """Draw the worst case (absolute gap of errors) against the shadow models' estimate, one point per repeat.

    Parameters
    ----------
    grid : list of (coding, batch, result)
        The cells, row by row; a result of None is drawn as a panel that says so.
    title : str
        Name of the table.
    """
    codings = list(dict.fromkeys(coding for coding, _, _ in grid))
    batches = list(dict.fromkeys(batch for _, batch, _ in grid))
    points = {
        (coding, batch): (
            np.abs(np.array(one["error_out"]) - np.array(one["error_in"])),
            np.array(one["attacks"][0]["vulnerability"]),
        )
        for coding, batch, one in grid
        if one is not None
    }
    # One scale for all panels, so that they can be compared.
    high = max((float(x.max()) for x, _ in points.values()), default=0.01)
    reach = 1.05 * max([high, *(float(np.abs(y).max()) for _, y in points.values())])
    width = LEFT + len(batches) * (PANEL + GAP) + 10
    height = TOP + len(codings) * (PANEL + GAP) + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-weight="bold" font-size="14">{title}: worst case and shadow estimate of vulnerability, one point per repeat</text>',
        f'<text x="{LEFT + len(batches) * (PANEL + GAP) / 2}" y="{height - 8}" text-anchor="middle" fill="#333">worst case: |error on training - error on test records|</text>',
        f'<text transform="translate(16 {TOP + len(codings) * (PANEL + GAP) / 2}) rotate(-90)" text-anchor="middle" fill="#333">shadow estimate</text>',
    ]
    for row, coding in enumerate(codings):
        for column, batch in enumerate(batches):
            x0, y0 = LEFT + column * (PANEL + GAP), TOP + row * (PANEL + GAP)
            parts.append(_panel(x0, y0, points.get((coding, batch)), reach))
            if row == 0:
                parts.append(
                    f'<text x="{x0 + PANEL / 2}" y="{TOP - 10}" text-anchor="middle">batch {batch}</text>'
                )
            if column == 0:
                parts.append(
                    f'<text transform="translate({LEFT - 50} {y0 + PANEL / 2}) rotate(-90)" text-anchor="middle">{coding}</text>'
                )
                parts += [
                    f'<text x="{LEFT - 6}" y="{y0 + PANEL * share + 4:.1f}" text-anchor="end" fill="#555">{words}</text>'
                    for share, words in (
                        (0.02, f"{reach:.3f}"),
                        (0.5, "0"),
                        (0.98, f"-{reach:.3f}"),
                    )
                ]
            if row == len(codings) - 1:
                parts += [
                    f'<text x="{x0 + at}" y="{y0 + PANEL + 15}" text-anchor="{anchor}" fill="#555">{words}</text>'
                    for at, anchor, words in (
                        (0, "start", "0"),
                        (PANEL, "end", f"{reach:.3f}"),
                    )
                ]
    return "".join(parts) + "</svg>\n"


def _panel(
    x0: float, y0: float, points: tuple[np.ndarray, np.ndarray] | None, reach: float
) -> str:
    middle = y0 + PANEL / 2
    parts = [
        f'<rect x="{x0}" y="{y0}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#bbb"/>'
    ]
    if points is None:
        parts.append(
            f'<text x="{x0 + PANEL / 2}" y="{middle}" text-anchor="middle" fill="#888">not run</text>'
        )
        return "".join(parts)
    # The two lines on which an attack on one bit must lie: right about the sign of the gap, or wrong.
    parts += [
        f'<line x1="{x0}" y1="{middle}" x2="{x0 + PANEL}" y2="{middle + sign * PANEL / 2}" stroke="#ddd"/>'
        for sign in (-1, 1)
    ]
    parts.append(
        f'<line x1="{x0}" y1="{middle}" x2="{x0 + PANEL}" y2="{middle}" stroke="#bbb" stroke-dasharray="3 3"/>'
    )
    for worst, shadow in zip(*points, strict=True):
        parts.append(
            f'<circle cx="{x0 + worst / reach * PANEL:.1f}" cy="{middle - shadow / reach * PANEL / 2:.1f}" r="2.2" fill="#1b5e8c" fill-opacity="0.45"/>'
        )
    return "".join(parts)
