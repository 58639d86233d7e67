"""Determinants and their logarithms.

In: stacks of square matrices. Out: determinants; for `slogdet` the sign (a unit complex number, zero for a singular
matrix) and the logarithm of the absolute value.
Always: the determinant is differentiable at singular matrices too.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.modes import TRANSFORM, ambient, is_grad_enabled
from ...core.tensor import META, Tensor
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..system.dispatch import dispatch
from ..system.operator import exports
from ..system.return_types import pack_results
from . import checks
from . import function_kernels as kernels
from .algebra import diagonal, diagonal_matrix, eye_like, mH, spec, stacked, where
from .solve import adjoint_solve
from .spectral import linalg_svd_helper
from .spectral_kernels import svd


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
    # The inverse is of other factors than the determinant: what they disagree in is as small as the last pivot.
    size = diagonal(LU.detach()).abs()
    singular = size.amin(-1) <= eps**0.5 * size.amax(-1) if A.shape[-1] else result != result
    if _holds(~singular.any()):
        return scaled_inverse(g * conj(result), A, LU, pivots)
    # What is not taken must have derivatives too: where it has none, no mask would hide them.
    singular = singular.unsqueeze(-1).unsqueeze(-1)
    smooth = scaled_inverse(g * conj(result), where(singular, eye_like(A), A), LU, pivots)
    return where(singular, det_slope(A) * g.unsqueeze(-1).unsqueeze(-1), smooth)


def _holds(truth: Tensor) -> bool:
    """Whether something is known to be true; where there is no data to look at, nothing is."""
    return not (ambient.mode & TRANSFORM or truth._keys & META) and bool(truth)


def _parity(pivots: Tensor) -> Tensor:
    n = pivots.shape[-1]
    order = exports["torch"]["arange"](1, n + 1, dtype=pivots.dtype, device=pivots.device)
    swaps = (pivots != order).sum(-1)
    return 1 - 2 * (swaps % 2)


def _det_slope_kernel(xp: Any, a: Any) -> Any:
    """The conjugate of the cofactors, from the SVD: it needs no inverse. What is not finite has none that is."""
    finite = xp.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vh = svd(xp, xp.where(finite, a, 0).astype(a.dtype), False, True)
    if not a.size:
        return xp.zeros(a.shape, a.dtype)
    unit = xp.conj(kernels.det(xp, u)[0] * kernels.det(xp, vh)[0])
    one = xp.ones_like(s[..., :1])
    ahead = xp.concatenate([one, s[..., :-1]], -1).cumprod(-1)
    behind = xp.concatenate([one, s[..., :0:-1]], -1).cumprod(-1)[..., ::-1]
    slope = (u * (ahead * behind * unit[..., None])[..., None, :]) @ vh
    return xp.where(finite, slope, xp.nan).astype(a.dtype)


def _det_curve(a: Tensor, t: Tensor) -> Tensor:
    """The derivative of `det_slope` along T: symmetric in T and what it is multiplied by, so that it is its vjp as well.

    Between singular vectors it is made of the minors of a diagonal matrix, products of all singular values but two.
    """
    if not a.shape[-1]:
        return a * 0
    u, s, vh = linalg_svd_helper(a)
    unit = conj(det(u) * det(vh)).unsqueeze(-1).unsqueeze(-1)
    t = mH(u) @ t @ mH(vh)
    minors = _products_of_all_but_two(s).to(a.dtype)
    along = (minors * conj(diagonal(t)).unsqueeze(-2)).sum(-1)
    return unit * (u @ (diagonal_matrix(along) - minors * conj(t.mT)) @ vh)


def _products_of_all_but_two(s: Tensor) -> Tensor:
    """For each pair of singular values the product of all others; zero for a value and itself.

    The two least are never divided by; where another one is zero, so are they.
    """
    n = s.shape[-1]
    place = exports["torch"]["arange"](n, device=s.device)
    last, before = place == n - 1, place == n - 2
    least = last | before
    inverse = where(s == 0, 0, 1 / where((s == 0) | least, 1, s))
    inverse = where(least, 1, inverse)
    final, second = (where(at, s, 0).sum(-1, keepdim=True) for at in (last, before))
    others = where(last, second, where(before, final, final * second))  # of the two least, without the value itself
    later = place.unsqueeze(-1) < place
    others = where(later, others.unsqueeze(-2), others.unsqueeze(-1))
    others = where(least.unsqueeze(-1) & least, 1, others)
    product = where(least, 1, s).prod(-1, keepdim=True).unsqueeze(-1)
    pairs = product * inverse.unsqueeze(-1) * inverse.unsqueeze(-2) * others
    return where(place.unsqueeze(-1) == place, 0, pairs)


det_slope_helper = operator(
    "_det_slope(Tensor A) -> Tensor",
    check=_check_det,
    kernel=_det_slope_kernel,
    meta=lambda A: spec(A, A.shape),
    jvp={"A": lambda t, A: _det_curve(A, t)},
    vjp=lambda g, A: _det_curve(A, g),
    vmap=stacked({0: 2})(lambda: det_slope_helper),
    function=False,
    method=False,
    cost="compute",
)


def det_slope(a: Tensor) -> Tensor:
    """The gradient of the determinant, at singular matrices too."""
    return dispatch(det_slope_helper, (a,))


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
