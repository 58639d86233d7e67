"""Which of the equally valid eigenvectors and singular vectors to return: the ones that PyTorch's LAPACK would.

In: NumPy matrices, with their decompositions as this machine's LAPACK computed them.
Out: signs for the eigenvectors; singular vectors of a wide real matrix.
Always: a decomposition is exactly as good after as before; only the free choice in it is remade.

Builds of LAPACK differ in one place that matters: the plane rotation that takes (f, g) to (r, 0) may also come out with
all of c, s, r negated, and the implicit QL iteration carries that into the eigenvectors. So `eigenvector_signs` follows
the iteration on the tridiagonal matrix, in scalars, with one row of the eigenvectors: the row that the reduction to
tridiagonal form leaves alone, which can then be compared with the eigenvectors at hand. For wide real matrices the
builds differ in whether the SVD first reduces to a triangle.
"""

from __future__ import annotations

from math import copysign, hypot, inf, sqrt
from typing import Any

from .errors import LinAlgError
from .lapack import PREFIX, is_complex, routine, workspace

Array = Any
Rotation = tuple[float, float, float]

# Up to this order LAPACK's divide-and-conquer drivers leave the whole matrix to the QL iteration.
ITERATION_ORDER = 25
SWEEPS = 30
EPSILON = {"s": 2.0**-24, "c": 2.0**-24, "d": 2.0**-53, "z": 2.0**-53}
TINY = 2.0**-1022


def eigenvector_signs(xp: Any, matrix: Array, vectors: Array, lower: bool) -> Array | None:
    """+1 or -1 for each eigenvector (column) of a Hermitian matrix; None where the builds do not differ."""
    n, char = matrix.shape[0], matrix.dtype.char
    if not 2 < n <= ITERATION_ORDER:
        return None
    reduce = routine("hetrd" if is_complex(matrix) else "sytrd", char)
    _, diagonal, beside, _, _ = reduce(matrix, lower=lower)
    if not 0 < abs(diagonal).max() + abs(beside).max() < inf:
        return None
    kept = 0 if lower else n - 1
    row = [0.0] * n
    row[kept] = 1.0
    wanted = tridiagonal_row(diagonal.tolist(), beside.tolist(), row, EPSILON[PREFIX[char]])
    return xp.where(xp.asarray(wanted) * vectors[kept].real < 0, -1, 1).astype(diagonal.dtype)


def tridiagonal_row(d: list[float], e: list[float], z: list[float], epsilon: float) -> list[float]:
    """`z` times the eigenvectors of the tridiagonal matrix (d, e), in ascending order of the eigenvalues."""
    start, n = 0, len(d)
    while start < n:
        end = start
        while end < n - 1 and abs(e[end]) > sqrt(abs(d[end])) * sqrt(abs(d[end + 1])) * epsilon:
            end += 1
        block = slice(start, end + 1)
        flipped = abs(d[end]) < abs(d[start])
        step = -1 if flipped else 1
        part = d[block][::step], e[start:end][::step], z[block][::step]
        iterate(*part, epsilon, flipped)
        d[block], z[block] = part[0][::step], part[2][::step]
        start = end + 1
    return [z[i] for i in sorted(range(n), key=d.__getitem__)]


def iterate(d: list[float], e: list[float], z: list[float], epsilon: float, flipped: bool) -> None:
    """Implicit QL on one unreduced block, until it is diagonal. A flipped block is the QR iteration, read backwards."""
    first, last = 0, len(d) - 1
    for _ in range(SWEEPS * len(d)):
        if first >= last:
            return
        split = first
        while split < last and e[split] ** 2 > epsilon * epsilon * abs(d[split]) * abs(d[split + 1]) + TINY:
            split += 1
        if split < last:
            e[split] = 0.0
        if split == first:
            first += 1
        elif split == first + 1:
            pair(d, e, z, first, flipped)
            first += 2
        else:
            sweep(d, e, z, first, split)


def sweep(d: list[float], e: list[float], z: list[float], first: int, last: int) -> None:
    """One QL sweep with Wilkinson's shift, from `last` up to `first`."""
    g = (d[first + 1] - d[first]) / (2 * e[first])
    g = d[last] - d[first] + e[first] / (g + copysign(hypot(g, 1.0), g))
    s = c = 1.0
    p = 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = s * e[i], c * e[i]
        c, s, r = rotation(g, f)
        if i != last - 1:
            e[i + 1] = r
        g = d[i + 1] - p
        r = (d[i] - g) * s + 2 * c * b
        p = s * r
        d[i + 1] = g + p
        g = c * r - b
        z[i], z[i + 1] = c * z[i] - s * z[i + 1], c * z[i + 1] + s * z[i]
    d[first] -= p
    e[first] = g


