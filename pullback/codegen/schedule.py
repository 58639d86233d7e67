"""The order of a kernel's loops, and what happens in which pass over a row.

`schedule(kernel, needed)` puts loops in order (by strides: the innermost runs along memory), makes neighbouring ones that run
on into each other one, chooses what is vectorised, and sorts steps into phases: a reduction's result is there from the next
phase on. `needed` are the buffers that someone outside reads.

Two ways to vectorise a kernel with reductions: along the row (`lane` is None), or, where memory runs along a loop that stays,
across rows: `lane` is that loop, and a block of its iterations goes through all phases side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..ops.lowering.expressions import walk
from ..ops.lowering.loops import Buffer, Compute
from .fuse import Kernel

SCRATCH = 1 << 15  # bytes of a row that are kept on the stack between phases
RECOMPUTED = 8  # cost up to which an element is computed again in a later phase rather than kept


@dataclass
class Nest:
    """A kernel that is ready to print. Loops are named by their place in `dims`."""

    dims: list[int]
    outer: list[int]
    inner: list[int]
    lane: int | None
    phases: list[Phase]
    stored: set[Buffer]
    scratch: set[Buffer] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    home: dict[Buffer, int] = field(default_factory=dict)  # the phase in which a buffer is written

    @property
    def steps(self) -> list[Compute]:
        return [s for p in self.phases for s in (*p.rows, *p.elements)]

    @property
    def lane_loop(self) -> int:
        """The lane, of a nest that has one."""
        if self.lane is None:
            raise ValueError("this nest goes along its rows: it has no lane")
        return self.lane

    def size(self, loops: list[int]) -> int:
        return math.prod(self.dims[k] for k in loops)

    def cost(self) -> int:
        """Roughly, additions per iteration of the outer loops."""
        per_element = sum(s.expr.cost + 1 for p in self.phases for s in p.elements)
        return self.size(self.inner) * per_element + sum(s.expr.cost + 1 for p in self.phases for s in p.rows)


@dataclass
class Phase:
    """One pass: first what is computed once per row, then a loop over the elements of the row."""

    rows: list[Compute] = field(default_factory=list)
    elements: list[Compute] = field(default_factory=list)


def schedule(kernel: Kernel, needed: set[Buffer]) -> Nest:
    """See the module's docstring."""
    if kernel.inner:
        _merge(kernel, kernel.inner)
    inner = set(kernel.inner or ())
    lane = _lane(kernel, inner) if inner else None
    if lane is None and kernel.steps[0].scan:  # rows side by side: each waits for its own last sum only
        lane = max((d for d in range(len(kernel.dims)) if d not in inner), key=lambda d: kernel.dims[d], default=None)
    weights = _weights(kernel)
    by_stride = sorted(range(len(kernel.dims)), key=lambda d: -weights[d])
    if kernel.steps[0].scatter and kernel.steps[0].meets == "set":  # which one is the last is a matter of order
        by_stride = list(range(len(kernel.dims)))
    outer_order = [d for d in by_stride if d not in inner and d != lane]
    if not inner:
        outer_order, inner_order = outer_order[:-1], outer_order[-1:]
    else:
        outer_order, inner_order = (
            outer_order + ([lane] if lane is not None else []),
            [d for d in by_stride if d in inner],
        )
    order = outer_order + inner_order
    kernel.rebuild([kernel.dims[d] for d in order], [([(order.index(d), 1)], 0) for d in range(len(order))])
    n_outer, n_inner = _coalesce(kernel, len(outer_order), bool(inner), lane is not None)
    outer, inner_loops = list(range(n_outer)), list(range(n_outer, n_outer + n_inner))
    nest = Nest(kernel.dims, outer, inner_loops, n_outer - 1 if lane is not None else None, [], set())
    nest.rows = kernel.rows
    _phases(kernel, nest)
    _keep(kernel, nest, needed)
    return nest


def _merge(kernel: Kernel, inner: frozenset) -> None:
    """Put a kernel with reductions on as few loops as will do, so that one along memory is seen to be as long as it is."""
    weights = _weights(kernel)
    by_stride = sorted(range(len(kernel.dims)), key=lambda d: (d in inner, -weights[d]))
    kernel.rebuild([kernel.dims[d] for d in by_stride], [([(by_stride.index(d), 1)], 0) for d in range(len(by_stride))])
    _coalesce(kernel, len(kernel.dims) - len(inner), True, False)


