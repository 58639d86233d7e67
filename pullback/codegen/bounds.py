"""Indices that may be out of bounds: which loop nests look at which.

A loop nest that finds one says so, and the whole call is made again, operator by operator: so nothing that cannot be undone may come before the last of
them that tells something new.
"""

from __future__ import annotations

from ..ops.lowering.expressions import Expr, walk, within
from ..ops.lowering.loops import Compute, Sort


class Looked:
    """What has been looked at so far."""

    def __init__(self) -> None:
        self.seen: set = set()

    def tells(self, step: object) -> bool:
        """Whether a step may find what none before it can have found. A sort may find that there is no memory for it."""
        found = checks(step) if isinstance(step, Compute) else set()
        new = not found <= self.seen
        self.seen |= found
        return new or isinstance(step, Sort)


def checks(step: Compute) -> set:
    """What a step looks at to see whether it is in bounds, in words that do not depend on loops; an index that is always within is left out."""
    places = [(i, n) for i, _, n in step.scatter]
    places += [p for x in (step.expr, *(i for i, _, _ in step.scatter)) for p in _indices(x)]
    return {(_described(i, step), n) for i, n in places if n is not None and not _is_known(i, n, step)}


def _is_known(index: Expr, size: int, step: Compute) -> bool:
    """Whether an index is always in bounds."""
    if index.op == "load" and index.args[0].below is not None:
        return index.args[0].below <= size
    return within(index, size, step.dims)


def _indices(x: Expr) -> list[tuple[Expr, int | None]]:
    return [(index, n) for e in walk(x) if e.op == "load" for index, _, n in e.args[3]]


def _described(index: Expr, step: Compute) -> object:
    """An index as a description that is the same in another loop nest that looks at the same memory; the step itself where there is none:
    where it is made of several loads, or of what loops count."""
    parts = walk(index)
    sources = [e for e in parts if e.op == "load"]
    if len(sources) != 1 or any(e.op == "index" for e in parts) or not _is_whole(sources[0], step.dims):
        return step
    return _words(index)


def _words(e: Expr) -> object:
    if e.op in ("const", "load"):
        return repr(e.args[0]) if e.op == "const" else e.args[0]
    return (e.op, e.dtype, *map(_words, e.args))


def _is_whole(e: Expr, dims: tuple[int, ...]) -> bool:
    """Whether the loops read every element of a buffer that has one content."""
    buffer, offset, strides, indirect = e.args
    if offset or indirect or len(buffer.writers) > 1 or 0 in dims:
        return False
    expected = 1
    for s, n in sorted((s, n) for s, n in zip(strides, dims, strict=True) if s and n != 1):
        if s != expected:
            return False
        expected *= n
    return expected == buffer.size
