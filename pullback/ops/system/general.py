"""What a public call meets before its operator is dispatched: overrides, conversion of arguments, `out=`.

In: the values that a program passed to a public function. Out: what the operator gives, or the tensors of `out=`, written.
What always holds: `out=` is refused before anything is written, where it would be (other devices, dtypes that do not fit,
memory that the call reads, gradients that would be lost).
"""

from __future__ import annotations

import warnings

import numpy as np

from ...core import modes
from ...core.layers import above
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import CONJ, DISPATCH_SUBCLASS, FAKE, LAYOUTS, META, NAMED, NEG, TRANSFORMED, Tensor, stride_of
from . import overrides
from .dispatch import begins_on_device, dispatch
from .inplace import (
    OVERLAP,
    bad_shape,
    check_cast,
    check_inference_write,
    check_overlap,
    check_partial_overlap,
    handed_over,
    resize,
    write,
)
from .operator import NONDIFFERENTIABLE, Operator, exports, find
from .scalars import c_name
from .schema import wrong_type


def general(function, op: Operator, args: tuple, out=None):
    """Everything a public call may meet before its operator: overrides, argument conversion, `out=`."""
    if ambient.mode & modes.FUNCTION or overrides.any_overridden(args, out):
        seen = function if "public_name" in function.__dict__ else _public(function)
        named = getattr(seen, "__kwdefaults__", None) or ()  # overloads have some of them in a row with the others
        positional, keywords = overrides.call_form(op, args, lists=False, named=named)
        return overrides.call_overridden(seen, positional, keywords if out is None else {**keywords, "out": out})
    if out is None and begins_on_device(args):
        result = above.plain_on_device(op, args)
        if result is not None:
            return result
    args = _converted(function, op, args)
    if out is not None:
        return write_out(op, args, out)
    return dispatch(op, args)


def _public(function):
    """The public function of whose overloads this is one, by which classes that override it know it."""
    name = function.__name__
    return exports["torch"].get(name) or exports["Tensor"].get(name) or function


def _converted(function, op: Operator, args: tuple) -> tuple:
    """Canonical arguments; names of dimensions are understood where positions do not fit."""
    try:
        return op.convert(args)
    except TypeError as error:
        failure = error
    found = above.positions(args, None)
    if found is None:
        wrong = getattr(failure, "wrong", None)
        raise failure if wrong is None else wrong_type(*wrong, method="is_method" in function.__dict__)
    return op.convert(found[0])


# ---- out=
def _loses_gradient(op: Operator, args: tuple) -> bool:
    """Whether a gradient of an argument is wanted that a result in memory of its own would have."""
    return op.vjp is not NONDIFFERENTIABLE and any(map(requires_grad, op.tensors(args)))


def write_out(op: Operator, args: tuple, out):
    """`out=`: compute, then put the results into the tensors given (resized if they are of another shape)."""
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    for o in outs:
        if not isinstance(o, Tensor):
            raise TypeError(f"{op.display}(): argument 'out' must be Tensor, not {type(o).__name__}")
        if o._keys & TRANSFORMED or any(t._keys & TRANSFORMED for t in op.tensors(args)):
            raise RuntimeError(
                f"Batching rule not implemented for aten::{op.name}.out; the fallback path doesn't work on out= or view ops."
            )
    if ambient.mode & modes.GRAD and (any(map(requires_grad, outs)) or _loses_gradient(op, args)):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
    check_out_arguments(op, args, outs)
    with modes.masked(modes.GRAD | modes.AUTOCAST):  # the caller has chosen the dtype
        result = dispatch(op, _in_dtype_of(outs[0], op, args) if op.family.computes_in_dtype_of_out else args)
    results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(results) != len(outs):
        raise TypeError(f"{op.display}(): expected {len(results)} tensors in argument 'out', got {len(outs)}")
    checks = op.declared.check_out
    for o, r, check_out in zip(
        outs, results, checks if isinstance(checks, tuple) else (checks,) * len(outs), strict=True
    ):
        if (o._keys ^ r._keys) & FAKE:
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {op}(..., out={'a real tensor' if r._keys & FAKE else 'a fake tensor'} of shape {list(o._array.shape)})"
            )
        if check_out is not None:
            check_out(r, o)
        check_cast(r.dtype, o.dtype)
        if o.device is not r.device:
            raise RuntimeError(f"Expected out tensor to have device {r.device}, but got {o.device} instead")
    copy = find("copy.default").inplace
    for o, r in zip(outs, results, strict=True):
        if o._array.shape != r._array.shape:
            if op.family.reads_as_it_writes and any(t is o for t in op.tensors(args)):  # as the operator in place
                raise RuntimeError(bad_shape(o._array.shape, r._array.shape))
            resize_output(o, r._array.shape, None if o._keys & (CONJ | NEG) else stride_of(r))  # those are copied to
        check_overlap(o)
        if (o._keys | r._keys) & NAMED and not ambient.mode & modes.UNNAMED:
            above.named_out(o, r)
        if ambient.mode & modes.CAPTURE:
            with modes.masked(modes.GRAD):
                dispatch(copy, (o, r, False))
        elif not _others_write(o, r) or not handed_over(copy, (o, r, False)):
            write(o, r)
    if isinstance(out, (tuple, list)):
        return type(result)(outs) if isinstance(result, tuple) else list(outs)
    return out


def _in_dtype_of(out: Tensor, op: Operator, args: tuple) -> tuple:
    """The arguments, with the dtype of `out` where none was asked for: sums are then not rounded before they are stored."""
    at = op.schema.index.get("dtype")
    return args if at is None or args[at] is not None else (*args[:at], out.dtype, *args[at + 1 :])


def _others_write(out: Tensor, result: Tensor) -> bool:
    """Whether a dispatch mode or a subclass of tensors does the write."""
    return bool(ambient.mode & modes.DISPATCH or (out._keys | result._keys) & DISPATCH_SUBCLASS)


def check_out_arguments(op: Operator, args: tuple, outs: tuple) -> None:
    """Refuse `out=` where it would lose tangents, is of another dtype than was asked for, or memory that the call reads as another tensor."""
    tensors, apart = op.tensors(args), op.declared.out_apart
    at = op.schema.index.get("dtype")
    if at is not None and args[at] is not None and args[at] is not outs[0].dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {c_name(args[at])}, but got {c_name(outs[0].dtype)} instead"
        )
    if ambient.mode & modes.FORWARD and any(has_tangent(t) for t in (*tensors, *outs)):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function"
        )
    for o in outs:
        check_inference_write(o)
        if o._memory is None or o._keys & LAYOUTS:
            continue
        for t in tensors:
            if t._memory is not o._memory or t._keys & LAYOUTS:
                continue
            if apart and (t is not o or apart == "all") and not o._keys & META and _share(o, t):
                raise RuntimeError(OVERLAP)
            if op.family.reads_as_it_writes:
                check_partial_overlap(o, t)


def has_tangent(t: Tensor) -> bool:
    return t._autograd is not None and bool(t._autograd.tangents)


def _share(a: Tensor, b: Tensor) -> bool:
    return bool(np.may_share_memory(a._array, b._array)) if isinstance(a._array, np.ndarray) else False


def resize_output(out: Tensor, shape: tuple, stride: tuple | None = None) -> None:
    """Give an `out` tensor the shape and strides of the result; it warns where that drops numbers."""
    if out._array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which does not match the "
            f"required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not be "
            "resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
            "elements with t.resize_(0).",
            stacklevel=4,
        )
    resize(out, shape, stride)
