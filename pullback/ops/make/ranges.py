"""New tensors of numbers that follow from bounds: arange, range, linspace, logspace, eye.

In: bounds, steps, and the options of every factory. Out: a tensor; its dtype follows from the bounds where none is asked for.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from ...core import dtype as dtypes
from ...core.modes import ambient
from ...core.symbolic import holds, symbolic
from ...core.tensor import Tensor
from ..family.base import composite
from ..family.factory import factory
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Operator, Spec
from ..system.scalars import check_fits
from .factories import _OPTIONS, _as_number, _options, convert_option, finish
from .make_lowering import lower_arange


def _range_spec(start, end, step, dtype, *_) -> Spec:
    if dtype is None:
        numbers = [x for x in (start, end, step) if x is not None]
        dtype = dtypes.int64 if all(map(_is_whole, numbers)) else ambient.default_dtype
    for x in (start, end):
        if isinstance(x, float) and not math.isfinite(x):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (ordered := end >= start if step > 0 else end <= start) is not True and not holds(ordered):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    plain = start.__class__ is end.__class__ is step.__class__ is int
    if not plain and symbolic(start, end, step) and all(map(_is_whole, (start, end, step))):
        way = 1 if step > 0 else -1
        return Spec(((end - start + step - way) // step,), dtype)
    n = max(0, math.ceil((end - start) / step))
    if n.__class__ is int and n >= 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    return Spec((n,), dtype)


def _is_whole(number) -> bool:
    return isinstance(number, int) or getattr(number, "symbolic_type", None) is int


def _arange(xp, spec: Spec, start, end, step, *_):
    n = spec.shape[0]
    dtype = spec.dtype
    if dtype.category == 1 or dtype.category == 0:
        return (xp.arange(n, dtype="i8") * int(step) + int(start)).astype(dtype.numpy)
    wide = "f8" if dtype.itemsize >= 4 else "f4"
    return (xp.arange(n, dtype=wide) * step + start).astype(dtype.numpy)


@composite(f"arange(Scalar end, {_OPTIONS}) -> Tensor", function=False, method=False, out=False)
def _arange_to(end, *options):
    return dispatch(arange_op, (0, end, 1, *options))


@composite(f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor", function=False, method=False, out=False)
def _arange_between(start, end, *options):
    return dispatch(arange_op, (start, end, 1, *options))


arange_op = factory(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor",
    lower=lower_arange,
    shape=_range_spec,
    kernel=_arange,
)


def _inclusive_spec(start, end, step, dtype, *_) -> Spec:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end > start) != (step > 0) and end != start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return Spec((int((end - start) / step) + 1,), dtype or ambient.default_dtype)


range_op = factory(
    f"range.step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor", shape=_inclusive_spec, kernel=_arange
)


def _steps_spec(start, end, steps, *rest) -> Spec:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    dtype = rest[-4]
    if dtype is None:
        dtype = (
            ambient.default_dtype.to_complex()
            if isinstance(start, complex) or isinstance(end, complex)
            else ambient.default_dtype
        )
    return Spec((steps,), dtype)


def _linspace(xp, spec: Spec, start, end, steps, *_):
    """From both ends to the middle, in the result's precision, as PyTorch's kernel does."""
    d = spec.dtype
    for value in (start, end):
        check_fits(value, d)
    if d.category == 1:
        ends = (int(_as_number(start, d)), int(_as_number(end, d)))  # negative ones wrap before they are ends
        result = _symmetric(xp, "f8" if d.itemsize == 8 else "f4", *ends, steps)
        return xp.trunc(result).astype(d.numpy)
    working = {2: "f4", 1: "f4"}.get(d.itemsize, d.numpy)
    return _symmetric(xp, working, start, end, steps).astype(d.numpy)


def _symmetric(xp, working, start, end, steps: int):
    if steps == 1:
        return xp.full((1,), start, working)
    w = np.dtype(working).type
    start, end = w(start), w(end)
    step = (end - start) / w(max(steps - 1, 1))
    i = xp.arange(steps)
    real = np.dtype(working).type(0).real.dtype
    ahead = start + step * i.astype(real)
    back = end - step * (steps - 1 - i).astype(real)
    return xp.where(i < steps // 2, ahead, back).astype(working)


def _logspace(xp, spec: Spec, start, end, steps, base, *_):
    d = spec.dtype
    working = {2: "f4", 1: "f4"}.get(d.itemsize, d.numpy) if d.category > 1 else "f8"
    if steps == 1:
        return xp.power(xp.asarray(base, working), xp.full((1,), start, working)).astype(d.numpy)
    exponents = _symmetric(xp, working, start, end, steps)
    return xp.power(xp.asarray(base, exponents.dtype), exponents).astype(d.numpy)


linspace_op = factory(
    f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor", shape=_steps_spec, kernel=_linspace
)
logspace_op = factory(
    f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {_OPTIONS}) -> Tensor",
    shape=_steps_spec,
    kernel=_logspace,
)


def _eye_spec(n, m, dtype, *_) -> Spec:
    for name, v in (("n", n), ("m", m)):
        if v < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {v}")
    return Spec((n, m), dtype or ambient.default_dtype)


eye_op = factory(
    f"eye.m(SymInt n, SymInt m, {_OPTIONS}) -> Tensor",
    shape=_eye_spec,
    kernel=lambda xp, spec, *_: xp.eye(*spec.shape, dtype=spec.dtype.numpy),
)


@composite(f"eye(SymInt n, {_OPTIONS}) -> Tensor", function=False, method=False, out=False)
def _square_eye(n, *options):
    return dispatch(eye_op, (n, n, *options))


def _number(x):
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


@front("torch.arange", past=("arange.default", "arange.start", "arange.start_step"))
def arange(
    start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None
):
    named = (
        _arange_to if end is None else _arange_between
    )  # what a kernel may be registered for, where no step is asked for
    start, end = (0, start) if end is None else (start, end)
    dtype, layout, device = _options("arange", arange_op, dtype, layout, device, out)
    bounds = (_number(start), _number(end))
    if named.layer is not None and step == 1:
        bounds = bounds[1:] if named is _arange_to else bounds
        result = dispatch(named, (*bounds, dtype, layout, device, pin_memory))
    else:
        result = dispatch(arange_op, (*bounds, _number(step), dtype, layout, device, pin_memory))
    if out is not None:
        _fit(out, result)
    return finish(result, requires_grad, out, by_count=True)


def _fit(out: Tensor, result: Tensor) -> None:
    """Say that an `out` with elements, but of another number, is resized: rounding may be why."""
    n = result.numel()
    if out.requires_grad or out.numel() in (0, n):
        return
    warnings.warn(
        f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not match the "
        f"computed number of elements {n}. Note that this may occur as a result of rounding error. The out tensor will be "
        f"resized to a tensor of shape ({n},).",
        stacklevel=4,
    )
    out.resize_((n,))


@front("torch.range")
def range_(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. "
        "Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=3,
    )
    dtype, layout, device = _options("range", range_op, dtype, layout, device, out)
    return finish(
        dispatch(range_op, (_number(start), _number(end), _number(step), dtype, layout, device, None)),
        requires_grad,
        out,
        by_count=True,
    )


def _count(name: str, op: Operator, steps) -> int:
    """How many numbers are asked for, which is no fraction."""
    return convert_option(name, "steps", steps, op)


@front("torch.linspace", past=("linspace.default",))
def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None
):
    dtype, layout, device = _options("linspace", linspace_op, dtype, layout, device, out)
    return finish(
        dispatch(
            linspace_op,
            (_number(start), _number(end), _count("linspace", linspace_op, steps), dtype, layout, device, None),
        ),
        requires_grad,
        out,
        by_count=True,
    )


@front("torch.logspace", past=("logspace.default",))
def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=None,
):
    dtype, layout, device = _options("logspace", logspace_op, dtype, layout, device, out)
    args = (
        _number(start),
        _number(end),
        _count("logspace", logspace_op, steps),
        _number(base),
        dtype,
        layout,
        device,
        None,
    )
    return finish(dispatch(logspace_op, args), requires_grad, out, by_count=True)


@front("torch.eye", past=("eye.default", "eye.m"))
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None):
    dtype, layout, device = _options("eye", eye_op, dtype, layout, device, out)
    if m is None and _square_eye.layer is not None:  # a kernel is registered for it
        return finish(dispatch(_square_eye, (n, dtype, layout, device, None)), requires_grad, out)
    return finish(dispatch(eye_op, (n, n if m is None else m, dtype, layout, device, None)), requires_grad, out)
