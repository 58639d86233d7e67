"""Tensors from sizes and numbers: zeros, ones, full, empty; and what all factories share (`finish`, `sizes_from`).

In: sizes, and the options of every factory. Out: a new tensor, with names, in `out=` and requiring a gradient as asked for.
"""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core.elements import fill
from ...core.geometry import channels_last_strides, contiguous_strides, is_dense, strides_for_order
from ...core.layers import above
from ...core.modes import ambient
from ...core.promotion import scalar_dtype
from ...core.size import Size
from ...core.storage import new_array, unset
from ...core.tensor import SPARSE, Tensor, set_requires_grad
from ..family.factory import factory
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.general import resize_output
from ..system.inplace import check_inference_write, check_overlap, write
from ..system.operator import Operator, Spec, key_of
from ..system.scalars import check_fits
from ..system.schema import Unfit, wrong_element, wrong_type
from .make_lowering import filled_with, filled_with_argument

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


# ---- operators
def _sized(size, *rest) -> Spec:
    dtype = rest[-4]
    for s in size:
        if s.__class__ is int and s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(size)}")
    return Spec(size, dtype or ambient.default_dtype)


def _zeros_sized(size, *rest) -> Spec:
    if any(s.__class__ is int and s < 0 for s in size):
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
    kernel=lambda xp, spec, *_: filled(xp, spec, 1),
)
full_op = factory(
    f"full(SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    lower=filled_with_argument(1),
    shape=_full_spec,
    kernel=lambda xp, spec, size, value, *_: filled(xp, spec, _as_number(value, spec.dtype)),
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


def filled(xp, spec: Spec, value):
    """A new array with one number everywhere."""
    array = _blank(xp, spec)
    fill(array, value)
    return array


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


def format_of(size, stride: tuple):
    """The memory format that lays a size out by these strides; None where none does."""
    if stride == contiguous_strides(size):
        return devices.contiguous_format
    for rank, known in ((4, devices.channels_last), (5, devices.channels_last_3d)):
        if len(size) == rank and stride == channels_last_strides(size):
            return known
    return None


# ---- public forms
_LISTS, _INT = frozenset((tuple, list, Size)), {int}


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
    is_list = len(size) == 1 and size[0].__class__ in _LISTS
    if is_list:
        size = tuple(size[0])
    if set(map(type, size)) <= _INT:
        return size
    if not is_list and len(size) == 1 and not isinstance(size[0], int):
        only = size[0]
        if isinstance(only, (tuple, list)) or isinstance(only, Tensor) and only.ndim:
            size = tuple(only)
        elif only.__class__ is bool or not hasattr(only, "__index__") and not getattr(only, "is_symbolic", False):
            raise TypeError(
                f"{function}(): argument 'size' (position 1) must be tuple of ints, not {type(only).__name__}"
            )
    out = []
    for s in size:
        if isinstance(s, (float, bool)) or not (hasattr(s, "__index__") or getattr(s, "is_symbolic", False)):
            raise wrong_element(function, "size", " (position 1)", size)  # type: ignore[misc]
        kept = getattr(s, "is_symbolic", False)
        number = not kept and isinstance(s, Tensor) and s._array.size == 1 and s.dtype.category <= 1
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
        if ambient.mode & modes.GRAD and out.requires_grad:
            raise RuntimeError(
                "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
            )
        check_inference_write(out)
        check_overlap(out)
        if by_count and out._array.size == t._array.size:
            t = t.view(out.shape)
        if out._array.shape != t._array.shape:
            resize_output(out, t._array.shape)
        write(out, t)
        t = out
    if requires_grad is not False and not isinstance(requires_grad, (bool, np.bool_)):
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
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
    return t.rename_(*names) if names or t._array.ndim else t


def _options(name: str, op: Operator, dtype, layout, device, out=None, like=None) -> tuple:
    dtype = convert_option(name, "dtype", dtype, op) if dtype is not None else (out.dtype if out is not None else None)
    if out is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    if layout is not None and layout is not devices.strided and not (like is not None and like._keys & SPARSE):
        layout = convert_option(name, "layout", layout, op)
        if out is not None:
            raise RuntimeError(f"layout {layout} does not match layout of out parameter ({out.layout})")
        raise RuntimeError(
            f"{name}: layout {layout!r} is not supported here; build the tensor dense and convert it with to_sparse()"
        )
    return dtype, layout, convert_option(name, "device", device, op) if device is not None else None


_SPARSE = (devices.sparse_coo, devices.sparse_csr, devices.sparse_csc, devices.sparse_bsr, devices.sparse_bsc)


def _make_sized(name: str, op: Operator):
    @front(f"torch.{name}", past=(key_of(op),))
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
        if layout is not None and layout in _SPARSE and name != "ones" and (out is None or out.layout is layout):
            return finish(above.empty_sparse(shape, layout, dtype, device), requires_grad, out, names=names)
        dtype, layout, device = _options(name, op, dtype, layout, device, out)
        tail = (memory_format,) if op is empty_op else ()
        return finish(dispatch(op, (shape, dtype, layout, device, pin_memory, *tail)), requires_grad, out, names=names)

    make.__name__ = make.__qualname__ = name
    return make


empty = _make_sized("empty", empty_op)
zeros = _make_sized("zeros", zeros_op)
ones = _make_sized("ones", ones_op)


@front("torch.full", past=("full.default",))
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
