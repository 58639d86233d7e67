"""Powers, exponentials and products of matrices and vectors.

In: stacks of matrices, vectors, or lists of matrices. Out: their products.
Always: composed of matrix products, so that everything but the exponential and the cross product takes integers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...core import dtype as dtypes
from ...core.geometry import broadcast_shapes, wrap_dim
from ...core.symbolic import sym_min
from ...core.tensor import Tensor
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..shape.view_backward import diagonal_backward
from ..system.operator import LINEAR
from ..system.scalars import exact_out
from . import checks
from . import function_kernels as kernels
from .algebra import cat, eye_like, mH, spec, stacked
from .solve import inv, solve


# ---- powers and the exponential
@composite("linalg_matrix_power(Tensor self, int n) -> Tensor", autocast_cpu="kept")
def linalg_matrix_power(self: Tensor, n: int) -> Tensor:
    checks.is_square(self, "linalg.matrix_power")
    if n == 0:
        return self.clone().copy_(eye_like(self))
    base = self if n > 0 else inv(self)
    if abs(n) == 1:
        return base.clone() if n == 1 else base
    result = None
    n = abs(n)
    while n:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n:
            base = base @ base
    return result


@composite("matrix_power(Tensor self, int n) -> Tensor")
def matrix_power(self: Tensor, n: int) -> Tensor:
    return linalg_matrix_power(self, n)


def _check_exp(self: Tensor) -> None:
    checks.is_square(self, "linalg.matrix_exp")
    checks.is_inexact(self, "linalg.matrix_exp")


def _exp_slope(a: Tensor, t: Tensor) -> Tensor:
    """The derivative of the exponential at A along T stands beside it in the exponential of [[A, T], [0, A]]."""
    n = a.shape[-1]
    blocks = cat([cat([a, t], -1), cat([a * 0, a], -1)], -2)
    return linalg_matrix_exp(blocks)[..., :n, n:]


linalg_matrix_exp = operator(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    check=_check_exp,
    kernel=kernels.matrix_exp,
    meta=lambda self: spec(self, self.shape),
    jvp={"self": lambda t, self: _exp_slope(self, t)},
    vjp=lambda g, self: _exp_slope(mH(self), g),
    vmap=stacked({0: 2})(lambda: linalg_matrix_exp),
    autocast_cpu="kept",
    cost="compute",
)


@composite("matrix_exp(Tensor self) -> Tensor", out=False)
def matrix_exp(self: Tensor) -> Tensor:
    return linalg_matrix_exp(self)


# ---- vectors
def _check_cross(self: Tensor, other: Tensor, dim: int) -> None:
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    at = wrap_dim(dim, self.ndim)
    if self.shape[at] != 3 or other.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[at]} and {other.shape[at]}"
        )
    if self.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.scalar_name} but found {other.dtype.scalar_name}")
    if self.dtype.category == 0:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")


def _cross_vmap(args: tuple, dims: tuple, size: int) -> tuple[Tensor, int]:
    a, b = (t.movedim(d, 0) if d is not None else t.unsqueeze(0) for t, d in zip(args[:2], dims[:2]))
    return linalg_cross(a, b, dim=wrap_dim(args[2], a.ndim - 1) + 1), 0


linalg_cross = operator(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    check_out=exact_out,
    autocast_cpu="kept",
    check=_check_cross,
    kernel=kernels.cross,
    meta=lambda self, other, dim: spec(self, broadcast_shapes(tuple(self.shape), tuple(other.shape))),
    vjp={
        "self": lambda g, other, dim: linalg_cross(*_spread(conj(other), g), dim=dim),
        "other": lambda g, self, dim: linalg_cross(*_spread(g, conj(self)), dim=dim),
    },
    vmap=_cross_vmap,
    cost="compute",
)


def _spread(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A gradient may be complex where the vector beside it is real."""
    if a.dtype is not b.dtype:
        wide = a.dtype if a.dtype.is_complex else b.dtype
        a, b = a.to(wide), b.to(wide)
    return a, b


@composite("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", autocast_cpu="lower")
def vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    checks.is_inexact(x, "linalg.vecdot")
    checks.same_dtype(x, y, "linalg.vecdot", ("x", "y"))
    if x.ndim == 1 and y.ndim == 1:
        return x.vdot(y)
    return (conj(x) * y).sum(dim)


