"""Tensors from sizes, numbers and ranges: zeros, full, arange, linspace, eye, ... and their `_like` and `new_` forms."""

from __future__ import annotations

import math

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core.device import preserve_format
from ...core.geometry import channels_last_strides, is_dense, strides_for_order
from ...core.layers import above
from ...core.modes import ambient
from ...core.promotion import scalar_dtype
from ...core.storage import new_array, unset
from ...core.symbolic import holds, symbolic
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, TRANSFORMED, Tensor, set_requires_grad
from ..eager.functions import bypassing
from ..family.factory import factory
from ..family.formats import dense_strides
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.general import resize_output
from ..system.inplace import check_inference_write, check_overlap, write
from ..system.operator import Operator, Spec, exports
from ..system.scalars import check_fits
from ..system.schema import Unfit, wrong_type
from .make_lowering import filled_with, filled_with_argument, lower_arange

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


# ---- operators
def _sized(size, *rest) -> Spec:
    dtype = rest[-4]
    for s in size:
        if isinstance(s, int) and s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(size)}")
    return Spec(size, dtype or ambient.default_dtype)


def _zeros_sized(size, *rest) -> Spec:
    if any(isinstance(s, int) and s < 0 for s in size):
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    return _sized(size, *rest)


def _full_spec(size, fill_value, dtype, *rest) -> Spec:
    return Spec(_sized(size, dtype, *rest[:3]).shape, dtype or scalar_dtype(fill_value))


empty_op = factory(
    f"empty.memory_format(SymInt[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    shape=lambda size, dtype, layout, device, pin, memory_format: Spec(
        _sized(size, dtype, 0, 0, 0).shape, dtype or ambient.default_dtype, format_strides(size, memory_format)
    ),
    kernel=lambda xp, spec, *_: unset(_blank(xp, spec)),
)
zeros_op = factory(
    f"zeros(SymInt[] size, {_OPTIONS}) -> Tensor",
    lower=filled_with(0),
    shape=_zeros_sized,
    kernel=lambda xp, spec, *_: xp.zeros(spec.shape, spec.dtype.numpy),
)
ones_op = factory(
    f"ones(SymInt[] size, {_OPTIONS}) -> Tensor",
    lower=filled_with(1),
    shape=_sized,
    kernel=lambda xp, spec, *_: xp.ones(spec.shape, spec.dtype.numpy),
)
full_op = factory(
    f"full(SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    lower=filled_with_argument(1),
    shape=_full_spec,
    kernel=lambda xp, spec, size, value, *_: xp.full(spec.shape, _as_number(value, spec.dtype), spec.dtype.numpy),
)
empty_strided_op = factory(
    f"empty_strided(SymInt[] size, SymInt[] stride, {_OPTIONS}) -> Tensor",
    shape=lambda size, stride, dtype, *_: _strided_spec(size, dtype or ambient.default_dtype, stride),
    kernel=lambda xp, spec, *_: unset(_strided_blank(xp, spec)),
)
scalar_tensor_op = factory(
    f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor",
    lower=filled_with_argument(0),
    shape=lambda s, dtype, *_: Spec((), dtype or ambient.default_dtype),
    kernel=lambda xp, spec, s, *_: xp.full((), _as_number(s, spec.dtype), spec.dtype.numpy),
)


def _blank(xp, spec: Spec):
    return new_array(spec.shape, spec.dtype, spec.stride, xp)


def _strided_spec(size, dtype, stride) -> Spec:
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: dimensionality of sizes ({len(size)}) must match dimensionality of "
            f"strides ({len(stride)})"
        )
    return Spec(size, dtype, tuple(stride))


def _strided_blank(xp, spec: Spec):
    if is_dense(spec.shape, spec.stride):
        return new_array(spec.shape, spec.dtype, spec.stride, xp)
    span = 1 + sum((s - 1) * st for s, st in zip(spec.shape, spec.stride, strict=True) if s)
    flat = xp.empty(max(span, 1), spec.dtype.numpy)
    return xp.lib.stride_tricks.as_strided(flat, spec.shape, [s * spec.dtype.itemsize for s in spec.stride])


def _as_number(value, dtype):
    """A number as an element of a dtype, or PyTorch's error; integers wrap in unsigned types."""
    if isinstance(value, Tensor):
        value = value.item()
    if dtype is dtypes.bool:
        return bool(value)
    check_fits(value, dtype)
    if isinstance(value, complex) and not dtype.is_complex:
        value = value.real
    if dtype.category == 1:
        value = int(value)
        return value if value >= 0 or dtype.is_signed else value % (1 << 8 * dtype.itemsize)
    return value


