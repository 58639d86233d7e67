"""Solving linear systems: general, triangular, inverses, least squares.

In: stacks of matrices A and right-hand sides B whose stack dims broadcast; B may be a vector (or a stack of them).
Out: solutions; `info` is non-zero where a matrix was singular.
Always: a singular matrix raises a LinAlgError in the plain functions and only sets `info` in the `_ex` ones.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.geometry import contiguous_strides
from ...core.modes import TRANSFORM, ambient, is_grad_enabled
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import by_column
from ..system.dispatch import dispatch
from ..system.operator import Spec
from ..system.return_types import pack_results
from . import checks
from . import factor_kernels as kernels
from .algebra import add, expand_stack, mH, mT, spec, stack_shape, stacked
from .errors import raise_for_info, without_ex
from .lapack import broadcast_stacks
from .lstsq_kernels import DRIVERS
from .lstsq_kernels import lstsq as lstsq_kernel


# ---- triangular systems
def _check_triangular(self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> None:
    checks.is_square(self, "linalg.solve_triangular")
    checks.has_rank(B, "linalg.solve_triangular", "B")
    checks.solvable(self, B.shape, left, "linalg.solve_triangular")
    checks.kernel_takes(self, "triangular_solve_cpu")


def _triangular_kernel(xp: Any, a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    a, b = broadcast_stacks(xp, a, b.astype(a.dtype, copy=False))
    return kernels.solve_triangular(xp, a, b, upper, left, unitriangular)


def _triangular_vjp(
    g: Tensor, self: Tensor, upper: bool, left: bool, unitriangular: bool, out: Tensor, mask: tuple
) -> tuple:
    g_b = solve_triangular(mH(self), g, upper=not upper, left=left, unitriangular=unitriangular)
    if not mask[0]:
        return None, g_b
    full = -(g_b @ mH(out)) if left else -(mH(out) @ g_b)
    strict = int(unitriangular)
    return full.triu(strict) if upper else full.tril(-strict), g_b


solve_triangular = operator(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    check=_check_triangular,
    kernel=_triangular_kernel,
    strides=by_column,
    meta=lambda self, B, upper, left, unitriangular: spec(self, (*stack_shape(self, B), *B.shape[-2:])),
    vjp={("self", "B"): _triangular_vjp},
    vmap=stacked({0: 2, 1: 2})(lambda: solve_triangular),
    cost="compute",
)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
    "-> (Tensor solution, Tensor cloned_coefficient)",
    autocast_cpu="float32",
)
def triangular_solve(self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool) -> tuple:
    for t, what in ((self, "b"), (A, "A")):
        if t.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, "
                f"but it has {t.ndim} dimensions instead"
            )
    if A.shape[-1] != A.shape[-2] or A.shape[-1] != self.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each "
            f"b matrix is {self.shape[-2]} by {self.shape[-1]}"
        )
    checks.kernel_takes(self, "triangular_solve_cpu")
    matrix = mT(A) if transpose else A
    result = solve_triangular(matrix, self, upper=upper != transpose, unitriangular=unitriangular)
    return pack_results(triangular_solve, (result, expand_stack(A, result.shape[:-2]).clone()))


# ---- general systems
def is_vector(a: Tensor, b: Tensor) -> bool:
    """Whether B is a vector, or a stack of vectors for the stack of matrices A."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def _check_solve(A: Tensor, B: Tensor, left: bool, *_: Any) -> None:
    checks.is_inexact(A, "linalg.solve")
    checks.same_dtype(A, B, "linalg.solve")
    vector = is_vector(A, B)
    columns = (*B.shape, 1) if vector else tuple(B.shape)
    checks.is_square(A, "linalg.solve")
    if len(columns) < 2:
        checks.has_rank(B, "linalg.solve", "B")
    checks.solvable(A, columns, left, "linalg.solve")
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. ")
    checks.kernel_takes(A, "lu_cpu")


