"""LU: the factorization with partial pivoting, taking it apart, and solving with it.

In: stacks of matrices of any shape, or their packed factors (L below the diagonal, U on and above) and int32 pivots,
which count from one. Out: packed factors, or P, L, U with A = P L U, or solutions.
Always: pivots and permutations carry no gradient.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import by_column
from ..system.calls import front
from ..system.operator import Spec
from ..system.return_types import pack_results
from . import checks
from . import factor_kernels as kernels
from .algebra import add, cat, mH, spec, stack_shape, stacked
from .errors import raise_for_info, without_ex
from .solve import solve_triangular


# ---- factoring
def _check_factor(A: Tensor, pivot: bool, *_: Any) -> None:
    checks.two_dims(A, "torch.lu_factor")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    checks.kernel_takes(A, "lu_cpu")


def _factor_kernel(xp: Any, a: Any, pivot: bool, check_errors: bool) -> tuple:
    packed, pivots, info = kernels.lu_factor_ex(xp, a)
    if check_errors:
        raise_for_info(info, "torch.linalg.lu_factor_ex", a.ndim == 2)
    return packed, pivots, info


def _factor_meta(A: Tensor, *_: Any) -> tuple[Spec, ...]:
    batch, count = tuple(A.shape[:-2]), min(A.shape[-2:])
    return spec(A, A.shape), spec(A, (*batch, count), dtypes.int32), spec(A, batch, dtypes.int32)


def plu_vjp(g_l: Tensor | None, g_u: Tensor | None, p: Tensor, lower: Tensor, upper: Tensor) -> Tensor | None:
    """The gradient of A from those of L and U, A = P L U."""
    if g_l is None and g_u is None:
        return None
    rows, columns = lower.shape[-2], upper.shape[-1]
    if rows < columns:
        inner = _wide_plu(g_l, g_u, lower, upper)
    elif rows > columns:
        inner = _tall_plu(g_l, g_u, lower, upper)
    else:
        inner = _square_plu(_matmul(mH(lower), g_l), _matmul(g_u, mH(upper)), lower, upper)
    return p @ inner


def _matmul(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return None if a is None or b is None else a @ b


def _negative(a: Tensor | None) -> Tensor | None:
    return None if a is None else -a


def _square_plu(below: Tensor | None, above: Tensor | None, lower: Tensor, upper: Tensor) -> Tensor:
    """L^-H (tril(below, -1) + triu(above)) U^-H."""
    parts = None if below is None else below.tril(-1), None if above is None else above.triu()
    left = solve_triangular(mH(lower), add(*parts), upper=True, unitriangular=True)
    return solve_triangular(mH(upper), left, upper=False, left=False)


def _wide_plu(g_l: Tensor | None, g_u: Tensor | None, lower: Tensor, upper: Tensor) -> Tensor:
    """A = P L [U1 U2]: U2 depends on A2, and on A1 through L."""
    rows = lower.shape[-1]
    first, second = upper[..., :rows], upper[..., rows:]
    g_first, g_second = (None, None) if g_u is None else (g_u[..., :rows], g_u[..., rows:])
    below = add(_matmul(mH(lower), g_l), _negative(_matmul(g_second, mH(second))))
    one = _square_plu(below, _matmul(g_first, mH(first)), lower, first)
    if g_second is None:
        return cat([one, second.new_zeros(second.shape)], -1)
    two = solve_triangular(mH(lower), g_second, upper=True, unitriangular=True)
    return cat([one, two], -1)


def _tall_plu(g_l: Tensor | None, g_u: Tensor | None, lower: Tensor, upper: Tensor) -> Tensor:
    """P^T A = [L1; L2] U: L2 depends on A2, and on A1 through U."""
    columns = upper.shape[-1]
    first, second = lower[..., :columns, :], lower[..., columns:, :]
    g_first, g_second = (None, None) if g_l is None else (g_l[..., :columns, :], g_l[..., columns:, :])
    above = add(_matmul(g_u, mH(upper)), _negative(_matmul(mH(second), g_second)))
    one = _square_plu(_matmul(mH(first), g_first), above, first, upper)
    if g_second is None:
        return cat([one, second.new_zeros(second.shape)], -2)
    two = solve_triangular(mH(upper), g_second, upper=False, left=False)
    return cat([one, two], -2)


def _factor_vjp(gs: tuple, LU: Tensor, pivots: Tensor) -> Tensor | None:
    g = gs[0]
    if g is None:
        return None
    p, lower, upper = lu_unpack(LU, pivots)
    count = min(g.shape[-2:])
    return plu_vjp(g[..., :, :count], g[..., :count, :], p, lower, upper)


lu_factor_ex = operator(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    check=_check_factor,
    kernel=_factor_kernel,
    meta=_factor_meta,
    vjp=_factor_vjp,
    vmap=stacked({0: 2})(lambda: lu_factor_ex),
    cost="compute",
)


@composite("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
def lu_factor(A: Tensor, pivot: bool) -> tuple:
    with without_ex():
        result = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return pack_results(lu_factor, result[:2])


@composite(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    method=False,
)
def lu_with_info(self: Tensor, pivot: bool, check_errors: bool) -> tuple:
    with without_ex():
        return pack_results(lu_with_info, tuple(lu_factor_ex(self, pivot=pivot, check_errors=check_errors)))


# ---- P, L and U
def _lu_kernel(xp: Any, a: Any, pivot: bool) -> tuple:
    packed, pivots, _ = kernels.lu_factor_ex(xp, a)
    return kernels.lu_permutation(xp, pivots, a.shape, a.dtype), *kernels.lu_triangles(xp, packed)


def _triangle_specs(A: Tensor) -> tuple[Spec, ...]:
    *batch, rows, columns = A.shape
    count = min(rows, columns)
    return spec(A, (*batch, rows, rows)), spec(A, (*batch, rows, count)), spec(A, (*batch, count, columns))


lu = operator(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    check=_check_factor,
    kernel=_lu_kernel,
    meta=lambda A, pivot: _triangle_specs(A),
    vjp=lambda gs, P, L, U: plu_vjp(gs[1], gs[2], P, L, U),
    nondifferentiable=(0,),
    vmap=stacked({0: 2})(lambda: lu),
    cost="compute",
)


def _check_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> None:
    checks.two_dims(LU_data, "torch.lu_unpack")
    if unpack_pivots and LU_pivots.dtype is not dtypes.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )


def _unpack_kernel(xp: Any, packed: Any, pivots: Any, unpack_data: bool, unpack_pivots: bool) -> tuple:
    none = xp.empty((0,), packed.dtype)
    p = kernels.lu_permutation(xp, pivots, packed.shape, packed.dtype) if unpack_pivots else none
    return p, *(kernels.lu_triangles(xp, packed) if unpack_data else (none, none.copy()))


def _unpack_meta(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> tuple[Spec, ...]:
    p, lower, upper = _triangle_specs(LU_data)
    none = spec(LU_data, (0,))
    return p if unpack_pivots else none, *((lower, upper) if unpack_data else (none, none))


def _unpack_vjp(gs: tuple, LU_data_shape: Any) -> Tensor | None:
    _, g_l, g_u = gs
    rows, columns = LU_data_shape[-2:]
    below = None if g_l is None else g_l.tril(-1)
    above = None if g_u is None else g_u.triu()
    if below is not None and columns > rows:
        below = cat([below, below.new_zeros((*below.shape[:-1], columns - rows))], -1)
    if above is not None and rows > columns:
        above = cat([above, above.new_zeros((*above.shape[:-2], rows - columns, columns))], -2)
    return add(below, above)


lu_unpack = operator(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    check=_check_unpack,
    kernel=_unpack_kernel,
    meta=_unpack_meta,
    vjp={"LU_data": _unpack_vjp},
    nondifferentiable=(0,),
    method=False,
    vmap=stacked({0: 2, 1: 1})(lambda: lu_unpack),
    cost="compute",
)


# ---- solving
def _check_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> None:
    if pivots.dtype is not dtypes.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    checks.is_square(LU, "torch.linalg.lu_solve")
    checks.same_dtype(LU, B, "linalg.lu_solve", ("LU", "B"))
    checks.has_rank(B, "linalg.lu_solve", "B")
    checks.solvable(LU, B.shape, left, "linalg.lu_solve")
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if tuple(LU.shape[:-1]) != tuple(pivots.shape):
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    checks.kernel_takes(LU, "lu_solve_cpu")


def _solve_kernel(xp: Any, packed: Any, pivots: Any, b: Any, left: bool, adjoint: bool) -> Any:
    batch = xp.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    n = packed.shape[-1]
    wide = xp.broadcast_to(packed, (*batch, n, n)), xp.broadcast_to(pivots, (*batch, n))
    return kernels.lu_solve(xp, *wide, xp.broadcast_to(b, batch + b.shape[-2:]), left, adjoint)


def _solve_vjp(
    g: Tensor, LU: Tensor, pivots: Tensor, left: bool, adjoint: bool, out: Tensor, mask: tuple
) -> tuple[Tensor | None, Tensor]:
    """op(A) X = B or X op(A) = B, with A = P L U or its adjoint."""
    g_b = lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    if not mask[0]:
        return None, g_b
    g_a = -(g_b @ mH(out)) if left else -(mH(out) @ g_b)
    g_a = mH(g_a) if adjoint else g_a
    p, lower, upper = lu_unpack(LU, pivots)
    unpermuted = mH(p) @ g_a
    return (unpermuted @ mH(upper)).tril(-1) + (mH(lower) @ unpermuted).triu(), g_b


lu_solve = operator(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    check=_check_solve,
    kernel=_solve_kernel,
    strides=by_column,
    meta=lambda LU, pivots, B, left, adjoint: spec(B, (*stack_shape(LU, B), *B.shape[-2:])),
    vjp={("LU", "B"): _solve_vjp},
    vmap=stacked({0: 2, 1: 1, 2: 2})(lambda: lu_solve),
    cost="compute",
)


@composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", autocast_cpu="float32")
def old_lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    return lu_solve(LU_data, LU_pivots, self)


@front("torch.lu", "Tensor.lu")
def lu_with_options(input: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The packed factors and pivots, with the info codes where they are asked for."""
    result = lu_with_info(input, pivot, not get_infos)
    if out is not None:
        if not isinstance(out, (tuple, list)) or len(out) != len(result) - (not get_infos):
            raise TypeError(f"expected tuple of {2 + get_infos} elements but got {type(out).__name__}")
        for home, value in zip(out, result):
            home.resize_as_(value).copy_(value)
        return out
    return result if get_infos else tuple(result[:2])
