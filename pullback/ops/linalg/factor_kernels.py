"""Array kernels of the factorizations: Cholesky, LU, QR and LDL.

In: the array library and stacks of float32/float64/complex64/complex128 matrices whose shapes were checked above.
Out: new C-contiguous arrays; `info` is int32, one per matrix, zero where LAPACK succeeded; pivots are int32 and count
from one, as LAPACK's own do.
Always: nothing raises on a singular or indefinite matrix here, `info` says so and the caller decides.
"""

from __future__ import annotations

from typing import Any

from .lapack import adjoint, each, identity_stack, is_complex, is_single, on_host, routine, stack, transpose, workspace

Array = Any


@on_host
def cholesky_ex(xp: Any, a: Array, upper: bool) -> tuple[Array, Array]:
    """L with L L^H = a (or U with U^H U = a), from one triangle of `a`, and info."""
    info = xp.zeros(a.shape[:-2], xp.int32)
    if not a.size:
        return xp.zeros(a.shape, a.dtype), info
    if a.ndim > 2 and not is_single(a):
        try:
            return xp.linalg.cholesky(a, upper=upper), info
        except xp.linalg.LinAlgError:
            pass  # at least one matrix is not positive definite: find out which
    factor = routine("potrf", a.dtype.char)
    return each(xp, lambda m: factor(m, lower=not upper, clean=1), [a], [(a.shape[-2:], a.dtype), ((), xp.int32)])


@on_host
def cholesky_inverse(xp: Any, factor: Array, upper: bool) -> tuple[Array, Array]:
    """The inverse of the matrix whose Cholesky factor is given, and info."""
    invert = routine("potri", factor.dtype.char)

    def solve(f: Array) -> tuple[Array, int]:
        half, info = invert(f, lower=not upper)
        half = xp.triu(half) if upper else xp.tril(half)
        return half + adjoint(xp, half) - xp.diag(xp.diag(half).real), info

    return each(xp, solve, [factor], [(factor.shape[-2:], factor.dtype), ((), xp.int32)])


@on_host
def cholesky_solve(xp: Any, b: Array, factor: Array, upper: bool) -> Array:
    """X with A X = b for the matrix whose Cholesky factor is given; the stacks agree."""
    solver = routine("potrs", factor.dtype.char)
    return each(xp, lambda m, f: solver(f, m, lower=not upper)[:1], [b, factor], [(b.shape[-2:], b.dtype)])[0]


@on_host
def lu_factor_ex(xp: Any, a: Array) -> tuple[Array, Array, Array]:
    """The packed LU factors with partial pivoting, the pivots, and info."""
    factor, count = routine("getrf", a.dtype.char), min(a.shape[-2:])

    def solve(m: Array) -> tuple[Array, Array, int]:
        packed, pivots, info = factor(m)
        return packed, pivots + 1, info

    return each(xp, solve, [a], [(a.shape[-2:], a.dtype), ((count,), xp.int32), ((), xp.int32)])


def permutation_of(xp: Any, pivots: Array, rows: int) -> Array:
    """Where each row of the permuted matrix came from: the pivots' exchanges, applied in order."""
    order = xp.broadcast_to(xp.arange(rows), (*pivots.shape[:-1], rows)).copy()
    flat, swaps = stack(order, 1), stack(pivots, 1)
    every = xp.arange(flat.shape[0])
    for k in range(swaps.shape[-1]):
        other = swaps[:, k] - 1
        flat[every, other], flat[:, k] = flat[:, k].copy(), flat[every, other]
    return order