def _solve_shape(A: Tensor, B: Tensor) -> tuple[int, ...]:
    if is_vector(A, B):
        return (*stack_shape(A, B, cores=(2, 1)), B.shape[-1])
    return (*stack_shape(A, B), *B.shape[-2:])


def _solve_kernel(xp: Any, a: Any, b: Any, left: bool, check_errors: bool) -> tuple:
    vector = is_vector(a, b)
    columns = b[..., None] if vector else b
    batch = xp.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    columns = xp.broadcast_to(columns, batch + columns.shape[-2:])
    result, packed, pivots, info = kernels.solve_ex(xp, a, columns, left)
    if check_errors:
        raise_for_info(info, "torch.linalg.solve_ex", a.ndim == 2)
    return result.reshape(result.shape[:-1]).copy() if vector else result, packed, pivots, info


def _solve_vjp(
    gs: tuple, A: Tensor, left: bool, result: Tensor, LU: Tensor, pivots: Tensor, B_shape: Any, mask: tuple
) -> tuple:
    g = gs[0]
    if g is None:
        return None, None
    vector = len(B_shape) == 1 or (A.ndim - 1 == len(B_shape) and tuple(B_shape) == tuple(A.shape[:-1]))
    if vector:
        g, result = g.unsqueeze(-1), result.unsqueeze(-1)
    g_b = adjoint_solve(A, LU, pivots, g, left)
    g_a = None
    if mask[0]:
        g_a = -(g_b @ mH(result)) if left else -(mH(result) @ g_b)
    return g_a, g_b.squeeze(-1) if vector else g_b


def adjoint_solve(a: Tensor, packed: Tensor, pivots: Tensor, b: Tensor, left: bool = True) -> Tensor:
    """X with A^H X = b (or X A^H = b), from A's factors; from A itself where a further derivative is wanted."""
    if is_grad_enabled() or ambient.mode & TRANSFORM:
        return solve_ex_helper(mH(a), b, left=left)[0]
    from .lu import lu_solve

    return lu_solve(packed, pivots, b, left=left, adjoint=True)


def _solve_vmap(args: tuple, dims: tuple, size: int) -> tuple[Any, int]:
    a, b = (t.movedim(d, 0) if d is not None else t.expand((size, *t.shape)) for t, d in zip(args[:2], dims[:2]))
    if is_vector(a[0], b[0]):
        b = b.reshape((size, *(1,) * (a.ndim - 1 - b.ndim), *b.shape[1:])).expand(tuple(a.shape[:-1]))
        return solve_ex_helper(a, b, left=args[2], check_errors=args[3]), 0
    return stacked({0: 2, 1: 2})(lambda: solve_ex_helper)((a, b, *args[2:]), (0, 0), size)


solve_ex_helper = operator(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    check=_check_solve,
    kernel=_solve_kernel,
    strides=by_column,
    meta=lambda A, B, left, check_errors: (
        spec(A, _solve_shape(A, B)),
        spec(A, A.shape),
        spec(A, A.shape[:-1], dtypes.int32),
        spec(A, A.shape[:-2], dtypes.int32),
    ),
    vjp={("A", "B"): _solve_vjp},
    vmap=_solve_vmap,
    nondifferentiable=(1,),
    method=False,
    cost="compute",
)


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)"
)
def solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> tuple:
    result = solve_ex_helper(A, B, left=left, check_errors=check_errors)
    return pack_results(solve_ex, (result[0], result[3]))


