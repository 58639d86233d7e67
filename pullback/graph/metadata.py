"""What there is to know of a tensor besides its values.

In: a tensor. Out: a tuple of plain facts. What always holds: it keeps no tensor alive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import device as devices
from ..core.geometry import contiguous_strides
from ..core.tensor import Tensor, stride_of


class TensorMetadata(NamedTuple):
    """Shape, dtype and layout of a tensor."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    strided = result.layout is devices.strided
    stride = result.stride() if strided else ()
    kind = _memory_format(result) if include_contiguity and strided else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, kind, False, {})


def facts_without_data(known: Tensor, requires_grad: bool) -> TensorMetadata:
    """The metadata of a strided tensor without data. To ask for the order of unknown sizes would decide them: it is left open."""
    shape, strides, kind = known._array.shape, stride_of(known), None
    if all(n.__class__ is int for n in (*shape, *strides)):
        kind = devices.contiguous_format if strides == contiguous_strides(shape) else _memory_format(known)
    return _made((known.shape, known.dtype, requires_grad, strides, kind, False, {}))


_made = TensorMetadata._make


def _memory_format(result: Tensor) -> Any:
    for name, dims in (("contiguous_format", None), ("channels_last", 4), ("channels_last_3d", 5)):
        wanted = getattr(devices, name)
        if dims in (None, result.dim()) and result.is_contiguous(memory_format=wanted):
            return wanted
    return None
