"""Norms by their older names, distances between rows, similarity: norm, renorm, dist, cdist, pdist, cosine_similarity.

Distances are p-norms of differences. Their gradients are written in operators and differentiate again; where two rows
coincide the gradient is zero.
"""

from __future__ import annotations

import math

from ...core.dtype import finfo
from ...core.geometry import broadcast_shapes, wrap_dim
from ...core.promotion import promote_types, result_type
from ...core.tensor import Tensor
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..linalg.function_kernels import vector_norm as norm_of
from ..linalg.norms import matrix_norm_function, norm_vjp, vector_norm
from ..shape.rearranging import triu_indices
from ..system.calls import front
from ..system.general import write_out
from ..system.operator import Spec, export
from ..system.overloads import overloaded
from ..system.precision import widened
from ..system.scalars import exact_out
from .reductions import HIDDEN


# ---- norm
def _norm(input: Tensor, p, dim, keepdim: bool, dtype, out=None) -> Tensor:
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if isinstance(p, str) and not (p == "fro" and (dims is None or len(dims) <= 2)):
        return matrix_norm_function(
            input, p, tuple(range(input.ndim)) if dims is None else dims, keepdim, dtype=dtype, out=out
        )
    order = 2.0 if p is None or p == "fro" else p
    args = (input, order, dims, keepdim, dtype)
    return vector_norm(*args[:4], dtype=dtype) if out is None else write_out(vector_norm, args, out)


@front("torch.norm")
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """A vector or matrix norm (see `linalg.vector_norm` and `linalg.matrix_norm`)."""
    return _norm(input, p, dim, keepdim, dtype, out)


@front("Tensor.norm")
def norm_method(input, p="fro", dim=None, keepdim=False, dtype=None):
    """A vector or matrix norm (see `linalg.vector_norm` and `linalg.matrix_norm`)."""
    return _norm(input, p, dim, keepdim, dtype)


norm_method.__name__ = norm_method.__qualname__ = "norm"

norm_scalar = composite("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", **HIDDEN, autocast_cuda="float32")(
    lambda self, p: _norm(self, p, None, False, None)
)
norm_dim = composite(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    **HIDDEN,
    autocast_cuda="float32",
)(lambda self, p, dim, keepdim: _norm(self, p, dim or None, keepdim, None))
norm_dim_dtype = composite(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
    **HIDDEN,
    autocast_cuda="float32",
)(lambda self, p, dim, keepdim, dtype: _norm(self, p, dim or None, keepdim, dtype))
norm_dtype = composite(
    "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", **HIDDEN, autocast_cuda="float32"
)(lambda self, p, dtype: _norm(self, p, None, False, dtype))
native_norm_all = composite("native_norm(Tensor self, Scalar p=2) -> Tensor", **HIDDEN)(
    lambda self, p: _norm(self, p, None, False, None)
)
native_norm_dim = composite(
    "native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, ScalarType? dtype) -> Tensor",
    **HIDDEN,
)(lambda self, p, dim, keepdim, dtype: _norm(self, p, dim or None, keepdim, dtype))
overloaded("native_norm", native_norm_all, native_norm_dim, homes=("torch",))


@composite(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", method=False, autocast_cuda="float32"
)
def frobenius_norm(self, dim, keepdim):
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return vector_norm(self, 2.0, dim or None, keepdim)


nuclear_norm_all = composite(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", **HIDDEN, autocast_cuda="float32"
)(lambda self, keepdim: matrix_norm_function(self, "nuc", (-2, -1), keepdim))
nuclear_norm_dim = composite(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", **HIDDEN, autocast_cuda="float32"
)(lambda self, dim, keepdim: matrix_norm_function(self, "nuc", dim, keepdim))
overloaded("nuclear_norm", nuclear_norm_all, nuclear_norm_dim, homes=("torch",))


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", method=False)
def norm_except_dim(v, pow, dim):
    """The norm of each slice along `dim`, kept in a shape that broadcasts against `v`."""
    if dim == -1:
        return vector_norm(v, pow)
    others = tuple(d for d in range(v.ndim) if d != wrap_dim(dim, v.ndim))
    return vector_norm(v, pow, others, True) if others else v.abs()


