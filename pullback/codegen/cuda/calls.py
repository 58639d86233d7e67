"""Calls on a CUDA device that are nothing but kernels and their record, made by `core/_device.c`.

In: an operator and the arguments of a public call, or canonical ones. Out: its result, or None where the call may be more than
that: something listens, a tensor is not plain, the operator has a rule of its own. The first call of a signature takes the ordinary
way; what it came to is remembered, and from the second on a call is a look-up, allocations and launches.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from functools import cache, partial
from operator import is_
from typing import Any

import numpy as np

from ...core.cuda_launch import stream_in_use
from ...core.cupy_library import device_count
from ...core.device import device, layout, memory_format
from ...core.dtype import dtype
from ...core.extension import extension
from ...core.modes import GRAD, ambient, process
from ...core.node import requires_grad
from ...core.objects import make_view
from ...core.tensor import CUDA, Parameter, Tensor, assemble, stride_of
from ...ops.eager.functions import overridden_operators
from ...ops.family.operands import rounded_number
from ...ops.family.pointwise import POINTWISE
from ...ops.family.view import VIEW, GeometryDeclaration
from ...ops.system.dispatch import autograd_layer
from ...ops.system.operator import NONDIFFERENTIABLE, Operator, find
from . import elements

MOST_CALLS = 1 << 12  # signatures of one operator that are remembered
NESTED = 256  # how places of tensors in lists are counted: see `core/_device.c`

native: Any = extension("_device")
_declared: dict[Operator, tuple[int, int]] = {}
_counts: Counter[Operator] = Counter()


def setup(stream: Any, allocate: Any, address: Any, keys: int, launch: int) -> None:
    """Tell the extension of a device: how its stream is asked for, arrays are allocated, addresses read and kernels launched."""
    _declared.clear()
    native.setup(
        Tensor,
        Parameter,
        requires_grad,
        stream,
        allocate,
        address,
        overridden_operators,
        assemble,
        make_view,
        keys,
        launch,
        (dtype, device, memory_format, layout),
    )


@cache
def ready() -> bool:
    """Whether calls can be made natively; then the extension has been told of CuPy."""
    if native is None or device_count() != 1:
        return False
    import cupy

    try:
        launch = ctypes.cast(ctypes.CDLL("libcuda.so.1").cuLaunchKernel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return False
    setup(stream_in_use(), cupy.ndarray, None, CUDA, launch or 0)
    return True


def run_plain(op: Operator, args: tuple, seen: int = 0) -> Any:
    """A call that is nothing but kernels and their record; None where it may be more. `seen`: listeners that have had it already."""
    mode = ambient.mode & ~seen
    if mode & ~GRAD or process.deterministic or not ready():
        return None
    result = native.plain(op, args, mode)
    if result is NotImplemented:
        return _first(op, args)
    if result is None and op.body is not None and not overridden_operators:
        return _inside(op, args, seen)
    return result


@cache
def bodies() -> dict[Operator, tuple[Operator, Any, bool]]:
    """Composites that are one call of another operator: that one, its arguments (or None), whether the result is the first of its results."""
    first = lambda count: lambda *args: args[:count]
    whole = lambda x, dim, dtype=None: (x, dim, False) if dtype is None else None
    found: tuple[tuple[str, str, Any, bool], ...] = (
        ("softmax.int", "_softmax.default", whole, False),
        ("log_softmax.int", "_log_softmax.default", whole, False),
        ("layer_norm.default", "native_layer_norm.default", _norm_arguments, True),
        ("max_pool2d.default", "max_pool2d_with_indices.default", first(6), True),
    )
    return {find(name): (find(inner), arguments, one) for name, inner, arguments, one in found}


def _norm_arguments(x, shape, weight=None, bias=None, eps=1e-05, *rest) -> tuple:
    return x, shape, weight, bias, eps


def _inside(op: Operator, args: tuple, seen: int) -> Any:
    """The call that a composite comes to, made at once; None where it is another, or may be more than kernels."""
    found = bodies().get(op)
    given = None if found is None else found[1](*args)
    if found is None or given is None:
        return None
    inner, _, one = found
    result = run_plain(inner, given, seen)
    if result is None:
        return None
    _remember_inside(op, args, inner, given, one)
    return result[0] if one else result


def _remember_inside(op: Operator, args: tuple, inner: Operator, given: tuple, one: bool) -> None:
    """Have `native.plain` make the call that a composite comes to, where that takes its tensors from the same places."""
    call, canonical = native.found(inner, given), inner.convert(given)
    there = [k for k, c in enumerate(canonical) if isinstance(c, Tensor)]
    if (
        call is None
        or any(map(has_tensors, canonical))
        or any(k >= len(args) or args[k] is not canonical[k] for k in there)
    ):
        return
    fixed = tuple([None if k in there else c for k, c in enumerate(canonical)])
    places = tuple([k if k in there else None for k in range(len(canonical))])
    remember(op, args, native.recalled(call, (fixed, places), one))


def _first(op: Operator, args: tuple) -> Any:
    """The first call of a signature. Where it is plain, it is made here and remembered."""
    if not _may_be_plain(op):
        remember(op, args, None)
        return None
    try:
        canonical = op.convert(args)
    except TypeError:  # `general` knows more ways to read arguments
        return None
    if not op.tensors(canonical):
        return None
    result = autograd_layer(op, canonical)
    remember(op, args, _call(op, args, canonical))
    return result


def _may_be_plain(op: Operator) -> bool:
    """Whether nothing but its family's execution and its record belongs to a call of an operator."""
    if op.backend is not None or op.layer is not None or op.body is not None or op.inplace_of is not None:
        return False
    if op.family is VIEW:
        fixed = isinstance(op.declared, GeometryDeclaration) and not op.declared.names_memory
        return fixed and op.vjp is not None and op.vjp is not NONDIFFERENTIABLE
    return not op.is_view and (op.family is POINTWISE or op.lower is not None)


