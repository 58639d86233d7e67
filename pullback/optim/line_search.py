"""A line search that meets the strong Wolfe conditions.

`evaluate(t)` gives value and gradient of the objective at distance `t` along a direction. The search brackets a step
that decreases the objective enough and where the slope is small enough, then narrows the bracket by interpolation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..core.tensor import Tensor

DECREASE, FLATTEN = 1e-4, 0.9  # the two Wolfe constants


class Point(NamedTuple):
    """One place on the line: distance, value, gradient, slope."""

    t: float
    value: float
    gradient: Tensor
    slope: float


def cubic_minimum(a: Point, b: Point, bounds: tuple | None = None) -> float:
    """Where the cubic through two points with their slopes is smallest, within bounds (by default, between them)."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    left, right = (a, b) if a.t <= b.t else (b, a)
    d2 = square**0.5
    at = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(at, low), high)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]], t: float, direction: Tensor, start: Point,
    tolerance: float = 1e-9, max_evaluations: int = 25,
) -> tuple[Point, int]:  # fmt: skip
    """A good point on the line and the number of evaluations it took; `start` is the point at distance 0."""

    def at(t: float) -> Point:
        value, gradient = evaluate(t)
        return Point(t, value, gradient.clone(), gradient.dot(direction).item())

    reach = direction.abs().max().item()
    bracket, tries, done = _bracket(at, t, start, max_evaluations)
    if not done:
        bracket, tries = _zoom(at, bracket, start, reach, tolerance, tries, max_evaluations)
    best = min(bracket, key=lambda p: p.value)
    return best, tries + 1


def _bracket(at: Callable, t: float, start: Point, limit: int) -> tuple[list[Point], int, bool]:
    """Step outwards until a minimum must lie between two points, or a point is good already."""
    previous, tries, new = start, 0, at(t)
    while tries < limit:
        rising = tries > 1 and new.value >= previous.value
        if new.value > start.value + DECREASE * new.t * start.slope or rising:
            return [previous, new], tries, False
        if abs(new.slope) <= -FLATTEN * start.slope:
            return [new], tries, True
        if new.slope >= 0:
            return [previous, new], tries, False
        bounds = new.t + 0.01 * (new.t - previous.t), new.t * 10
        following = cubic_minimum(previous, new, bounds)
        previous, new = new, at(following)
        tries += 1
    return [start, new], tries, True


def _zoom(at: Callable, bracket: list[Point], start: Point, reach: float, tolerance: float, tries: int, limit: int):
    """Narrow the bracket; its lower end is the best point so far."""
    low, high = sorted(bracket, key=lambda p: p.value)
    stuck = False
    while tries < limit and not abs(high.t - low.t) * reach < tolerance:
        t, stuck = _inside(cubic_minimum(low, high), low, high, stuck)
        new = at(t)
        tries += 1
        if new.value > start.value + DECREASE * t * start.slope or new.value >= low.value:
            high = new
            low, high = (low, high) if low.value <= high.value else (high, low)
            continue
        if abs(new.slope) <= -FLATTEN * start.slope:
            return [new], tries
        if new.slope * (high.t - low.t) >= 0:
            high = low
        low = new
    return [low, high], tries


def _inside(t: float, low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
    """A trial that keeps away from the ends of the bracket once it has come close to one twice."""
    first, last = min(low.t, high.t), max(low.t, high.t)
    margin = 0.1 * (last - first)
    if min(last - t, t - first) >= margin:
        return t, False
    if stuck or t >= last or t <= first:
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
    return t, True
