"""Element-wise operators on a CUDA device, called one by one: each by a kernel printed from the rule that graphs are lowered by.

In: an operator and canonical arguments, all tensors on one device. Out: a tensor, or None where the operator has no such kernel:
then the array library computes it. A kernel is for dtypes, not for sizes: those travel with the launch, as do Python's numbers. All
else that calls of one kind share (text, layout of the result, strides) is worked out once for each signature.

What always holds: one element is read and written by the same thread, reads come first, so a result may lie on an operand.
"""

from __future__ import annotations

import math
import struct
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import dtype as dtypes
from ...core.device import device
from ...core.dtype import dtype
from ...core.geometry import broadcast_shapes, elementwise_strides
from ...core.tensor import Tensor, stride_of, wrap
from ...ops.family.operands import rounded_number, stays_wide
from ...ops.family.pointwise import POINTWISE, in_order, pointwise_declaration
from ...ops.lowering.elements import Element, Unlowerable, cast, number
from ...ops.lowering.expressions import Expr, load, walk
from ...ops.lowering.loops import Buffer
from ...ops.system.operator import Operator
from ...runtime.build import CompileFailed, NoCompiler
from ...runtime.cuda import Machine, machine
from ..lower import scalar_rule
from ..printers.c_scalars import C_TYPES, operation
from ..printers.c_scalars import number as literal
from .lower import CudaLowering
from .prelude import PRELUDE
from .printer import VECTOR, WIDEST

THREADS = 256
MOST_TEXTS = 64  # kernels of one operator: attributes that are never the same again must not be compiled for ever
MOST_CALLS = 1 << 13  # signatures that are remembered
SMALL = 1 << 31


@dataclass
class Prepared:
    """What calls of one signature share. `layout` are the numbers of the kernel's arguments that say where elements are."""

    function: Any
    tensors: list[int]  # places of tensors among the arguments
    floats: list[int]  # and of Python's numbers that the kernel is given
    rounding: list[dtype | None]  # to what each of them is rounded before
    shape: tuple
    room: tuple  # the result's shape as it lies in memory
    back: list[int] | None  # how that is turned to the shape, where it is another order
    strides: tuple  # of the result, in bytes
    dtype: dtype
    kind: np.dtype
    grid: int
    layout: tuple
    packer: struct.Struct


_calls: dict[tuple, Prepared | None] = {}
_functions: dict[tuple, Any] = {}
_texts: Counter[Operator] = Counter()
_baked: set[str] = {"pow"}  # operators whose numbers are part of the kernel, since the rule depends on their value


def run(op: Operator, args: tuple, where: device, target: Tensor | None = None) -> Tensor | None:
    """The result of a call, or None; with `target`, written there if it fits."""
    try:
        call = _calls[_signature(op, args, where)]
    except KeyError:
        call = _remember(op, args, where)
    except TypeError:  # attributes that cannot be a key
        return None
    return None if call is None else _launch(call, args, where, target)


def _signature(op: Operator, args: tuple, where: device) -> tuple:
    parts: list[Any] = [op, where]
    for a, is_operand in zip(args, POINTWISE._operand_mask(op), strict=True):
        if isinstance(a, Tensor):
            array = a._array
            parts += (a.dtype, array.shape, array.strides)
        elif travels(op, a, is_operand):
            parts.append(a.__class__)
        else:
            parts += (a.__class__, a)
    return tuple(parts)


def travels(op: Operator, a: Any, is_operand: bool) -> bool:
    """Whether an argument is a number that the kernel is given with each launch, and so no part of a signature."""
    return (a.__class__ is float or a.__class__ is int and is_operand) and op.name not in _baked


def _remember(op: Operator, args: tuple, where: device) -> Prepared | None:
    """Work out what a signature comes to. A rule that needs to know the numbers gets a kernel for each of them."""
    if len(_calls) >= MOST_CALLS:
        _calls.clear()
    try:
        call = prepare(op, args, on_device(where))
    except NoCompiler:
        call = None
    except Unlowerable:
        if any(map(travels, [op] * len(args), args, POINTWISE._operand_mask(op))):
            _baked.add(op.name)
            return _remember(op, args, where)
        call = None
    _calls[_signature(op, args, where)] = call
    return call


