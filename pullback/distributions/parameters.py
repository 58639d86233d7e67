"""What parameters go through before a distribution holds them: broadcasting, probabilities and log odds, lazy values.

Numbers and tensors come in, tensors of one shape go out. A number takes the dtype and device of the first tensor beside
it, or else the default dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import Tensor, arange, broadcast_tensors, empty, enable_grad, finfo, get_default_dtype, tensor
from ..surface.overrides import is_tensor_like

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

Number = (int, float, bool)
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """All values as tensors of one shape."""
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    if not all(is_tensor_like(v) for v in values):
        like = next((v for v in values if isinstance(v, Tensor)), None)
        options: dict[str, Any] = {"dtype": get_default_dtype()}
        if like is not None:
            options = {"dtype": like.dtype, "device": like.device}
        values = tuple(v if is_tensor_like(v) else tensor(v, **options) for v in values)
    return tuple(broadcast_tensors(*values))


def standard_normal(shape, dtype, device) -> Tensor:
    """Normal numbers with mean 0 and deviation 1."""
    return empty(shape, dtype=dtype, device=device).normal_()


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that stay away from 0 and 1 by the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log odds (`is_binary`), or from log probabilities up to a constant."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (`is_binary`) or log probabilities."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """An attribute that is computed when first read, with recording on, and kept in the instance from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


class ProbsOrLogits:
    """What distributions share that are given either `probs` or `logits`: the other one is made when asked for."""

    _is_binary = True

    def _take_probs_or_logits(self, probs, logits, *others) -> tuple[Tensor, ...]:
        """Broadcast the one that is given with `others`, hold it, and return the others."""
        only_one_given(probs, logits)
        self._given = "logits" if probs is None else "probs"
        given, *rest = reversed(broadcast_all(*others, logits if probs is None else probs))
        self.__dict__[self._given] = given
        return tuple(reversed(rest))

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def _param(self) -> Tensor:
        return self.__dict__[self._given]

    @property
    def param_shape(self):
        return self._param.size()

    def _new(self, *args, **kwargs) -> Tensor:
        return self._param.new(*args, **kwargs)


def only_one_given(probs, logits) -> None:
    """Raise unless exactly one of the two is there."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below diagonal `diag` of each matrix, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The square matrices whose elements on and below diagonal `diag` are `vec`, row by row; zeros elsewhere."""
    length = vec.shape[-1]
    b = 1 + 2 * diag
    n = (-b + (b**2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    mat[..., _lower(n, diag, vec.device)] = vec
    return mat


def _lower(n: int, diag: int, device) -> Tensor:
    index = arange(n, device=device)
    return index < index.view(-1, 1) + (diag + 1)


# The names that programs know from PyTorch.
_standard_normal = standard_normal
_sum_rightmost = sum_rightmost
_Number = Number