def _weights(kernel: Kernel) -> list[int]:
    """Per loop, how far apart its iterations are in memory; stores count most."""
    total = [0] * len(kernel.dims)
    for s in kernel.steps:
        for strides, weight in [(s.strides, 4), *((e.args[2], 1) for e in s.loads())]:
            for d, stride in enumerate(strides):
                total[d] += weight * abs(stride)
    return total


def _lane(kernel: Kernel, inner: set[int]) -> int | None:
    """The loop across rows along which memory runs, where more loads run along it than along the row."""
    along = [0] * len(kernel.dims)
    for s in kernel.steps:
        for e in s.loads():
            if kernel.at_row(s) or not any(e.args[2][d] for d in inner):  # read once per row
                continue
            if any(
                step for d, step in enumerate(e.args[2]) if d not in inner
            ):  # others are the same for all rows: in cache
                for d, stride in enumerate(e.args[2]):
                    along[d] += stride == 1 and kernel.dims[d] > 1
    best_row = max((along[d] for d in inner), default=0)
    outside = [d for d in range(len(kernel.dims)) if d not in inner and kernel.dims[d] >= 8]
    best = max(outside, key=lambda d: along[d], default=None)
    return best if best is not None and along[best] > best_row else None


def _coalesce(kernel: Kernel, n_outer: int, has_rows: bool, has_lane: bool) -> tuple[int, int]:
    """Merge neighbouring loops where every access runs on from one into the next; (outer loops, inner loops) left."""
    used = {
        e.args[0]
        for s in kernel.steps
        for x in (s.expr, *(i for i, _, _ in s.scatter))
        for e in walk(x)
        if e.op == "index"
    }
    a = 0
    while a + 1 < len(kernel.dims):
        b = a + 1
        same_group = (b < n_outer - has_lane or a >= n_outer) if has_rows else True
        if same_group and a not in used and b not in used and _runs_on(kernel, a, b):
            dims = [*kernel.dims[:a], kernel.dims[a] * kernel.dims[b], *kernel.dims[b + 1 :]]
            rows = [([(d if d < b else d - 1, 1)], 0) for d in range(len(kernel.dims))]
            rows[a] = ([], 0)
            kernel_inner = kernel.inner
            kernel.rebuild(dims, rows)
            if kernel_inner is not None:
                kernel.inner = frozenset({d if d < b else d - 1 for d in kernel_inner})
            used = {d if d < b else d - 1 for d in used}
            if b < n_outer or (not has_rows and n_outer):
                n_outer -= 1
        else:
            a += 1
    n = len(kernel.dims)
    return (n_outer, n - n_outer) if has_rows else (max(n - 1, 0), min(n, 1))


def _runs_on(kernel: Kernel, a: int, b: int) -> bool:
    n = kernel.dims[b]
    for s in kernel.steps:
        if s.strides[a] != s.strides[b] * n:
            return False
        if any(e.args[2][a] != e.args[2][b] * n for e in s.loads()):
            return False
    return True


def _phases(kernel: Kernel, nest: Nest) -> None:
    """Sort steps into phases."""
    written = kernel.written
    at: dict[Buffer, int] = {}
    for s in kernel.steps:
        phase = 0
        for b in s.reads():
            if b in at and written[b] is not s:
                phase = max(phase, at[b] + (1 if written[b].reduce else 0))
        at[s.buffer] = phase
        while len(nest.phases) <= phase:
            nest.phases.append(Phase())
        (nest.phases[phase].rows if kernel.at_row(s) else nest.phases[phase].elements).append(s)
    nest.home = at


def _keep(kernel: Kernel, nest: Nest, needed: set[Buffer]) -> None:
    """Which buffers are stored to memory, and which are kept on the stack from one phase to a later one."""
    nest.stored = {s.buffer for s in kernel.steps if s.buffer in needed}
    row_size = nest.size(nest.inner)
    for s in reversed(kernel.steps):
        b = s.buffer
        if kernel.at_row(s) or s.reduce or b in nest.stored:
            continue
        later = any(b in o.reads() and nest.home[o.buffer] > nest.home[b] for o in kernel.steps if o is not s)
        if not later or s.expr.cost <= RECOMPUTED and not any(e.args[0] in kernel.written for e in s.loads()):
            continue
        if nest.lane is None and row_size * b.dtype.itemsize <= SCRATCH and len(nest.inner) == 1:
            nest.scratch.add(b)
        else:
            nest.stored.add(b)
