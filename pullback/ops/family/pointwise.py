"""Element-wise operators: operands are broadcast and promoted, the kernel sees arrays of one dtype.

    sin = pointwise("sin(Tensor self) -> Tensor", promote=INT_TO_FLOAT, ufunc="sin",
        vjp=lambda g, self: g * conj(cos(self)), lower=lambda o, x: o.sin(x))

`kernel(xp, *args)` gets the arguments in schema order, tensors as promoted arrays; `ufunc` names an array-library ufunc
that is the whole kernel (then calls on small plain tensors go straight to it). float16 and bfloat16 are computed in
float32 and rounded once. Gradients that are wider than an input (broadcasting, complex to real) are reduced by the
engine. From the declaration follow `sin_`, `out=`, meta, the vmap rule and the jvp rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import is_
from types import MappingProxyType

import numpy as np

from ...core import dtype as dtypes
from ...core import halves
from ...core.arrays import LARGE, can_split, library, run_chunks, split_elementwise
from ...core.device import cpu
from ...core.dtype import dtype
from ...core.elements import over_rows, use_threads
from ...core.errors import no_memory
from ...core.geometry import broadcast_shapes, elementwise_strides
from ...core.layers import above
from ...core.promotion import can_cast, result_type, to_float
from ...core.small import written_once
from ...core.tensor import Tensor, stride_of, wrap
from ...core.threads import thread_count
from ..eager import elementwise, ufuncs
from ..eager.kernels import (
    REALS,
    half_kernel_of,
    half_loop_of,
    half_number_loop_of,
    has_loop,
    is_only_loop,
    loop_of,
    run_into,
)
from ..eager.large import by_rows, looped_dtypes, loops_of
from ..eager.text import Call
from ..system.calls import default_names, export_operator
from ..system.declaration import NONDIFFERENTIABLE, Declaration
from ..system.fused import call_fused
from ..system.inplace import cast_array
from ..system.operator import Operator, Spec, key_of
from ..system.scalars import check_fits
from ..system.schema import wrong_type
from .base import Family, array_of, device_of
from .operands import call_kernel, number_array, operand_mask, rounded_number, stays_wide
from .plans import plan_of

PROMOTE = "promote"  # operands meet in their common dtype
INT_TO_FLOAT = "int_to_float"  # and integers become the default float
CHUNK = 1 << 17  # elements per piece of large work: temporaries stay in cache


class PointwiseDeclaration(Declaration):
    """What an element-wise operator may declare."""

    kind = "a pointwise operator"
    contradictions = {"meta": {"kernel": "the shape rule of a pointwise operator follows from its operands"}}
    choices = {"zero": (None, "kept", "linear")}
    conditions = {
        "constant": "ufunc",
        "dense_writes": "ufunc",
        "direct": "ufunc",
        "inlines": "ufunc",
        "plain": "kernel",
    }
    kinds = {"plain": (elementwise.KernelCase,)}

    # ---- dtypes
    promote: str | Callable = PROMOTE
    """How operands meet: `PROMOTE`, `INT_TO_FLOAT`, or `promote(*args)` that says which."""
    operands: tuple[str, ...] | None = None
    """The arguments that take part in promotion; without it, all tensors."""
    result: dtype | Callable[[dtype], dtype] | None = None
    """The dtype of the result, or `result(dtype)` from the one computed in; without it, that one."""
    supports: str | Callable = "all"
    """The dtypes that the kernel takes, a key of `CATEGORIES`, or `supports(*args)` that says which."""
    kernel_name: str | Callable | None = None
    """What the error for any other dtype calls the kernel; without it, the operator's name with `_cpu`."""
    numbers: tuple[str, ...] | None = None
    """The tensor arguments that may be Python numbers; without it, all."""
    overloads: Mapping[str, Operator] = MappingProxyType({})
    """`{argument: overload}`: the overload that takes the call where the argument is a Python number."""
    zero: str | None = None
    """What sparse tensors rest on: that f(0) = 0 (`"kept"`), or f(a + b) = f(a) + f(b) (`"linear"`)."""
    native: bool = False
    """Whether float16 and bfloat16 reach the kernel as they are, not as float32."""
    wide: tuple[str, ...] = ()
    """Operands that stay unrounded in half precision, as a number or as a tensor without dimensions; others are rounded first."""
    fitting: tuple[str, ...] = ()
    """Numbers that half precision must be able to hold, and to which they are rounded before the kernel sees them."""

    # ---- kernels
    ufunc: str | None = None
    """The ufunc of the array library that is the whole kernel (for the dtypes of `direct`, where there is a kernel too)."""
    constant: int | float | None = None
    """A number that is the ufunc's other operand."""
    direct: str | None = None
    """The dtypes for which the ufunc alone is right, a key of `CATEGORIES`; without it, those of `supports`."""
    contiguous: bool = False
    """Whether the result is row-major, whatever the order of the operands."""
    last_leads: bool = False
    """Whether the last operand's order of dimensions counts before the first's."""
    inlines: tuple[str, ...] = ()
    """Other operators whose work the ufunc does, where there is a body: while one is overridden, there is no plain case."""
    dense_writes: bool = False
    """Whether the ufunc writes in place to row-major memory only."""
    inplace: bool | str = True
    cost: str = "cheap"


