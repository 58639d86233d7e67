"""QR: the factorization, and products of Householder reflections.

In: stacks of matrices of any shape; or packed reflections (vectors below the diagonal, with a one understood on it) and
their factors tau. Out: Q with orthonormal columns and R upper triangular; products with Q.
Always: `householder_product` and `ormqr` are differentiable in vectors and tau alike, for any tau, also where the
reflections are not orthogonal.
"""

from __future__ import annotations

from ...core.promotion import can_cast
from ...core.tensor import Tensor
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..family.formats import by_column
from ..system.operator import Spec, missing
from ..system.return_types import pack_results
from . import checks
from . import factor_kernels as kernels
from .algebra import add, cat, diagonal, diagonal_matrix, mH, real_part, spec, stacked
from .solve import solve_triangular


# ---- QR
def _check_qr(A: Tensor, mode: str) -> None:
    checks.has_rank(A, "linalg.qr")
    checks.is_inexact(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    checks.kernel_takes(A, "geqrf_cpu")


def _qr_meta(A: Tensor, mode: str) -> tuple[Spec, Spec]:
    *batch, rows, columns = A.shape
    width = rows if mode == "complete" else min(rows, columns)
    return spec(A, (0,) if mode == "r" else (*batch, rows, width)), spec(A, (*batch, width, columns))


def _qr_vjp(gs: tuple, mode: str, Q: Tensor, R: Tensor) -> Tensor | None:
    g_q, g_r = gs
    if g_q is None and g_r is None:
        return None
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
            "Please use linalg.qr(A, mode='reduced') if you are going to require gradients."
        )
    rows, columns = Q.shape[-2], R.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if rows >= columns:
        return _tall_qr_vjp(g_q, g_r, Q, R)
    # A = Q [U V]: V = Q^H A2 depends on A2, and on A1 through Q.
    first, second = R[..., :rows], R[..., rows:]
    if g_r is None:
        g_first = _tall_qr_vjp(g_q, None, Q, first)
        return cat([g_first, second.new_zeros((*second.shape[:-2], rows, columns - rows))], -1)
    g_second = g_r[..., rows:]
    g_q = add(g_q, Q @ second @ mH(g_second))
    return cat([_tall_qr_vjp(g_q, g_r[..., :rows], Q, first), Q @ g_second], -1)


def _tall_qr_vjp(g_q: Tensor | None, g_r: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    """(gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H, where sym mirrors the part above the diagonal."""
    inner = add(None if g_r is None else g_r @ mH(r), None if g_q is None else -(mH(q) @ g_q))
    above = inner.triu(1)
    middle = diagonal_matrix(real_part(diagonal(inner))) if inner.dtype.is_complex else inner.triu().tril()
    mirrored = above + mH(above) + middle
    return mH(solve_triangular(r, mH(add(g_q, q @ mirrored)), upper=True))  # from the right, by R^H


linalg_qr = operator(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    check=_check_qr,
    kernel=kernels.qr,
    strides=by_column,
    meta=_qr_meta,
    vjp=_qr_vjp,
    vmap=stacked({0: 2})(lambda: linalg_qr),
    cost="compute",
)


@composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)")
def qr(self: Tensor, some: bool) -> tuple:
    return pack_results(qr, tuple(linalg_qr(self, "reduced" if some else "complete")))


# ---- packed reflections
def _check_geqrf(self: Tensor) -> None:
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    checks.kernel_takes(self, "geqrf_cpu")


geqrf = operator(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    check=_check_geqrf,
    kernel=kernels.geqrf,
    strides=by_column,
    meta=lambda self: (spec(self, self.shape), spec(self, (*self.shape[:-2], min(self.shape[-2:])))),
    vjp=missing("geqrf"),
    vmap=stacked({0: 2})(lambda: geqrf),
    autocast_cpu="float32",
    cost="compute",
)


def _check_reflections(name: str, input: Tensor, tau: Tensor) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} "
            f"and input.ndim is equal to {input.ndim}"
        )
    if tuple(input.shape[:-2]) != tuple(tau.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )


def _check_householder(input: Tensor, tau: Tensor) -> None:
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_reflections(name, input, tau)
    if input.dtype is not tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype {input.dtype.scalar_name}"
        )
    checks.kernel_takes(input, "orgqr_cpu")


