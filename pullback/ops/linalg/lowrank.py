"""Leading singular and eigenvectors of large matrices, by iteration on small blocks.

In: matrices, of which only products with blocks of columns are taken, and how many vectors are wanted.
Out: for `svd_lowrank` and `pca_lowrank` U, S, V with A close to U diag(S) V^H; for `lobpcg` eigenvalues and vectors.
Always: they start from random blocks, drawn from the default generator in PyTorch's order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import finfo
from ...core.modes import is_grad_enabled
from ...core.node import requires_grad
from ...core.tensor import SPARSE, Tensor
from ..make.factories import ones
from ..system.calls import front
from ..system.operator import exports
from .algebra import cat, mH, mT
from .cholesky import linalg_cholesky
from .qr import linalg_qr
from .solve import solve_triangular
from .spectral import eigh, linalg_svd


# ---- singular vectors
def _range_of(a: Tensor, q: int, niter: int, mean: Tensor | None) -> Tensor:
    """An orthonormal basis of q columns that nearly spans the range of A (or of A - M)."""

    def times(x: Tensor, transposed: bool) -> Tensor:
        result = (mH(a) if transposed else a) @ x
        return result if mean is None else result - (mH(mean) if transposed else mean) @ x

    start = exports["torch"]["randn"](a.shape[-1], q, dtype=a.dtype, device=a.device)
    basis = linalg_qr(times(start, False))[0]
    for _ in range(niter):
        basis = linalg_qr(times(basis, True))[0]
        basis = linalg_qr(times(basis, False))[0]
    return basis


@front("torch.svd_lowrank")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V with A - M close to U diag(S) V^H, of rank q."""
    rows, columns = A.shape[-2:]
    mean = None if M is None else M.broadcast_to(tuple(A.shape))
    wide = rows < columns
    if wide:
        A, mean = mH(A), None if mean is None else mH(mean)
    basis = _range_of(A, 6 if q is None else q, 2 if niter is None else niter, mean)
    small = mH(basis) @ A
    if mean is not None:
        small = small - mH(basis) @ mean
    u, s, vh = linalg_svd(small, False)
    u, v = basis @ u, mH(vh)
    return (v, s, u) if wide else (u, s, v)


@front("torch.pca_lowrank")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of the rows of A."""
    rows, columns = A.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not A.dtype.is_floating_point:
        raise ValueError(f"expected input of real floating type, got {A.dtype}")
    if not center:
        return svd_lowrank(A, q, niter)
    if A._keys & SPARSE:  # which stays so: the mean is taken off what is multiplied
        if A.ndim != 2:
            raise ValueError(
                f"pca_lowrank input is expected to be 2-dimensional tensor where it is sparse, got {A.ndim} dimensions"
            )
        return svd_lowrank(A, q, niter, ones((1, rows), dtype=A.dtype, device=A.device) @ A / rows)
    return svd_lowrank(A - A.mean(-2, True), q, niter)


# ---- eigenvectors of symmetric matrices
def _generalized(a: Tensor, b: Tensor | None) -> tuple[Tensor, Tensor]:
    """All eigenvalues and eigenvectors of A x = l B x, by the Cholesky factor of B."""
    if b is None:
        return tuple(eigh(a))
    factor = linalg_cholesky(b)
    left = solve_triangular(factor, a, upper=False)
    values, vectors = eigh(solve_triangular(mH(factor), left, upper=True, left=False))
    return values, solve_triangular(mH(factor), vectors, upper=True)


def _select(values: Tensor, vectors: Tensor, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    if largest:
        return values.flip(-1)[..., :k], vectors.flip(-1)[..., :k]
    return values[..., :k], vectors[..., :k]


def _iterate(
    a: Tensor, b: Tensor | None, x: Tensor, k: int, largest: bool, precondition: Callable[[Tensor], Tensor],
    tol: float, niter: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Locally optimal block preconditioned conjugate gradients: Rayleigh-Ritz on [X, residuals, last step]."""
    identity: Callable[[Tensor], Tensor] = lambda y: y
    weight = identity if b is None else lambda y: b @ y
    basis, step = linalg_qr(x)[0], None
    values, x = _ritz(a, weight, basis, k, largest)
    for _ in range(niter):
        residual = a @ x - weight(x) * values.unsqueeze(-2)
        scale = (x.norm() * (a.norm() + values.abs().max())).clamp(min=1e-30)
        if bool(residual.norm() <= tol * scale):
            break
        parts = [x, precondition(residual)] + ([] if step is None else [step])
        basis = linalg_qr(cat(parts, -1))[0]
        values, fresh = _ritz(a, weight, basis, k, largest)
        step, x = fresh - x @ (mT(x) @ weight(fresh)), fresh
    return values, x


def _ritz(a: Tensor, weight: Callable[[Tensor], Tensor], basis: Tensor, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The best eigenpairs within the span of a basis."""
    values, vectors = _generalized(mT(basis) @ (a @ basis), mT(basis) @ weight(basis))
    values, vectors = _select(values, vectors, k, largest)
    return values, basis @ vectors


@front("torch.lobpcg")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of a symmetric matrix, and their eigenvectors."""
    if tracker is not None:
        raise NotImplementedError("lobpcg: a tracker cannot be called, the iteration keeps no such state")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: expected method 'basic' or 'ortho', got {method!r}")
    rows = A.shape[-1]
    if A.shape[-2] != rows:
        raise AssertionError(f"expected A to be a square matrix, got shape {tuple(A.shape)}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    block = (k if X is None else X.shape[-1]) if n is None else n
    if rows < 3 * block:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={block})"
        )
    largest = True if largest is None else largest
    A = (A + mH(A)) / 2  # one meaning for both triangles, in values as in derivatives
    if is_grad_enabled() and (requires_grad(A) or B is not None and requires_grad(B)):
        return _select(*_generalized(A, B), k, largest)
    start = exports["torch"]["randn"]((*A.shape[:-1], block), dtype=A.dtype, device=A.device) if X is None else X
    limit = _tolerance(A) if tol is None else tol
    apply = (lambda y: y) if iK is None else (lambda y: iK @ y)
    if A.ndim == 2:
        return _iterate(A, B, start, k, largest, apply, limit, 1000 if niter is None else niter)
    return _each_matrix(A, B, start, k, largest, apply, limit, 1000 if niter is None else niter)


def _tolerance(a: Tensor) -> float:
    """Closer than PyTorch's square root of eps: results are smooth enough to take differences of."""
    return finfo(a.dtype).eps ** 0.75


def _each_matrix(a: Tensor, b: Tensor | None, x: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """One matrix of a stack after the other."""
    batch = tuple(a.shape[:-2])
    flat = [None if t is None else t.reshape((-1, *t.shape[-2:])) for t in (a, b, x)]
    pairs = [
        _iterate(flat[0][i], None if flat[1] is None else flat[1][i], flat[2][i], *rest)
        for i in range(flat[0].shape[0])
    ]
    stack = exports["torch"]["stack"]
    values, vectors = stack([p[0] for p in pairs]), stack([p[1] for p in pairs])
    return values.reshape((*batch, *values.shape[1:])), vectors.reshape((*batch, *vectors.shape[1:]))
