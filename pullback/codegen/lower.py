"""A graph, lowered to loops: nodes in, `Compute`s, `Product`s and `Value`s out.

`Lowering.run_node(node)` gives the values of a node, or `NotLowerable` with the reason. The rule of an operator is the one it is
declared with (`lower=`, a function over the builder); else its family's: element-wise kernels are read as scalar expressions (see
`ops/lowering/elements`), views are windows by the geometry they declare. What fake tensors say of shape, dtype and strides is
what buffers are made of.

What always holds: an error in a rule is not a reason. It is raised where `native.raise_rule_errors` is set (in tests), and
otherwise one warning names the operator, which then runs as it is. Where there are no loops, nothing is left behind.
"""

from __future__ import annotations

import math
import operator as python_operators
import warnings
from collections.abc import Callable
from typing import Any

from ..capture.front.config import native as settings
from ..core import dtype as dtypes
from ..core.dtype import dtype
from ..core.geometry import contiguous_strides
from ..core.modes import process
from ..core.tensor import Tensor, stride_of
from ..graph.node import Node
from ..ops.family.operands import rounded_number, stays_wide
from ..ops.family.pointwise import POINTWISE, pointwise_declaration
from ..ops.family.view import VIEW, GeometryDeclaration
from ..ops.lowering import NotLowerable, takes_complex
from ..ops.lowering.builder import Builder
from ..ops.lowering.elements import ELEMENTS, Element, Number, Unlowerable, number
from ..ops.lowering.expressions import Expr, cast
from ..ops.lowering.loops import Convolved, Product, Value, span
from ..ops.system.operator import Operator
from ..runtime import network, paired
from .exact import differs

SUPPORTED = frozenset(
    (
        dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint16, dtypes.uint32,
        dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
    )
)  # fmt: skip
NUMBERS = {float: dtypes.float64, int: dtypes.int64}  # what numbers are that are known when the loops run
_warned: set[Operator] = set()  # operators whose rule has failed, of which a warning has been given