def rotation(f: float, g: float) -> Rotation:
    """c, s, r with r >= 0, except that c > 0 where |f| > |g|."""
    if g == 0:
        return 1.0, 0.0, f
    if f == 0:
        return 0.0, 1.0, g
    r = hypot(f, g)
    if f < 0 and -f > abs(g):
        r = -r
    return f / r, g / r, r


def pair(d: list[float], e: list[float], z: list[float], i: int, flipped: bool) -> None:
    """Diagonalize the 2 by 2 block at `i`: the eigenvalue of larger magnitude comes first, in unflipped order."""
    a, b = (i + 1, i) if flipped else (i, i + 1)
    large, small, c, s = eigen_pair(d[a], e[i], d[b])
    d[a], d[b], e[i] = large, small, 0.0
    z[a], z[b] = s * z[b] + c * z[a], c * z[b] - s * z[a]


def eigen_pair(a: float, b: float, c: float) -> tuple[float, float, float, float]:
    """Eigenvalues of [[a, b], [b, c]], larger magnitude first, and the unit eigenvector of the first."""
    total, gap, twice = a + c, a - c, b + b
    root = hypot(gap, twice)
    most, least = (a, c) if abs(a) > abs(c) else (c, a)
    large = 0.5 * (total + copysign(root, total)) if total else 0.5 * root
    small = (most / large) * least - (b / large) * b if total else -0.5 * root
    turn = gap + (root if gap >= 0 else -root)
    if abs(turn) > abs(twice):
        t = -twice / turn
        s = 1 / sqrt(1 + t * t)
        c = t * s
    else:
        t = -turn / twice
        c = 1 / sqrt(1 + t * t)
        s = t * c
    return (large, small, -s, c) if (total >= 0) == (gap >= 0) else (large, small, c, s)


def is_very_wide(rows: int, columns: int) -> bool:
    """Whether LAPACK's real SVD would first reduce the matrix to a triangle."""
    return columns > rows > 1 and columns >= int(rows * 11 / 6)


def wide_svd(xp: Any, a: Array, full: bool) -> tuple[Array, Array, Array]:
    """The SVD of a very wide real matrix as if it were brought to lower bidiagonal form directly."""
    rows = a.shape[0]
    q, r = xp.linalg.qr(a.T)
    if rows == 2:
        u, s, vh = gesdd(r.T, False)
        # Too small for the padding below. A rotation in place of the reflection that LAPACK uses on the triangle turns
        # one of the two pairs around: the one that its 2 by 2 solver does not take for the larger.
        turned = int(abs(r[0, 0] * r[1, 1]) > r[0, 0] ** 2 + r[0, 1] ** 2)
        u[:, turned], vh[turned] = -u[:, turned], -vh[turned]
    else:
        # One more column, of zeros, keeps the triangle on LAPACK's path for slightly wide matrices.
        u, s, vh = gesdd(xp.hstack([r.T, xp.zeros((rows, 1), a.dtype)]), False)
    vh = vh[:, :rows] @ q.T
    return u, s, xp.vstack([vh, null_basis(xp, a)]) if full else vh


def gesdd(a: Array, full: bool) -> tuple[Array, Array, Array]:
    """LAPACK's SVD in the matrix's own precision."""
    char = a.dtype.char
    lwork = workspace("gesdd", char, *a.shape, 1, int(full))[0]
    *factors, info = routine("gesdd", char)(a, full_matrices=int(full), lwork=lwork)
    if info:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            f"repeated singular values (error code: {info})."
        )
    return tuple(factors)  # type: ignore[return-value]


def null_basis(xp: Any, a: Array) -> Array:
    """Orthonormal rows that complete the row space of `a`: the last rows of the reflections that bidiagonalize it."""
    rows, columns = a.shape
    work, basis = a.copy(), xp.eye(columns, dtype=a.dtype)
    for i in range(rows):
        reflect(xp, work[i:, i:].T, basis[i:])
        if i + 1 < rows:
            reflect(xp, work[i + 1 :, i:], None)
    return basis[rows:]


def reflect(xp: Any, work: Array, basis: Array | None) -> None:
    """Apply to `work` the Householder reflection that clears its first column but for the top; to `basis` likewise."""
    v = work[:, 0].copy()
    tail = float(xp.linalg.norm(v[1:]))
    if tail == 0:
        return
    beta = -copysign(hypot(float(v[0]), tail), float(v[0]))
    tau = (beta - v[0]) / beta
    v[1:] /= v[0] - beta
    v[0] = 1
    for target in (work, basis):
        if target is not None:
            target -= tau * xp.outer(v, v @ target)