def prepared(op: Operator, args: tuple, where: device) -> Prepared | None:
    """What calls of a signature share, where one has been made and there is a kernel."""
    try:
        return _calls.get(_signature(op, args, where))
    except TypeError:
        return None


def on_device(where: device) -> Machine:
    return machine(where.index or 0)


def _launch(call: Prepared, args: tuple, where: device, target: Tensor | None) -> Tensor | None:
    on = on_device(where)
    arrays = [args[k]._array for k in call.tensors]
    addresses = [on.address(a) for a in arrays]
    if target is None:
        out = on.blank(call.room, call.kind)
    else:
        out = target._array
        if target.dtype is not call.dtype or out.shape != call.shape or out.strides != call.strides:
            return None
        if not all(_apart(on, a, at, out) for a, at in zip(arrays, addresses, strict=True)):
            return None
    floats = [
        args[k] if r is None else rounded_number(args[k], r) for k, r in zip(call.floats, call.rounding, strict=True)
    ]
    on.start(call.function, call.grid, THREADS, call.packer.pack(*addresses, on.address(out), *call.layout, *floats))
    if target is not None:
        return target
    return wrap(out if call.back is None else out.transpose(call.back), call.dtype, where)


def _apart(on: Machine, a: Any, at: int, out: Any) -> bool:
    """Whether an operand is the result's memory element by element, or shares none of it."""
    to = on.address(out)
    if at == to and a.strides == out.strides and a.dtype == out.dtype:
        return True
    if any(s < 0 for s in a.strides):
        return False
    return at + _span(a) <= to or to + _span(out) <= at


def _span(a: Any) -> int:
    return a.itemsize + sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))


# ---- what a signature comes to
def prepare(op: Operator, args: tuple, on: Machine) -> Prepared | None:
    """The kernel and the layout of a call, or None where there is no kernel; Unlowerable where the rule cannot be read."""
    tensors = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
    arrays = [args[k]._array for k in tensors]
    _, _, result = POINTWISE.plan(op, args)
    shape = broadcast_shapes(*[a.shape for a in arrays])
    if not math.prod(shape) or any(s < 0 for a in arrays for s in a.strides):
        return None
    found = _expression(op, args)
    if found is None:
        return None
    expr, buffers, floats, rounding = found
    places = [(a.shape, stride_of(args[k])) for k, a in zip(tensors, arrays, strict=True)]
    strides = elementwise_strides(shape, [p for p in in_order(op, places) if p[0]] or [((), ())])
    if pointwise_declaration(op).contiguous:
        strides = elementwise_strides(shape, [])
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    rows = [_along([shape[d] for d in order], *p, order) for p in places]
    dims, rows = _merged([shape[d] for d in order], rows)
    text, grid, layout = _kernel_text(expr, buffers, len(floats), dims, rows)
    function = _function(op, text, on)
    if function is None:
        return None
    packer = struct.Struct(f"={len(tensors) + 1}Q{len(layout)}q{len(floats)}d")
    back = None if order == list(range(len(shape))) else sorted(range(len(order)), key=order.__getitem__)
    return Prepared(
        function, tensors, floats, rounding, shape, tuple([shape[d] for d in order]), back,
        tuple([s * result.itemsize for s in strides]), result, np.dtype(result.numpy), grid, layout, packer,
    )  # fmt: skip


