"""Fusion: steps in, kernels out.

First, cheap producers and those with one reader are written into their readers (`inline`), so that they are never stored.
Then what is left is gathered into kernels (`group`): loop nests over the same loops, in which what one step makes the next
uses at the same element. A kernel with reductions has two levels: rows (the loops that stay) and the elements of a row
(those that are reduced): softmax or a layer norm is one kernel that passes over each row while it is in cache.

What always holds: a step runs after everything it reads; values of other kernels are read from memory.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any

from ..ops.lowering.expressions import Expr, reindex, rewrite
from ..ops.lowering.loops import Awaited, Buffer, Call, Compute, Started, Value, locate, split_rows
from .bounds import Looked

CHEAP, LARGEST = 6, 150  # costs: below, computed again for each reader; above, an expression grows no further
PICKED = 64  # how many times fewer elements are computed again where they are picked by place
LIGHT, LITTLE = 16, 8  # costs up to which what reads so many times less than it would write is computed again
SERIAL = 1 << 15  # elements that one row may have if nothing else can be split over threads
WINDOW = 12  # kernels back from the last in which a step that shares inputs looks for a place
FAR = 64  # the same for small steps that share nothing
MANY = 48  # steps of one kernel that share nothing


# ---- inlining
def inline(steps: list, kept: set[Buffer], whole: Container[Buffer] = ()) -> list:
    """Steps with producers written into readers; producers that nobody reads any more are gone. `kept` must be stored; what is in `whole`
    is computed once, and read from there."""
    result: list = []
    current: dict[Buffer, Compute] = {}  # the only writer of a buffer, as it is now
    for step in steps:
        if isinstance(step, Compute):
            step = _absorb(step.squeezed(), current, kept)
            if len(step.buffer.writers) == 1 and not step.reduce and not step.scatter and step.buffer not in whole:
                current[step.buffer] = step
        result.append(step)
    return without_dead(result, kept)


def without_dead(steps: list, kept: set[Buffer]) -> list:
    needed = set(kept)
    alive = []
    for step in reversed(steps):
        if not needed.isdisjoint(step.writes()) or isinstance(
            step, (Awaited, Started)
        ):  # others may wait for what is started
            alive.append(step)
            needed |= step.reads()
    return alive[::-1]


def _absorb(step: Compute, current: dict[Buffer, Compute], kept: set[Buffer]) -> Compute:
    """A step with those of its loads replaced by what computed them for which that is worth it."""
    refused: set = set()
    while True:
        found = None
        for e in step.loads():
            source = current.get(e.args[0])
            if source is not None and e not in refused:
                if _picks(e, source, step) if e.args[3] else _worth(source, step, kept):
                    found = e
                    break
                refused.add(e)
        if found is None:
            return step
        result = _inlined(step, found, current[found.args[0]])
        if result is None:
            refused.add(found)
        elif result.dims != step.dims:  # loops were split: other expressions
            step, refused = result, set()
        else:
            step = result


def _worth(source: Compute, step: Compute, kept: set[Buffer]) -> bool:
    expr = source.expr
    inputs = sum(e.op == "load" for e in source.loads())
    if expr.cost <= 2:
        return True
    if step.expr.cost + expr.cost > LARGEST or step.scatter and expr.cost > CHEAP:  # no vector computes for a scatter
        return False
    repeated = math.prod(step.dims) > 2 * math.prod(source.dims)
    if expr.cost <= CHEAP and inputs <= 2 and not repeated:
        return True
    if expr.cost <= LIGHT and not repeated and _reads_little(source):
        return True
    alone = len(source.buffer.readers) == 1 and source.buffer not in kept
    return alone and (not repeated or expr.cost <= 2 * CHEAP)


def _picks(e: Expr, source: Compute, step: Compute) -> bool:
    """Whether a load picks few elements by their places in one dimension of what was computed: those alone can be computed again."""
    if len(e.args[3]) != 1 or PICKED * math.prod(step.dims) > math.prod(source.dims) or step.scatter:
        return False
    return step.expr.cost + source.expr.cost <= LARGEST and not any(x.args[3] for x in source.loads())


def _picked(step: Compute, e: Expr, source: Compute) -> list | None:
    """As `locate`, for a load that picks by place: the rows, with the place for the loop that it stands for."""
    _, offset, strides, ((place, stride, size),) = e.args
    found = [d for d, (s, n) in enumerate(zip(source.strides, source.dims, strict=True)) if s == stride and n == size]
    if len(found) != 1 or size == 1:
        return None
    dims = [1 if d in found else n for d, n in enumerate(source.dims)]
    rows = locate(step.dims, strides, offset, dims, source.strides, source.offset)
    if not isinstance(rows, list) or not any(x.args[2][found[0]] for x in source.loads()):
        return None  # nothing would look whether the place is in bounds
    rows[found[0]] = (place, size)
    return rows


def _reads_little(source: Compute) -> bool:
    """Whether a step spreads few numbers over many elements: a mask from a row's label, say."""
    read = {e.args[0] for e in source.loads()}
    return LITTLE * sum(b.size * b.dtype.itemsize for b in read) <= source.buffer.size * source.buffer.dtype.itemsize