def pointwise_declaration(op: Operator) -> PointwiseDeclaration:
    """What an element-wise operator declares."""
    if not isinstance(op.declared, PointwiseDeclaration):
        raise TypeError(f"{op.qualified_name} is no element-wise operator")
    return op.declared


def in_order(op: Operator, tensors: list) -> list:
    """Operands in the order in which their layouts decide that of the result."""
    return tensors[::-1] if op.declared.last_leads else tensors


def _placed(op: Operator, results, args: tuple):
    """Row-major results in the order of memory of the operands."""
    operands = [t._array for t in in_order(op, op.tensors(args))]
    if isinstance(results, tuple):
        return tuple([wrap(ufuncs.laid_out(t._array, operands), t.dtype) for t in results])
    return wrap(ufuncs.laid_out(results._array, operands), results.dtype)


class Pointwise(Family):
    """See the module's docstring."""

    declares = PointwiseDeclaration
    direct = "family"
    takes_numbers = True
    reads_as_it_writes = True

    def plan(self, op: Operator, args: tuple) -> tuple[list, dtype, dtype]:
        """The operands, the dtype they are computed in, and the dtype of the result."""
        operands = [
            a for a, is_operand in zip(args, self._operand_mask(op), strict=True) if is_operand and a is not None
        ]
        compute = getattr(operands[0], "dtype", None)
        for o in operands:
            if compute is None or getattr(o, "dtype", None) is not compute:
                compute = result_type(*operands)
                break
        promote = op.declared.promote
        if (promote(*args) if callable(promote) else promote) == INT_TO_FLOAT:
            compute = to_float(compute)
        self._check_supported(op, compute, args)
        result = op.declared.result
        if result is None:
            return operands, compute, compute
        return operands, compute, result(compute) if callable(result) else result

    _operand_mask = staticmethod(operand_mask)

    def validate(self, op: Operator, args: tuple) -> None:
        """Python numbers only where they are allowed (`numbers`; absent: everywhere), then the operator's own check."""
        allowed = op.declared.numbers
        if allowed is not None:
            for argument, value in zip(op.schema.arguments, args, strict=True):
                if (
                    argument.is_tensor
                    and not isinstance(value, Tensor)
                    and value is not None
                    and argument.name not in allowed
                ):
                    raise wrong_type(op.display, argument, value)
        if (check := op.declared.check) is not None:
            check(*args)

    def _check_supported(self, op: Operator, compute: dtype, args: tuple) -> None:
        supported = op.declared.supports
        supported = supported(*args) if callable(supported) else supported
        if compute.category not in ufuncs.CATEGORIES[supported] or compute.numpy is None:
            name = op.declared.kernel_name or f"{op.name}_cpu"
            name = name(*args) if callable(name) else name
            raise NotImplementedError(f"\"{name}\" not implemented for '{compute.scalar_name}'")

    def execute(self, op: Operator, args: tuple):
        self.validate(op, args)
        tensors = op.tensors(args)
        device = tensors[0].device if tensors else cpu
        if len(tensors) > 1 and any(t.device is not device for t in tensors):
            device = device_of(op, args)
        if device.type == "cuda" and (result := above.elements_on_device(op, args, device, None)) is not None:
            return result
        xp = library(device)
        _, compute, result = self.plan(op, args)
        working = dtypes.float32 if compute in dtypes.reduced_precision and not op.declared.native else compute
        if working is not compute:
            if (out := self.by_halves(op, args, compute, result)) is not None:
                return out
            args = self._rounded(op, args, compute)
        values = [
            self._operand(xp, a, compute, working) if m else array_of(a)
            for a, m in zip(args, self._operand_mask(op), strict=True)
        ]
        array = self._run(op, xp, values, result)
        if array.dtype != result.numpy:
            quick = halves.cast(array, result.numpy) if result in dtypes.reduced_precision else None
            array = array.astype(result.numpy) if quick is None else quick
        elif array.base is not None or any(array is v for v in values):
            array = array.copy(order="K")
        if array.ndim > 1 and not all(t._array.flags.c_contiguous for t in tensors):
            order = [t._array for t in in_order(op, tensors)] if not op.declared.contiguous else []
            array = ufuncs.laid_out(array, order, xp)
        return wrap(array, result, device)

    def execute_plain(self, op: Operator, args: tuple):
        plan = plan_of(self, op, args)
        if plan is None or (out := plan.run(op, args)) is NotImplemented:
            return self.execute(op, args)
        return out

    def write_plain(self, op: Operator, args: tuple) -> bool:
        """`run_inplace` of the functional operator where every tensor is a plain one of the CPU and no gradient is wanted; False, and nothing is
        written, where that may be more than a result to be copied."""
        target = args[0]
        memory, out = target._memory, target._array
        if (
            op.declared.write is not None
            or memory is not None
            and (not written_once(out) or any(isinstance(a, Tensor) and a._memory is memory for a in args[1:]))
        ):
            return False
        plan = plan_of(self, op, args)
        found = NotImplemented if plan is None else plan.run(op, args)
        if found is NotImplemented or found._array.shape != out.shape or not can_cast(found.dtype, target.dtype):
            return False
        out[...] = cast_array(found._array, found.dtype, target.dtype)
        target._counter[0] += 1
        return True

    def by_halves(self, op: Operator, args: tuple, compute: dtype, result: dtype):
        """The result of tensors of bfloat16 or float16 by a loop in C, which rounds once; None where there is none."""
        tensors = op.tensors(args)
        if any(t._array.dtype != compute.numpy for t in tensors):
            return None
        arguments = zip(op.schema.arguments, args, strict=True)
        all_given = all(not a.is_tensor or v is None or isinstance(v, Tensor) for a, v in arguments)
        use_threads()
        try:
            found = self._by_half_loop(op, args, result) if half_loop_of(op) is not None else None
            if found is None and all_given and result is compute and (kernel := half_kernel_of(op)) is not None:
                found = kernel(np, *[array_of(a) for a in self._rounded(op, args, compute)])
        except ValueError:  # shapes that do not meet: the rules say which
            return None
        if found is None:
            return None
        if not found.ndim:  # NumPy gives numbers, which cannot be written
            found = np.asarray(found)
        if found.ndim > 1 and not all(t._array.flags.c_contiguous for t in tensors):
            found = ufuncs.laid_out(
                found, [t._array for t in in_order(op, tensors)] if not op.declared.contiguous else []
            )
        return wrap(found, result)

    def _by_half_loop(self, op: Operator, args: tuple, result: dtype):
        """By the ufunc that is the whole operator, on arrays alone, or on one and a number that is not rounded before."""
        values = [array_of(a) for a in args]
        arrays = [v for v in values if isinstance(v, np.ndarray)]
        if ufuncs.ufunc_of(op, values, result.numpy) is None:
            return None
        if len(arrays) == len(op.tensor_positions):
            return half_loop_of(op)(*arrays, out=...)
        number = values[1] if len(arrays) == 1 and len(op.tensor_positions) == 2 and values[0] is arrays[0] else None
        if number.__class__ not in (int, float) or op.schema.arguments[1].name not in op.declared.wide:
            return None
        return half_number_loop_of(op)(values[0], np.asarray(number, np.float32), out=...)

    def _run(self, op: Operator, xp, values: list, result: dtype):
        """The kernel; where shapes do not meet, the error says which, and is the only one."""
        try:
            return run_kernel(op, xp, values, result.numpy)
        except ValueError as error:
            failure = error
        broadcast_shapes(*[v.shape for v in values if hasattr(v, "shape")])
        raise failure

    def _operand(self, xp, value, compute: dtype, working: dtype):
        if isinstance(value, Tensor):
            array = value._array
            return array if value.dtype is working else cast_array(array, value.dtype, working)
        if value is None:
            return None
        return number_array(xp, value, working)

    def _rounded(self, op: Operator, args: tuple, compute: dtype) -> tuple:
        """Arguments of a computation in half precision, each rounded to it where PyTorch does so before it computes."""
        out = []
        for argument, value, is_operand in zip(op.schema.arguments, args, self._operand_mask(op), strict=True):
            if isinstance(value, Tensor):
                if is_operand and value.dtype is not compute and not stays_wide(op, argument, value._array.ndim):
                    value = wrap(cast_array(value._array, value.dtype, compute), compute, value.device)
            elif value is not None and argument.name in op.declared.fitting:
                check_fits(value, compute)
                value = rounded_number(value, compute)
            elif value is not None and is_operand and not stays_wide(op, argument):
                value = rounded_number(value, compute)
            out.append(value)
        return tuple(out)

    def place_of(self, op: Operator) -> Callable | int | None:
        return None if op.declared.contiguous else partial(_placed, op)

    def meta(self, op: Operator, args: tuple) -> Spec:
        self.validate(op, args)
        _, _, result = self.plan(op, args)
        places: list[tuple] = []  # of operands that do not lie as the first does
        for t in in_order(op, op.tensors(args)):
            place = (t._array.shape, stride_of(t))
            if not places or not _same_place(places[0], place):
                places.append(place)
        shape = places[0][0] if len(places) == 1 else broadcast_shapes(*[p[0] for p in places])
        if op.declared.contiguous:  # a row-major copy that is written, whatever the order of the operands
            return Spec(shape, result)
        return Spec(shape, result, elementwise_strides(shape, [p for p in places if p[0]] or [((), ())]))

    def write(self, op: Operator, target: Tensor, args: tuple) -> bool:
        """In place by the ufunc itself, over threads where the memory is large; else by the kernel in pieces, if it is."""
        if target.device.type == "cuda":
            self.validate(op, args)
            if above.elements_on_device(op, args, target.device, target) is not None:
                return True
        if not ufuncs.ufunc_writes(op, target, args):
            return self._write_in_pieces(op, target, args)
        check = op.declared.check
        if check is not None:
            check(*args)
        xp, out = library(target.device), target._array
        # A loop of ours rounds otherwise than the array library: what is written is what the result would be.
        loop = loop_of(op) if xp is np and out.dtype.char == "f" else None
        ufunc = getattr(xp, op.declared.ufunc) if loop is None else loop
        operands = [
            a._array if isinstance(a, Tensor) else a for a, m in zip(args, self._operand_mask(op), strict=True) if m
        ]
        arrays = [o if hasattr(o, "dtype") else number_array(xp, o, target.dtype) for o in operands]
        if xp is not np:
            ufunc(*arrays, out=out)
        elif out.size >= LARGE and can_split([out, *arrays], out.shape):
            if (shared := loops_of(op).get(target.dtype)) is None:
                split_elementwise(ufunc, arrays, out)
            else:
                use_threads()
                shared(*arrays, out=out)
        else:
            ufunc(*arrays, out=out)
        return True

    def _write_in_pieces(self, op: Operator, target: Tensor, args: tuple) -> bool:
        """By the kernel, a piece at a time, where all operands lie as the target does: no temporary is large."""
        out = target._array
        if out.size < LARGE or out.__class__ is not np.ndarray or not out.flags.c_contiguous:
            return False
        arrays = [t._array for t in op.tensors(args)]
        alike = all(
            a.dtype == out.dtype and (not a.ndim or a.shape == out.shape and a.flags.c_contiguous) for a in arrays
        )
        if any(t._keys for t in op.tensors(args)) or target.dtype in dtypes.reduced_precision:
            return False
        self.validate(op, args)
        _, compute, result = self.plan(op, args)
        if compute is not target.dtype or result is not target.dtype:
            return False
        mask = self._operand_mask(op)
        values = [self._operand(np, a, compute, compute) if m else array_of(a) for a, m in zip(args, mask, strict=True)]
        if not alike:
            loop = _row_loop(op, values, out.dtype)
            apart = all(a is out or not np.may_share_memory(a, out) for a in arrays)
            return loop is not None and apart and values[0] is out and over_rows(loop[0], *loop[1], out)
        _run_in_pieces(op, [_Piece(v, out.shape, True) for v in values], out.reshape(-1))
        return True

    # ---- the plain case
    def plain_lines(self, call: Call) -> list[str]:
        return elementwise.lines_of(call)

    def choice_lines(self, call: Call) -> list[str]:
        return elementwise.overload_lines(call)

    def plain_names(self, op: Operator) -> dict:
        return default_names(op) | elementwise.names_of(op)

    # ---- vmap: batch dimensions to the front, ranks aligned
    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        args = self._as_examples_meet(op, args, dims)
        rank = max(
            (a.ndim - (d is not None) for a, d in zip(args, dims, strict=True) if isinstance(a, Tensor)), default=0
        )
        moved = tuple(
            _align(a, d, rank) if isinstance(a, Tensor) and d is not None else a
            for a, d in zip(args, dims, strict=True)
        )
        return op(*moved), 0

    def _as_examples_meet(self, op: Operator, args: tuple, dims: tuple) -> tuple:
        """Operands in the dtype that those of one example meet in, where all together would meet in another: an example
        without dimensions yields to one that has some, though its batch has a dimension."""
        chosen = self._operand_mask(op)
        tensors = [a for a, is_operand in zip(args, chosen, strict=True) if is_operand and isinstance(a, Tensor)]
        if all(t.dtype is tensors[0].dtype for t in tensors):
            return args
        ranked = [
            _Ranked(a.dtype, a.ndim - (d is not None)) if isinstance(a, Tensor) else a
            for a, d, is_operand in zip(args, dims, chosen, strict=True)
            if is_operand
        ]
        meet = result_type(*ranked)
        if meet is result_type(*[a for a, is_operand in zip(args, chosen, strict=True) if is_operand]):
            return args
        return tuple(
            a.to(meet) if is_operand and isinstance(a, Tensor) else a
            for a, is_operand in zip(args, chosen, strict=True)
        )