def lu_permutation(xp: Any, pivots: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """P with A = P L U, from the pivots of a matrix of that shape."""
    rows = shape[-2]
    if pivots.shape[-1] != min(shape[-2:]) or not bool(((pivots >= 1) & (pivots <= rows)).all()):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
    order = permutation_of(xp, pivots, rows)
    return transpose(xp, xp.eye(rows, dtype=dtype)[order]).copy()


def lu_triangles(xp: Any, packed: Array) -> tuple[Array, Array]:
    """L (unit lower, m by k) and U (upper, k by n) from packed factors, k the smaller side."""
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    lower = xp.tril(packed[..., :, :count], -1) + xp.eye(rows, count, dtype=packed.dtype)
    return lower, xp.triu(packed[..., :count, :])


@on_host
def lu_solve(xp: Any, packed: Array, pivots: Array, b: Array, left: bool, adjoint_: bool) -> Array:
    """X with A X = b (or X A = b), A or its adjoint, from packed factors; the stacks agree."""
    solver = routine("getrs", packed.dtype.char)
    # X A = b is A^T X^T = b^T; and for the adjoint conj(A) X^T = b^T, so conjugate on the way in and out.
    conjugate = adjoint_ and not left and is_complex(b)
    trans = (2 if adjoint_ else 0) if left else (0 if adjoint_ else 1)

    def solve(m: Array, f: Array, p: Array) -> tuple[Array]:
        right = m if left else m.T
        x = solver(f, p - 1, xp.conj(right) if conjugate else right, trans=trans)[0]
        x = xp.conj(x) if conjugate else x
        return (x if left else x.T,)

    return each(xp, solve, [b, packed, pivots], [(b.shape[-2:], b.dtype)])[0]


@on_host
def solve_ex(xp: Any, a: Array, b: Array, left: bool) -> tuple[Array, Array, Array, Array]:
    """X with a X = b (or X a = b), the packed factors of `a`, its pivots, and info; `b` has the result's stack dims."""
    packed, pivots, info = lu_factor_ex(xp, a)
    batch, n = b.shape[:-2], a.shape[-1]
    with xp.errstate(all="ignore"):
        wide = xp.broadcast_to(packed, (*batch, n, n)), xp.broadcast_to(pivots, (*batch, n))
        return lu_solve(xp, *wide, b, left, False), packed, pivots, info


@on_host
def inv_ex(xp: Any, a: Array) -> tuple[Array, Array]:
    """The inverse and info."""
    if not is_single(a):
        try:
            return xp.linalg.inv(a), xp.zeros(a.shape[:-2], xp.int32)
        except xp.linalg.LinAlgError:
            pass  # at least one matrix is singular: find out which
    unit = identity_stack(xp, a.shape, a.dtype)
    inverse, _, _, info = solve_ex(xp, a, unit, True)
    return inverse, info


@on_host
def qr(xp: Any, a: Array, mode: str) -> tuple[Array, Array]:
    """Q and R; Q is empty for mode "r"."""
    packed, tau = geqrf(xp, a)
    rows, columns = a.shape[-2:]
    width = rows if mode == "complete" else min(rows, columns)
    r = xp.triu(packed[..., :width, :])
    if mode == "r":
        return xp.empty((0,), a.dtype), r
    if width > columns:
        packed = xp.concatenate([packed, xp.zeros((*a.shape[:-1], width - columns), a.dtype)], axis=-1)
    return householder_product(xp, packed[..., :width], tau), r


@on_host
def geqrf(xp: Any, a: Array) -> tuple[Array, Array]:
    """R in the upper triangle, the Householder vectors below it, and their factors tau."""
    factor, count = routine("geqrf", a.dtype.char), min(a.shape[-2:])
    if not count:
        return a.copy(), xp.zeros((*a.shape[:-2], 0), a.dtype)
    lwork = workspace("geqrf", a.dtype.char, *a.shape[-2:])[0]
    shapes = [(a.shape[-2:], a.dtype), ((count,), a.dtype)]
    return each(xp, lambda m: factor(m, lwork=lwork)[:2], [a], shapes)


def unitary(char: str, name: str) -> str:
    """`or..` routines are called `un..` for complex matrices."""
    return ("un" if char in "FD" else "or") + name


@on_host
def householder_product(xp: Any, vectors: Array, tau: Array) -> Array:
    """The first columns of the product of Householder reflections."""
    if not tau.size:
        return identity_stack(xp, vectors.shape, vectors.dtype)
    char = vectors.dtype.char
    form, lwork = routine(unitary(char, "gqr"), char), 64 * vectors.shape[-1]
    return each(xp, lambda v, t: form(v, t, lwork=lwork)[:1], [vectors, tau], [(vectors.shape[-2:], vectors.dtype)])[0]


@on_host
def ormqr(xp: Any, vectors: Array, tau: Array, other: Array, left: bool, transposed: bool) -> Array:
    """Q other, Q^H other, other Q or other Q^H for the Q of a packed QR; the stacks agree."""
    if not tau.size or not other.size:
        return other.copy()
    char = vectors.dtype.char
    name = unitary(char, "mqr")
    multiply, lwork = routine(name, char), 64 * max(other.shape[-2:])
    how = ("L" if left else "R", ("C" if is_complex(other) else "T") if transposed else "N")
    count = tau.shape[-1]

    def solve(c: Array, v: Array, t: Array) -> tuple[Array]:
        return (multiply(*how, v[:, :count], t, c, lwork)[0],)

    return each(xp, solve, [other, vectors, tau], [(other.shape[-2:], other.dtype)])[0]


def symmetric(char: str, name: str, hermitian: bool) -> str:
    """`sy..` routines are called `he..` for Hermitian complex matrices."""
    return ("he" if hermitian and char in "FD" else "sy") + name


@on_host
def ldl_factor_ex(xp: Any, a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """The packed L and block-diagonal D of the lower triangle, LAPACK's own pivots, and info."""
    n, char = a.shape[-1], a.dtype.char
    name = symmetric(char, "trf", hermitian)
    factor = routine(name, char)
    lwork = workspace(name, char, n, 1)[0] if n else 1

    def solve(m: Array) -> tuple[Array, Array, int]:
        packed, pivots, info = factor(m, lower=1, lwork=lwork)
        return xp.tril(packed), pivots, info

    return each(xp, solve, [a], [((n, n), a.dtype), ((n,), xp.int32), ((), xp.int32)])


@on_host
def ldl_solve(xp: Any, packed: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """X with A X = b, from the packed LDL factors; the stacks agree."""
    char = packed.dtype.char
    solver = routine(symmetric(char, "trs", hermitian), char)
    return each(xp, lambda m, f, p: solver(f, p, m, lower=1)[:1], [b, packed, pivots], [(b.shape[-2:], b.dtype)])[0]


@on_host
def solve_triangular(xp: Any, a: Array, b: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """X with a X = b (or X a = b) for triangular `a`; the stacks agree. A zero pivot gives infinity or NaN."""
    solver = routine("trsm", a.dtype.char)
    how = {"side": int(not left), "lower": int(not upper), "diag": int(unitriangular)}
    return each(xp, lambda m, t: (solver(1, t, m, **how),), [b, a], [(b.shape[-2:], b.dtype)])[0]
