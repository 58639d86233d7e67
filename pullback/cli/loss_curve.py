"""A curve of losses as a picture: on a page of text for the terminal, and as an SVG file for everything else.

In: the loss of every step, at least one. Out: text. Values that are not finite leave a gap; nothing else is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["as_svg", "as_text"]

WIDTH, HEIGHT, MARGIN = 640, 360, 48


def _bounds(losses: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest finite value, never the same."""
    finite = [loss for loss in losses if math.isfinite(loss)] or [0.0]
    low, high = min(finite), max(finite)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def as_text(losses: Sequence[float], width: int = 64, height: int = 12) -> str:
    """One dot a column (the mean of its steps), the highest and the lowest of them written at the side."""
    columns = min(width, len(losses))
    edges = [len(losses) * i // columns for i in range(columns + 1)]
    means = [sum(losses[a:b]) / (b - a) for a, b in zip(edges, edges[1:])]
    low, high = _bounds(means)
    page = [[" "] * columns for _ in range(height)]
    for column, mean in enumerate(means):
        if math.isfinite(mean):
            page[round((high - mean) / (high - low) * (height - 1))][column] = "•"
    sides = [f"{high:7.3f} ┤"] + ["        │"] * (height - 2) + [f"{low:7.3f} ┤"]
    lines = [(side + "".join(row)).rstrip() for side, row in zip(sides, page)]
    last = f"step {len(losses)}"
    return "\n".join([*lines, "        └" + "─" * columns, "         1" + last.rjust(columns - 1)])


def as_svg(losses: Sequence[float], level: float | None = None, label: str = "") -> str:
    """The curve of every step over its axes; `level` draws a dashed line to compare with, named by `label`."""
    low, high = _bounds([*losses, *([] if level is None else [level])])
    inner_width, inner_height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def y(value: float) -> float:
        return MARGIN + (high - value) / (high - low) * inner_height

    def x(step: int) -> float:
        return MARGIN + step / max(len(losses) - 1, 1) * inner_width

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN} {MARGIN}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}" fill="none" stroke="#444"/>',
    ]
    for tick in range(5):
        value = low + (high - low) * tick / 4
        parts.append(f'<text x="{MARGIN - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    parts.append(f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN + 18}" text-anchor="end">step {len(losses)}</text>')
    parts.append(f'<text x="{MARGIN}" y="{MARGIN - 16}">loss (nats a character)</text>')
    if level is not None:
        parts.append(f'<path d="M{MARGIN} {y(level):.1f}H{WIDTH - MARGIN}" stroke="#999" stroke-dasharray="4 4"/>')
        parts.append(f'<text x="{WIDTH - MARGIN}" y="{y(level) - 5:.1f}" text-anchor="end" fill="#777">{label}</text>')
    for run in _runs(losses):
        points = " ".join(f"{x(step):.1f},{y(losses[step]):.1f}" for step in run)
        parts.append(f'<polyline points="{points}" fill="none" stroke="#c2410c" stroke-width="1.5"/>')
    return "\n".join([*parts, "</svg>", ""])


def _runs(losses: Sequence[float]) -> list[list[int]]:
    """The steps, cut where a loss is not finite."""
    runs: list[list[int]] = [[]]
    for step, loss in enumerate(losses):
        if math.isfinite(loss):
            runs[-1].append(step)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
