"""Subclasses that answer for their own metadata: `dispatch_sizes_strides_policy`, `dispatch_device`, `dispatch_layout`.

In: a tensor of a dispatching subclass, just made, and what its class wants to be asked for. From then on its sizes,
strides, device or layout, as programs read them, are what its `__torch_dispatch__` answers; None stands for what the tensor
was made with. The class looks members up by way of those that ask from its first such tensor on, so other tensors pay nothing.
"""

from __future__ import annotations

from typing import Any

from ...core import modes
from ...core.device import contiguous_format
from ...core.geometry import contiguous_strides
from ...core.layers import above
from ...core.size import Size, make_size
from ...core.tensor import Tensor
from ..make.lifting import facts

SIZES, STRIDES, DEVICE, LAYOUT = 1, 2, 4, 8
_POLICIES = {None: 0, "strides": STRIDES, "sizes": SIZES | STRIDES}


def take_policies(t: Tensor, sizes_strides: str | None, device: bool, layout: bool) -> None:
    """Let the class of a tensor answer for it."""
    if sizes_strides not in _POLICIES:
        raise RuntimeError(f"Unknown dispatch_sizes_strides_policy: {sizes_strides}; expected 'strides' or 'sizes'")
    wanted = _POLICIES[sizes_strides] | (DEVICE if device else 0) | (LAYOUT if layout else 0)
    if not wanted:
        return
    t.__dict__["asked_for"] = wanted
    cls = type(t)
    if "asks_for_metadata" not in cls.__dict__:
        cls.asks_for_metadata = True  # type: ignore[attr-defined]
        cls.__getattribute__ = _asking(cls.__getattribute__)  # type: ignore[method-assign]


def _asking(plain):
    """How objects of the class find their members: those that ask come before those of `Tensor`, and the class is as it was."""

    def __getattribute__(self, name: str):
        member = _MEMBERS.get(name)
        if member is None or getattr(type(self), name) is not getattr(Tensor, name):
            return plain(self, name)
        return member.__get__(self, type(self))

    return __getattribute__


def _ask(t: Tensor, what: int, name: str, *args) -> Any:
    """What the class answers; None where it leaves it to the tensor, or is not asked for this."""
    if not t.__dict__.get("asked_for", 0) & what:
        return None
    op = facts[name]
    with modes.masked(0, modes.BELOW_AUTOGRAD):
        result = type(t).__torch_dispatch__(op, (type(t),), (t, *args), {})
    if result is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{op.namespace}.{op.name}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
            f"  - tensor subclass {type(t)}"
        )
    return result


def _size(self: Tensor, dim: int | None = None):
    found = _ask(self, SIZES, "sym_size")
    if found is None:
        return Tensor.size(self, dim)
    return make_size(tuple(found)) if dim is None else found[dim]


def _shape(self: Tensor) -> Size:
    return _size(self)


def _stride(self: Tensor, dim: int | None = None):
    found = _ask(self, STRIDES, "sym_stride")
    if found is None:
        sizes = _ask(self, SIZES, "sym_size")
        found = Tensor.stride(self) if sizes is None else contiguous_strides(tuple(sizes))
    return tuple(found) if dim is None else found[dim]


def _dim(self: Tensor) -> int:
    found = _ask(self, SIZES, "dim")
    return Tensor.dim(self) if found is None else found


def _numel(self: Tensor) -> int:
    found = _ask(self, SIZES, "numel")
    return Tensor.numel(self) if found is None else found


def _is_contiguous(self: Tensor, memory_format=contiguous_format) -> bool:
    if memory_format is contiguous_format:
        found = _ask(self, STRIDES, "is_contiguous")
    else:
        found = _ask(self, STRIDES, "is_contiguous.memory_format", memory_format)
    return Tensor.is_contiguous(self, memory_format) if found is None else bool(found)


def _contiguous(self: Tensor, memory_format=contiguous_format) -> Tensor:
    return self if _is_contiguous(self, memory_format) else self.clone(memory_format=memory_format)


def _data_ptr(self: Tensor) -> int:
    _numel(self)
    return Tensor.data_ptr(self)


def _device(self: Tensor):
    found = _ask(self, DEVICE, "device")
    return Tensor.device.__get__(self) if found is None else found


def _layout(self: Tensor):
    found = _ask(self, LAYOUT, "layout")
    return Tensor.layout.__get__(self) if found is None else found


_MEMBERS: dict[str, Any] = {
    "size": _size,
    "shape": property(_shape),
    "stride": _stride,
    "dim": _dim,
    "ndimension": _dim,
    "ndim": property(_dim),
    "numel": _numel,
    "nelement": _numel,
    "is_contiguous": _is_contiguous,
    "contiguous": _contiguous,
    "data_ptr": _data_ptr,
    "device": property(_device),
    "layout": property(_layout),
}

above.take_policies = take_policies