def format_strides(size, memory_format):
    if memory_format in (devices.channels_last, devices.channels_last_3d):
        rank = 4 if memory_format is devices.channels_last else 5
        if len(size) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")
        return channels_last_strides(size)
    return None


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
    return Spec((max(0, math.ceil((end - start) / step)),), dtype)


def _is_whole(number) -> bool:
    return isinstance(number, int) or getattr(number, "symbolic_type", None) is int


def _arange(xp, spec: Spec, start, end, step, *_):
    n = spec.shape[0]
    dtype = spec.dtype
    if dtype.category == 1 or dtype.category == 0:
        return (xp.arange(n, dtype="i8") * int(step) + int(start)).astype(dtype.numpy)
    wide = "f8" if dtype.itemsize >= 4 else "f4"
    return (xp.arange(n, dtype=wide) * step + start).astype(dtype.numpy)


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
    if d.category == 1:
        result = _symmetric(xp, "f8" if d.itemsize == 8 else "f4", int(start), int(end), steps)
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


def _like_spec(self, *rest) -> Spec:
    dtype, layout, device, pin, memory_format = rest[-5:]
    return Spec(self.array.shape, dtype or self.dtype, like_strides(self, memory_format))


def like_strides(t: Tensor, memory_format) -> tuple | None:
    """Strides of a new tensor like `t` in a memory format; without one, `dense_strides`."""
    return (
        dense_strides(t) if memory_format in (None, preserve_format) else format_strides(t.array.shape, memory_format)
    )


def _filled(value):
    def kernel(xp, spec: Spec, *_):
        array = _blank(xp, spec)
        array.fill(value)
        return array

    return kernel


def _filled_with(xp, spec: Spec, self, value, *_):
    array = _blank(xp, spec)
    array.fill(_as_number(value, spec.dtype))
    return array


_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
empty_like_op = factory(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    shape=_like_spec,
    kernel=lambda xp, spec, *_: unset(_blank(xp, spec)),
    reads_shape_only=True,
)
zeros_like_op = factory(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor", lower=filled_with(0), shape=_like_spec, kernel=_filled(0)
)
ones_like_op = factory(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor", lower=filled_with(1), shape=_like_spec, kernel=_filled(1)
)
full_like_op = factory(
    f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor",
    lower=filled_with_argument(1),
    shape=_like_spec,
    kernel=_filled_with,
)


def _new_spec(self, size, dtype, *rest) -> Spec:
    return Spec(_sized(size, dtype, 0, 0, 0).shape, dtype or self.dtype)


new_empty_op = factory(
    f"new_empty(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
    shape=_new_spec,
    kernel=lambda xp, spec, *_: unset(_blank(xp, spec)),
    reads_shape_only=True,
)
new_zeros_op = factory(
    f"new_zeros(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
    lower=filled_with(0),
    shape=_new_spec,
    kernel=_filled(0),
)
new_ones_op = factory(
    f"new_ones(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
    lower=filled_with(1),
    shape=_new_spec,
    kernel=_filled(1),
)
new_full_op = factory(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    lower=filled_with_argument(2),
    shape=lambda self, size, fill_value, *rest: _new_spec(self, size, *rest),
    kernel=lambda xp, spec, self, size, value, *_: xp.full(spec.shape, _as_number(value, spec.dtype), spec.dtype.numpy),
)
new_empty_strided_op = factory(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, {_OPTIONS}) -> Tensor",
    shape=lambda self, size, stride, dtype, *_: _strided_spec(size, dtype or self.dtype, stride),
    kernel=lambda xp, spec, *_: unset(_strided_blank(xp, spec)),
)


# ---- public forms
def convert_option(function: str, kind: str, value, op: Operator):
    """Check one of dtype/layout/device in PyTorch's words."""
    argument = op.schema.arguments[op.schema.index[kind]]
    try:
        return argument.convert_value(value)
    except Unfit:
        raise wrong_type(function, argument, value) from None


def sizes_from(function: str, size: tuple, given=None) -> tuple:
    """Sizes given as separate ints or as one sequence."""
    if given is not None:
        size = (given,)
    if len(size) == 1 and not isinstance(size[0], int):
        only = size[0]
        if isinstance(only, (tuple, list)) or isinstance(only, Tensor) and only.ndim:
            size = tuple(only)
        elif not hasattr(only, "__index__") and not getattr(only, "is_symbolic", False):
            raise TypeError(
                f"{function}(): argument 'size' (position 1) must be tuple of ints, not {type(only).__name__}"
            )
    out = []
    for i, s in enumerate(size):
        if isinstance(s, float) or not (hasattr(s, "__index__") or getattr(s, "is_symbolic", False)):
            raise TypeError(
                f"{function}(): argument 'size' (position 1) must be tuple of ints, but found element of type {type(s).__name__} at pos {i}"
            )
        kept = getattr(s, "is_symbolic", False)
        number = not kept and isinstance(s, Tensor) and s.array.size == 1 and s.dtype.category <= 1
        out.append(s if kept else s.item() if number else s.__index__())
    return tuple(out)


