"""What a lowering rule is given: a builder that writes down loops.

    def lower_softmax(b, x, dim, half_to_float):
        ...
        return b.fill(b.result(), b.element(powers, rank) / b.element(total, rank))

A rule gets the builder and the operator's arguments in schema order, tensors as `Value`s (windows on memory), and gives the value
of the result, or a tuple of several; or `NotLowerable(reason)`. What `b.result()` says of shape, dtype and strides is what the
shape rule says, so there is one source for it. `b.o` are the functions of one element (`b.o.exp`), by NumPy's names.

What always holds: steps run in the order in which they are written; a rule that gives `NotLowerable` leaves nothing behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...core import dtype as dtypes
from ...core.dtype import dtype
from ...core.geometry import broadcast_shapes
from ...core.tensor import Tensor, stride_of
from ..system.operator import Operator
from . import expressions
from .elements import ELEMENTS, Element, number
from .expressions import Expr, cast, const, load
from .loops import Awaited, Buffer, Call, Compute, Product, Routine, Sort, Started, Value, span

FEW, MUCH = 8, 1 << 16  # results, and elements, of reductions that are made in two steps
IDENTITY = {"sum": 0, "prod": 1, "any": False, "all": True, "max": -math.inf, "min": math.inf}
Place = tuple[
    Element, int, int | None
]  # an index that is computed: its value, its stride, how many there are (None: it is one of them)


class Builder:
    """The loops of one graph as they are written down, and the call that a rule is asked about."""

    o = ELEMENTS
    device = "cpu"  # the type of device whose tensors have loops here
    reads_beside_borders = (
        False  # whether windows over a border are read element by element, rather than off a copy with one
    )

    def __init__(self) -> None:
        self.steps: list[Compute | Call] = []
        self.buffers: list[Buffer] = []
        self.op: Operator
        self.outputs: object = None  # the result or results, tensors without data

    # ---- the call
    @property
    def fakes(self) -> tuple:
        """The arguments of the call in canonical form, tensors without data."""
        raise NotImplementedError

    @property
    def escapes(self) -> bool:
        """Whether the result, or a view of it, comes out of the graph: then it must share the memory it is said to share."""
        raise NotImplementedError

    def spec(self, which: int | None = None) -> Tensor:
        """The result, or one of several, as a tensor without data."""
        return self.outputs if which is None else self.outputs[which]  # type: ignore[return-value, index]

    def result(self, which: int | None = None) -> Value:
        """Memory for the result, or one of several."""
        t = self.spec(which)
        return self.blank(t._array.shape, t.dtype, stride_of(t))

    # ---- memory and steps
    def buffer(self, d: dtype, size: int, kind: str = "temp") -> Buffer:
        result = Buffer(f"b{len(self.buffers)}", d, size, kind)
        self.buffers.append(result)
        return result

    def blank(self, shape: Sequence[int], d: dtype, strides: Sequence[int] | None = None) -> Value:
        """Memory for a tensor."""
        result = Value(self.buffer(d, 0), shape, strides)
        result.buffer.size = span(result.shape, result.strides)
        return result

    def emit(self, step: Compute | Call) -> None:
        self.steps.append(step)
        for b in step.writes():
            b.writers.append(step)
        for b in step.reads():
            b.readers.append(step)

    def undo(self, steps: int) -> None:
        """Take back all but the first so many steps."""
        for step in self.steps[steps:]:
            for b in step.writes():
                b.writers.remove(step)
            for b in step.reads():
                b.readers.remove(step)
        del self.steps[steps:]

    def start(self, target: Value, source: Value | None, routine: Routine) -> Value:
        """Call a routine that owns `target` until it is awaited, and reads `source` at once, or what `target` holds."""
        self.emit(Started(target, source, routine))
        return target

    def await_(self, target: Value, routine: Routine) -> Value:
        """Wait for what was started on a value."""
        self.emit(Awaited(target, routine))
        return target

    # ---- one element
    @staticmethod
    def wide(d: dtype) -> dtype:
        """The dtype in which something is computed: float32 for the narrow floats."""
        return dtypes.float32 if d in dtypes.reduced_precision else d

    def operand(self, d: dtype) -> dtype:
        """The dtype in which a product reads an operand: widened, where BLAS knows no narrow floats."""
        return self.wide(d)

    def element(self, v: Value, rank: int | None = None) -> Element:
        """The element of a value at the loop indices, narrow floats widened; `rank` loops, to which it broadcasts."""
        e = v.element(rank)
        return Element(cast(e, self.wide(e.dtype)))

    def raw(self, v: Value, rank: int | None = None) -> Element:
        """The same as it lies in memory."""
        return Element(v.element(rank))

    def number(self, value, d: dtype) -> Element:
        return Element(number(value, d))

    def index(self, dim: int, step: int = 1, base: int = 0) -> Element:
        """`base + step * index` of a loop."""
        return Element(expressions.affine([(dim, step)], base))

    def gather(self, v: Value, strides: Sequence[int], places: Sequence[Place] = ()) -> Element:
        """An element of the memory of a value: at these strides along the loops, and at places that are computed."""
        return Element(load(v.buffer, v.offset, strides, _indirect(places)))

    # ---- computing
    def fill(self, target: Value, value: Element | Expr) -> Value:
        """Store one element for each iteration of the loops over a value's shape."""
        if target.numel:
            expr = value.expr if isinstance(value, Element) else value
            strides = [0 if n == 1 else s for n, s in zip(target.shape, target.strides, strict=True)]
            self.emit(Compute(target.buffer, target.offset, target.shape, strides, cast(expr, target.dtype)))
        return target

    def store(self, target: Value, source: Value, fn: Callable = lambda x: x) -> Value:
        """Fill one value with a function of the elements of another that broadcasts to it."""
        return self.fill(target, fn(self.element(source, len(target.shape))))

    def returned(self, result: Value, which: int | None = None) -> Value:
        """A value as the result: itself where dtype and strides are the result's."""
        t = self.spec(which)
        placed = all(n == 1 or s == w for n, s, w in zip(result.shape, result.strides, stride_of(t), strict=True))
        return result if result.dtype is t.dtype and placed else self.store(self.result(which), result)

    def pointwise(self, fn: Callable, *operands: Value, dtype: dtype | None = None) -> Value:
        """`fn` of the elements of broadcast operands, narrow floats widened; into a new value."""
        shape = broadcast_shapes(*[v.shape for v in operands])
        result = fn(*[self.element(v, len(shape)) for v in operands])
        return self.fill(self.blank(shape, dtype or operands[0].dtype), result)

    def copy(self, v: Value) -> Value:
        return self.pointwise(lambda x: x, v)

    def contiguous(self, v: Value) -> Value:
        return v if v.is_contiguous else self.copy(v)

    def reduce(
        self, how: str, operands: Sequence[Value], fn: Callable, axes: Sequence[int], d: dtype, keepdim: bool = True
    ) -> Value:
        """Reduce `fn` of the elements of values of one shape over some axes, in dtype `d`, which is stored (wide if narrow)."""
        shape = broadcast_shapes(*[v.shape for v in operands])
        result = fn(*[self.element(v, len(shape)) for v in operands])
        kept = [1 if k in axes else n for k, n in enumerate(shape)]
        out = self.blank(kept, d)
        strides = [0 if k in axes or n == 1 else s for k, (n, s) in enumerate(zip(kept, out.strides, strict=True))]
        if out.numel and not math.prod(shape):
            self.fill(out, number(IDENTITY[how], d))
        elif out.numel:
            self._reduce(Compute(out.buffer, 0, shape, strides, cast(result.expr, d), how, set(axes)), out.numel)
        return out if keepdim else out.without(axes)

    def _reduce(self, step: Compute, results: int) -> None:
        """A reduction; one of much to few results in two steps, the first of which threads can share."""
        cuts = {d: next((p for p in range(64, 3, -1) if step.dims[d] % p == 0), 1) for d in sorted(step.reduced)}
        # the first that makes enough pieces: what runs along memory stays in one
        k = next((d for d, p in cuts.items() if p >= FEW), max(cuts, key=lambda d: step.dims[d], default=None))
        pieces = 1 if k is None else cuts[k]
        if results > FEW or math.prod(step.dims) < MUCH or pieces == 1 or k is None:
            self.emit(step)
            return
        self.emit_split(step, k, pieces, results)

    def emit_split(self, step: Compute, k: int, pieces: int, results: int) -> None:
        """A reduction in two steps: of so many pieces of loop `k`, and of what they come to."""
        part = self.buffer(step.expr.dtype, results * pieces)
        whole = step.split(k, step.dims[k] // pieces)
        strides = [1 if d == k else s * pieces for d, s in enumerate(whole.strides)]
        self.emit(Compute(part, 0, whole.dims, strides, whole.expr, step.reduce, whole.reduced - {k}))
        kept = [d for d in range(len(step.dims)) if d not in step.reduced]
        read = load(part, 0, [*[step.strides[d] * pieces for d in kept], 1])
        dims, places = [*[step.dims[d] for d in kept], pieces], [*[step.strides[d] for d in kept], 0]
        self.emit(Compute(step.buffer, step.offset, dims, places, read, step.reduce, {len(kept)}))

    def moments(self, x: Value, axes: Sequence[int], rooted: bool = False) -> tuple[Value, Value]:
        """The mean, and the sum of squared differences from it, over some axes, which are kept.

        Squares of float32 leave its range long before their root does: `rooted` ones are added up in float64.
        """
        d, n = self.wide(x.dtype), math.prod(x.shape[k] for k in axes)
        mean = self.pointwise(lambda s: s / float(n), self.reduce("sum", [x], lambda e: e, axes, d))
        wider = dtypes.float64 if rooted and d is dtypes.float32 else d

        def square(e: Element, m: Element) -> Element:
            apart = self.o.cast(e - m, wider)
            return apart * apart

        return mean, self.reduce("sum", [x, mean], square, axes, wider)

    def product(self, x: Value, y: Value, result: Tensor | None = None) -> Value:
        """`x @ y` of matrices of floats or batches of them, in the wide dtype, by BLAS.

        `result`: what it is to become (see `spec`), in whose place it is written where BLAS can.
        """
        d = self.wide(x.dtype)
        assert d in (dtypes.float32, dtypes.float64), f"a product in {d}"
        out = self._room((*x.shape[:-1], y.shape[-1]), d, result)
        if not x.shape[-1]:
            return self.fill(out, const(0.0, d))
        if out.numel:
            self.emit(Product(out, self.for_blas(x, d), self.for_blas(y, d)))
        return out

    def product_into(self, target: Value, x: Value, y: Value) -> None:
        """`x @ y`, written to a window whose rows BLAS can write."""
        self.store(target, self.product(x, y))

    def queries_together(self, length: int) -> int:
        """How many queries of causal attention of a sequence with itself are multiplied together with the keys that they see."""
        return length

    def biased_product(self, x: Value, y: Value, bias: Value) -> Value | None:
        """`x @ y + bias` of matrices and a row, in the result's dtype, by one call of BLAS; None where that is not one call."""
        return None

    def attention(self, q: Value, k: Value, v: Value, causal: bool, scale: float) -> tuple[Value, Value] | None:
        """The results of attention (output, logarithms of sums), by kernels that never hold all scores; None where there are none."""
        return None

    def attention_backward(self, g: Value, q, k, v, out: Value, lse: Value, causal: bool, scale: float) -> tuple | None:
        """Gradients of queries, keys and values, in the same way."""
        return None

    def convolved(
        self, form: int, target: Value, x: Value, w: Value, y: Value, settings: tuple, bias: Value | None = None
    ) -> Value | None:
        """A convolution by a library, in one of its forms (0: y from x and w, 1: x from y and w, 2: w from x and y), written to `target`,
        which is one of the three, plus `bias`. `settings`: stride, padding, dilation, groups. None where no library does it."""
        return None

    def rounds_products(self, d: dtype) -> bool:
        """Whether BLAS sums in the wide dtype and stores in this one."""
        return d is self.wide(d)

    def _room(self, shape: tuple, d: dtype, result: Tensor | None) -> Value:
        """Memory for a product."""
        if result is not None and self.wide(result.dtype) is d and self.rounds_products(result.dtype):
            strides = stride_of(result)
            if tuple(result._array.shape) == shape and strides[-1] == 1 and strides[-2] >= shape[-1]:
                return self.blank(shape, result.dtype, strides)
        return self.blank(shape, d)

    def for_blas(self, v: Value, d: dtype) -> Value:
        """A matrix, or batch of them, that BLAS can read in place."""
        rows, columns = v.shape[-2:]
        s, t = v.strides[-2:]
        by_rows = (t == 1 or columns == 1) and (s >= columns or rows == 1)
        by_columns = (s == 1 or rows == 1) and (t >= rows or columns == 1)
        return v if v.dtype is d and (by_rows or by_columns) else self.pointwise(lambda e: e, v, dtype=d)

    def scatter(
        self,
        target: Value,
        dims: Sequence[int],
        value: Element,
        strides: Sequence[int],
        places: Sequence[Place],
        how="sum",
    ) -> None:
        """Write an element per iteration of loops over `dims`: at these strides, and at places that are computed.

        `how` it meets what is there: "sum", "prod", "max", "min"; "set": the last one stays, in the order of the loops.
        """
        if math.prod(dims):
            expr = cast(value.expr, target.dtype)
            self.emit(Compute(target.buffer, target.offset, dims, strides, expr, scatter=_indirect(places), meets=how))

    def scan(self, how: str, v: Value, fn: Callable, dim: int, out: Value) -> Value:
        """What `fn` of the elements along a dimension comes to, up to and with each: "sum", "prod", "max", "min", "logaddexp".

        Into `out`, of the same shape, in its dtype; a narrow float is filled from a wide one.
        """
        d = self.wide(out.dtype)
        target = out if d is out.dtype else self.blank(v.shape, d)
        if out.numel:
            strides = [0 if n == 1 else s for n, s in zip(out.shape, target.strides, strict=True)]
            expr = cast(fn(self.element(v)).expr, d)
            self.emit(Compute(target.buffer, target.offset, out.shape, strides, expr, how, {dim}, scan=True))
        return out if target is out else self.store(out, target)

    def sort(self, v: Value, descending: bool, first: int = 0, last: int | None = None) -> Value:
        """The places of the elements of each row in order, or of those of ranks `first` to `last`; see `Sort`."""
        last = v.shape[-1] if last is None else last
        out = self.blank((*v.shape[:-1], last - first), dtypes.int64)
        if out.numel:
            source = (
                self.contiguous(v)
                if v.dtype is self.wide(v.dtype)
                else self.pointwise(lambda e: e, v, dtype=dtypes.float32)
            )
            self.emit(self.sorting(out, source, descending, first))
        return out

    def sorting(self, target: Value, source: Value, descending: bool, first: int) -> Call:
        """The step that sorts."""
        return Sort(target, source, descending, first)


def _indirect(places: Sequence[Place]) -> tuple:
    return tuple([(cast(at.expr, dtypes.int64), stride, size) for at, stride, size in places])