def _inlined(step: Compute, e: Expr, source: Compute) -> Compute | None:
    _, offset, strides, picks = e.args
    rows: Any = None
    if picks:
        rows = _picked(step, e, source)
    else:
        rows = locate(step.dims, strides, offset, source.dims, source.strides, source.offset)
    if rows is None:
        return None
    if isinstance(rows, tuple):
        return step.split(*rows)
    body = reindex(source.expr, rows, len(step.dims))

    def leaf(x: Expr) -> Expr | None:
        return body if x is e else None

    memo: dict = {}
    scatter = tuple([(rewrite(i, leaf, memo), s, n) for i, s, n in step.scatter])
    expr = rewrite(step.expr, leaf, memo)
    return step.computing(expr, scatter)


# ---- kernels
class Kernel:
    """Steps over common loops. `inner`: which loops are a row's elements, once a reduction has said so."""

    def __init__(self, step: Compute, apart: list[tuple[int, str]] | None = None):
        self.apart = apart or []  # kernels and calls that it was not joined with, by number, and why
        self.dims = list(step.dims)
        self.steps: list[Compute] = [step]
        self.touched = step.reads() | step.writes()  # buffers, of which a kernel can have so many
        self.rows: set[int] = set()  # ids of steps that run once per row
        self.inner: frozenset | None = step.reduced if step.reduce else None
        self.alone = step.alone

    @property
    def written(self) -> dict[Buffer, Compute]:
        return {s.buffer: s for s in self.steps}

    def split(self, k: int, inner: int) -> None:
        dims, rows = split_rows(self.dims, k, inner)
        self.rebuild(dims, rows)

    def rebuild(self, dims: list[int], rows: list) -> None:
        """Put every step on other loops."""
        before = self.steps
        self.steps = [s.over(dims, rows) for s in before]
        self.rows = {id(n) for s, n in zip(before, self.steps, strict=True) if id(s) in self.rows}
        if self.inner is not None:
            self.inner = frozenset(k for d in self.inner for k, _ in rows[d][0])
        self.dims = list(dims)

    def at_row(self, step: Compute) -> bool:
        return id(step) in self.rows

    def outer_size(self) -> int:
        return math.prod(n for k, n in enumerate(self.dims) if k not in (self.inner or ()))

    def add(self, step: Compute, row: bool) -> None:
        self.steps.append(step)
        self.touched |= step.reads() | step.writes()
        if row:
            self.rows.add(id(step))
        if step.reduce:
            self.inner = step.reduced