@composite("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
def solve(A: Tensor, B: Tensor, left: bool) -> Tensor:
    with without_ex():
        return dispatch(solve_ex_helper, (A, B, left, True))[0]


# ---- inverses
def _check_inv(A: Tensor, *_: Any) -> None:
    checks.is_square(A, "linalg.inv")
    checks.is_precise(A, "linalg.inv")


def _inv_kernel(xp: Any, a: Any, check_errors: bool) -> tuple:
    inverse, info = kernels.inv_ex(xp, a)
    if check_errors:
        raise_for_info(info, "linalg.inv_ex", a.ndim == 2)
    return inverse, info


inv_ex = operator(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    check=_check_inv,
    kernel=_inv_kernel,
    strides=by_column,
    meta=lambda A, check_errors: (spec(A, A.shape), spec(A, A.shape[:-2], dtypes.int32)),
    vjp=lambda gs, inverse: None if gs[0] is None else -(mH(inverse) @ (gs[0] @ mH(inverse))),
    vmap=stacked({0: 2})(lambda: inv_ex),
    cost="compute",
)


@composite("linalg_inv(Tensor A) -> Tensor")
def inv(A: Tensor) -> Tensor:
    with without_ex():
        return dispatch(inv_ex, (A, True))[0]


@composite("inverse(Tensor self) -> Tensor", autocast_cpu="float32")
def inverse(self: Tensor) -> Tensor:
    return inv(self)


# ---- least squares
def _check_lstsq(self: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> None:
    name = "torch.linalg.lstsq"
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if self.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {self.dtype.scalar_name} "
            f"and other's dtype {b.dtype.scalar_name}"
        )
    if self.dtype not in checks.LAPACK_DTYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")
    side = -1 if is_vector(self, b) else -2
    if self.shape[-2] != b.shape[side]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")


def _lstsq_kernel(xp: Any, a: Any, b: Any, rcond: float | None, driver: str | None) -> tuple:
    vector = is_vector(a, b)
    limit = float(xp.finfo(a.dtype).eps) * max(a.shape[-2:]) if rcond is None else rcond
    solution, *rest = lstsq_kernel(
        xp, *broadcast_stacks(xp, a, b[..., None] if vector else b), limit, driver or "gelsy"
    )
    return solution.reshape(solution.shape[:-1]).copy() if vector else solution, *rest


def _lstsq_meta(self: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> tuple[Spec, ...]:
    """As if every matrix had full rank: where one has not, there are no residuals."""
    vector, driver = is_vector(self, b), driver or "gelsy"
    batch = stack_shape(self, b, cores=(2, 1 if vector else 2))
    (m, n), k, real = self.shape[-2:], 1 if vector else b.shape[-1], self.dtype.to_real()
    return (
        Spec((*batch, n) if vector else (*batch, n, k), self.dtype),
        Spec((*batch, k) if m > n and driver != "gelsy" else (0,), real),
        Spec((0,) if driver == "gels" else batch, dtypes.int64),
        Spec((*batch, min(m, n)) if driver in ("gelsd", "gelss") else (0,), real),
    )


def _lstsq_strides(shape: tuple, self: Tensor, b: Tensor, *options: object) -> tuple | None:
    """The solution column by column, each in the room of the longer of itself and the right-hand side, as LAPACK leaves it."""
    if len(shape) < max(self.ndim, b.ndim) or is_vector(self, b):
        return None
    tall = max(self.shape[-2:])
    return (*contiguous_strides((*shape[:-2], shape[-1], tall))[:-2], 1, tall)


def _lstsq_vjp(gs: tuple, self: Tensor, b: Tensor, solution: Tensor) -> tuple:
    from .pseudoinverse import pinv, pinv_vjp

    vector = is_vector(self, b)
    g = gs[0]
    if vector:
        g, b, solution = None if g is None else g.unsqueeze(-1), b.unsqueeze(-1), solution.unsqueeze(-1)
    g_a = g_b = None
    if g is not None:
        inverse = pinv(self)
        g_b = mH(inverse) @ g
        g_a = pinv_vjp(g @ mH(b), inverse, self)
    if gs[1] is not None and gs[1].numel():
        miss = (self @ solution - b) * (2 * gs[1].unsqueeze(-2))
        g_a, g_b = add(g_a, miss @ mH(solution)), add(g_b, -miss)
    return g_a, g_b.squeeze(-1) if vector and g_b is not None else g_b


lstsq = operator(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
    "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    check=_check_lstsq,
    kernel=_lstsq_kernel,
    meta=_lstsq_meta,
    strides=_lstsq_strides,
    vjp={("self", "b"): _lstsq_vjp},
    nondifferentiable=(3,),
    cost="compute",
)