class Lowering(Builder):
    """The loops of one graph, as they are written down node by node."""

    supported = SUPPORTED
    operands: dtype | None = None  # in which a product reads both of its operands; None: the wide one

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Node, Any] = {}  # a `Value`, several of them, or a number
        self.node: Node  # the node that is being lowered
        self.args: tuple = ()  # its canonical arguments
        # whether what comes out must be, bit for bit, what eager calls give
        self.exact = self.device == "cpu" and process.deterministic

    @property
    def fakes(self) -> tuple:
        return self.op.convert(tuple([_fake(a) for a in self.args]))

    @property
    def escapes(self) -> bool:
        return _escapes(self.node)

    def _has_complex(self, node: Node) -> bool:
        values = [v for n in (node, *node.all_input_nodes) for v in _tensors(n.meta.get("val"))]
        return any(t.dtype.is_complex for t in values)

    def product(self, x: Value, y: Value, result: Tensor | None = None) -> Value:
        self.operands = self.operands_of(x, y)
        return super().product(x, y, result)

    def for_blas(self, v: Value, d: dtype) -> Value:
        return super().for_blas(v, self.operands or d)

    def rounds_products(self, d: dtype) -> bool:
        return d in (self.operands, self.wide(d))

    def operands_of(self, x: Value, y: Value) -> dtype | None:
        """bfloat16 where the processor multiplies it as it is; None for the wide dtype."""
        return x.dtype if x.dtype is y.dtype is dtypes.bfloat16 and not self.exact and paired.address() else None

    def biased_product(self, x: Value, y: Value, bias: Value) -> Value | None:
        """Of two matrices of bfloat16, and a row that lies in one."""
        if len(x.shape) != 2:  # of stacks of matrices
            return None
        (m, k), n = x.shape, y.shape[-1]
        self.operands = self.operands_of(x, y)
        if self.operands is None or not bias.dtype is self.spec().dtype is x.dtype or not min(m, k, n):
            return None
        if bias.shape[-1] != n or bias.numel != n or n > 1 and bias.strides[-1] != 1:
            return None
        out = self.blank((m, n), x.dtype)
        self.emit(Product(out, self.for_blas(x, x.dtype), self.for_blas(y, x.dtype), bias))
        return out

    def convolved(
        self, form: int, target: Value, x: Value, w: Value, y: Value, settings: tuple, bias: Value | None = None
    ) -> Value | None:
        """By the kernels in C, which read any strides; gradients of weights, and what they are made of, are row-major."""
        if x.dtype not in (dtypes.float32, dtypes.float64) or len(x.shape) > 5 or not network.address():
            return None
        if form == network.TO_WEIGHT:
            if target.strides != tuple(contiguous_strides(target.shape)):
                return None
            if not network.sees_pixels((x.shape, x.strides), (y.shape, y.strides), settings[-1]):
                y = self.contiguous(y)
        first, second = ((x, w), (w, y), (x, y))[form]
        sides = (x.shape, x.strides), (w.shape, w.strides), (y.shape, y.strides)
        shift = 0 if bias is None else bias.strides[0]
        numbers = network.described(form, *sides, shift, x.dtype is dtypes.float64, settings)
        work = 2 * math.prod(y.shape) * math.prod(w.shape[1:])
        self.emit(Convolved(target, first, second, numbers, work, bias))
        return target

    def input(self, node: Node) -> Value | NotLowerable:
        """The value of a tensor that comes from outside: an argument, or the result of an operator that has no loops."""
        t: Any = node.meta.get("val")
        if is_number(node):
            result = Value(self.buffer(NUMBERS[t.symbolic_type], 1, "input"), (), ())
            self.values[node] = result
            return result
        refused = self.refuses(t)
        if refused is not None:
            return refused
        strides = stride_of(t)
        result = Value(self.buffer(t.dtype, span(t._array.shape, strides), "input"), t._array.shape, strides)
        self.values[node] = result
        return result

    def refuses(self, t) -> NotLowerable | None:
        """Why loops cannot be over a value: it must be a tensor on the device, of a supported dtype, of known sizes."""
        if not isinstance(t, Tensor):
            return NotLowerable(f"a value of type {type(t).__name__}")
        if t.dtype not in self.supported or t.device.type != self.device:
            return NotLowerable(f"a tensor of {t.dtype} on {t.device.type}")
        if not all(n.__class__ is int for n in (*t._array.shape, *stride_of(t))):
            return NotLowerable("symbolic sizes")
        return None

    def refuses_results(self, result) -> NotLowerable | None:
        for t in result if isinstance(result, (tuple, list)) else (result,):
            refused = self.refuses(t) if t is not None else None
            if refused is not None:
                return refused
        return None

    def run_node(self, node: Node) -> object:
        """The value(s) of a node, or `NotLowerable`."""
        steps = len(self.steps)
        try:
            result = self._lower(node)
        except Unlowerable as error:
            result = NotLowerable(str(error))
        except Exception as error:
            result = failed(node.target, error)
        if self.exact and not isinstance(result, NotLowerable) and (reason := differs(node.target, self.steps[steps:])):
            result = NotLowerable(reason)
        if isinstance(result, NotLowerable):
            self.undo(steps)
        else:
            self.values[node] = result
        return result

    def _lower(self, node: Node):
        if node.target is python_operators.getitem:
            return self.values[node.args[0]][node.args[1]]
        op = node.target
        if not isinstance(op, Operator) or op.namespace != "aten" and op.lower is None:
            return NotLowerable("not an operator of this package")
        refused = self.refuses_results(node.meta.get("val"))
        if refused is not None:
            return refused
        if op.schema.is_mutable:
            return NotLowerable("it writes an argument")
        args = op.bind(node.args, dict(node.kwargs))
        self.op, self.node, self.args, self.outputs = op, node, args, node.meta["val"]
        if op.family is POINTWISE:
            return self._pointwise(op, args)
        if op.lower is not None:
            if not takes_complex(op.lower) and self._has_complex(node):
                return NotLowerable("complex numbers, which its rule does not know")
            return op.lower(self, *self.given(args))
        if op.family is VIEW:
            return self._view(op, args)
        return NotLowerable("no rule")

    def given(self, args: tuple) -> list:
        return [self._given(a) for a in args]

    def _given(self, a):
        if isinstance(a, Node):
            return self.values[a]
        if isinstance(a, (list, tuple)):
            return [self._given(x) for x in a]
        return a

    def _pointwise(self, op: Operator, args: tuple) -> Value | NotLowerable:
        _, compute, result = POINTWISE.plan(op, self.fakes)
        if compute not in self.supported:
            return NotLowerable(f"computed in {compute}")
        working = self.wide(compute)
        out = self.result()
        rank = len(out.shape)
        values: list[Any] = []
        fitting = pointwise_declaration(op).fitting
        for argument, a, is_operand in zip(op.schema.arguments, args, POINTWISE._operand_mask(op), strict=True):
            given = self._given(a)
            if isinstance(a, Node) and isinstance(given, Value):
                e = given.element(rank)
                if is_number(a):
                    values.append(_as_number(e, op, argument, is_operand, (compute, working)))
                    continue
                through = working if stays_wide(op, argument, len(given.shape)) else compute
                values.append(Element(cast(cast(e, through), working) if is_operand else e))
            elif is_operand and a is not None:
                through = working if stays_wide(op, argument) else compute
                values.append(Element(cast(number(given, through), working)))
            elif given is not None and argument.name in fitting and compute is not working:
                values.append(rounded_number(given, compute))
            else:
                values.append(given)
        output = scalar_rule(op)(*values)
        if not isinstance(output, Element):
            return NotLowerable(f"its kernel gives {type(output).__name__}")
        expr = output.expr
        if result in dtypes.reduced_precision or compute is not working:
            expr = cast(expr, result)
        return self.fill(out, expr)

    def _view(self, op: Operator, args: tuple) -> Value | tuple[Value, ...] | NotLowerable:
        if op.family.retypes or op.declared.names_memory:
            return NotLowerable("a window on the memory under a tensor")
        if not isinstance(op.declared, GeometryDeclaration):
            return NotLowerable("a view that is no geometry")
        source = self._given(args[0])
        result = op.declared.geometry(source.shape, source.strides, source.offset, *self.fakes[1:])
        if isinstance(result, list):
            return tuple([Value(source.buffer, *m[:3]) for m in result])
        return Value(source.buffer, *result[:3])


