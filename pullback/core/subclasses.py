"""Tensors of subclasses: on the memory of another tensor, or with metadata alone (wrappers)."""

from __future__ import annotations

from . import device as devices
from . import dtype as dtypes
from .geometry import Geometry, contiguous_strides
from .layers import above, extend
from .tensor import DISPATCH_SUBCLASS, META, Tensor, assemble, set_requires_grad, subclass_of


def make_subclass(
    cls, data: Tensor, require_grad: bool = False, *, dispatch_sizes_strides_policy=None, dispatch_device: bool = False,
    dispatch_layout: bool = False, device_for_backend_keys=None,
):  # fmt: skip
    result = subclass_of(cls, data, require_grad)
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        above.take_policies(result, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return result


def make_wrapper_subclass(
    cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=devices.strided,
    device=None, pin_memory=False, requires_grad=False, dispatch_sizes_strides_policy=None, dispatch_device=False,
    dispatch_layout=False, _extra_dispatch_keys=None, storage_size=None,
):  # fmt: skip
    """A `cls` with metadata and no data, for classes whose `__torch_dispatch__` does the work."""
    if not cls.class_keys & DISPATCH_SUBCLASS:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    size = tuple(size)
    dtype = dtype or dtypes.float32
    stride = tuple(strides) if strides is not None else contiguous_strides(size)
    where = devices.device(device) if device is not None else devices.cpu
    keys = cls.class_keys | (META if where is devices.meta else 0)
    t = assemble(cls, Geometry(size, stride, dtype.numpy), dtype, where, keys, None, [0], None, storage_offset or 0)
    if requires_grad:
        set_requires_grad(t, True)
    if layout is not devices.strided:
        t.__dict__["own_layout"] = layout
    if _extra_dispatch_keys is not None:
        t.__dict__["extra_keys"] = _extra_dispatch_keys
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        above.take_policies(t, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return t


extend(
    Tensor,
    __name__,
    _make_subclass=staticmethod(make_subclass),
    _make_wrapper_subclass=staticmethod(make_wrapper_subclass),
)
