"""The normal distribution of vectors whose covariance is W Wᵀ + diag(D), with few columns in W."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import Size, Tensor, broadcast_tensors, diag_embed, eye, linalg
from . import constraints
from .distribution import Distribution
from .gaussian_algebra import (
    capacitance_factor,
    lowrank_log_det,
    lowrank_square_distance,
    matvec,
    solve_lower,
)
from .parameters import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Vectors around `loc`, from W (`cov_factor`) and D (`cov_diag`); nothing larger than W is ever factored."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = (
        "loc", "cov_factor", "cov_diag", "variance", "scale_tril", "covariance_matrix", "precision_matrix",
    )  # fmt: skip

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        _check_shapes(loc, cov_factor, cov_diag)
        try:
            column, self.cov_factor, diag = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        self.loc, self.cov_diag = column[..., 0], diag[..., 0]
        super().__init__(self.loc.shape[:-1], loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_factor(cov_factor, cov_diag)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        total = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return total.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """With C = D^-½ W, the covariance is D^½ (C Cᵀ + I) D^½; the middle is safely positive definite."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        c = self._unbroadcasted_cov_factor / root
        middle = c @ c.mT + eye(c.shape[-2], dtype=c.dtype, device=c.device)
        return self._expand_matrix(root * linalg.cholesky(middle))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        w = self._unbroadcasted_cov_factor
        return self._expand_matrix(w @ w.mT + diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """By the Woodbury identity: D⁻¹ - D⁻¹ W (I + Wᵀ D⁻¹ W)⁻¹ Wᵀ D⁻¹."""
        d = self._unbroadcasted_cov_diag
        a = solve_lower(self._capacitance_tril, self._unbroadcasted_cov_factor.mT / d.unsqueeze(-2))
        return self._expand_matrix(diag_embed(d.reciprocal()) - a.mT @ a)

    def _expand_matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        eps_w = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], dtype, device)
        eps_d = standard_normal(shape, dtype, device)
        spread = self._unbroadcasted_cov_diag.sqrt() * eps_d
        return self.loc + matvec(self._unbroadcasted_cov_factor, eps_w) + spread

    def _log_det(self) -> Tensor:
        return lowrank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)

    def _square_distance(self, x: Tensor) -> Tensor:
        return lowrank_square_distance(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, x, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._square_distance(value - self.loc))

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)


def _check_shapes(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> None:
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    event_shape = loc.shape[-1:]
    if cov_factor.dim() < 2:
        raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
    if cov_factor.shape[-2:-1] != event_shape:
        raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
    if cov_diag.shape[-1:] != event_shape:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