# ---- renorm
def _check_renorm(self, p, dim, maxnorm):
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:  # NaN neither
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self._array.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self._array.ndim} dimensions")
    if self.dtype.category < 2:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {self.dtype.scalar_name}"
        )
    wrap_dim(dim, self._array.ndim)


_TINY = 1e-7  # keeps the factor finite, as in PyTorch


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != wrap_dim(dim, ndim))


@widened
def _renorm(xp, a, p, dim, maxnorm):
    norm = norm_of(xp, a, float(p), _others(a.ndim, dim), True)
    return a * xp.where(norm > maxnorm, maxnorm / (norm + _TINY), 1).astype(norm.dtype)


def _renorm_vjp(g, self, p, dim, maxnorm):
    axes = _others(self.ndim, dim)
    norm = vector_norm(self, p, axes, True)
    inverse = 1 / (norm + _TINY)
    along = (conj(self) * g).sum(axes, True)
    along = along.real if along.dtype.is_complex else along
    scaled = maxnorm * inverse * (g - inverse * norm_vjp(along, self, float(p), norm, axes))
    return scaled.where(norm > maxnorm, g)


renorm = operator(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    kernel=_renorm,
    check=_check_renorm,
    meta=lambda self, p, dim, maxnorm: Spec(self._array.shape, self.dtype),
    inplace=True,
    check_out=exact_out,
    vjp=_renorm_vjp,
    autocast_cuda="float32",
)


# ---- distances
@composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", autocast_cuda="float32")
def dist(self, other, p):
    d = result_type(self, other)
    if d.category < 2:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {d.scalar_name} instead."
        )
    return vector_norm(self - other, p)


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False) -> Tensor", method=False
)
def pairwise_distance(x1, x2, p, eps, keepdim):
    return norm_dim(x1 - x2 + eps, p, (max(x1.ndim, x2.ndim) - 1,), keepdim)


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    method=False,
    autocast_cuda="float32",
)
def cosine_similarity(x1, x2, dim, eps):
    d = promote_types(x1.dtype, x2.dtype)
    if not d.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {d.scalar_name}")
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = (x.to(d) if x.shape == shape else x.to(d).expand(shape) for x in (x1, x2))
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    """Vectors of length one; a length below `eps` counts as `eps`, which its gradient does not see."""
    length = vector_norm(x, 2, (dim,), True)
    floor = min(eps, finfo(x.dtype).max)
    return x / (length + (length.detach().clamp_min(floor) - length.detach()))


for _operator in (pairwise_distance, cosine_similarity):
    export("nn.functional", _operator.name, _operator.function)


# ---- all pairs
def _check_cdist(x1, x2, p, compute_mode):
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}")
        if x._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D")
    a, b = x1._array.shape, x2._array.shape
    if a[-1] != b[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}")


_ROWS = 1 << 22  # elements of differences that are held at once


@widened
def _cdist(xp, a, b, p, compute_mode):
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, columns, width = a.shape[-2], b.shape[-2], a.shape[-1]
    if p == 2 and (compute_mode == 1 or compute_mode != 2 and (rows > 25 or columns > 25)):
        return _euclidean(xp, a, b)
    out = xp.empty((*batch, rows, columns), a.dtype)
    step = max(1, _ROWS // max(1, columns * width * math.prod(batch)))
    for start in range(0, rows, step):
        piece = xp.abs(a[..., start : start + step, None, :] - b[..., None, :, :])
        out[..., start : start + step, :] = _length(xp, piece, p)
    return out


def _euclidean(xp, a, b):
    """By the scalar product: |x - y|^2 = |x|^2 + |y|^2 - 2 x.y."""
    squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :] - 2 * xp.matmul(a, xp.swapaxes(b, -1, -2))
    return xp.sqrt(xp.maximum(squares, 0))


def _length(xp, size, p: float):
    """The p-norm of the last axis of absolute values."""
    if p == 0:
        differ = xp.add.reduce(size != 0, axis=-1, dtype=size.dtype)
        return xp.where(xp.isnan(size).any(-1), size.dtype.type(math.nan), differ)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return xp.sqrt((size * size).sum(-1))
    if p == math.inf:
        return xp.max(size, axis=-1, initial=0)
    return (size**p).sum(-1) ** (1 / p)


def _cdist_meta(x1, x2, p, compute_mode):
    a, b = x1._array.shape, x2._array.shape
    return Spec((*broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-2]), x1.dtype)


def _ratios(g: Tensor, dist: Tensor) -> Tensor:
    """Gradients over distances, none where those are zero; what is pushed through the quotient is none there too."""
    return g / dist.masked_fill(dist == 0, math.inf)


def _by_ratios(ratio: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
    """The gradient of Euclidean distances, from gradients over distances: that of rows times their differences."""
    return x1 * ratio.sum(-1, True) - ratio @ x2


def _rows_gradient(g: Tensor, x1: Tensor, x2: Tensor, p: float, dist: Tensor) -> Tensor:
    """The gradient of all distances with respect to the rows of x1."""
    if p == 2:
        return _by_ratios(_ratios(g, dist), x1, x2)
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return norm_vjp(g.unsqueeze(-1), difference, p, dist.unsqueeze(-1), (difference.ndim - 1,)).sum(-2)


cdist_forward = operator(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    node="CdistBackward0",
    kernel=_cdist,
    autocast_cpu="float32",
    check=_check_cdist,
    meta=_cdist_meta,
    method=False,
    vjp={
        "x1": lambda g, x1, x2, p, out: _rows_gradient(g, x1, x2, p, out),
        "x2": lambda g, x1, x2, p, out: _rows_gradient(g.mT, x2, x1, p, out.mT),
    },
    cost="compute",
)


@composite("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", **HIDDEN)
def cdist_backward(grad, x1, x2, p, cdist):
    return _rows_gradient(grad, x1, x2, p, cdist)


_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


@front("torch.cdist")
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance between each pair of rows of two batches."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return cdist_forward(x1, x2, float(p), _MODES[compute_mode])


def _check_pdist(self, p):
    if self._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self._array.ndim}D")
    if not self.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")


@widened
def _pdist(xp, a, p):
    i, j = xp.triu_indices(a.shape[0], 1)
    out = xp.empty(i.shape[0], a.dtype)
    step = max(1, _ROWS // max(1, a.shape[1]))
    for s in range(0, out.size, step):
        out[s : s + step] = _length(xp, xp.abs(a[i[s : s + step]] - a[j[s : s + step]]), p)
    return out


def _square(values: Tensor, n: int) -> Tensor:
    """Values of the pairs (i, j), i < j, as a symmetric matrix with zeros on the diagonal."""
    at = triu_indices(n, n, 1, device=values.device)
    upper = values.new_zeros((n * n,)).scatter(0, at.select(0, 0) * n + at.select(0, 1), values).reshape(n, n)
    return upper + upper.t()


def _pairs_gradient(g: Tensor, self: Tensor, p: float, dist: Tensor) -> Tensor:
    n = self.shape[0]
    if p == 2:
        return _by_ratios(_square(_ratios(g, dist), n), self, self)
    return _rows_gradient(_square(g, n), self, self, p, _square(dist, n))


pdist_forward = operator(
    "_pdist_forward(Tensor self, float p=2.) -> Tensor",
    node="PdistBackward0",
    kernel=_pdist,
    check=_check_pdist,
    meta=lambda self, p: Spec(
        (self._array.shape[0] * (self._array.shape[0] - 1) // 2 if self._array.shape[0] else 0,), self.dtype
    ),
    method=False,
    vjp=lambda g, self, p, out: _pairs_gradient(g, self, p, out),
    cost="compute",
)


@composite("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor", **HIDDEN)
def pdist_backward(grad, self, p, pdist):
    return _pairs_gradient(grad, self, p, pdist)


@front("torch.pdist", "nn.functional.pdist")
def pdist(input, p=2):
    """The p-norm distances between all pairs of rows."""
    return pdist_forward(input, float(p))
