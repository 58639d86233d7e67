"""Products over chosen dimensions: outer, inner, kron, cross, tensordot, chains of matrices.

Tensors in, tensors out. All but `addr` are written in other operators, and inherit their rules.
"""

from __future__ import annotations

import warnings

from ...core import modes
from ...core.dtype import float32, float64
from ...core.geometry import wrap_dims
from ...core.modes import ambient, process
from ...core.promotion import result_type
from ...core.tensor import PLAIN, Tensor
from ..eager.functions import ANY, overridden_operators
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..family.contraction import contraction
from ..shape.shapes import unsafe_view
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.general import write_out
from ..system.operator import Spec, public
from ..system.scalars import exact_out
from .contraction import SEPARATELY_ROUNDED, _batched, _combine, _count, real, scaled
from .contraction_shapes import check_expands, check_factors, require_tensors


def _check_vector(function: str, name: str, t: Tensor) -> None:
    if t.ndim != 1:
        raise RuntimeError(f"{function}: Expected 1-D argument {name}, but got {t.ndim}-D")


@composite("outer(Tensor self, Tensor vec2) -> Tensor")
def outer(self, vec2):
    require_tensors(outer, (self, vec2))
    _check_vector("outer", "self", self)
    _check_vector("outer", "vec2", vec2)
    return self.reshape(self.shape[0], 1) * vec2


@composite("ger(Tensor self, Tensor vec2) -> Tensor")
def ger(self, vec2):
    return outer(self, vec2)


def _addr_shape(self, vec1, vec2, beta, alpha) -> Spec:
    _check_vector("addr", "vec1", vec1)
    _check_vector("addr", "vec2", vec2)
    shape = (vec1._array.shape[0], vec2._array.shape[0])
    check_expands(self, shape)
    dtype = result_type(self, vec1, vec2)
    check_factors(dtype, beta, alpha)
    if dtype.category <= 1:
        for name, value in (("beta", beta), ("alpha", alpha)):
            if isinstance(value, float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    return Spec(shape, dtype)


def _vmap_addr(args, dims, size):
    if not all(t.dtype in SEPARATELY_ROUNDED for t in args[:3]):
        return None  # one rounding, and factors of the kind of the numbers, are those of each call
    addend, x, y = _batched(args[0], dims[0], 2), _batched(args[1], dims[1], 1), _batched(args[2], dims[2], 1)
    beta, alpha = (real(f, result_type(*args[:3]).is_complex) for f in args[3:])
    result = x.unsqueeze(-1) * y.unsqueeze(-2) * alpha
    return (result if beta == 0 else result + addend * beta), 0


addr = contraction(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    meta=_addr_shape,
    kernel=lambda xp, self, vec1, vec2, beta, alpha: _combine(xp, self, xp.multiply.outer(vec1, vec2), beta, alpha),
    inplace=True,
    vjp={
        "self": lambda g, beta: scaled(g, beta),
        "vec1": lambda g, vec2, alpha: scaled(g.mv(conj(vec2).to(g.dtype)), alpha),
        "vec2": lambda g, vec1, alpha: scaled(g.t().mv(conj(vec1).to(g.dtype)), alpha),
    },
    vmap=_vmap_addr,
    autocast_cuda="lower",
)


def _kron_kernel(xp, a, b):
    return (a[:, None, :, None] * b[None, :, None, :]).reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])


def _kron_vjp(g, self, other, mask):
    """Products of the other matrix with each block of the gradient, and of this one with what is at one place of all blocks."""
    (m, n), (k, l) = self.shape, other.shape
    blocks = g.reshape(m, k, n, l).permute(0, 2, 1, 3).reshape(m * n, k * l)
    ours = blocks.mv(conj(other).reshape(k * l)).reshape(m, n) if mask[0] else None
    return ours, blocks.t().mv(conj(self).reshape(m * n)).reshape(k, l) if mask[1] else None


kron_matrices = operator(
    "_kron_matrices(Tensor self, Tensor other) -> Tensor",
    kernel=_kron_kernel,
    meta=lambda self, other: Spec((self.shape[0] * other.shape[0], self.shape[1] * other.shape[1]), self.dtype),
    vjp={("self", "other"): _kron_vjp},
    jvp={"self": lambda t, other: kron_matrices(t, other), "other": lambda t, self: kron_matrices(self, t)},
    function=False,
    method=False,
    out=False,
)


