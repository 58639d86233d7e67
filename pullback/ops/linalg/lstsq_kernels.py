"""The array kernel of least squares, by LAPACK's four drivers.

In: the array library, stacks a (m by n) and b (m by k) with equal stack dims, rcond, and the driver's name.
Out: solutions (n by k), residuals (k), ranks, singular values; each empty, of shape (0,), where the driver has none.
Always: residuals exist only for overdetermined stacks of full rank; ranks are int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .lapack import each, is_complex, on_host, real_of, routine, workspace

Array = Any
Solver = Callable[[Array, Array], tuple[Array, int, Any]]


def gels(char: str, m: int, n: int, k: int, rcond: float) -> Solver:
    solver, lwork = routine("gels", char), workspace("gels", char, m, n, k)[0]
    return lambda a, b: (solver(a, b, lwork=lwork)[1], min(m, n), 0)


def gelsy(char: str, m: int, n: int, k: int, rcond: float) -> Solver:
    import numpy

    solver, lwork = routine("gelsy", char), workspace("gelsy", char, m, n, k, rcond)[0]

    def solve(a: Array, b: Array) -> tuple[Array, int, Any]:
        _, x, _, rank, _ = solver(a, b, numpy.zeros(n, numpy.int32), rcond, lwork)
        return x, rank, 0

    return solve


def gelsd(char: str, m: int, n: int, k: int, rcond: float) -> Solver:
    solver, sizes = routine("gelsd", char), workspace("gelsd", char, m, n, k, rcond)

    def solve(a: Array, b: Array) -> tuple[Array, int, Any]:
        x, values, rank, _ = solver(a, b, *sizes, rcond)
        return x, rank, values

    return solve


def gelss(char: str, m: int, n: int, k: int, rcond: float) -> Solver:
    solver, lwork = routine("gelss", char), workspace("gelss", char, m, n, k, rcond)[0]

    def solve(a: Array, b: Array) -> tuple[Array, int, Any]:
        _, x, values, rank, _, _ = solver(a, b, rcond, lwork)
        return x, rank, values

    return solve


DRIVERS: dict[str, Callable[..., Solver]] = {"gels": gels, "gelsy": gelsy, "gelsd": gelsd, "gelss": gelss}


@on_host
def lstsq(xp: Any, a: Array, b: Array, rcond: float, driver: str) -> tuple[Array, Array, Array, Array]:
    """X that minimizes |a X - b|, the squared residuals, the ranks and the singular values of `a`."""
    batch, (m, n), k = a.shape[:-2], a.shape[-2:], b.shape[-1]
    tall = max(m, n)
    shapes = [((tall, k), a.dtype), ((), xp.int64), ((min(m, n),), real_of(a))]
    if a.size and b.size:
        # LAPACK puts the solution where the right-hand side was, so this needs room for the longer of the two.
        padded = xp.zeros((*batch, tall, k), b.dtype)
        padded[..., :m, :] = b
        solver = DRIVERS[driver](a.dtype.char, m, n, k, rcond)
        x, rank, values = each(xp, solver, [a, padded], shapes)
    else:
        x, rank, values = (xp.zeros(batch + shape, dtype) for shape, dtype in shapes)
    none = xp.empty((0,), real_of(a))
    residuals = none
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all())):
        excess = x[..., n:, :]
        residuals = (excess.real**2 + excess.imag**2 if is_complex(x) else excess**2).sum(-2)
    return (
        xp.ascontiguousarray(x[..., :n, :]),
        residuals,
        xp.empty((0,), xp.int64) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else none,
    )
