"""The class: data and a mask of the same shape, True where an element is there.

Comes in: a tensor and a boolean tensor of one shape and layout (strided, COO or CSR; sparse ones have the same places).
Goes out: a tensor that operators take as one (`rules`), in which missing elements take no part. What always holds: the mask
of a gradient is the mask of the tensor that it belongs to, and what stands in the data where the mask is False means nothing.
"""

from __future__ import annotations

import warnings
from typing import TypeGuard

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ...ops.system.operator import public
from ...ops.system.overrides import DisableTorchFunctionSubclass

LAYOUTS = (devices.strided, devices.sparse_coo, devices.sparse_csr)


def is_masked_tensor(obj, /) -> TypeGuard[MaskedTensor]:
    """Whether an object is a `MaskedTensor`.

    >>> from pullback.masked import is_masked_tensor, masked_tensor
    >>> is_masked_tensor(masked_tensor(torch.ones(2), torch.tensor([True, False])))
    True
    """
    return isinstance(obj, MaskedTensor)


# ---- checks
def _check_kinds(data, mask) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if is_masked_tensor(value) or not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor, got {type(value).__name__}")


def _check_parts(data: Tensor, mask: Tensor) -> None:
    if data.layout is not mask.layout:
        raise TypeError(f"data and mask must have the same layout, got {data.layout} and {mask.layout}.")
    if data.layout not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not dtypes.bool:
        raise TypeError(f"mask must have dtype bool, got {mask.dtype}.")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(), got {data.dim()} and {mask.dim()}")
    if data.size() != mask.size():
        raise ValueError(f"data.size() must equal mask.size(), got {tuple(data.size())} and {tuple(mask.size())}")


def _check_places(data: Tensor, mask: Tensor) -> None:
    """That sparse data and mask specify the same elements."""
    if data.layout is devices.sparse_coo and not same_numbers(data.indices(), mask.indices()):
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    if data.layout is devices.sparse_csr and not (
        same_numbers(data.crow_indices(), mask.crow_indices()) and same_numbers(data.col_indices(), mask.col_indices())
    ):
        raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")


def same_numbers(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a == b).all())


def _at_one_place(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Sparse data at the places of the mask; others as they are."""
    if data.layout is devices.strided:
        return data, mask
    if data.layout is devices.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data._nnz() != mask._nnz():
        data = data.sparse_mask(mask)
    return data, mask


def masks_match(a: Tensor, b: Tensor) -> bool:
    """Whether two masked tensors have the same elements; a plain tensor has whatever the other has."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    one, other = a._masked_mask, b._masked_mask
    if one is other:
        return True
    if one.layout is not other.layout or one.shape != other.shape:
        return False
    if one.layout is devices.strided:
        return same_numbers(one, other)
    return same_numbers(one.to_dense(), other.to_dense())


def tensors_match(a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two plain tensors are equal, or close, NaN where the other is NaN."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    b = b.to(a.dtype) if not exact else b
    if a.layout is not devices.strided:
        a, b = a.to_dense(), b.to_dense()
    if a.shape != b.shape or a.dtype is not b.dtype:
        return False
    return same_numbers(a, b) if exact else public("torch", "allclose")(a, b, rtol, atol, equal_nan=True)


class MaskedTensor(Tensor):
    """A tensor of which some elements are missing; `masked_tensor` and `as_masked_tensor` make it.

    >>> x = torch.masked.MaskedTensor(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    >>> x.sum()
    MaskedTensor(  4.0000, True)
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(cls, data, mask, requires_grad: bool = False):
        _check_kinds(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        strides = data.stride() if data.layout is devices.strided else None
        return Tensor._make_wrapper_subclass(
            cls, data.size(), strides=strides, device=data.device, dtype=data.dtype, layout=data.layout,
            requires_grad=requires_grad,
        )  # fmt: skip

    def __init__(self, data, mask, requires_grad: bool = False):
        _check_parts(data, mask)
        data, mask = _at_one_place(data, mask)
        _check_places(data, mask)
        self._masked_data, self._masked_mask = data.detach(), mask

    # ---- parts
    def get_data(self) -> Tensor:
        """The data, missing elements included; a gradient of it comes back with the mask."""
        from .calls import DataOf

        return DataOf.apply(self) if self.requires_grad else self._masked_data

    def get_mask(self) -> Tensor:
        """The mask: True where an element is there."""
        return self._masked_mask

    def to_tensor(self, value) -> Tensor:
        """A plain tensor with `value` where an element is missing."""
        data, mask = self.get_data(), self._masked_mask
        if data.layout is not devices.strided:
            data, mask = data.to_dense(), mask.to_dense()
        return data.masked_fill(~mask, value)

    def is_contiguous(self, memory_format=devices.contiguous_format) -> bool:
        if self._masked_data.layout is not devices.strided:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
        return self._masked_data.is_contiguous(memory_format=memory_format)

    def contiguous(self, memory_format=devices.contiguous_format):
        return self if self.is_contiguous(memory_format=memory_format) else self.clone(memory_format=memory_format)

    def __repr__(self, tensor_contents: str | None = None) -> str:
        from .printing import masked_repr

        return masked_repr(self)

    # ---- as a subclass
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from .calls import own_call

        kwargs = kwargs or {}
        result = own_call(func, args, kwargs)
        if result is not NotImplemented:
            return result
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from .rules import run

        return run(func, args, kwargs or {})

    def __tensor_flatten__(self):
        return ["_masked_data", "_masked_mask"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return MaskedTensor(inner["_masked_data"], inner["_masked_mask"])


_masks_match, _tensors_match = masks_match, tensors_match  # as PyTorch names them
