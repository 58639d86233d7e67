"""Array kernels of the spectral decompositions: SVD and eigenvalues.

In: the array library and stacks of float32/float64/complex64/complex128 matrices whose shapes were checked above.
Out: new arrays; singular values descend, eigenvalues of Hermitian matrices ascend and both are real; `eig` is complex.
Always: the free signs in the vectors are chosen as PyTorch's LAPACK chooses them, see `signs`.
"""

from __future__ import annotations

from typing import Any

from .errors import LinAlgError
from .lapack import each, identity_stack, is_complex, is_single, on_host, real_of, routine, stack
from .signs import ITERATION_ORDER, eigenvector_signs, gesdd, is_very_wide, wide_svd

Array = Any

# Choosing signs takes many times what decomposing a small matrix does: in larger stacks they stay as they come.
SIGNS_STACK = 8


@on_host
def svd(xp: Any, a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array]:
    """U, S and V^H; U and V^H are empty where they are not asked for."""
    rows, columns = a.shape[-2:]
    if not a.size:
        return empty_svd(xp, a, full_matrices, compute_uv)
    if not xp.isfinite(a).all():
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    try:
        if not compute_uv:
            none = xp.empty((0,), a.dtype)
            return none, xp.linalg.svd(a, compute_uv=False), none
        very_wide = is_very_wide(rows, columns) and not is_complex(a)
        if not is_single(a) and not very_wide:
            return tuple(xp.linalg.svd(a, full_matrices=full_matrices))
    except xp.linalg.LinAlgError as error:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated singular values."
        ) from error
    count = min(rows, columns)
    width, height = (rows, columns) if full_matrices else (count, count)
    shapes = [((rows, width), a.dtype), ((count,), real_of(a)), ((height, columns), a.dtype)]
    one = (lambda m: wide_svd(xp, m, full_matrices)) if very_wide else (lambda m: gesdd(m, full_matrices))
    return each(xp, one, [a], shapes)


def empty_svd(xp: Any, a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array]:
    """The SVD of matrices without rows or columns: what is not empty is the identity."""
    batch, (rows, columns) = a.shape[:-2], a.shape[-2:]
    count = min(rows, columns)
    values = xp.empty((*batch, count), real_of(a))
    if not compute_uv:
        return xp.empty((0,), a.dtype), values, xp.empty((0,), a.dtype)
    wide, high = (rows, columns) if full_matrices else (count, count)
    u = identity_stack(xp, (*batch, rows, wide), a.dtype)
    return u, values, identity_stack(xp, (*batch, high, columns), a.dtype)


@on_host
def eigh(xp: Any, a: Array, uplo: str, compute_v: bool) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    if not a.size:
        return xp.empty(a.shape[:-1], real_of(a)), xp.empty(a.shape if compute_v else (0,), a.dtype)
    n = a.shape[-1]
    try:
        if not compute_v:
            return xp.linalg.eigvalsh(a, uplo), xp.empty((0,), a.dtype)
        if is_single(a):
            values, vectors = each(xp, lambda m: evd(m, uplo), [a], [((n,), real_of(a)), ((n, n), a.dtype)])
        else:
            values, vectors = xp.linalg.eigh(a, uplo)
    except xp.linalg.LinAlgError as error:
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated eigenvalues."
        ) from error
    if 2 < n <= ITERATION_ORDER and len(stack(a)) <= SIGNS_STACK:
        for matrix, home in zip(stack(a), stack(vectors), strict=True):
            signs = eigenvector_signs(xp, matrix, home, uplo == "L")
            if signs is not None:
                home *= signs
    return values, vectors


def evd(matrix: Array, uplo: str) -> tuple[Array, Array]:
    """LAPACK's divide and conquer in the matrix's own precision."""
    char = matrix.dtype.char
    values, vectors, info = routine("heevd" if is_complex(matrix) else "syevd", char)(matrix, lower=int(uplo == "L"))
    if info:
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            f"repeated eigenvalues (error code: {info})."
        )
    return values, vectors


@on_host
def eig(xp: Any, a: Array, compute_v: bool) -> tuple[Array, Array]:
    """Eigenvalues and right eigenvectors of square matrices, always complex."""
    dtype = xp.result_type(a.dtype, xp.complex64)
    if not a.size:
        return xp.empty(a.shape[:-1], dtype), xp.empty(a.shape, dtype)
    if not xp.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    n, solver = a.shape[-1], routine("geev", a.dtype.char)

    def solve(m: Array) -> tuple[Array, Array]:
        *values, _, vectors, info = solver(m, compute_vl=0, compute_vr=int(compute_v))
        if info:
            raise LinAlgError(
                "linalg.eig: The algorithm failed to converge because the input matrix is ill-conditioned or has too "
                f"many repeated eigenvalues (error code: {info})."
            )
        if len(values) == 1:
            return values[0], vectors if compute_v else 0
        return join(xp, values[0], values[1], vectors if compute_v else None)

    return each(xp, solve, [a], [((n,), dtype), ((n, n), dtype)])


def join(xp: Any, real: Array, imaginary: Array, vectors: Array | None) -> tuple[Array, Array]:
    """Complex eigenpairs from LAPACK's real layout, where a conjugate pair stores its two parts in two columns."""
    values = real + 1j * imaginary
    if vectors is None:
        return values, 0
    out = vectors.astype(values.dtype)
    first = xp.flatnonzero(imaginary > 0)
    out[:, first] = vectors[:, first] + 1j * vectors[:, first + 1]
    out[:, first + 1] = xp.conj(out[:, first])
    return values, out
