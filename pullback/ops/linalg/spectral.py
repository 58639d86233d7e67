"""Singular values and eigenvalues, with their vectors.

In: stacks of matrices (square for eigenvalues). Out: singular values in descending order, eigenvalues of Hermitian
matrices in ascending order, both real; eigenvalues of general matrices complex, in LAPACK's order.
Always: vectors are determined up to a phase; gradients are those of functions that do not depend on it, and a complex
function that does raises. Null-space vectors of the full SVD carry no gradient.
"""

from __future__ import annotations

from ...core.modes import FORWARD, TRANSFORM, ambient
from ...core.node import requires_grad
from ...core.tensor import META, Tensor
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..family.formats import by_column
from ..system.operator import Spec
from ..system.return_types import pack_results
from . import checks
from . import spectral_kernels as kernels
from .algebra import add, diagonal, diagonal_matrix, mH, real_part, spec, stacked
from .solve import solve


def needs_vectors(a: Tensor) -> bool:
    """Whether values alone will not do, because their gradient is written with the vectors."""
    return requires_grad(a) or bool(ambient.mode & (TRANSFORM | FORWARD))


def skew(a: Tensor) -> Tensor:
    return a - mH(a)


def refuse_phase(phase: Tensor, name: str, what: str) -> None:
    """Raise where a function of complex vectors depends on their phase."""
    if phase._keys & META or ambient.mode & TRANSFORM:
        return
    if bool((phase.abs() > 1e-2).any()):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this quantity, so it is ill-defined."
        )


