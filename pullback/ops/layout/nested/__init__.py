"""Nested tensors: batches of tensors of different sizes.

`layouts` says what a nested tensor holds, `operators` what can be done with one, `construct` how to make one.
"""

from __future__ import annotations

from ....core import device as devices
from ....core import dtype as dtypes
from ....core.layers import extend
from ....core.modes import no_grad
from ....core.tensor import PartialProperty, Tensor, stride_of
from ...make.construct import tensor
from ...system.calls import front
from . import padding, products, reductions, shapes  # noqa: F401 - their rules
from .construct import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)
from .layouts import Structure, is_nested
from .operators import components, get_values, nest_on, nested_layer, not_implemented, store


def execute_nested(op, args: tuple):
    """Below autograd only the operators that carry values in and out are left."""
    if op.family.takes_layouts:
        return op.family.execute(op, args)
    raise not_implemented(op, args)


def write_nested(target: Tensor, result: Tensor) -> None:
    """Write the components of a result into those of a nested tensor."""
    if not is_nested(target) or not is_nested(result):
        raise RuntimeError("copy_ only supports Nested source and destination for Nested implementations")
    with no_grad():
        store(target, result)


def values_of_nested(t: Tensor) -> Tensor:
    """`Tensor.values()` of a nested tensor."""
    if t._array.structure.strides is not None:
        raise RuntimeError("NestedTensor must be contiguous to get buffer.")
    return get_values(t)


front("Tensor.to_padded_tensor")(to_padded_tensor)


def _jagged(name: str, t: Tensor) -> None:
    if not is_nested(t) or t.layout is not devices.jagged:
        raise RuntimeError(
            f"{name}(): expected a nested tensor of jagged layout, but got "
            f"{'strided nested' if is_nested(t) else t.layout}"
        )


@front("Tensor.offsets")
def offsets(self) -> Tensor:
    _jagged("offsets", self)
    return self._array.structure.offsets


@front("Tensor.lengths")
def lengths(self) -> Tensor | None:
    _jagged("lengths", self)
    return self._array.structure.lengths


def _of_jagged(name: str, read) -> property:
    """An attribute that jagged nested tensors have, and no other tensor."""

    def get(self):
        if not is_nested(self) or self.layout is not devices.jagged:
            raise AttributeError(f"'Tensor' object has no attribute '{name}': only jagged nested tensors have")
        return read(self._array)

    return PartialProperty(get)


extend(
    Tensor,
    __name__,
    _offsets=_of_jagged("_offsets", lambda a: a.structure.offsets),
    _lengths=_of_jagged("_lengths", lambda a: a.structure.lengths),
    _ragged_idx=_of_jagged("_ragged_idx", lambda a: a.ragged_idx),
    _min_seqlen=_of_jagged("_min_seqlen", lambda a: a.structure.extreme("min_seqlen")),
    _max_seqlen=_of_jagged("_max_seqlen", lambda a: a.structure.extreme("max_seqlen")),
    _metadata_cache=_of_jagged("_metadata_cache", lambda a: a.structure.extremes),
    _get_min_seqlen=_of_jagged("_get_min_seqlen", lambda a: lambda: a.structure.extreme("min_seqlen")),
    _get_max_seqlen=_of_jagged("_get_max_seqlen", lambda a: lambda: a.structure.extreme("max_seqlen")),
)


@front("torch._nested_tensor_from_mask")
def nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """The rows of each matrix of a dense tensor that a mask marks; where checked, they must be its first ones."""
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype.scalar_name} instead.")
    if mask.ndim != 2:
        raise RuntimeError(f"Padding mask should be 2D, but has {mask.ndim} dimensions")
    if t.ndim != 3:
        raise RuntimeError(f"Input should be a 3D tensor, N * L * D, but has {t.ndim} dimensions")
    if tuple(t.shape[:2]) != tuple(mask.shape):
        raise RuntimeError(f"Mask size should match input size, but got {list(mask.shape)} and {list(t.shape)}")
    counts = mask.sum(1).tolist()
    if mask_check and any(not mask[i, :n].all() for i, n in enumerate(counts)):
        raise RuntimeError("Mask must be left-aligned without gaps: each row a run of ones, then zeros")
    return as_nested_tensor([t[i][: counts[i]] for i in range(len(counts))])


@front("torch._nested_from_padded")
def nested_from_padded(padded: Tensor, sizes: Tensor, fuse_transform_0213: bool = False) -> Tensor:
    """Components of given sizes out of a padded tensor; fused, heads are joined first: (B, H, L, D) gives (L, H * D)."""
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    cut = [padded[i][tuple(slice(0, n) for n in row)] for i, row in enumerate(sizes.tolist())]
    return as_nested_tensor(cut)


@front("torch._nested_view_from_buffer")
def nested_view_from_buffer(self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor) -> Tensor:
    """A nested tensor of the strided layout whose components lie in a flat tensor, each with its size, strides and start."""
    if self.ndim != 1 or nested_size.ndim != 2:
        raise RuntimeError(
            f"_nested_view_from_buffer(): expected a flat buffer and a row of sizes for each component, got tensors of "
            f"{self.ndim} and {nested_size.ndim} dimensions"
        )
    sizes, strides = (tuple(map(tuple, t.tolist())) for t in (nested_size, nested_strides))
    starts = tuple(offsets.reshape(-1).tolist())
    for size, stride, start in zip(sizes, strides, starts, strict=True):
        last = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        if last >= 2**63:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
            )
        if 0 not in size and not 0 <= start + last < self.shape[0]:
            raise RuntimeError(
                f"_nested_view_from_buffer(): a component of sizes {list(size)}, strides {list(stride)} from {start} does not "
                f"lie in a buffer of {self.shape[0]} elements"
            )
    return nest_on(self, Structure(devices.strided, sizes=sizes, strides=strides, starts=starts))


@front("torch._nested_from_padded_and_nested_example")
def nested_from_padded_like(padded: Tensor, example: Tensor) -> Tensor:
    """Components of the sizes of another nested tensor's, out of a padded tensor."""
    return nested_from_padded(padded, nested_tensor_size(example), padded.ndim == 4 and example.ndim == 3)


@front("Tensor._nested_tensor_size")
def nested_tensor_size(self) -> Tensor:
    """The sizes of all components, one row each."""
    if not is_nested(self):
        raise RuntimeError("_nested_tensor_size() expects a nested tensor")
    return tensor([list(c.shape) for c in components(self.detach())])


@front("Tensor._nested_tensor_strides")
def nested_tensor_strides(self) -> Tensor:
    """The strides of all components, one row each."""
    return tensor([list(stride_of(c)) for c in components(self.detach())])


@front("Tensor._nested_tensor_storage_offsets")
def nested_tensor_storage_offsets(self) -> Tensor:
    """Where each component starts in the packed values."""
    return tensor([c._offset for c in components(self.detach())])


__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_layer",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
