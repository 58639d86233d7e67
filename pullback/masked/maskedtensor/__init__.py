"""Tensors whose elements may be missing (`torch.masked.MaskedTensor`).

`core` is the class, `rules` what operators do with it, `calls` the functions that differentiate in a way of their own;
`unary`, `binary` and `reductions` list the operators that PyTorch names there.
"""

from .core import MaskedTensor, is_masked_tensor
from .creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
