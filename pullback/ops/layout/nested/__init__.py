"""Nested tensors: batches of tensors of different sizes.

`layouts` says what a nested tensor holds, `operators` what can be done with one, `construct` how to make one.
"""

from __future__ import annotations

from ....core import device as devices
from ....core.tensor import Tensor
from ...make.construct import tensor
from ...system.calls import front
from ..sparse.table import LAYOUT
from .construct import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)
from .layouts import is_nested
from .operators import components, get_values, nested_layer, not_implemented


def execute_nested(op, args: tuple):
    """Below autograd only the two operators that carry values in and out are left."""
    if op.family is LAYOUT:
        return LAYOUT.execute(op, args)
    raise not_implemented(op, args)


def write_nested(target: Tensor, result: Tensor) -> None:
    raise NotImplementedError("writing into nested tensors is not implemented")


def values_of_nested(t: Tensor) -> Tensor:
    """`Tensor.values()` of a nested tensor."""
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
    return self.array.structure.offsets


@front("Tensor.lengths")
def lengths(self) -> Tensor | None:
    _jagged("lengths", self)
    return self.array.structure.lengths


@front("Tensor._nested_tensor_size")
def nested_tensor_size(self) -> Tensor:
    """The sizes of all components, one row each."""
    if not is_nested(self):
        raise RuntimeError("_nested_tensor_size() expects a nested tensor")
    return tensor([list(c.shape) for c in components(self.detach())])


__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_layer",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