def group(
    steps: list,
    fusing: bool = True,
    beside: int = 0,
    after: Mapping[Buffer, Buffer] = MappingProxyType({}),
    most: int = 1 << 30,
) -> list[Kernel | Call]:
    """Kernels and calls in an order in which they can run. Steps of up to `beside` iterations become one kernel with others of
    the same loops even where they share nothing: where each kernel has its price. `after`: {buffer: another one, which is read before
    the first is written, which comes when no index can be out of bounds any more}; `most`: how many buffers a kernel may have."""
    result: list[Kernel | Call] = []
    home: dict[Buffer, int] = {}  # the last kernel that writes a buffer
    read: dict[Buffer, int] = {}  # the last one that reads it
    looked, found = Looked(), -1  # the last one that may find an index out of bounds
    for step in steps:
        place = None
        if not isinstance(step, Call):
            earliest, lowest = max((home[b] for b in step.reads() if b in home), default=-1), 0
            if step.buffer in after:
                earliest, lowest = max(earliest, read.get(after[step.buffer], -1)), found + 1
            place, apart = _place(step, result, earliest, lowest, most) if fusing else (None, [])
            if place is None and fusing and math.prod(step.dims) <= beside:
                place = _place_beside(step, result, max(earliest + 1, lowest), most)
        if place is None:
            result.append(step if isinstance(step, Call) else Kernel(step, apart))
            place = len(result) - 1
        home |= dict.fromkeys(step.writes(), place)
        read |= {b: max(place, read.get(b, -1)) for b in step.reads()}
        if after and looked.tells(step):
            found = max(found, place)
    return result


def _place(
    step: Compute, result: list, earliest: int, lowest: int, most: int
) -> tuple[int | None, list[tuple[int, str]]]:
    """The kernel that takes a step in, if one does; and why those do not that were asked. `earliest`: the last that it depends on; none
    before `lowest` is asked."""
    candidates = [earliest] if earliest >= lowest else []
    reads = step.reads()
    for n in range(len(result) - 1, max(earliest, lowest - 1, len(result) - WINDOW - 1), -1):
        k = result[n]
        if isinstance(k, Kernel) and any(s.reads() & reads for s in k.steps):
            candidates.append(n)
    apart: list[tuple[int, str]] = []
    for n in candidates:
        why = _closed(step, result[n], most) or fit(step, result[n])
        if not why:
            return n, apart
        apart.append((n, why))
    return None, apart


def _place_beside(step: Compute, result: list, lowest: int, most: int) -> int | None:
    """A kernel of the same loops, from number `lowest` on, that can run a step too, though it has nothing to do with it."""
    for n in range(len(result) - 1, max(lowest - 1, len(result) - FAR - 1), -1):
        kernel = result[n]
        if _closed(step, kernel, most) or list(step.dims) != kernel.dims or len(kernel.steps) >= MANY:
            continue
        if step.reduced == (kernel.inner or frozenset()):
            kernel.add(step, False)
            return n
    return None


def _closed(step: Compute, item: Kernel | Call, most: int) -> str:
    """Why nothing can be joined with a kernel or call, whatever its loops are; empty where something may be."""
    if isinstance(item, Call):
        return "it is a call, which writes its whole result before anything reads it"
    if step.alone or item.alone:
        return "one of them stands alone: a scan, a sort or a scatter, whose loops run in an order of their own"
    if len(step.buffer.writers) > 1 or len(item.steps[0].buffer.writers) > 1:
        return "several steps write one of the results"
    if len(item.touched) + len(step.reads()) >= most:
        return f"together they read and write more than {most} values"
    return ""