class _Ranked:
    """A dtype and a number of dimensions, as promotion asks a tensor for them."""

    def __init__(self, dtype: dtype, ndim: int):
        self.dtype, self.ndim, self._array = dtype, ndim, self


def _same_place(a: tuple, b: tuple) -> bool:
    """Whether two (shape, stride) are alike number by number, without asking symbolic ones."""
    return len(a[0]) == len(b[0]) and all(map(is_, a[0], b[0])) and all(map(is_, a[1], b[1]))


def _align(t: Tensor, dim: int, rank: int) -> Tensor:
    t = t.movedim(dim, 0) if dim else t
    missing = rank - (t.ndim - 1)
    return t.reshape(t.shape[0], *(1,) * missing, *t.shape[1:]) if missing else t


def run_kernel(op: Operator, xp, values: list, result: np.dtype):
    """The kernel over whole arrays, or over pieces of large ones on several threads."""
    try:
        return _run_kernel(op, xp, values, result)
    except MemoryError as error:
        raise no_memory(error) from None


def _run_kernel(op: Operator, xp, values: list, result: np.dtype):
    arrays = [v for v in values if isinstance(v, np.ndarray) and v.ndim] if xp is np else []
    largest = max((a.size for a in arrays), default=0)
    if largest >= LARGE:
        use_threads()
        if (out := _by_rows(op, values, arrays, result)) is not None:
            return out
    alone = LARGE if op.kernel is not None else _LARGE_UFUNC
    if largest < alone or thread_count() < 2:
        if xp is not np:
            return call_on_device(op, xp, values)
        if op.kernel is not None and (ufunc := ufuncs.ufunc_of(op, values, result)) is not None:  # such as add, alpha=1
            return np.asarray(ufunc(values, None))
        return np.asarray(call_kernel(op, xp, values))
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    dense = all(a.shape == shape and a.flags.c_contiguous for a in arrays)
    if not dense and shape[0] < thread_count():
        return np.asarray(call_kernel(op, xp, values))
    out = np.empty(shape, result) if dense else ufuncs.blank(shape, result, arrays)
    if dense and _run_shared(op, values, arrays, out):
        return out
    _run_in_pieces(op, [_Piece(v, shape, dense) for v in values], out.reshape(-1) if dense else out)
    return out


