"""LDL: Hermitian (or symmetric) indefinite factorization, and solving with it.

In: stacks of square matrices, of which the lower triangle is read. Out: L and the block-diagonal D packed in one,
with LAPACK's own pivots (negative for blocks of two). There are no gradients, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import by_column
from ..system.operator import NOT_IMPLEMENTED
from ..system.return_types import pack_results
from . import checks
from . import factor_kernels as kernels
from .algebra import spec, stack_shape, stacked
from .cholesky import linear_system
from .errors import raise_for_info


def _check_factor(self: Tensor, *_: Any) -> None:
    checks.is_square(self, "torch.linalg.ldl_factor_ex")
    checks.is_inexact(self, "torch.linalg.ldl_factor_ex")
    checks.kernel_takes(self, "ldl_factor_kernel_cpu")


def _factor_kernel(xp: Any, a: Any, hermitian: bool, check_errors: bool) -> tuple:
    packed, pivots, info = kernels.ldl_factor_ex(xp, a, hermitian)
    if check_errors:
        raise_for_info(info, "torch.linalg.ldl_factor", a.ndim == 2)
    return packed, pivots, info


ldl_factor_ex = operator(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    check=_check_factor,
    kernel=_factor_kernel,
    strides=by_column,
    meta=lambda self, hermitian, check_errors: (
        spec(self, self.shape),
        spec(self, self.shape[:-1], dtypes.int32),
        spec(self, self.shape[:-2], dtypes.int32),
    ),
    vjp=NOT_IMPLEMENTED,
    vmap=stacked({0: 2})(lambda: ldl_factor_ex),
    cost="compute",
)


@composite("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
def ldl_factor(self: Tensor, hermitian: bool) -> tuple:
    return pack_results(ldl_factor, ldl_factor_ex(self, hermitian=hermitian, check_errors=True)[:2])


def _check_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> None:
    name = "torch.linalg.ldl_solve"
    checks.is_square(LD, name)
    checks.is_inexact(LD, name)
    checks.kernel_takes(LD, "ldl_solve_kernel_cpu")
    if B.ndim < 2:
        raise RuntimeError(f"{name}: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead")
    linear_system(B, LD, name)
    if tuple(LD.shape[:-1]) != tuple(pivots.shape):
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.category != 1:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}")


def _check_pivots(places: Any, rows: int) -> None:
    """LAPACK would read and write outside its arrays."""
    ends = "Did you properly pass the result of ldl_factor?"
    if (places < 1).any():
        raise RuntimeError(f"Pivots given to ldl_solve must all satisfy |pivot| >= 1. {ends}")
    if (places > rows).any():
        raise RuntimeError(f"Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). {ends}")


def _solve_kernel(xp: Any, packed: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    _check_pivots(xp.abs(pivots), packed.shape[-2])
    batch, n = xp.broadcast_shapes(packed.shape[:-2], b.shape[:-2]), packed.shape[-1]
    wide = xp.broadcast_to(packed, (*batch, n, n)), xp.broadcast_to(pivots, (*batch, n))
    return kernels.ldl_solve(xp, *wide, xp.broadcast_to(b, batch + b.shape[-2:]), hermitian)


ldl_solve = operator(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    check=_check_solve,
    kernel=_solve_kernel,
    strides=by_column,
    meta=lambda LD, pivots, B, hermitian: spec(B, (*stack_shape(LD, B), *B.shape[-2:])),
    vjp={"LD": NOT_IMPLEMENTED, "B": NOT_IMPLEMENTED},
    vmap=stacked({0: 2, 1: 1, 2: 2})(lambda: ldl_solve),
    cost="compute",
)