def is_number(node: Node) -> bool:
    """Whether a node is a number that each call brings along."""
    return node.op == "placeholder" and getattr(node.meta.get("val"), "symbolic_type", None) in NUMBERS


def _as_number(
    e: Expr, op: Operator, argument, is_operand: bool, through: tuple[dtypes.dtype, dtypes.dtype]
) -> Element:
    """Such a number as an operand, or as a factor of one, rounded as a constant in its place would be."""
    compute, working = through
    if is_operand:
        return Element(cast(cast(e, working if stays_wide(op, argument) else compute), working))
    is_rounded = argument.name in pointwise_declaration(op).fitting and compute is not working
    return Number(cast(cast(e, compute), e.dtype) if is_rounded else e)


def _tensors(value) -> list[Tensor]:
    return [t for t in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(t, Tensor)]


def _escapes(node: Node) -> bool:
    """Whether the value of a node, or a view of it, comes out of the graph."""
    for user in node.users:
        op = user.target
        passes_on = op is python_operators.getitem or isinstance(op, Operator) and op.is_view
        if user.op == "output" or passes_on and _escapes(user):
            return True
    return False


def _fake(a):
    """An argument with the tensors of its trace in place of nodes."""
    if isinstance(a, Node):
        return a.meta["val"]
    if isinstance(a, (list, tuple)):
        return type(a)([_fake(x) for x in a])
    return a


def failed(op, error: Exception) -> NotLowerable:
    """What comes of an error in a rule; see the module's docstring."""
    if settings.raise_rule_errors:
        error.add_note(f"in the lowering rule of {op}")
        raise error
    if op not in _warned:
        _warned.add(op)
        warnings.warn(
            f"compile: the lowering rule of {op} failed, and it runs as an operator: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
    return NotLowerable(f"its rule failed: {type(error).__name__}: {error}")


def scalar_rule(op: Operator) -> Callable:
    """What computes one element: the operator's `lower`, else its kernel."""
    if op.lower is not None:
        return lambda *values: op.lower(ELEMENTS, *values)
    if op.kernel is not None:
        return lambda *values: op.kernel(ELEMENTS, *values)
    ufunc = pointwise_declaration(op).ufunc
    if ufunc is None:
        raise Unlowerable(f"{op.name} has neither a kernel nor a ufunc")
    function = getattr(ELEMENTS, ufunc)
    return lambda *values: function(*[v for v in values if isinstance(v, Element)])
