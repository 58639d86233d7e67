"""Masked tensors from data and a mask: a leaf of its own, or a function of the data."""

from __future__ import annotations

from ...core.tensor import Tensor
from .calls import MaskedOf
from .core import MaskedTensor


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of copies of `data` and `mask`, a leaf, as `torch.tensor` makes one.

    >>> torch.masked.masked_tensor(torch.tensor([1, 2]), torch.tensor([True, False]))
    MaskedTensor(
      [1,       --]
    )
    """
    if isinstance(data, Tensor) and not isinstance(data, MaskedTensor) and not data.requires_grad:
        data = data.clone()
    if isinstance(mask, Tensor) and not isinstance(mask, MaskedTensor):
        mask = mask.clone()
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor as a differentiable function of `data`.

    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.masked.as_masked_tensor(x, torch.tensor([True, False])).sum().backward()
    >>> x.grad
    MaskedTensor(
      [  1.0000,       --]
    )
    """
    return MaskedOf.apply(data, mask)