def finish(
    t: Tensor, requires_grad: bool = False, out: Tensor | None = None, by_count: bool = False, names=None
) -> Tensor:
    """The last step of a factory: `names=`, `out=` and `requires_grad=`.

    `by_count`: an `out` of as many elements keeps its shape.
    """
    if names is not None:
        t = _named(t, names, out)
    if out is not None:
        check_inference_write(out)
        check_overlap(out)
        if by_count and out.array.size == t.array.size:
            t = t.view(out.shape)
        if out.array.shape != t.array.shape:
            resize_output(out, t.array.shape)
        write(out, t)
        t = out
    if requires_grad:
        set_requires_grad(t, True)
    return t


def _named(t: Tensor, names, out: Tensor | None) -> Tensor:
    """A fresh tensor with names for its dimensions."""
    if not isinstance(names, (tuple, list)):
        raise TypeError(f"argument 'names' must be tuple of Dimnames, not {type(names).__name__}")
    if out is not None:
        raise TypeError(
            "argument 'names' cannot be given beside 'out': the tensor that is written has names of its own"
        )
    return t.rename_(*names) if names or t.array.ndim else t


def _options(name: str, op: Operator, dtype, layout, device, out=None) -> tuple:
    dtype = convert_option(name, "dtype", dtype, op) if dtype is not None else (out.dtype if out is not None else None)
    if out is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    if layout is not None and layout is not devices.strided:
        layout = convert_option(name, "layout", layout, op)
        raise RuntimeError(
            f"{name}: layout {layout!r} is not supported here; build the tensor dense and convert it with to_sparse()"
        )
    return dtype, layout, convert_option(name, "device", device, op) if device is not None else None


_SPARSE = (devices.sparse_coo, devices.sparse_csr, devices.sparse_csc, devices.sparse_bsr, devices.sparse_bsc)


def _make_sized(name: str, op: Operator):
    @front(f"torch.{name}")
    def make(
        *size,
        out=None,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=None,
        memory_format=None,
        names=None,
        **extra,
    ):
        shape = sizes_from(name, size, extra.pop("size", None))
        if extra:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(extra))}'")
        if layout is not None and layout in _SPARSE and name != "ones":
            return finish(above.empty_sparse(shape, layout, dtype, device), requires_grad, out, names=names)
        dtype, layout, device = _options(name, op, dtype, layout, device, out)
        tail = (memory_format,) if op is empty_op else ()
        return finish(dispatch(op, (shape, dtype, layout, device, pin_memory, *tail)), requires_grad, out, names=names)

    make.__name__ = make.__qualname__ = name
    return make


empty = _make_sized("empty", empty_op)
zeros = _make_sized("zeros", zeros_op)
ones = _make_sized("ones", ones_op)


@front("torch.full")
def full(
    size,
    fill_value,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=None,
    names=None,
):
    dtype, layout, device = _options("full", full_op, dtype, layout, device, out)
    args = full_op.convert((sizes_from("full", (size,)), fill_value, dtype, layout, device, pin_memory))
    return finish(dispatch(full_op, args), requires_grad, out, names=names)


@front("torch.empty_strided")
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None):
    dtype, layout, device = _options("empty_strided", empty_strided_op, dtype, layout, device)
    return finish(
        dispatch(empty_strided_op, (tuple(size), tuple(stride), dtype, layout, device, pin_memory)), requires_grad
    )


@front("torch.empty_permuted")
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None
):
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    return empty_strided(
        size, strides_for_order(size, physical_layout), dtype=dtype, device=device, requires_grad=requires_grad
    )


@front("torch.scalar_tensor")
def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None):
    dtype, layout, device = _options("scalar_tensor", scalar_tensor_op, dtype, layout, device)
    return finish(dispatch(scalar_tensor_op, (s, dtype, layout, device, pin_memory)), requires_grad)


def _number(x):
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


@front("torch.arange")
def arange(
    start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None
):
    start, end = (0, start) if end is None else (start, end)
    dtype, layout, device = _options("arange", arange_op, dtype, layout, device, out)
    args = (_number(start), _number(end), _number(step), dtype, layout, device, pin_memory)
    return finish(dispatch(arange_op, args), requires_grad, out, by_count=True)