@composite("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", out=False, autocast_cpu="kept")
def vander(x: Tensor, N: int | None) -> Tensor:
    if x.dtype.category == 0:
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.scalar_name}"
        )
    x = x if x.ndim else x.unsqueeze(-1)
    columns = x.shape[-1] if N is None else N
    if columns <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1)
    powers = powers.expand((*powers.shape[:-1], columns - 1)).cumprod(-1)
    return cat([powers.new_ones((*powers.shape[:-1], 1)), powers], -1)


# ---- several matrices
def _check_chain(tensors: Sequence[Tensor]) -> None:
    last = len(tensors) - 1
    if last < 1:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, t in enumerate(tensors):
        if i in (0, last) and t.ndim not in (1, 2):
            where = "first" if i == 0 else "last"
            raise RuntimeError(f"multi_dot(): the {where} tensor must be 1D or 2D but got {t.ndim}D")
        if 0 < i < last and t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{tensors[0].dtype.alias} and tensor {i} {t.dtype.alias}"
            )


def chain_order(sizes: Sequence[int]) -> list[list[int]]:
    """Where to split each run of matrices so that the fewest multiplications are made; sizes[i] x sizes[i + 1] each."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = ((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
            cost[i][j], split[i][j] = min(options)
    return split


@composite("linalg_multi_dot(Tensor[] tensors) -> Tensor", autocast_cpu="lower", autocast_cuda="lower")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    _check_chain(tensors)
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    chain = list(tensors)
    if row:
        chain[0] = chain[0].unsqueeze(0)
    if column:
        chain[-1] = chain[-1].unsqueeze(-1)
    for i in range(len(chain) - 1):
        if chain[i].shape[1] != chain[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                f"{list(tensors[i + 1].shape)} cannot be multiplied"
            )
    result = multiply_chain(chain)
    result = result.squeeze(0) if row else result
    return result.squeeze(-1) if column else result


def multiply_chain(chain: Sequence[Tensor]) -> Tensor:
    split = chain_order([chain[0].shape[0], *(t.shape[1] for t in chain)])

    def multiply(i: int, j: int) -> Tensor:
        return chain[i] if i == j else multiply(i, split[i][j]) @ multiply(split[i][j] + 1, j)

    return multiply(0, len(chain) - 1)


# ---- tensors as matrices
@composite("linalg_tensorinv(Tensor self, int ind=2) -> Tensor")
def tensorinv(self: Tensor, ind: int) -> Tensor:
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, second = tuple(self.shape[:ind]), tuple(self.shape[ind:])
    if prod(first) != prod(second):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {prod(second)} != {prod(first)}"
        )
    return inv(self.reshape((prod(first), prod(second)))).reshape(second + first)


@composite("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor")
def tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None) -> Tensor:
    a = self
    if dims:
        a = a.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    first, second = tuple(a.shape[: other.ndim]), tuple(a.shape[other.ndim :])
    if prod(first) != prod(second):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {prod(second)} != {prod(first)}"
        )
    return solve(a.reshape((prod(second), prod(second))), other.flatten()).reshape(second)


def _trace_vjp(g: Tensor, self_shape: Any) -> Tensor:
    """To the diagonal alone: no product with a unit matrix, which is NaN beside it where `g` is."""
    return diagonal_backward(g.expand(sym_min(*self_shape)), self_shape, 0, 0, 1)


def _check_trace(self: Tensor) -> None:
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")


trace = operator(
    "trace(Tensor self) -> Tensor",
    check=_check_trace,
    kernel=kernels.trace,
    meta=lambda self: spec(self, (), dtypes.int64 if self.dtype.category < 2 else self.dtype),
    vjp=_trace_vjp,
    jvp=LINEAR,
    vmap=lambda args, dims, size: (args[0].movedim(dims[0], 0).diagonal(0, -2, -1).sum(-1), 0),
    autocast_cpu="float32",
)


# ---- names in torch.linalg for operators that live elsewhere
@composite("linalg_matmul(Tensor self, Tensor other) -> Tensor", autocast_cpu="kept")
def matmul(self: Tensor, other: Tensor) -> Tensor:
    return self.matmul(other)


@composite(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    out=False,
    autocast_cpu="kept",
)
def linalg_diagonal(A: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return A.diagonal(offset, dim1, dim2)
