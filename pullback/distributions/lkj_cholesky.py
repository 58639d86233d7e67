"""The LKJ distribution over Cholesky factors of correlation matrices.

D. Lewandowski, D. Kurowicka, H. Joe: Generating random correlation matrices based on vines and extended onion method
(2009), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import Size, Tensor, arange, cat, diag_embed, finfo, mvlgamma, randn, tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .parameters import Number

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors L of dim x dim correlation matrices with density proportional to det(L Lᵀ)^(concentration - 1)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = ("concentration", "_beta")

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = tensor(concentration) if isinstance(concentration, Number) else concentration
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        # How much of each row's unit length lies off the diagonal is a beta number; the first row has none.
        rows = arange(dim - 1, **like)
        rows = cat([rows.new_zeros((1,)), rows])
        largest = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(rows + 0.5, largest.unsqueeze(-1) - 0.5 * rows)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        direction = randn(shape, dtype=y.dtype, device=y.device).tril(-1)
        direction = direction / direction.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        below = y.sqrt() * direction
        diagonal = (1 - below.pow(2).sum(-1)).clamp(min=finfo(below.dtype).tiny).sqrt()
        return below + diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        return (order * diagonal.log()).sum(-1) - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        """Page 1999 of the paper."""
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        return 0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n
