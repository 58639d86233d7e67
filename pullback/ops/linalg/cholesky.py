"""Cholesky: the factorization, and solving and inverting with it.

In: stacks of Hermitian positive-definite matrices, of which one triangle is read, or of their factors.
Out: triangular factors, solutions, inverses; `info` says which leading minor was not positive.
Always: gradients are Hermitian, as if both triangles had been read.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import by_column
from ..system.dispatch import dispatch
from . import checks
from . import factor_kernels as kernels
from .algebra import mH, spec, stack_shape, stacked
from .errors import raise_for_info, without_ex
from .lapack import broadcast_stacks
from .solve import solve_triangular


def _check(self: Tensor, *_: Any) -> None:
    checks.is_square(self, "linalg.cholesky")
    checks.is_inexact(self, "linalg.cholesky")
    checks.kernel_takes(self, "cholesky_cpu")


def _kernel(xp: Any, a: Any, upper: bool, check_errors: bool) -> tuple[Any, Any]:
    factor, info = kernels.cholesky_ex(xp, a, upper)
    if check_errors:
        raise_for_info(info, "linalg.cholesky_ex", a.ndim == 2)
    return factor, info


def _cholesky_vjp(g: Tensor, L: Tensor, upper: bool) -> Tensor:
    factor, g = (mH(L), mH(g)) if upper else (L, g)
    below = (mH(factor) @ g).tril()
    left = solve_triangular(mH(factor), (below + mH(below.tril(-1))) * 0.5, upper=True)
    return solve_triangular(factor.mT, left.mT, upper=True).mT


cholesky_ex = operator(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    check=_check,
    kernel=_kernel,
    strides=by_column,
    meta=lambda self, upper, check_errors: (spec(self, self.shape), spec(self, self.shape[:-2], dtypes.int32)),
    vjp=lambda gs, L, upper: None if gs[0] is None else _cholesky_vjp(gs[0], L, upper),
    vmap=stacked({0: 2})(lambda: cholesky_ex),
    cost="compute",
)


@composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor")
def linalg_cholesky(self: Tensor, upper: bool) -> Tensor:
    with without_ex():
        return dispatch(cholesky_ex, (self, upper, True))[0]


def _check_cholesky(self: Tensor, *_: Any) -> None:
    checks.is_square(self, "cholesky")
    checks.kernel_takes(self, "cholesky_cpu")


def _cholesky_kernel(xp: Any, a: Any, upper: bool) -> Any:
    factor, info = kernels.cholesky_ex(xp, a, upper)
    raise_for_info(info, "cholesky", a.ndim == 2)
    return factor


cholesky = operator(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    check=_check_cholesky,
    kernel=_cholesky_kernel,
    meta=lambda self, upper: spec(self, self.shape),
    vjp=lambda g, out, upper: _cholesky_vjp(g, out, upper),
    vmap=stacked({0: 2})(lambda: cholesky),
    autocast_cpu="float32",
    cost="compute",
)


# ---- the inverse from the factor
def _check_inverse(self: Tensor, upper: bool) -> None:
    checks.is_square(self, "cholesky_inverse")
    checks.kernel_takes(self, "cholesky_inverse_out_cpu")


def _inverse_kernel(xp: Any, factor: Any, upper: bool) -> Any:
    inverse, info = kernels.cholesky_inverse(xp, factor, upper)
    raise_for_info(info, "cholesky_inverse", factor.ndim == 2)
    return inverse


def _inverse_vjp(g: Tensor, self: Tensor, upper: bool, out: Tensor) -> Tensor:
    both = out @ (g + mH(g)) @ out
    return -(self @ both) if upper else -(both @ self)


cholesky_inverse = operator(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    check=_check_inverse,
    kernel=_inverse_kernel,
    strides=by_column,
    meta=lambda self, upper: spec(self, self.shape),
    vjp=_inverse_vjp,
    vmap=stacked({0: 2})(lambda: cholesky_inverse),
    autocast_cpu="float32",
    cost="compute",
)


# ---- solving with the factor
def _check_solve(self: Tensor, input2: Tensor, upper: bool) -> None:
    for t, what in ((self, "b"), (input2, "u")):
        if t.ndim < 2:
            raise RuntimeError(f"{what} should have at least 2 dimensions, but has {t.ndim} dimensions instead")
    linear_system(self, input2, "cholesky_solve")
    checks.kernel_takes(self, "cholesky_solve_cpu")


def linear_system(b: Tensor, a: Tensor, name: str) -> None:
    """The checks of the older solvers."""
    rows, columns = a.shape[-2:]
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.scalar_name} and A of type "
            f"{a.dtype.scalar_name} instead."
        )
    if rows != columns:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if rows != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {rows} by {columns} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )


def _solve_vjp(g: Tensor, input2: Tensor, upper: bool, out: Tensor, mask: tuple) -> tuple:
    g_b = cholesky_solve(g, input2, upper)
    if not mask[1]:
        return g_b, None
    common = g_b @ mH(out)
    common = common + mH(common)
    return g_b, -(input2 @ common) if upper else -(common @ input2)


cholesky_solve = operator(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    check=_check_solve,
    kernel=lambda xp, b, factor, upper: kernels.cholesky_solve(xp, *broadcast_stacks(xp, b, factor), upper),
    strides=by_column,
    meta=lambda self, input2, upper: spec(self, (*stack_shape(self, input2), *self.shape[-2:])),
    vjp={("self", "input2"): _solve_vjp},
    vmap=stacked({0: 2, 1: 2})(lambda: cholesky_solve),
    autocast_cpu="float32",
    cost="compute",
)
