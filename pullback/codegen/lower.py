"""A graph, lowered to loops: nodes in, `Compute`s, `Product`s and `Value`s out.

`Lowering.run_node(node)` gives the values of a node or raises `Unlowerable`; nothing is left behind when it does. The rule of
an operator is its family's: element-wise kernels are read as scalar expressions (see `elements`), views are windows by the
geometry they declare, reductions and structured operators name their rule by `lower="sum"`, `lower="softmax"` (see `rules`). What fake tensors
say of shape, dtype and strides is what buffers are made of.
"""

from __future__ import annotations

import math
import operator as python_operators
from collections.abc import Callable, Sequence

from ..core import dtype as dtypes
from ..core.dtype import dtype
from ..core.geometry import broadcast_shapes
from ..core.tensor import Tensor, stride_of
from ..graph.node import Node
from ..ops.family.pointwise import POINTWISE
from ..ops.family.reduction import REDUCTION
from ..ops.family.view import VIEW
from ..ops.system.operator import Operator
from .elements import ELEMENTS, Element, Unlowerable, number
from .expressions import Expr, cast, const, load
from .loops import Buffer, Compute, Product, Value

SUPPORTED = frozenset(
    (
        dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint16, dtypes.uint32,
        dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
    )
)  # fmt: skip
FEW, MUCH = 8, 1 << 16  # results, and elements, of reductions that are made in two steps
RULES: dict[str, Callable] = {}  # name -> rule(lowering, node, *canonical arguments); filled by `rules`


def rule(name: str) -> Callable:
    def register(fn: Callable) -> Callable:
        RULES[name] = fn
        return fn

    return register


