"""Divergences between normal vectors, with covariances in full or of low rank but for their diagonal.

All are (log det Σq - log det Σp + tr(Σq⁻¹ Σp) + distance² - n) / 2; what differs is how the terms are had cheaply.
"""

from __future__ import annotations

from .. import Tensor, broadcast_shapes, diag_embed
from .gaussian_algebra import half_log_det, solve_lower, square_distance, trace_of_square
from .kl import register_kl
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal


def _check_events(p, q, kind: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {kind} with different event shapes cannot be computed")


def _whitened(q: LowRankMultivariateNormal) -> Tensor:
    """A with Σq⁻¹ = D⁻¹ - Aᵀ A."""
    d = q._unbroadcasted_cov_diag
    return solve_lower(q._capacitance_tril, q._unbroadcasted_cov_factor.mT / d.unsqueeze(-2))


def _full_factors(p, q, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The factor of q's covariance and a matrix of p's in one batch shape."""
    batch = broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], matrix.shape[:-2])
    n = p.event_shape[0]
    return q._unbroadcasted_scale_tril.expand(batch + (n, n)), matrix.expand(batch + matrix.shape[-2:])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank_lowrank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q, "Low Rank Multivariate Normals")
    d_p, d_q, w_p = p._unbroadcasted_cov_diag, q._unbroadcasted_cov_diag, p._unbroadcasted_cov_factor
    a = _whitened(q)
    trace = (
        (d_p / d_q).sum(-1)
        + trace_of_square(w_p * d_q.rsqrt().unsqueeze(-1))
        - trace_of_square(a * d_p.sqrt().unsqueeze(-2))
        - trace_of_square(a @ w_p)
    )
    return 0.5 * (q._log_det() - p._log_det() + trace + q._square_distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_lowrank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    factor = p._unbroadcasted_scale_tril
    log_dets = q._log_det() - 2 * half_log_det(factor)
    inside = trace_of_square(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    trace = inside - trace_of_square(_whitened(q) @ factor)
    return 0.5 * (log_dets + trace + q._square_distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_full(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    log_dets = 2 * half_log_det(q._unbroadcasted_scale_tril) - p._log_det()
    distance = square_distance(q._unbroadcasted_scale_tril, q.loc - p.loc)
    parts = (p._unbroadcasted_cov_factor, diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    trace = sum(trace_of_square(solve_lower(*_full_factors(p, q, part))) for part in parts)
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _full_full(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q, "Multivariate Normals")
    log_dets = half_log_det(q._unbroadcasted_scale_tril) - half_log_det(p._unbroadcasted_scale_tril)
    distance = square_distance(q._unbroadcasted_scale_tril, q.loc - p.loc)
    trace = trace_of_square(solve_lower(*_full_factors(p, q, p._unbroadcasted_scale_tril)))
    return log_dets + 0.5 * (trace + distance - p.event_shape[0])