@front("torch.range")
def range_(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    dtype, layout, device = _options("range", range_op, dtype, layout, device, out)
    return finish(
        dispatch(range_op, (_number(start), _number(end), _number(step), dtype, layout, device, None)),
        requires_grad,
        out,
        by_count=True,
    )


@front("torch.linspace")
def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None
):
    dtype, layout, device = _options("linspace", linspace_op, dtype, layout, device, out)
    return finish(
        dispatch(linspace_op, (_number(start), _number(end), int(steps), dtype, layout, device, None)),
        requires_grad,
        out,
        by_count=True,
    )


@front("torch.logspace")
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
    args = (_number(start), _number(end), int(steps), _number(base), dtype, layout, device, None)
    return finish(dispatch(logspace_op, args), requires_grad, out, by_count=True)


@front("torch.eye")
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None):
    dtype, layout, device = _options("eye", eye_op, dtype, layout, device, out)
    return finish(dispatch(eye_op, (n, n if m is None else m, dtype, layout, device, None)), requires_grad, out)


def check_input(name: str, input) -> None:
    """`ones_like` and its kin take a tensor to be like."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


def _make_like(name: str, op: Operator, filled: bool = False):
    def make_filled(
        input,
        fill_value,
        *,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=None,
        memory_format=None,
    ):
        check_input(name, input)
        dtype, layout, device = _options(name, op, dtype, layout, device)
        return finish(
            dispatch(op, (input, fill_value, dtype, layout, device, pin_memory, memory_format)), requires_grad
        )

    def make(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None, memory_format=None):
        check_input(name, input)
        dtype, layout, device = _options(name, op, dtype, layout, device)
        return finish(dispatch(op, (input, dtype, layout, device, pin_memory, memory_format)), requires_grad)

    chosen = make_filled if filled else make
    chosen.__name__ = name
    return front(f"torch.{name}")(chosen)


empty_like = _make_like("empty_like", empty_like_op)
zeros_like = _make_like("zeros_like", zeros_like_op)
ones_like = _make_like("ones_like", ones_like_op)
full_like = _make_like("full_like", full_like_op, filled=True)


def batched_as(t, result):
    """Inside vmap: a new tensor with one copy per example, as the tensor it is made from has, so that it can be written to."""
    if not t.numel():
        return result
    example = t.detach().reshape(-1)[0].to(result.dtype)
    always = ones((), dtype=dtypes.bool)
    return exports["torch"]["where"](always, result, example)


_NEW = ("empty", "empty_strided", "full", "ones", "zeros")


def _always(t: Tensor) -> bool:
    return True


@bypassing(*[f"new_{name}.default" for name in _NEW], otherwise=_always)
def _is_watched(t: Tensor) -> bool:
    """Whether it matters from which tensor a new one is made: others only take its dtype and device."""
    return bool(t.keys & (FAKE | DISPATCH_SUBCLASS) or ambient.mode & modes.DISPATCH and not t.keys & TRANSFORMED)


def _make_new(name: str, build, op: Operator):
    @front(f"Tensor.{name}")
    def make(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None, **extra):
        shape = sizes_from(name, size, extra.pop("size", None))
        names = extra.pop("names", None)
        if extra:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(extra))}'")
        if _is_watched(self):
            dtype, layout, device = _options(name, op, dtype, layout, device)
            return finish(dispatch(op, (self, shape, dtype, layout, device, pin_memory)), requires_grad, names=names)
        result = build(
            shape, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad, names=names
        )
        return batched_as(self, result) if self.keys & TRANSFORMED else result

    make.__name__ = make.__qualname__ = name
    return make


new_empty = _make_new("new_empty", empty, new_empty_op)
new_zeros = _make_new("new_zeros", zeros, new_zeros_op)
new_ones = _make_new("new_ones", ones, new_ones_op)


@front("Tensor.new_full")
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None):
    if _is_watched(self):
        dtype, layout, device = _options("new_full", new_full_op, dtype, layout, device)
        args = (self, sizes_from("new_full", (size,)), fill_value, dtype, layout, device, pin_memory)
        return finish(dispatch(new_full_op, new_full_op.convert(args)), requires_grad)
    result = full(
        size, fill_value, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )
    return batched_as(self, result) if self.keys & TRANSFORMED else result


@front("Tensor.new_empty_strided")
def new_empty_strided(
    self, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None
):
    if _is_watched(self):
        dtype, layout, device = _options("new_empty_strided", new_empty_strided_op, dtype, layout, device)
        args = (self, tuple(size), tuple(stride), dtype, layout, device, pin_memory)
        return finish(dispatch(new_empty_strided_op, args), requires_grad)
    return empty_strided(
        size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )
