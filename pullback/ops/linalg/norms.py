"""Norms of vectors and matrices, and condition numbers.

In: real or complex tensors, an order, the dims to reduce, and a dtype to work in. Out: real tensors.
Always: norms reduce like any reduction (`keepdim`, several dims); a matrix norm has exactly two dims.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ...core.dtype import float32, float64
from ...core.geometry import wrap_dim, wrap_dims
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.reduction import reduced_shape, restore_dims
from ..lowering import NotLowerable
from ..system.calls import front
from ..system.general import write_out
from ..system.operator import Operator, Spec
from . import checks
from .function_kernels import vector_norm as vector_norm_kernel
from .solve import inv_ex
from .spectral import svdvals

Dims = Sequence[int] | None


# ---- vectors
def _check_vector_norm(self: Tensor, ord: float, dim: Dims, keepdim: bool, dtype: Any) -> None:
    name = "linalg.vector_norm"
    checks.is_inexact(self, name)
    checks.norm_dtype(dtype, self.dtype, name)
    if self.numel() or (ord >= 0 and ord != inf):
        return
    order = f"{ord:g}" if isinstance(ord, float) else ord
    if not dim:
        raise RuntimeError(
            f"{name} cannot compute the {order} norm on an empty tensor because the operation does not have an identity"
        )
    for d in wrap_dims(dim, self.ndim):
        if self.shape[d] == 0:
            raise RuntimeError(
                f"{name} cannot compute the {order} norm on the dimension {d}"
                "because this dimension is empty and the operation does not have an identity"
            )


def _norm_axes(dim: Dims, rank: int) -> tuple[int, ...]:
    return wrap_dims(dim or None, rank)


def _vector_norm_kernel(xp: Any, a: Any, order: float, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    a = a if dtype is None else a.astype(dtype.numpy, copy=False)
    return vector_norm_kernel(xp, a, order, _norm_axes(dim, a.ndim), keepdim)


def _lower_vector_norm(b: Any, x: Any, order: float, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    # Squares of float32 leave its range long before their root does.
    d = float64 if order == 2 and x.dtype is float32 else b.wide(b.spec().dtype)
    axes = _norm_axes(dim, len(x.shape))
    if order not in (1, 2, inf) or not x.numel or dtype is not None or not axes:
        return NotLowerable("a norm of another order than 1, 2 and infinity, of nothing, or in another dtype")
    if order == 2:
        result = b.pointwise(b.o.sqrt, b.reduce("sum", [x], lambda e: b.o.cast(e, d) * b.o.cast(e, d), axes, d))
    else:
        result = b.reduce("sum" if order == 1 else "max", [x], abs, axes, d)
    return b.store(b.result(), result if keepdim else result.without(axes))


def _vector_norm_meta(self: Tensor, ord: float, dim: Dims, keepdim: bool, dtype: Any) -> Spec:
    return Spec(reduced_shape(self.shape, _norm_axes(dim, self.ndim), keepdim), (dtype or self.dtype).to_real())


def _vector_norm_vjp(g: Tensor, self: Tensor, ord: float, dim: Dims, keepdim: bool, out: Tensor) -> Tensor:
    g, norm = (restore_dims(t, self.shape, dim, keepdim) for t in (g, out))
    return norm_vjp(g, self, float(ord), norm, _norm_axes(dim, self.ndim)).to(self.dtype)


def norm_vjp(g: Tensor, x: Tensor, p: float, norm: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The gradient of a p-norm; at zero, and where it is not smooth, the subgradient of least size."""
    if p == 0:
        return x.sgn() * 0
    if p == 1:
        return x.sgn() * g
    if p == 2:
        # Divided before it is scaled: in half precision one over a small norm is infinite. And not masked behind: a
        # derivative of that would be 0 / 0.
        return x / norm.masked_fill(norm == 0, inf) * g
    if p in (inf, -inf):
        size = x.abs()
        at = (size == norm) | (size.isnan() & norm.isnan())
        return x.sgn() * (at / at.sum(axes, True) * g)
    if p < 1:
        scaled = (x.sgn() * x.abs().pow(p - 1)).masked_fill(x == 0, 0)
        return scaled * g * norm.pow(1 - p)
    if p < 2:
        scaled = x.sgn() * x.abs().pow(p - 1)
    else:
        scaled = x * x.abs().pow(p - 2)
    return scaled * (g / norm.pow(p - 1).masked_fill(norm == 0, inf))


def _vector_norm_vmap(args: tuple, dims: tuple, size: int) -> tuple[Tensor, int]:
    x = args[0].movedim(dims[0], 0)
    rank = x.ndim - 1
    if not rank:
        return vector_norm(x.unsqueeze(-1), args[1], (1,), False, dtype=args[4]), 0
    axes = tuple(d + 1 for d in _norm_axes(args[2], rank))
    return vector_norm(x, args[1], axes, args[3], dtype=args[4]), 0


vector_norm = operator(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    lower=_lower_vector_norm,
    check=_check_vector_norm,
    kernel=_vector_norm_kernel,
    meta=_vector_norm_meta,
    vjp=_vector_norm_vjp,
    vmap=_vector_norm_vmap,
    autocast_cpu="kept",
    autocast_cuda="float32",
    cost="compute",
)


# ---- matrices
def _two_dims(a: Tensor, dim: Sequence[int], name: str) -> tuple[int, int]:
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    first, second = (wrap_dim(d, a.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _singular_norm(a: Tensor, ord: Any, dims: tuple[int, int], keepdim: bool) -> Tensor:
    """The norms that are made of singular values: 2, -2 and nuclear."""
    values = svdvals(a.movedim(dims, (-2, -1)))
    if ord == "nuc":
        result = values.sum(-1)
    elif values.shape[-1] == 0:
        result = values.sum(-1) if ord == 2 else values.amin(-1)
    else:
        result = values.amax(-1) if ord == 2 else values.amin(-1)
    if keepdim:
        for d in sorted(dims):
            result = result.unsqueeze(d)
    return result


def _line_norm(a: Tensor, ord: float, dims: tuple[int, int], keepdim: bool) -> Tensor:
    """The norms that are the largest or smallest sum of a row or column: 1, -1, inf and -inf."""
    along, over = dims if abs(ord) == 1 else dims[::-1]
    if over > along and not keepdim:
        over -= 1
    sums = vector_norm(a, 1.0, (along,), keepdim)
    if ord > 0 and sums.shape[over] == 0:
        return sums.sum(over, keepdim)
    return sums.amax(over, keepdim) if ord > 0 else sums.amin(over, keepdim)


@composite(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    function=False,
    autocast_cpu="kept",
    autocast_cuda="float32",
)
def matrix_norm(self: Tensor, ord: float, dim: Sequence[int], keepdim: bool, dtype: Any) -> Tensor:
    name = "linalg.matrix_norm"
    checks.has_rank(self, name)
    checks.is_inexact(self, name)
    if abs(ord) not in (1, 2, inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    dims = _two_dims(self, dim, name)
    checks.norm_dtype(dtype, self.dtype, name)
    x = self if dtype is None else self.to(dtype)
    if abs(ord) == 2:
        checks.is_precise(x, name)
        return _singular_norm(x, ord, dims, keepdim)
    return _line_norm(x, float(ord), dims, keepdim)


@composite(
    'linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, '
    "ScalarType? dtype=None) -> Tensor",
    function=False,
    autocast_cpu="kept",
    autocast_cuda="float32",
)
def named_matrix_norm(self: Tensor, ord: str, dim: Sequence[int], keepdim: bool, dtype: Any) -> Tensor:
    name = "linalg.matrix_norm"
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    checks.has_rank(self, name)
    checks.is_inexact(self, name)
    dims = _two_dims(self, dim, name)
    checks.norm_dtype(dtype, self.dtype, name)
    if ord == "fro":
        return vector_norm(self, 2, dims, keepdim, dtype=dtype)
    x = self if dtype is None else self.to(dtype)
    checks.is_precise(x, name)
    return _singular_norm(x, ord, dims, keepdim)


# ---- either
@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    function=False,
    autocast_cpu="kept",
)
def norm(self: Tensor, ord: float | None, dim: Dims, keepdim: bool, dtype: Any) -> Tensor:
    if dim is not None and ord is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and self.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D."
        )
    if ord is not None and (len(dim) == 2 if dim is not None else self.ndim == 2):
        return matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    function=False,
    autocast_cpu="kept",
)
def named_norm(self: Tensor, ord: str, dim: Dims, keepdim: bool, dtype: Any) -> Tensor:
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and self.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D."
        )
    return named_matrix_norm(self, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)


def call(op: Operator, args: tuple, kwargs: dict[str, Any], out: Tensor | None = None) -> Any:
    """Call an operator from a hand-written function, with or without `out=`."""
    return op(*args, **kwargs) if out is None else write_out(op, op.convert(op.bind(args, kwargs)), out)


@front("linalg.norm")
def norm_function(
    input: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The norm of a vector or a matrix, by the number of dims. `axis` and `keepdims` are NumPy's names."""
    dim, keepdim = dim if axis is None else axis, keepdim if keepdims is None else keepdims
    op = named_norm if isinstance(ord, str) else norm
    return call(op, (input, ord, dim, keepdim), {"dtype": dtype}, out)


@front("linalg.matrix_norm")
def matrix_norm_function(
    input: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of a matrix."""
    op = named_matrix_norm if isinstance(ord, str) else matrix_norm
    return call(op, (input, ord, dim, keepdim), {"dtype": dtype}, out)


# ---- condition numbers
def _check_cond(a: Tensor, p: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    known = p in ("fro", "nuc") if isinstance(p, str) else abs(p) in (1, 2, inf)
    if not known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p if isinstance(p, str) else f'{p:g}'}")


def _cond(a: Tensor, p: Any) -> Tensor:
    _check_cond(a, p)
    if not isinstance(p, str) and abs(p) == 2:
        values = svdvals(a)
        if not values.numel():
            return values.new_zeros(tuple(a.shape[:-2]))
        first, last = values.select(-1, 0), values.select(-1, -1)
        return first / last if p == 2 else last / first
    checks.is_square(a, f"linalg.cond(ord={p if isinstance(p, str) else f'{p:g}'})")
    if not a.numel():
        return a.new_zeros(tuple(a.shape[:-2]), dtype=a.dtype.to_real())
    inverse, info = inv_ex(a)
    op = named_matrix_norm if isinstance(p, str) else matrix_norm
    result = op(a, p) * op(inverse, p)
    return result.masked_fill(info != 0, inf)


@composite("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", function=False)
def cond(self: Tensor, p: float | None) -> Tensor:
    return _cond(self, 2 if p is None else p)


@composite("linalg_cond.p_str(Tensor self, str p) -> Tensor", function=False)
def named_cond(self: Tensor, p: str) -> Tensor:
    return _cond(self, p)


@front("linalg.cond")
def cond_function(input: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number: the norm times the norm of the inverse."""
    return call(named_cond if isinstance(p, str) else cond, (input, p), {}, out)
