"""The linear algebra of normal vectors: products, distances, determinants and traces over batches of matrices."""

from __future__ import annotations

from .. import Tensor, eye, linalg


def matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrices times vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """L⁻¹ B for lower triangular L."""
    return linalg.solve_triangular(factor, right, upper=False)


def square_distance(factor: Tensor, x: Tensor) -> Tensor:
    """xᵀ M⁻¹ x, given the Cholesky factor of M."""
    if factor.dim() == 2:  # one factor for all vectors: solve for them at once
        columns = x.reshape(-1, x.shape[-1]).mT
        return solve_lower(factor, columns).pow(2).sum(-2).reshape(x.shape[:-1])
    return solve_lower(factor, x.unsqueeze(-1)).pow(2).sum((-2, -1))


def half_log_det(factor: Tensor) -> Tensor:
    """log det(M) / 2, given the Cholesky factor of M."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def trace_of_square(x: Tensor) -> Tensor:
    """tr(X Xᵀ)."""
    return x.pow(2).sum((-2, -1))


def factor_from_precision(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of `precision`.

    Turning rows and columns round, P = Uᵀ U with a lower triangular U, and so P⁻¹ = U⁻¹ U⁻ᵀ.
    """
    upside_down = linalg.cholesky(precision.flip((-2, -1)))
    inverse = upside_down.flip((-2, -1)).mT
    return solve_lower(inverse, eye(precision.shape[-1], dtype=precision.dtype, device=precision.device))


# ---- covariances W Wᵀ + diag(D), of low rank but for their diagonal
def capacitance_factor(w: Tensor, d: Tensor) -> Tensor:
    """The Cholesky factor of I + Wᵀ D⁻¹ W."""
    inner = (w.mT / d.unsqueeze(-2)) @ w
    return linalg.cholesky(inner + eye(w.size(-1), dtype=w.dtype, device=w.device))


def lowrank_log_det(d: Tensor, capacitance: Tensor) -> Tensor:
    """log det(W Wᵀ + D), by the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + d.log().sum(-1)


def lowrank_square_distance(w: Tensor, d: Tensor, x: Tensor, capacitance: Tensor) -> Tensor:
    """xᵀ (W Wᵀ + D)⁻¹ x, by the Woodbury identity."""
    projected = matvec(w.mT / d.unsqueeze(-2), x)
    return (x.pow(2) / d).sum(-1) - square_distance(capacitance, projected)