def fit(step: Compute, kernel: Kernel) -> str:
    """Add a step to a kernel if it can run over the kernel's loops; where it cannot, why."""
    produced = kernel.written
    if any(e.args[3] and e.args[0] in produced for e in step.loads()):
        return "it is read at places that are known only when it is whole"
    matched = _matched(step, kernel)
    if matched is None:
        return "the elements of one loop are not those of the other"
    step, pairs = matched  # pairs: loop of the step -> loop of the kernel
    sizes = list(step.dims)
    free = [k for k in range(len(sizes)) if k not in pairs]
    left = [d for d in range(len(kernel.dims)) if d not in pairs.values()]
    if free:
        if [sizes[k] for k in free] != [kernel.dims[d] for d in left]:
            return f"loops over {sizes} are not those over {kernel.dims}"
        pairs |= dict(zip(free, left, strict=True))
        left = []
    row = bool(left)
    if row and (kernel.inner is None or set(left) != set(kernel.inner) or step.reduce):
        return f"loops over {sizes} leave out a part of those over {kernel.dims}"
    reduced = frozenset(pairs[k] for k in step.reduced)
    if step.reduce and kernel.inner is not None and reduced != kernel.inner:
        return "they reduce different dimensions"
    inner = kernel.inner if kernel.inner is not None else reduced
    if inner and not row:
        outer = math.prod(n for d, n in enumerate(kernel.dims) if d not in inner)
        if outer < 8 and math.prod(kernel.dims) > SERIAL and not (step.reduce and kernel.inner is not None):
            return f"threads would share no more than {outer} rows"
    rows = [([(pairs[k], 1)], 0) for k in range(len(sizes))]
    kernel.add(step.over(kernel.dims, rows), row)
    return ""


def _matched(step: Compute, kernel: Kernel):
    """The step, its loops split as needed, and which loop is which of the kernel's; None where there is a clash."""
    for _ in range(16):
        result = _match_once(step, kernel)
        if result is None or result[1] is not None:
            return result
        step = result[0]
    return None


def _match_once(step: Compute, kernel: Kernel):
    """(step, pairs), or (step, None) where loops were split and it must be tried again, or None."""
    produced = kernel.written
    sources = [(e, produced[e.args[0]]) for e in step.loads() if e.args[0] in produced]
    exact = bool(sources)
    anchors = [(e, s.strides, s.offset) for e, s in sources]  # a load, and where in memory what it reads lies
    if not exact:
        anchors = [(e, other.args[2], other.args[1]) for e, other in _shared(step, kernel)]
    pairs: dict[int, int] = {}
    for e, strides, offset in anchors:
        rows = locate(step.dims, e.args[2], e.args[1], kernel.dims, strides, offset)
        if rows is None:
            return None
        if isinstance(rows, tuple):
            return step.split(*rows), None
        for d, (terms, base) in enumerate(rows):
            if kernel.dims[d] == 1 or not strides[d]:
                continue
            if base or not terms:
                return None
            if len(terms) > 1:
                if not _radix(step.dims, terms, kernel.dims[d]):
                    return None
                kernel.split(d, math.prod(step.dims[k] for k, _ in terms[1:]))
                return step, None
            k, step_size = terms[0]
            if step_size != 1 or step.dims[k] != kernel.dims[d] or pairs.get(k, d) != d:
                return None
            pairs[k] = d
        if not exact:
            break
    if len(set(pairs.values())) != len(pairs):
        return None
    return (step, pairs) if anchors else None


def _radix(dims, terms, size: int) -> bool:
    """Whether loops count through a range as digits of a number do."""
    expected = 1
    for k, step in reversed(terms):
        if step != expected:
            return False
        expected *= dims[k]
    return expected == size


def _shared(step: Compute, kernel: Kernel) -> list[tuple[Expr, Expr]]:
    """Loads of the same elements in a step and in a kernel, the widest first."""
    theirs: dict[Buffer, Expr] = {}
    for s in kernel.steps:
        for e in s.loads():
            if not e.args[3] and e.args[0] not in theirs:
                theirs[e.args[0]] = e
    found = [(e, theirs[e.args[0]]) for e in step.loads() if not e.args[3] and e.args[0] in theirs]
    return sorted(found, key=lambda pair: -sum(s != 0 for s in pair[0].args[2]))[:1]


__all__ = ["Kernel", "Value", "fit", "group", "inline", "without_dead"]
