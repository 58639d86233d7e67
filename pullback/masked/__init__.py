"""Reductions and normalizations that leave elements out (`torch.masked`).

In: a tensor and a boolean `mask` that broadcasts to it, True where an element takes part (None: everywhere). Out: what the
operator of the same name gives for the elements that take part; where none does, its neutral element, or NaN if it has none.
Written in differentiable operators: elements that are left out get gradient 0.
"""

from .filling import every as _canonical_dim  # noqa: F401
from .filling import identity as _reduction_identity  # noqa: F401 - names that PyTorch has without a promise
from .filling import input_mask as _input_mask  # noqa: F401
from .filling import output_mask as _output_mask  # noqa: F401
from .filling import where as _where  # noqa: F401
from .maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
from .normalizations import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from .reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

_PUBLIC = (
    MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor,
    amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm, normalize, prod, softmax,
    softmin, std, sum, var,
)  # fmt: skip
__all__ = [function.__name__ for function in _PUBLIC]  # noqa: PLE0604 - the names of these functions