def _of_matrices(self, other) -> bool:
    """Whether a product is a plain one of real matrices, as one call of which it is recorded; sums in the order of what compiled
    programs do are asked for by deterministic mode."""
    plain = self.__class__ in PLAIN and other.__class__ in PLAIN and not (self._keys or other._keys)
    if not plain or ambient.mode >= modes.LISTENING or process.deterministic or overridden_operators:
        return False
    return self.ndim == other.ndim == 2 and self.dtype is other.dtype and self.dtype in (float32, float64)


@composite("kron(Tensor self, Tensor other) -> Tensor")
def kron(self, other):
    require_tensors(kron, (self, other))
    if _of_matrices(self, other):
        return dispatch(kron_matrices, (self, other))
    rank = max(self.ndim, other.ndim)
    a = (1,) * (rank - self.ndim) + tuple(self.shape)
    b = (1,) * (rank - other.ndim) + tuple(other.shape)
    wide = self.reshape(tuple([s for size in a for s in (size, 1)]))
    tall = other.reshape(tuple([s for size in b for s in (1, size)]))
    return unsafe_view((wide * tall).contiguous(), tuple(m * n for m, n in zip(a, b, strict=True)))


@composite("inner(Tensor self, Tensor other) -> Tensor")
def inner(self, other):
    require_tensors(inner, (self, other))
    if not self.ndim or not other.ndim:
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and "
            f"{list(other.shape)}"
        )
    if self.ndim == other.ndim == 2 and self.dtype is other.dtype and self.shape[0] * other.shape[0] > 1:
        return self.mm(other.t())
    return tensordot_dims(self, other, (-1,), (-1,))


@composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", check_out=exact_out, autocast_cuda="widest")
def cross(self, other, dim=None):
    require_tensors(cross, (self, other))
    if dim is None:
        warnings.warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release.",
            stacklevel=4,
        )
        dim = next((d for d, s in enumerate(self.shape) if s == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return public("linalg", "cross")(self, other, dim=dim)


# ---- tensordot
@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    function=False,
    method=False,
    autocast_cuda="widest",
)
def tensordot_dims(self, other, dims_self, dims_other):
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    self, other = _drop_broadcast(self, other, dims_self, dims_other)
    ours, theirs = wrap_dims(dims_self, self.ndim), wrap_dims(dims_other, other.ndim)
    free = [d for d in range(self.ndim) if d not in ours]
    rest = [d for d in range(other.ndim) if d not in theirs]
    depth = _count(self.shape[d] for d in ours)
    rows, columns = [self.shape[d] for d in free], [other.shape[d] for d in rest]
    left = self.permute(*free, *ours).reshape(_count(rows), depth) if self.ndim else self.reshape(1, 1)
    right = other.permute(*theirs, *rest).reshape(depth, _count(columns)) if other.ndim else other.reshape(1, 1)
    single = _count(rows) == _count(columns) == 1  # a sum of products, which autocast leaves as it is
    with modes.masked(modes.AUTOCAST if single else 0):
        if single and self.dtype.name == "bool":
            return left.reshape(-1).dot(right.reshape(-1))  # which refuses truths, however few there are
        return left.mm(right).reshape([*rows, *columns])


def _drop_broadcast(self, other, dims_self, dims_other):
    """A contracted dimension of size 1 on one side alone is summed away on the other."""
    for a, b in zip(dims_self, dims_other, strict=True):
        m, n = self.size(a), other.size(b)
        if m == n:
            continue
        if n == 1:
            self = self.sum(a, keepdim=True, dtype=self.dtype)
        elif m == 1:
            other = other.sum(b, keepdim=True, dtype=other.dtype)
        else:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {a} and second has size {n} in "
                f"dim {b}"
            )
    return self, other


@front("torch.tensordot", past=(ANY,))
def tensordot(a: Tensor, b: Tensor, dims=2, out: Tensor | None = None) -> Tensor:
    """Contract `dims` dimensions (the last of `a` with the first of `b`), or the two lists of dimensions given."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise RuntimeError(
                "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two "
                f"lists, but got dims={dims}"
            )
        for name, given, place in (("dims_self", dims[0], 3), ("dims_other", dims[1], 4)):
            if isinstance(given, int):
                raise TypeError(f"tensordot(): argument '{name}' (position {place}) must be tuple of ints, not int")
        ours, theirs = tuple(dims[0]), tuple(dims[1])
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        ours, theirs = tuple(range(-dims, 0)), tuple(range(dims))
    if out is None:
        return tensordot_dims(a, b, ours, theirs)

    return write_out(tensordot_dims, (a, b, ours, theirs), out)


@front("torch.chain_matmul")
def chain_matmul(*matrices, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        stacklevel=3,
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0]
    return public("linalg", "multi_dot")(list(matrices), **({} if out is None else {"out": out}))