def _call(op: Operator, args: tuple, canonical: tuple) -> Any:
    """The native call of a signature that has been executed, if it has one."""
    pairs = list(zip(args, canonical, strict=True))
    if any(isinstance(c, Tensor) and c is not a or has_tensors(c) and not _same_tensors(a, c) for a, c in pairs):
        return None
    if op.family is VIEW:
        call = _view_call(op, canonical)
    elif op.family is POINTWISE:
        call = _element_call(op, canonical, op.tensors(canonical)[0].device)
    else:
        call = native.found(op, canonical)
    if call is None or all(a is c for a, c in pairs):
        return call
    mask = _travelling(op)
    varies = [_place(mask, k, a, c) for k, (a, c) in enumerate(pairs)]
    fixed = tuple([c if place is None else None for (_, c), place in zip(pairs, varies, strict=True)])
    return native.recalled(call, (fixed, tuple(varies)), False)


def _place(mask: tuple[int, int], k: int, a: Any, c: Any) -> int | None:
    """Which of the given arguments a canonical one is, in the extension's way of counting; None where it is always the same."""
    if has_tensors(c):
        return k if a is c else -k - 1
    return k if isinstance(c, Tensor) or _bit(mask, a, k) else None


def has_tensors(value: Any) -> bool:
    """Whether an argument is a sequence with tensors in it."""
    return isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value)


def _same_tensors(a: Any, c: Any) -> bool:
    """Whether the tuple that a sequence of tensors became is of the same objects."""
    if a is c:
        return True
    return type(c) is tuple and type(a) in (tuple, list) and len(a) == len(c) and all(map(is_, a, c))


def _view_call(op: Operator, args: tuple) -> Any:
    """The call of a view, where it lies at a fixed distance from its source, and is one; None where not."""
    t, d, declared = args[0], args[0].dtype, op.declared
    assert isinstance(declared, GeometryDeclaration), "asked of every operator that may be plain"
    shape, strides = t._array.shape, stride_of(t)
    places = [declared.geometry(shape, strides, at, *args[1:]) for at in (t._offset, t._offset + 64)]
    if isinstance(places[0], list) or 0 in shape or places[0][2] - t._offset != places[1][2] - t._offset - 64:
        return None
    size, distance = d.itemsize, places[0][2] - t._offset
    steps = tuple([int(s) * size for s in places[0][1]])
    window = (op, tuple(map(int, places[0][0])), np.dtype(d.numpy), steps, int(distance) * size, int(distance))
    return native.call(
        op, (0,), (), (), None, None, record_of(op), None, t.device, t.device.keys, None, None, None, None, None, window, b"",
        (0,) * 13,
    )  # fmt: skip


def _element_call(op: Operator, args: tuple, where: device) -> Any:
    """The call of an element-wise kernel."""
    call = elements.prepared(op, args, where)
    if call is None:
        return None
    rounding = [None if r is None else partial(rounded_number, d=r) for r in call.rounding]
    floats = tuple(zip(call.floats, rounding, strict=True))
    output = (call.room, call.kind, None if call.back is None else tuple(call.back), call.dtype)
    layout = call.packer.pack(*[0] * (len(call.tensors) + 1), *call.layout, *[0.0] * len(floats))
    numbers = (call.function.ptr, call.grid, elements.THREADS, *[0] * 10)
    return native.call(
        call.function, tuple(call.tensors), floats, (output,), None, None, record_of(op), None, where, where.keys, None, None, None,
        None, None, None, layout, numbers,
    )  # fmt: skip


def remember(op: Operator, args: tuple, call: Any) -> None:
    """Have `native.plain` find a call, or that there is none."""
    mask = _travelling(op)
    if _declared.get(op) != mask or _counts[op] >= MOST_CALLS:
        _declared[op] = mask
        _counts[op] = 0
        native.declare(op, *mask)
    _counts[op] += 1
    native.remember(op, args, call)


def _travelling(op: Operator) -> tuple[int, int]:
    """The places, as bits, of floats and of ints that a kernel is told with each launch, and so are no part of a signature."""
    if op.family is not POINTWISE or op.declared.check is not None:  # a check may depend on numbers
        return 0, 0
    masks = POINTWISE._operand_mask(op)
    floats, ints = (sum(1 << k for k, m in enumerate(masks) if elements.travels(op, value, m)) for value in (1.0, 1))
    return floats, ints


def _bit(mask: tuple[int, int], a: Any, k: int) -> bool:
    return bool(mask[0] >> k & 1) if a.__class__ is float else a.__class__ is int and bool(mask[1] >> k & 1)


def record_of(op: Operator) -> Any:
    """What is called with a result and its arguments where a gradient is wanted; None where nothing is recorded."""
    if op.vjp is None or not op.differentiable:
        return None
    return lambda *call: op.record(*call)
