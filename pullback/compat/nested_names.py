"""Private names of PyTorch's jagged tensors (`torch.nested._internal.nested_tensor`), on the nested tensors here."""

from __future__ import annotations

from ..core import device as devices
from ..core.tensor import NESTED, Tensor
from ..ops.layout.nested.construct import nested_tensor_from_jagged
from ..ops.layout.nested.layouts import RaggedSize, structure_of
from ..ops.layout.nested.operators import get_values, nest, nest_on
from ..ops.layout.nested.padding import padded_to_jagged


class _Jagged(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor) and bool(value._keys & NESTED) and value.layout is devices.jagged

    def __call__(cls, values: Tensor, offsets: Tensor, *, lengths: Tensor | None = None, **options) -> Tensor:
        """A jagged tensor on packed values; `_ragged_idx` is its ragged dimension, `_metadata_cache` what is known of lengths."""
        structure = structure_of(offsets, lengths)
        structure.extremes.update(options.pop("_metadata_cache", None) or {})
        result = nest_on(values, structure, options.pop("_ragged_idx", 1))
        if options.pop("requires_grad", False):
            result.requires_grad_()
        if options:
            raise TypeError(f"NestedTensor() got unexpected keyword arguments {sorted(options)}")
        return result


class NestedTensor(metaclass=_Jagged):
    """What jagged tensors are instances of; calling it makes one, as `nested_tensor_from_jagged` does."""


def jagged_from_list(tensors: list, offsets: Tensor | None, dtype=None, device=None):
    """(a jagged tensor of the components, its offsets); with offsets, in their structure."""
    from ..ops.layout.nested.construct import as_nested_tensor

    result = as_nested_tensor(list(tensors), dtype=dtype, device=device, layout=devices.jagged)
    if offsets is None:
        return result, result._array.structure.offsets
    structure = structure_of(offsets)
    if structure.component_lengths() != result._array.structure.component_lengths():
        raise RuntimeError(f"jagged_from_list: components do not have the lengths that offsets say: {offsets.tolist()}")
    return nest(get_values(result), structure, result._array.ragged_idx), offsets


def nested_from_padded(
    padded: Tensor, offsets: Tensor, ragged_idx: int = 1, sum_S=None, min_seqlen=None, max_seqlen=None
) -> Tensor:
    """A jagged tensor of the components of a padded dense tensor, through which gradients reach it; `sum_S` rows in all."""
    moved = padded.movedim(ragged_idx, 1)
    values = padded_to_jagged(moved, [offsets], sum_S).movedim(0, ragged_idx - 1)
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> RaggedSize:
    """The ragged size, or a multiple of it, of tensors that have these offsets."""
    return structure_of(tensor).ragged * coeff


def buffer_from_jagged(jagged: Tensor) -> Tensor:
    """The packed values."""
    return get_values(jagged)


def nested_view_from_values_offsets(
    values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen=None, max_seqlen=None
):
    """A jagged tensor on packed values."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor, ragged_idx: int = 1, min_seqlen=None, max_seqlen=None
):
    """A jagged tensor on packed values, with components of given lengths."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


class ViewNestedFromBuffer:
    """`apply(values, offsets)`: a jagged tensor on packed values."""

    @staticmethod
    def apply(values: Tensor, offsets: Tensor, metadata_cache: dict | None = None) -> Tensor:
        result = nested_tensor_from_jagged(values, offsets)
        result._array.structure.extremes.update(metadata_cache or {})
        return result