class Lowering:
    """The loops of one graph, as they are written down node by node."""

    def __init__(self) -> None:
        self.steps: list[Compute | Product] = []
        self.buffers: list[Buffer] = []
        self.values: dict[Node, object] = {}

    # ---- buffers and steps
    def buffer(self, d: dtype, size: int, kind: str = "temp") -> Buffer:
        made = Buffer(f"b{len(self.buffers)}", d, size, kind)
        self.buffers.append(made)
        return made

    def input(self, node: Node) -> Value:
        """The value of a tensor that comes from outside: an argument, or the result of an operator that has no loops."""
        t = checked(node.meta.get("val"))
        strides = stride_of(t)
        made = Value(self.buffer(t.dtype, span(t.array.shape, strides), "input"), t.array.shape, strides)
        self.values[node] = made
        return made

    def blank(self, shape: Sequence[int], d: dtype, strides: Sequence[int] | None = None) -> Value:
        """Memory for a tensor."""
        made = Value(self.buffer(d, 0), shape, strides)
        made.buffer.size = span(made.shape, made.strides)
        return made

    def emit(self, step: Compute | Product) -> None:
        self.steps.append(step)
        step.buffer.writers.append(step)
        for b in step.reads():
            b.readers.append(step)

    # ---- computing
    def fill(self, target: Value, expr: Expr) -> Value:
        """Store an expression over the loops of a value's shape."""
        if target.numel:
            strides = [0 if n == 1 else s for n, s in zip(target.shape, target.strides, strict=True)]
            self.emit(Compute(target.buffer, target.offset, target.shape, strides, cast(expr, target.dtype)))
        return target

    def pointwise(self, fn: Callable, *operands, shape=None, dtype: dtype | None = None, strides=None) -> Value:
        """`fn` of the elements of broadcast operands, narrow floats widened; into a new value."""
        shape = broadcast_shapes(*[v.shape for v in operands]) if shape is None else tuple(shape)
        made = fn(*[self.element(v, len(shape)) for v in operands])
        expr = made.expr if isinstance(made, Element) else made
        return self.fill(self.blank(shape, dtype or operands[0].dtype, strides), expr)

    def element(self, v: Value, rank: int) -> Element:
        e = v.element(rank)
        return Element(cast(e, dtypes.float32) if e.dtype in dtypes.reduced_precision else e)

    def reduce(self, how: str, operands, fn, axes: Sequence[int], d: dtype, keepdim: bool = True) -> Value:
        """Reduce `fn` of the elements of values of one shape over some axes, in dtype `d`, which is stored (wide if narrow)."""
        shape = broadcast_shapes(*[v.shape for v in operands])
        made = fn(*[self.element(v, len(shape)) for v in operands])
        kept = [1 if k in axes else n for k, n in enumerate(shape)]
        out = self.blank(kept, d)
        strides = [0 if k in axes or n == 1 else s for k, (n, s) in enumerate(zip(kept, out.strides, strict=True))]
        if not out.numel:
            pass
        elif not math.prod(shape):
            if how not in IDENTITY:
                raise Unlowerable(f"{how} of nothing")
            self.fill(out, const(IDENTITY[how], d))
        else:
            self._reduce(Compute(out.buffer, 0, shape, strides, cast(made.expr, d), how, set(axes)), out.numel)
        if keepdim:
            return out
        left = [k for k in range(len(shape)) if k not in axes]
        return Value(out.buffer, [shape[k] for k in left], [out.strides[k] for k in left])

    def _reduce(self, step: Compute, results: int) -> None:
        """A reduction; one of much to few results in two steps, the first of which threads can share."""
        k = max(step.reduced, key=lambda d: step.dims[d], default=None)
        pieces = 1 if k is None else next((p for p in range(64, 3, -1) if step.dims[k] % p == 0), 1)
        if results > FEW or math.prod(step.dims) < MUCH or pieces == 1 or k is None:
            self.emit(step)
            return
        part = self.buffer(step.expr.dtype, results * pieces)
        whole = step.split(k, step.dims[k] // pieces)
        strides = [1 if d == k else s * pieces for d, s in enumerate(whole.strides)]
        self.emit(Compute(part, 0, whole.dims, strides, whole.expr, step.reduce, whole.reduced - {k}))
        kept = [d for d in range(len(step.dims)) if d not in step.reduced]
        read = load(part, 0, [*[step.strides[d] * pieces for d in kept], 1])
        dims, places = [*[step.dims[d] for d in kept], pieces], [*[step.strides[d] for d in kept], 0]
        self.emit(Compute(step.buffer, step.offset, dims, places, read, step.reduce, {len(kept)}))

    def copy(self, v: Value) -> Value:
        return self.pointwise(lambda x: x, v)

    # ---- nodes
    def run_node(self, node: Node) -> object:
        """The value(s) of a node; raises `Unlowerable`."""
        steps = len(self.steps)
        try:
            made = self._lower(node)
        except Exception as error:  # a rule that does not fit its arguments: the operator says what is wrong with them
            self._undo(steps)
            raise error if isinstance(error, Unlowerable) else Unlowerable(f"{node.target}: {error}") from error
        self.values[node] = made
        return made

    def _undo(self, steps: int) -> None:
        for step in self.steps[steps:]:
            step.buffer.writers.remove(step)
            for b in step.reads():
                b.readers.remove(step)
        del self.steps[steps:]

    def _lower(self, node: Node):
        if node.target is python_operators.getitem:
            return self.values[node.args[0]][node.args[1]]
        op = node.target
        if not isinstance(op, Operator) or op.namespace != "aten":
            raise Unlowerable(str(op))
        args = op.bind(node.args, dict(node.kwargs))
        if isinstance(op.lower, str):
            check_results(node.meta.get("val"))
            return RULES[op.lower](self, node, *self.given(args))
        if op.family is POINTWISE:
            return self._pointwise(op, node, args)
        if op.family is VIEW:
            return self._view(op, node, args)
        raise Unlowerable(f"no rule for {op}")

    def given(self, args: tuple) -> list:
        return [self._given(a) for a in args]

    def _given(self, a):
        if isinstance(a, Node):
            return self.values[a]
        if isinstance(a, (list, tuple)):
            return [self._given(x) for x in a]
        return a

    def _pointwise(self, op: Operator, node: Node, args: tuple) -> Value:
        out = checked(node.meta["val"])
        fakes = op.convert(tuple([a.meta["val"] if isinstance(a, Node) else a for a in args]))
        _, compute, result = POINTWISE.plan(op, fakes)
        if compute not in SUPPORTED:
            raise Unlowerable(f"{op} in {compute}")
        working = dtypes.float32 if compute in dtypes.reduced_precision else compute
        rank = len(out.array.shape)
        values = []
        for a, is_operand in zip(args, op.operand_mask, strict=True):
            if isinstance(a, Node) and isinstance(self.values[a], Value):
                e = self.values[a].element(rank)
                values.append(Element(cast(cast(e, compute), working) if is_operand else e))
            elif is_operand and a is not None:
                values.append(Element(cast(number(self._given(a), compute), working)))
            else:
                values.append(self._given(a))
        made = scalar_rule(op)(*values)
        if not isinstance(made, Element):
            raise Unlowerable(f"{op}: its kernel gives {type(made).__name__}")
        expr = made.expr
        if result in dtypes.reduced_precision or compute is not working:
            expr = cast(expr, result)
        return self.fill(self.blank(out.array.shape, result, stride_of(out)), expr)

    def _view(self, op: Operator, node: Node, args: tuple):
        source = self._given(args[0])
        given = [a.meta["val"] if isinstance(a, Node) else a for a in args[1:]]
        arguments = op.schema.arguments[1:]
        given = [argument.convert_value(a) for argument, a in zip(arguments, given, strict=True)]
        if op.name in ("as_strided", "real", "imag", "view_as_real", "view_as_complex") or op.overload == "dtype":
            raise Unlowerable(f"{op}: a window on the memory under a tensor")
        made = op.options["geometry"](source.shape, source.strides, source.offset, *given)
        check_results(node.meta.get("val"))
        if isinstance(made, list):
            return tuple([Value(source.buffer, *m[:3]) for m in made])
        return Value(source.buffer, *made[:3])


IDENTITY = {"sum": 0, "prod": 1, "any": False, "all": True}


def scalar_rule(op: Operator) -> Callable:
    """What computes one element: the operator's `lower`, else its kernel."""
    if op.lower is not None:
        return lambda *values: op.lower(ELEMENTS, *values)
    if op.kernel is not None:
        return lambda *values: op.kernel(ELEMENTS, *values)
    function = getattr(ELEMENTS, op.options["ufunc"])
    return lambda *values: function(*[v for v in values if isinstance(v, Element)])


def checked(t) -> Tensor:
    """A tensor that loops can be over: on the CPU, of a supported dtype, of known sizes."""
    if not isinstance(t, Tensor) or t.dtype not in SUPPORTED or t.device.type != "cpu":
        raise Unlowerable(f"a value that is no plain tensor: {type(t).__name__} {getattr(t, 'dtype', '')}")
    if not all(n.__class__ is int for n in (*t.array.shape, *stride_of(t))):
        raise Unlowerable("symbolic sizes")
    return t


def check_results(made) -> None:
    for t in made if isinstance(made, (tuple, list)) else (made,):
        if t is not None:
            checked(t)


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of memory a window reaches over."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def reduction_of(lowering: Lowering, node: Node) -> tuple:
    """(value, axes, keepdim, dtype of the result, other arguments) of a reduction's call."""
    op = node.target
    args = op.bind(node.args, dict(node.kwargs))
    fakes = op.convert(tuple([a.meta["val"] if isinstance(a, Node) else a for a in args]))
    _, axes, keepdim, result, rest = REDUCTION.bind(op, fakes)
    return lowering.values[args[0]], axes, keepdim, result, rest