_LARGE_UFUNC = 1 << 20  # elements of the array library's ufuncs that are worth waking a thread of Python's


def _run_shared(op: Operator, values: list, arrays: list, out) -> bool:
    """By a loop in C over row-major arrays, which threads share by themselves."""
    known = dtypes.by_numpy.get(out.dtype)
    if any(a.dtype != out.dtype for a in arrays):
        return False
    if known in looped_dtypes(op):
        run_into(op, values, out)
        return True
    loop = loops_of(op).get(known)
    if loop is None or ufuncs.ufunc_of(op, values, out.dtype) is None:
        return False
    loop(*[v for v in values if isinstance(v, np.ndarray)], out=out)
    return True


def _by_rows(op: Operator, values: list, arrays: list, result: np.dtype):
    """The result of large arrays of which one broadcasts or lies in rows apart, where a loop in C goes over their rows."""
    if all(a.shape == arrays[0].shape and a.flags.c_contiguous for a in arrays):
        return None
    loop = _row_loop(op, values, result)
    return None if loop is None else by_rows(*loop)


def _row_loop(op: Operator, values: list, result: np.dtype) -> tuple[str, list] | None:
    """The name of the loop over rows that is an operator on values, and its operands: arrays, then numbers as arrays without dimensions."""
    given = [v for v in values if isinstance(v, np.ndarray)]
    if result.char not in "fd" or any(a.dtype != result for a in given):
        return None
    loop = loops_of(op).get(dtypes.by_numpy[result])
    if loop is not None and loop.nin == 2 and ufuncs.ufunc_of(op, values, result) is not None:
        return loop.__name__, given
    if not has_loop(op) or not is_only_loop(op):
        return None
    numbers = [v for v in values if not isinstance(v, np.ndarray)]
    if any(v.__class__ not in REALS for v in numbers):
        return None
    return key_of(op), [*given, *[np.asarray(v, result) for v in numbers]]