def reflections_vjp(vectors: Tensor, tau: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of packed vectors and tau, where Q = H_1 ... H_k has the gradient left (Q^-1 right)^H.

    H_i = I - tau_i v_i v_i^H has the gradient L K^H, with L = (H_1 ... H_{i-1})^H left and K = H_{i+1} ... H_k applied
    to what Q was: so each step takes one reflection off `right`, by its inverse, and puts its adjoint on `left`.
    """
    rows, columns, count = vectors.shape[-2], vectors.shape[-1], tau.shape[-1]
    unit = vectors[..., :count].tril(-1) + _ones_on_diagonal(vectors, count)
    g_vectors, g_tau = [], []
    for i in range(count):
        v, t = unit[..., i : i + 1], tau[..., i : i + 1].unsqueeze(-1)
        inverse = t / (t * (mH(v) @ v) - 1)
        right = right - inverse * (v @ (mH(v) @ right))
        seen = mH(right) @ v, mH(left) @ v
        g_tau.append(-(mH(seen[1]) @ seen[0]))
        g_v = -(conj(t) * (left @ seen[0])) - t * (right @ seen[1])
        g_vectors.append(g_v)
        left = left - conj(t) * (v @ mH(seen[1]))
    if not count:
        return vectors.new_zeros(vectors.shape), tau.new_zeros(tau.shape)
    stacked_vectors = cat(g_vectors, -1).tril(-1)
    if count < columns:
        rest = stacked_vectors.new_zeros((*stacked_vectors.shape[:-2], rows, columns - count))
        stacked_vectors = cat([stacked_vectors, rest], -1)
    return stacked_vectors, cat(g_tau, -1).squeeze(-2)


def _ones_on_diagonal(like: Tensor, count: int) -> Tensor:
    return diagonal_matrix(like.new_ones(like.shape[-2]))[..., :count]


def _castable_out(result: Tensor, out: Tensor) -> None:
    if not can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"torch.linalg.householder_product: Expected result to be safely castable from {result.dtype.scalar_name} "
            f"dtype, but got result with dtype {out.dtype.scalar_name}"
        )


householder_product = operator(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    check=_check_householder,
    check_out=_castable_out,
    kernel=kernels.householder_product,
    strides=by_column,
    meta=lambda input, tau: spec(input, input.shape),
    vjp={("input", "tau"): lambda g, input, tau, out: reflections_vjp(input, tau, g, out)},
    vmap=stacked({0: 2, 1: 1})(lambda: householder_product),
    cost="compute",
)


@composite("orgqr(Tensor self, Tensor input2) -> Tensor", autocast_cpu="float32")
def orgqr(self: Tensor, input2: Tensor) -> Tensor:
    return householder_product(self, input2)


# ---- multiplying with Q
def _check_ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> None:
    name, side = "torch.ormqr", -2 if left else -1
    for t, what in ((self, "input"), (input3, "other")):
        if t.ndim < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    if input3.shape[side] != self.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if input2.shape[-1] != min(input3.shape[side], self.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _check_reflections(name, self, input2)
    if self.ndim != input3.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{input3.ndim} and input.ndim is equal to {self.ndim}"
        )
    if tuple(self.shape[:-2]) != tuple(input3.shape[:-2]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], "
            f"but got {list(input3.shape[:-2])}"
        )
    for t, what in ((input2, "tau"), (input3, "other")):
        if t.dtype is not self.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype "
                f"{self.dtype.scalar_name} and {what} has dtype {t.dtype.scalar_name}"
            )
    checks.kernel_takes(self, "ormqr_cpu")


def _ormqr_vjp(
    g: Tensor, self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool, out: Tensor, mask: tuple
) -> tuple:
    """Q's gradient is left right^H; which is which depends on the side and on whether Q was conjugated."""
    g_other = ormqr(self, input2, g, left=left, transpose=not transpose)
    if not (mask[0] or mask[1]):
        return None, None, g_other
    if left and not transpose:
        pair = g, out
    elif left:
        pair = input3, ormqr(self, input2, g, left=True, transpose=False)
    elif not transpose:
        pair = mH(input3), ormqr(self, input2, mH(g), left=True, transpose=False)
    else:
        pair = mH(g), mH(out)
    return *reflections_vjp(self, input2, *pair), g_other


ormqr = operator(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    check=_check_ormqr,
    kernel=kernels.ormqr,
    strides=by_column,
    meta=lambda self, input2, input3, left, transpose: spec(input3, input3.shape),
    vjp={("self", "input2", "input3"): _ormqr_vjp},
    vmap=stacked({0: 2, 1: 1, 2: 2})(lambda: ormqr),
    autocast_cpu="float32",
    cost="compute",
)
