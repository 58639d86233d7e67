"""How two results differ, in words: how many elements, the greatest differences, and where they are."""

from __future__ import annotations

from ..core.dtype import int64
from ..core.tensor import Tensor


def _difference(kind: str, size: float, at: tuple | None, tolerance: float, exact: bool) -> str:
    lead = f"{kind.title()} difference: {size}" if at is None else f"Greatest {kind} difference: {size} at index {at}"
    return lead if exact else f"{lead} (up to {tolerance} allowed)"


def _words(name: str, exact: bool, *lines: str) -> str:
    return "\n".join((f"{name} are not {'equal' if exact else 'close'}!", "", *lines))


def mismatch_of_numbers(actual, expected, rtol: float, atol: float, name: str | None = None) -> str:
    """Two numbers that differ."""
    exact = rtol == 0 and atol == 0
    size = abs(actual - expected)
    relative = float("inf") if expected == 0 else size / abs(expected)
    return _words(
        name or "Scalars",
        exact,
        f"Expected {expected} but got {actual}.",
        _difference("absolute", size, None, atol, exact),
        _difference("relative", relative, None, rtol, exact),
    )


def mismatch_of_tensors(
    actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float, name: str | None = None
) -> str:
    """Two tensors that differ where `matches` is false."""
    name = name or "Tensor-likes"
    total = matches.numel()
    wrong = total - int(matches.sum())
    count = f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:
        first = tuple((~matches).nonzero()[0].tolist())
        return f"{name} are not 'equal'!\n\n{count}\nThe first mismatched element is at index {first}."
    a, b, same = actual.flatten(), expected.flatten(), matches.flatten()
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        a, b = a.to(int64), b.to(int64)
    size = (a - b).abs().masked_fill(same, 0)
    relative = (size / b.abs()).masked_fill(same, 0)
    exact = rtol == 0 and atol == 0
    greatest = [(v.item(), _index(int(i), tuple(matches.shape))) for v, i in (size.max(0), relative.max(0))]
    return _words(
        name,
        exact,
        count,
        _difference("absolute", *greatest[0], atol, exact),
        _difference("relative", *greatest[1], rtol, exact),
    )


def _index(flat: int, shape: tuple) -> tuple[int, ...]:
    result = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        result.append(at)
    return tuple(reversed(result))