def call_on_device(op: Operator, xp, values: list):
    """The kernel on arrays of a CUDA device."""
    if op.kernel is None:
        return call_kernel(op, xp, values)
    return call_fused(op, xp, values)


class _Piece:
    """An argument of a split call: an array that is cut along the first dimension of the result, or what goes whole."""

    def __init__(self, value, shape: tuple, dense: bool):
        is_array = isinstance(value, np.ndarray)
        self.value = value.reshape(-1) if dense and is_array and value.ndim else value
        self.cut = is_array and (value.ndim > 0 if dense else value.ndim == len(shape) and value.shape[0] != 1)

    def __getitem__(self, part: slice):
        return self.value[part] if self.cut else self.value


def _run_in_pieces(op: Operator, values: list[_Piece], out) -> None:
    """Shares of the result to threads; each share in pieces that stay in cache, unless one ufunc does it all."""
    length, each = len(out), out.size // len(out)
    share = -(-length // thread_count())
    ufunc = None if has_loop(op) else ufuncs.ufunc_of(op, [v.value for v in values], out.dtype)
    step = share if ufunc is not None else max(CHUNK // each, 1)

    def work(first: int, last: int) -> None:
        for start in range(first, last, step):
            part = slice(start, min(start + step, last))
            pieces = [v[part] for v in values]
            if ufunc is not None:
                ufunc(pieces, out[part])
            elif op.kernel is not None:
                run_into(op, pieces, out[part])
            else:
                out[part] = call_kernel(op, np, pieces)

    run_chunks([lambda s=s: work(s, min(s + share, length)) for s in range(0, length, share)])


POINTWISE = Pointwise()


def pointwise(schema: str, **rules) -> Operator:
    """Declare an element-wise operator."""
    if rules.get("vjp") is None and rules.get("result") is dtypes.bool:
        rules["vjp"] = NONDIFFERENTIABLE
    return export_operator(Operator(schema, POINTWISE, **rules))
