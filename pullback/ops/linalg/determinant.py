"""Determinants and their logarithms.

In: stacks of square matrices. Out: determinants; for `slogdet` the sign (a unit complex number, zero for a singular
matrix) and the logarithm of the absolute value.
Always: the determinant is differentiable at singular matrices too.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.modes import TRANSFORM, ambient, is_grad_enabled
from ...core.tensor import META, Tensor
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..system.operator import exports
from ..system.return_types import pack_results
from . import checks
from . import function_kernels as kernels
from .algebra import cat, diagonal, diagonal_matrix, spec, stacked, where
from .solve import adjoint_solve
from .spectral import linalg_svd_helper


def _check_det(A: Tensor) -> None:
    checks.is_square(A, "linalg.det")
    checks.is_inexact(A, "linalg.det")
    checks.kernel_takes(A, "lu_cpu")


def scaled_inverse(scale: Tensor, a: Tensor, packed: Tensor, pivots: Tensor) -> Tensor:
    """scale A^-H."""
    right = diagonal_matrix(scale.unsqueeze(-1).expand(tuple(a.shape[:-1])))
    return adjoint_solve(a, packed, pivots, right)


def _det_vjp(gs: tuple, result: Tensor, A: Tensor, LU: Tensor, pivots: Tensor) -> Tensor | None:
    g = gs[0]
    if g is None:
        return None
    eps = dtypes.finfo(A.dtype).eps
    if not (is_grad_enabled() or ambient.mode & TRANSFORM):
        # The determinant is smooth: at a singular matrix the gradient at a matrix next to it will do.
        pivot = diagonal(LU)
        nudge = diagonal_matrix(where(pivot == 0, pivot * 0 + eps, pivot * 0))
        det = result if _holds((pivot != 0).all()) else (diagonal(LU + nudge).prod(-1) * _parity(pivots)).to(A.dtype)
        return scaled_inverse(g * conj(det), A, LU + nudge, pivots)
    singular = result.abs() < 100 * eps
    if _holds(~singular.any()):
        return scaled_inverse(g * conj(result), A, LU, pivots)
    smooth = scaled_inverse(g * conj(result), A, LU, pivots)
    return where(singular.unsqueeze(-1).unsqueeze(-1), _adjugate(g, A), smooth)


def _holds(truth: Tensor) -> bool:
    """Whether something is known to be true; where there is no data to look at, nothing is."""
    return not (ambient.mode & TRANSFORM or truth._keys & META) and bool(truth)


def _parity(pivots: Tensor) -> Tensor:
    n = pivots.shape[-1]
    order = exports["torch"]["arange"](1, n + 1, dtype=pivots.dtype, device=pivots.device)
    swaps = (pivots != order).sum(-1)
    return 1 - 2 * (swaps % 2)


def _adjugate(g: Tensor, a: Tensor) -> Tensor:
    """g times the adjoint of the adjugate, from the SVD: it needs no inverse."""
    u, s, vh = linalg_svd_helper(a)
    alpha = conj(det(u) * det(vh)) * g
    return (u * (_products_of_others(s) * alpha.unsqueeze(-1)).unsqueeze(-2)) @ vh


def _products_of_others(s: Tensor) -> Tensor:
    """For each singular value the product of all others: cumulative products from both ends."""
    one = s[..., :1] * 0 + 1
    ahead = cat([one, s[..., :-1]], -1).cumprod(-1)
    behind = cat([one, s.flip(-1)[..., :-1]], -1).cumprod(-1).flip(-1)
    return ahead * behind


det_helper = operator(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    check=_check_det,
    kernel=kernels.det,
    meta=lambda A: (spec(A, A.shape[:-2]), spec(A, A.shape), spec(A, A.shape[:-1], dtypes.int32)),
    vjp=_det_vjp,
    nondifferentiable=(1,),
    vmap=stacked({0: 2})(lambda: det_helper),
    method=False,
    cost="compute",
)


@composite("linalg_det(Tensor A) -> Tensor")
def det(A: Tensor) -> Tensor:
    return det_helper(A)[0]


@composite("det(Tensor self) -> Tensor")
def old_det(self: Tensor) -> Tensor:
    return det_helper(self)[0]


# ---- sign and logarithm
def _check_slogdet(A: Tensor) -> None:
    checks.is_square(A, "linalg.slogdet")
    checks.is_precise(A, "linalg.slogdet")


def _slogdet_vjp(gs: tuple, A: Tensor, sign: Tensor, LU: Tensor, pivots: Tensor) -> Tensor | None:
    g_sign, g_log = gs[:2]
    scale = g_log
    if A.dtype.is_complex and g_sign is not None:
        turn = (conj(g_sign) * sign).imag * -1j
        scale = turn if g_log is None else g_log + turn
    if scale is None:
        return None
    return scaled_inverse(scale.to(A.dtype), A, LU, pivots)


slogdet_helper = operator(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    check=_check_slogdet,
    kernel=kernels.slogdet,
    meta=lambda A: (
        spec(A, A.shape[:-2]),
        spec(A, A.shape[:-2], A.dtype.to_real()),
        spec(A, A.shape),
        spec(A, A.shape[:-1], dtypes.int32),
    ),
    vjp=_slogdet_vjp,
    nondifferentiable=(2,),
    vmap=stacked({0: 2})(lambda: slogdet_helper),
    method=False,
    cost="compute",
)


@composite("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)")
def linalg_slogdet(A: Tensor) -> tuple:
    return pack_results(linalg_slogdet, slogdet_helper(A)[:2])


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)")
def slogdet(self: Tensor) -> tuple:
    return pack_results(slogdet, slogdet_helper(self)[:2])


@composite("logdet(Tensor self) -> Tensor", out=False)
def logdet(self: Tensor) -> Tensor:
    checks.is_square(self, "logdet")
    checks.is_precise(self, "logdet")
    sign, log_size, _, _ = slogdet_helper(self)
    if self.dtype.is_complex:
        return sign.log() + log_size
    return where(sign == -1.0, log_size * 0 + float("nan"), log_size)
