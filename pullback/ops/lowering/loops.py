"""Loops: what a graph is lowered to.

A `Buffer` is memory for the elements of one dtype. A `Value` is a strided window on one: what a tensor of the graph is. A
`Compute` fills (part of) a buffer by a loop nest: one expression per iteration, stored, or reduced over some of the loops. A
`Call` is a call of a routine: `Product` of the BLAS library, `Convolved` of a device's, `Sort` of our own, `Started` and `Awaited` of a library that goes on
by itself in between (an `Engine`). Views are windows: they cost nothing and appear nowhere.

What always holds: addresses are affine in loop indices, so that two loop nests over one buffer can be laid over each other by
splitting loops (`locate`), and no index is ever divided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.dtype import dtype
from ...core.geometry import contiguous_strides
from .expressions import Expr, load, loads, reindex


class Buffer:
    """Memory for `size` elements. `kind`: "input" (given), "temp" (ours), "output" (allocated by the caller)."""

    __slots__ = ("name", "dtype", "size", "kind", "writers", "readers", "below")

    def __init__(self, name: str, dtype: dtype, size: int, kind: str = "temp"):
        self.name, self.dtype, self.size, self.kind = name, dtype, size, kind
        self.writers: list = []  # of Compute and Product, in order
        self.readers: list = []
        self.below: int | None = None  # a number that all its elements, which are places, are known to be below

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{self.size}]"


class Value:
    """A tensor of the graph: a window on a buffer, strides and offset in elements."""

    __slots__ = ("buffer", "shape", "strides", "offset")

    def __init__(self, buffer: Buffer, shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0):
        self.buffer, self.shape, self.offset = buffer, tuple(shape), offset
        self.strides = tuple(strides) if strides is not None else contiguous_strides(self.shape)

    @property
    def dtype(self) -> dtype:
        return self.buffer.dtype

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def element(self, rank: int | None = None) -> Expr:
        """The element at the loop indices, of loops over this shape or one that it broadcasts to."""
        rank = len(self.shape) if rank is None else rank
        strides = [0] * (rank - len(self.shape)) + [
            0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)
        ]
        return load(self.buffer, self.offset, strides)

    @property
    def is_contiguous(self) -> bool:
        return self.strides == contiguous_strides(self.shape)

    # ---- windows
    def window(self, shape: Sequence[int], strides: Sequence[int] | None = None, offset: int | None = None) -> Value:
        """Another window on the same memory: row-major and from the same element on, unless told otherwise."""
        return Value(self.buffer, shape, strides, self.offset if offset is None else offset)

    def without(self, axes: Sequence[int]) -> Value:
        """Without some dimensions, at their first elements."""
        kept = [k for k in range(len(self.shape)) if k not in axes]
        return Value(self.buffer, [self.shape[k] for k in kept], [self.strides[k] for k in kept], self.offset)

    def expand(self, shape: Sequence[int]) -> Value:
        extra = len(shape) - len(self.shape)
        strides = [0] * extra + [
            s if n == m else 0 for n, m, s in zip(self.shape, shape[extra:], self.strides, strict=True)
        ]
        return Value(self.buffer, shape, strides, self.offset)

    def permute(self, order: Sequence[int]) -> Value:
        return Value(self.buffer, [self.shape[d] for d in order], [self.strides[d] for d in order], self.offset)

    def unsqueeze(self, dim: int) -> Value:
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(dim, 1)
        strides.insert(dim, 0)
        return Value(self.buffer, shape, strides, self.offset)

    def vector(self) -> Value:
        """Itself; a number as a vector of one."""
        return self if self.shape else self.unsqueeze(0)

    def narrow(self, dim: int, start: int, length: int) -> Value:
        shape = [length if d == dim else n for d, n in enumerate(self.shape)]
        return Value(self.buffer, shape, self.strides, self.offset + start * self.strides[dim])

    def swap(self) -> Value:
        """The last two dimensions exchanged."""
        rank = len(self.shape)
        return self.permute([*range(rank - 2), rank - 1, rank - 2])


class Compute:
    """A loop nest over `dims`. `strides` place the result; they are 0 along `reduced` loops.

    `scan`: what is reduced so far is stored in each iteration, so that `strides` along `reduced` loops are not 0.
    `scatter`: (index expression, stride, size) of dimensions whose place is computed. `meets` says how a result and what is
    there already become one: "sum", "prod", "max", "min", or "set", where the last one stays.
    """

    __slots__ = (
        "buffer",
        "offset",
        "dims",
        "strides",
        "expr",
        "reduce",
        "reduced",
        "scatter",
        "meets",
        "scan",
        "cached",
    )

    def __init__(
        self, buffer, offset, dims, strides, expr, reduce=None, reduced=frozenset(), scatter=(), meets="sum", scan=False
    ):
        self.buffer, self.offset, self.dims, self.strides = buffer, offset, tuple(dims), tuple(strides)
        self.expr, self.reduce, self.reduced, self.scatter = expr, reduce, frozenset(reduced), scatter
        self.meets, self.scan = meets, scan
        self.cached: list | None = None

    @property
    def alone(self) -> bool:
        """Whether its iterations depend on each other in a way that no other loop nest shares."""
        return self.scan or bool(self.scatter)

    def computing(self, expr: Expr, scatter: tuple) -> Compute:
        """The same loop nest with other expressions."""
        return Compute(
            self.buffer, self.offset, self.dims, self.strides, expr, self.reduce, self.reduced, scatter, self.meets, self.scan
        )  # fmt: skip

    def loads(self) -> list[Expr]:
        if self.cached is None:
            own = loads(self.expr)
            self.cached = own + [e for index, _, _ in self.scatter for e in loads(index)] if self.scatter else own
        return self.cached

    def writes(self) -> set[Buffer]:
        return {self.buffer}

    def reads(self) -> set[Buffer]:
        return {e.args[0] for e in self.loads()}

    def over(self, dims: Sequence[int], rows: Sequence[tuple]) -> Compute:
        """The same loop nest over other loops; see `reindex`."""
        strides, offset = [0] * len(dims), self.offset
        reduced = set()
        for d, (terms, base) in enumerate(rows):
            offset += self.strides[d] * base
            for k, step in terms:
                strides[k] += self.strides[d] * step
                if d in self.reduced:
                    reduced.add(k)
        scatter = tuple([(reindex(i, rows, len(dims)), s, n) for i, s, n in self.scatter])
        expr = reindex(self.expr, rows, len(dims))
        return Compute(
            self.buffer, offset, dims, strides, expr, self.reduce, reduced, scatter, self.meets, self.scan
        )  # fmt: skip

    def split(self, k: int, inner: int) -> Compute:
        """Loop `k` as two: the inner one of this length."""
        return self.over(*split_rows(self.dims, k, inner))

    def squeezed(self) -> Compute:
        """Without loops of length 1; what is reduced over nothing is itself."""
        kept = [k for k, n in enumerate(self.dims) if n != 1]
        if self.reduce and not any(k in self.reduced for k in kept):
            self = Compute(
                self.buffer, self.offset, self.dims, self.strides, self.expr, scatter=self.scatter, meets=self.meets
            )
        if len(kept) == len(self.dims):
            return self
        rows = [([(kept.index(k), 1)], 0) if n != 1 else ([], 0) for k, n in enumerate(self.dims)]
        return self.over([self.dims[k] for k in kept], rows)


class Call:
    """A step that is a call of a routine, on whole values."""

    __slots__ = ("target",)
    target: Value

    @property
    def buffer(self) -> Buffer:
        return self.target.buffer

    def writes(self) -> set[Buffer]:
        return {self.buffer}

    def reads(self) -> set[Buffer]:
        raise NotImplementedError


class Product(Call):
    """`target[b] = a[b] @ b[b]`: matrices or batches of them, by BLAS. Windows that BLAS can read in place.

    `bias`, of a single matrix: a row that is added to each of the target's before it is rounded.
    """

    __slots__ = ("a", "b", "bias")

    def __init__(self, target: Value, a: Value, b: Value, bias: Value | None = None):
        self.target, self.a, self.b, self.bias = target, a, b, bias

    def reads(self) -> set[Buffer]:
        return {v.buffer for v in (self.a, self.b, self.bias) if v is not None}


class Convolved(Call):
    """`target` is a convolution of two operands by a library; `prepared` is what the library made of it. `work`: its operations.

    `bias`: a number for each channel of the target, which is added.
    """

    __slots__ = ("first", "second", "prepared", "work", "bias")

    def __init__(self, target: Value, first: Value, second: Value, prepared: Any, work: int, bias: Value | None = None):
        self.target, self.first, self.second, self.prepared, self.work = target, first, second, prepared, work
        self.bias = bias

    def reads(self) -> set[Buffer]:
        return {v.buffer for v in (self.first, self.second, self.bias) if v is not None}


class Launched(Call):
    """A kernel whose text is written by hand, with `NAME` for its name: it takes where the buffers of `sources` and then of `targets` begin.

    `prelude` is what its text needs besides every kernel's; `work`: its operations.
    """

    __slots__ = ("targets", "sources", "text", "prelude", "grid", "block", "work", "label")

    def __init__(
        self,
        targets: list[Value],
        sources: list[Value],
        text: str,
        prelude: str,
        grid: int,
        block: int,
        work: int,
        label: str,
    ):
        self.target, self.targets, self.sources, self.text, self.prelude = targets[0], targets, sources, text, prelude
        self.grid, self.block, self.work, self.label = grid, block, work, label

    def writes(self) -> set[Buffer]:
        return {v.buffer for v in self.targets}

    def reads(self) -> set[Buffer]:
        return {v.buffer for v in self.sources}


class Sort(Call):
    """`target[row, k]`: the place in its row of the element of `source` of rank `first + k`, the earlier of equals first.

    Both are row-major; NaN comes last, or first where the order is descending.
    """

    __slots__ = ("source", "descending", "first")

    def __init__(self, target: Value, source: Value, descending: bool, first: int = 0):
        self.target, self.source, self.descending, self.first = target, source, descending, first

    def reads(self) -> set[Buffer]:
        return {self.source.buffer}


class Engine:
    """A library whose routines generated code starts and awaits: two functions, and what is to be seen to around a native call."""

    begin: int  # the address of `long begin(routine, source, target)`: 0, or a negative number where it failed
    await_: int  # of `long await(target)`, the same; at once where nothing writes the target

    def ready(self, routines: list[Routine], arrays: tuple) -> bool:
        """Whether the routines can be called now; `arrays` are what comes in. Where not, operators run."""
        raise NotImplementedError

    def done(self, arrays: tuple) -> None:
        """A native call has returned; routines may still write to some of `arrays`, which came out."""
        raise NotImplementedError

    def failed(self, code: int) -> None:
        """Raise the error of a routine that gave a negative number."""
        raise NotImplementedError


class Routine:
    """One call of an engine's, as it is told to the engine: by the address of a description."""

    engine: Engine
    name: str

    @property
    def address(self) -> int:
        raise NotImplementedError


