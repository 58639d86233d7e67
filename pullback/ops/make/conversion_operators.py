"""`Tensor.to`, `Tensor.contiguous` and `Tensor.is_pinned` as operators: `ops.aten.to.dtype`, `ops.aten.contiguous`.

Programs that handle operators name them. Each gives its argument back where nothing is to be done, and is otherwise written in
`_to_copy` and `clone`, which is what dispatch modes and subclasses see.
"""

from __future__ import annotations

from ..family.base import composite

_TAIL = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
_HIDDEN = {"function": False, "method": False}


@composite(f"to.dtype(Tensor(a) self, ScalarType dtype, {_TAIL}", **_HIDDEN)
def to_dtype(self, dtype, non_blocking, copy, memory_format):
    return self.to(dtype, non_blocking=non_blocking, copy=copy, memory_format=memory_format)


@composite(f"to.device(Tensor(a) self, Device device, ScalarType dtype, {_TAIL}", **_HIDDEN)
def to_device(self, device, dtype, non_blocking, copy, memory_format):
    return self.to(device, dtype, non_blocking=non_blocking, copy=copy, memory_format=memory_format)


@composite(f"to.other(Tensor(a) self, Tensor other, {_TAIL}", **_HIDDEN)
def to_other(self, other, non_blocking, copy, memory_format):
    return self.to(other.device, other.dtype, non_blocking=non_blocking, copy=copy, memory_format=memory_format)


@composite(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    + _TAIL,
    **_HIDDEN,
)
def to_dtype_layout(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
    if layout is not None and layout is not self.layout:
        raise RuntimeError(
            f"to(options) doesn't support converting to a different layout, but got self.layout being {self.layout} and options.layout set as {layout}"
        )
    return self.to(
        self.device if device is None else device, self.dtype if dtype is None else dtype, non_blocking=non_blocking,
        copy=copy, memory_format=memory_format,
    )  # fmt: skip


@composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", **_HIDDEN)
def contiguous(self, memory_format):
    return self.contiguous(memory_format=memory_format)


@composite("is_nonzero(Tensor self) -> bool", **_HIDDEN)
def is_nonzero(self):
    if self.numel() != 1:
        few = "no values" if self.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {few} is ambiguous")
    return bool(self.item())


@composite("is_pinned(Tensor self, Device? device=None) -> bool", **_HIDDEN)
def is_pinned(self, device):
    return self.is_pinned()