def _expression(op: Operator, args: tuple) -> tuple[Expr, list[Buffer], list[int], list[dtype | None]] | None:
    """(the result's element, the buffers that its operands are loaded from, places and rounding of floats), as graphs have it."""
    _, compute, result = POINTWISE.plan(op, args)
    if {compute, result} - CudaLowering.supported:
        return None
    working = CudaLowering.wide(compute)
    values: list[Any] = []
    buffers: list[Buffer] = []
    floats: list[int] = []
    rounding: list[dtype | None] = []
    declared = pointwise_declaration(op)
    for k, (argument, a, is_operand) in enumerate(
        zip(op.schema.arguments, args, POINTWISE._operand_mask(op), strict=True)
    ):
        narrow = compute if compute is not working else None
        if isinstance(a, Tensor):
            if a.dtype not in CudaLowering.supported:
                return None
            buffers.append(Buffer(f"x{k}", a.dtype, 1, "input"))
            e = load(buffers[-1], 0, (1,))
            through = working if stays_wide(op, argument, a._array.ndim) else compute
            values.append(Element(cast(cast(e, through), working) if is_operand else e))
        elif travels(op, a, is_operand):
            if not working.is_floating_point:
                return None
            rounded = argument.name in declared.fitting or is_operand and not stays_wide(op, argument)
            floats.append(k)
            rounding.append(narrow if rounded else None)
            values.append(Element(load(Buffer(f"f{len(floats) - 1}", working, 1, "input"), 0, (1,))))
        elif is_operand and a is not None:
            if isinstance(a, complex):
                return None
            through = working if stays_wide(op, argument) else compute
            values.append(Element(cast(number(a, through), working)))
        elif a is not None and argument.name in declared.fitting and narrow is not None:
            values.append(rounded_number(a, compute))
        else:
            values.append(a)
    try:
        output = scalar_rule(op)(*values)
    except (TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise Unlowerable(f"the rule of {op.name} needs to know more: {error}") from error
    if not isinstance(output, Element):
        return None
    expr = output.expr
    if result in dtypes.reduced_precision or compute is not working:
        expr = cast(expr, result)
    known = {load(b, 0, (1,)) for b in buffers}
    for e in walk(expr):
        if e.op == "index" or e.op == "load" and e not in known and not e.args[0].name.startswith("f"):
            return None
        if e.dtype.is_complex:
            return None
    return (expr, buffers, floats, rounding) if expr.dtype is result else None


def _along(sizes: list[int], shape: tuple, strides: tuple, order: list[int]) -> list[int]:
    """An operand's strides along the dimensions of the result, in an order; 0 where it is repeated."""
    missing = len(order) - len(shape)
    full = [0] * missing + [0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]
    return [full[d] for d in order]


def _merged(dims: list[int], rows: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Dimensions that run on into each other, for all operands, as one; those of size 1 are left out."""
    kept = [d for d, n in enumerate(dims) if n != 1]
    out_dims: list[int] = []
    out: list[list[int]] = [[] for _ in rows]
    for d in kept:
        if out_dims and all(o[-1] == row[d] * dims[d] for o, row in zip(out, rows, strict=True)):
            out_dims[-1] *= dims[d]
            for o, row in zip(out, rows, strict=True):
                o[-1] = row[d]
        else:
            out_dims.append(dims[d])
            for o, row in zip(out, rows, strict=True):
                o.append(row[d])
    return out_dims or [1], [o or [0] for o in out]


def _kernel_text(expr: Expr, buffers: list[Buffer], floats: int, dims: list[int], rows: list[list[int]]):
    """(text, grid, numbers that say where elements are)."""
    count = math.prod(dims)
    if len(dims) == 1 and all(r[0] in (0, 1) for r in rows):
        single = [r[0] == 0 and dims[0] > 1 for r in rows]
        text, vector = flat_text(expr, buffers, floats, single)
        return text, -(-count // (THREADS * vector)), (count,)
    kind = "u32" if count < SMALL else "u64"
    layout = (count, *dims, *[s for row in rows for s in row])
    return strided_text(expr, buffers, floats, len(dims), kind), -(-count // THREADS), layout


# ---- the text
def _head(buffers: list[Buffer], result: dtype, floats: int, numbers: int) -> list[str]:
    fields = f"void *p[{len(buffers) + 1}]; i64 k[{numbers}];" + (f" f64 x[{floats}];" if floats else "")
    return [
        f"struct Arguments {{ {fields} }};",
        f'extern "C" __global__ void __launch_bounds__({THREADS}) elements(const Arguments a) {{',
        *[f"    const {C_TYPES[b.dtype]} *p{j} = (const {C_TYPES[b.dtype]} *)a.p[{j}];" for j, b in enumerate(buffers)],
        f"    {C_TYPES[result]} *out = ({C_TYPES[result]} *)a.p[{len(buffers)}];",
        "    const i64 n = a.k[0];",
    ]


def _element_lines(expr: Expr, names: dict[Buffer, str], indent: str) -> tuple[list[str], str]:
    """Lines that compute one element, and its name. `names`: how operands are read."""
    lines: list[str] = []
    known: dict[Expr, str] = {}

    def value(e: Expr) -> str:
        if e.op == "const":
            return literal(e.args[0], e.dtype)
        if e not in known:
            if e.op == "load":
                b = e.args[0]
                text = names[b] if b in names else f"({C_TYPES[b.dtype]})a.x[{b.name[1:]}]"
            else:
                text = operation(e, [value(x) for x in e.args])
            known[e] = f"v{len(known)}"
            lines.append(f"{indent}const {'i32' if e.dtype is dtypes.bool else C_TYPES[e.dtype]} {known[e]} = {text};")
        return known[e]

    result = value(expr)
    return lines, result


def flat_text(expr: Expr, buffers: list[Buffer], floats: int, single: list[bool]) -> tuple[str, int]:
    """Neighbours in memory: a vector of them to each thread. `single`: operands that are one element for all."""
    result = expr.dtype
    sizes = [result.itemsize, *[b.dtype.itemsize for b, one in zip(buffers, single, strict=True) if not one]]
    w = max(min(VECTOR // max(sizes), WIDEST), 1)
    many = [j for j, one in enumerate(single) if not one]
    pack = lambda d: f"pack<{C_TYPES[d]}, {w}, {min(VECTOR, w * d.itemsize)}>"
    lines = _head(buffers, result, floats, 1)
    lines.append(f"    const i64 first = (blockIdx.x * (i64){THREADS} + threadIdx.x) * {w};")
    addresses = " | ".join(f"(u64){p}" for p in ("out", *[f"p{j}" for j in many]))
    lines.append(f"    if (first + {w} <= n && !(({addresses}) % {VECTOR})) {{")
    lines += [
        f"        const {pack(buffers[j].dtype)} x{j} = *(const {pack(buffers[j].dtype)} *)&p{j}[first];" for j in many
    ]
    lines += [f"        {pack(result)} y;", "#pragma unroll", f"        for (i32 v = 0; v < {w}; v++) {{"]
    names = {b: f"p{j}[0]" if one else f"x{j}.at[v]" for j, (b, one) in enumerate(zip(buffers, single, strict=True))}
    body, value = _element_lines(expr, names, " " * 12)
    lines += [
        *body,
        f"            y.at[v] = {value};",
        "        }",
        f"        *({pack(result)} *)&out[first] = y;",
        "    } else {",
    ]
    lines.append(f"        for (i64 i = first; i < n && i < first + {w}; i++) {{")
    names = {b: f"p{j}[{0 if one else 'i'}]" for j, (b, one) in enumerate(zip(buffers, single, strict=True))}
    body, value = _element_lines(expr, names, " " * 12)
    lines += [*body, f"            out[i] = {value};", "        }", "    }", "}"]
    return "\n".join([PRELUDE, *lines, ""]), w


def strided_text(expr: Expr, buffers: list[Buffer], floats: int, rank: int, kind: str) -> str:
    """Elements that lie anywhere: one to each thread, in the order in which the result lies in memory."""
    lines = _head(buffers, expr.dtype, floats, 1 + rank * (1 + len(buffers)))
    lines += [
        f"    const i64 t = blockIdx.x * (i64){THREADS} + threadIdx.x;",
        "    if (t >= n) return;",
        f"    {kind} rest = ({kind})t;",
        *[f"    i64 o{j} = 0;" for j in range(len(buffers))],
    ]
    for d in range(rank - 1, -1, -1):
        lines += [
            f"    {{ const {kind} size = ({kind})a.k[{1 + d}], after = rest / size, i = rest - after * size; rest = after;",
            *[f"      o{j} += (i64)i * a.k[{1 + rank * (1 + j) + d}];" for j in range(len(buffers))],
            "    }",
        ]
    body, value = _element_lines(expr, {b: f"p{j}[o{j}]" for j, b in enumerate(buffers)}, "    ")
    return "\n".join([PRELUDE, *lines, *body, f"    out[t] = {value};", "}", ""])


def _function(op: Operator, text: str, on: Machine) -> Any:
    """The kernel on a device, compiled at first need; None where it cannot be."""
    key = (text, id(on))
    if key not in _functions:
        _texts[op] += 1
        if _texts[op] > MOST_TEXTS:
            return None
        try:
            _functions[key] = on.function(text, "elements")
        except CompileFailed as error:
            warnings.warn(f"{op.qualified_name} has no kernel of our own: {error}", RuntimeWarning, stacklevel=2)
            _functions[key] = None
    return _functions[key]