class Started(Call):
    """A routine that reads `source` when it is called (None: `target` itself), and owns `target` until that is awaited."""

    __slots__ = ("source", "routine")

    def __init__(self, target: Value, source: Value | None, routine: Routine):
        self.target, self.source, self.routine = target, source, routine

    def reads(self) -> set[Buffer]:
        return {self.buffer if self.source is None else self.source.buffer}


class Awaited(Call):
    """The end of what was started on `target`, here or in an earlier native call."""

    __slots__ = ("routine",)

    def __init__(self, target: Value, routine: Routine):
        self.target, self.routine = target, routine

    def reads(self) -> set[Buffer]:
        return {self.buffer}


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of memory a window reaches over."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def split_rows(dims: Sequence[int], k: int, inner: int) -> tuple[list[int], list[tuple]]:
    """New loops, and old indices in terms of them, where loop `k` is split."""
    rows: list[tuple] = [([(d if d < k else d + 1, 1)], 0) for d in range(len(dims))]
    rows[k] = ([(k, inner), (k + 1, 1)], 0)
    return [*dims[:k], dims[k] // inner, inner, *dims[k + 1 :]], rows


def locate(dims, strides, offset, sizes, places, base):
    """Which iteration of a loop nest over `sizes`, storing at `base + places`, wrote what is read at `offset + strides`.

    Gives `rows` (old index d as terms of the reader's loops, see `reindex`), or `(k, inner)`: the reader's loop `k` must be
    split first; or None: there is no affine answer.
    """
    digits = sorted(
        ((t, m, d) for d, (t, m) in enumerate(zip(places, sizes, strict=True)) if m > 1 and t), reverse=True
    )
    rest = offset - base
    rows: list[list] = [[[], 0] for _ in sizes]
    reach = {}
    for n, (t, m, d) in enumerate(digits):
        if t < 0 or rest < 0 or n and digits[n - 1][0] < t * m:
            return None
        rows[d][1] = reach[d] = min(rest // t, m - 1)
        rest -= rows[d][1] * t
    if rest:
        return None
    for s, n, k in sorted(
        ((s, n, k) for k, (s, n) in enumerate(zip(strides, dims, strict=True)) if n > 1 and s), reverse=True
    ):
        found = next((digit for digit in digits if digit[0] <= s), None)
        if s < 0 or found is None or s % found[0]:
            return None
        t, m, d = found
        step = s // t
        if reach[d] + step * (n - 1) < m:
            rows[d][0].append((k, step))
            reach[d] += step * (n - 1)
            continue
        inner = m // step
        if reach[d] or m % step or inner < 2 or n % inner or not any(other == t * m for other, _, _ in digits):
            return None
        return k, inner
    return [(tuple(terms), start) for terms, start in rows]