# ---- singular values
def _check_svd(A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> None:
    checks.has_rank(A, "linalg.svd")
    checks.is_inexact(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    checks.kernel_takes(A, "linalg_svd_cpu")


def _svd_meta(A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> tuple[Spec, ...]:
    *batch, rows, columns = A.shape
    count = min(rows, columns)
    values = spec(A, (*batch, count), A.dtype.to_real())
    if not compute_uv:
        return spec(A, (0,)), values, spec(A, (0,))
    width, height = (rows, columns) if full_matrices else (count, count)
    return spec(A, (*batch, rows, width)), values, spec(A, (*batch, height, columns))


def _svd_vjp(gs: tuple, full_matrices: bool, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor | None:
    g_u, g_s, g_vh = gs
    count = S.shape[-1]
    if full_matrices:
        U, Vh = U[..., :count], Vh[..., :count, :]
        g_u = None if g_u is None else g_u[..., :count]
        g_vh = None if g_vh is None else g_vh[..., :count, :]
    return svd_gradient(g_u, g_s, g_vh, U, S, Vh)


def svd_gradient(
    g_u: Tensor | None, g_s: Tensor | None, g_vh: Tensor | None, u: Tensor, s: Tensor, vh: Tensor
) -> Tensor | None:
    """The gradient of A = U diag(S) Vh, with reduced U and Vh."""
    if g_u is None and g_vh is None:
        return None if g_s is None else u @ (g_s.unsqueeze(-1) * vh)
    around_u = None if g_u is None else skew(mH(u) @ g_u)
    around_v = None if g_vh is None else skew(vh @ mH(g_vh))
    inner = _svd_inner(g_s, around_u, around_v, s, u.dtype.is_complex)
    result = u @ inner @ vh
    if g_u is not None and u.shape[-2] > s.shape[-1]:
        result = result + ((g_u - u @ (mH(u) @ g_u)) / s.unsqueeze(-2)) @ vh
    if g_vh is not None and vh.shape[-1] > s.shape[-1]:
        result = result + u @ ((g_vh - (g_vh @ mH(vh)) @ vh) / s.unsqueeze(-1))
    return result


def _svd_inner(
    g_s: Tensor | None, around_u: Tensor | None, around_v: Tensor | None, s: Tensor, is_complex: bool
) -> Tensor:
    """The gradient between the singular vectors: U^H gA V."""
    if is_complex and (around_u is not None or around_v is not None):
        refuse_phase(real_sum_of_phases(around_u, around_v), "svd_backward", "singular vectors")
    row, column = s.unsqueeze(-2), s.unsqueeze(-1)
    gaps = (row - column) * (row + column)
    gaps = gaps + diagonal_matrix((s * 0 + 1) - diagonal(gaps))
    parts = (
        None if around_u is None else (around_u / gaps) * row,
        None if around_v is None else column * (around_v / gaps),
    )
    inner = add(*parts)
    if is_complex and around_u is not None and around_v is not None:
        inner = inner - diagonal_matrix(diagonal(inner)) + diagonal_matrix(diagonal(around_u) / (2 * s))
    return inner if g_s is None else inner + diagonal_matrix(g_s)


def real_sum_of_phases(around_u: Tensor | None, around_v: Tensor | None) -> Tensor:
    """What the function would change by if each pair of vectors were turned together."""
    total = add(*(None if a is None else diagonal(a) for a in (around_u, around_v)))
    return total.imag


linalg_svd_helper = operator(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
    "-> (Tensor U, Tensor S, Tensor Vh)",
    check=_check_svd,
    kernel=lambda xp, a, full_matrices, compute_uv, driver: kernels.svd(xp, a, full_matrices, compute_uv),
    strides=by_column,
    meta=_svd_meta,
    vjp=_svd_vjp,
    vmap=stacked({0: 2})(lambda: linalg_svd_helper),
    method=False,
    cost="compute",
)


@composite("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
def linalg_svd(A: Tensor, full_matrices: bool, driver: str | None) -> tuple:
    return pack_results(linalg_svd, tuple(linalg_svd_helper(A, full_matrices, True, driver=driver)))


@composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
def svdvals(A: Tensor, driver: str | None) -> Tensor:
    return linalg_svd_helper(A, False, needs_vectors(A), driver=driver)[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", autocast_cpu="float32"
)
def svd(self: Tensor, some: bool, compute_uv: bool) -> tuple:
    if self.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {self.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = linalg_svd_helper(self, not some)
        return pack_results(svd, (u, s, mH(vh)))
    *batch, rows, columns = self.shape
    zeros = self.new_zeros((*batch, rows, rows)), self.new_zeros((*batch, columns, columns))
    return pack_results(svd, (zeros[0], svdvals(self), zeros[1]))


# ---- eigenvalues of Hermitian matrices
def _check_eigh(A: Tensor, UPLO: str, compute_v: bool) -> None:
    checks.is_square(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    checks.kernel_takes(A, "linalg_eigh_cpu")


def _eigh_meta(A: Tensor, UPLO: str, compute_v: bool) -> tuple[Spec, Spec]:
    return spec(A, A.shape[:-1], A.dtype.to_real()), spec(A, A.shape if compute_v else (0,))


def _eigh_vjp(gs: tuple, eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor | None:
    g_l, g_v = gs
    v = eigenvectors
    if g_v is None:
        return None if g_l is None else (v * g_l.unsqueeze(-2)) @ mH(v)
    inner = mH(v) @ g_v
    if v.dtype.is_complex:
        refuse_phase(diagonal(inner).imag, "linalg_eigh_backward", "eigenvectors")
    gaps = eigenvalues.unsqueeze(-2) - eigenvalues.unsqueeze(-1)
    inner = skew(inner) * 0.5 / (gaps + diagonal_matrix(eigenvalues * 0 + 1))
    inner = inner - diagonal_matrix(diagonal(inner))
    return v @ (inner if g_l is None else inner + diagonal_matrix(g_l)) @ mH(v)


eigh_helper = operator(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    check=_check_eigh,
    kernel=lambda xp, a, uplo, compute_v: kernels.eigh(xp, a, uplo.upper(), compute_v),
    strides=by_column,
    meta=_eigh_meta,
    vjp=_eigh_vjp,
    vmap=stacked({0: 2})(lambda: eigh_helper),
    method=False,
    cost="compute",
)


@composite('linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)')
def eigh(self: Tensor, UPLO: str) -> tuple:
    return pack_results(eigh, tuple(eigh_helper(self, UPLO, True)))


@composite('linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor')
def eigvalsh(self: Tensor, UPLO: str) -> Tensor:
    return eigh_helper(self, UPLO, needs_vectors(self))[0]


# ---- eigenvalues of general matrices
def _check_eig(self: Tensor) -> None:
    checks.is_square(self, "linalg.eig")
    if self.dtype.category < 2:
        raise RuntimeError(f"Unknown Complex ScalarType for {self.dtype.scalar_name}")
    checks.kernel_takes(self, "linalg_eig_out_cpu")


def _eig_vjp(gs: tuple, eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor | None:
    g_l, g_v = gs
    v = eigenvectors
    turned = v.mT.conj_physical()  # at once: it is read several times
    inner = None
    if g_v is not None:
        seen = turned @ g_v
        refuse_phase(diagonal(seen).imag, "linalg_eig_backward", "eigenvectors")
        gaps = conj(eigenvalues.unsqueeze(-2) - eigenvalues.unsqueeze(-1))
        # LAPACK scales eigenvectors to unit length: what would change their length does not count.
        inner = seen - (turned @ v) * real_part(diagonal(seen)).unsqueeze(-2)
        inner = inner / (gaps + diagonal_matrix(eigenvalues * 0 + 1))
        inner = inner - diagonal_matrix(diagonal(inner))
    if inner is None:
        return None if g_l is None else solve(turned, g_l.unsqueeze(-1) * turned)
    return solve(turned, (inner if g_l is None else inner + diagonal_matrix(g_l)) @ turned)


linalg_eig = operator(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    check=_check_eig,
    kernel=lambda xp, a: kernels.eig(xp, a, True),
    strides=by_column,
    meta=lambda self: (
        spec(self, self.shape[:-1], self.dtype.to_complex()),
        spec(self, self.shape, self.dtype.to_complex()),
    ),
    vjp=_eig_vjp,
    vmap=stacked({0: 2})(lambda: linalg_eig),
    cost="compute",
)
eigvals_helper = operator(
    "_linalg_eigvals(Tensor self) -> Tensor",
    check=_check_eig,
    kernel=lambda xp, a: kernels.eig(xp, a, False)[0],
    meta=lambda self: spec(self, self.shape[:-1], self.dtype.to_complex()),
    vmap=stacked({0: 2})(lambda: eigvals_helper),
    method=False,
    cost="compute",
)


@composite("linalg_eigvals(Tensor self) -> Tensor")
def eigvals(self: Tensor) -> Tensor:
    return linalg_eig(self)[0] if needs_vectors(self) else eigvals_helper(self)
