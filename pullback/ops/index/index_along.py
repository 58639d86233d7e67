"""The `index_*` operators: one index for a whole slice along a dimension.

In: a tensor, a dimension, a vector of indices, and (except for index_select) slices or a number to put there. Out:
the slices named, or the tensor with those slices replaced, added to, filled or combined.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.dtype import by_numpy
from ...core.geometry import wrap_dim
from ...core.tensor import Tensor
from ..eager.straight import CheckedKernelCase
from ..family.base import operator
from ..family.batching import batch_first
from ..family.formats import dense_like_first
from ..system.dispatch import dispatch
from ..system.inplace import deprecated_on_expanded
from ..system.operator import LINEAR, Spec, exports
from ..system.overloads import overloaded
from ..system.scalars import check_fits, exact_out
from . import scatter_kernels as kernels
from .gather_scatter import overloaded_inplace, writer
from .index_kernels import refuse_any_of_none
from .index_lowering import lower_index_add, lower_index_copy, lower_index_fill, lower_index_reduce, lower_index_select


def _same(self, dim: int, index) -> Spec:
    refuse_any_of_none(self._array.shape or (1,), (dim,), index._array.shape)
    return Spec(self._array.shape, self.dtype)


# ---- batching: the dimension moves up by one, the index is shared by the batch
def _batch_slices(op, tensors: tuple[int, ...], index_at: int = 2):
    def rule(args, dims, size):
        if dims[index_at] is not None or any(args[i].ndim - (dims[i] is not None) == 0 for i in tensors):
            return None
        moved = list(args)
        for i in tensors:
            moved[i] = batch_first(args[i], dims[i], size)
        moved[1] = wrap_dim(args[1], moved[0].ndim - 1) + 1
        return dispatch(op(), tuple(moved)), 0

    return rule


def _batch_select(args, dims, size):
    self, dim, index = args
    rank = self.ndim - (dims[0] is not None)
    if dims[2] is None and rank:
        return dispatch(index_select, (batch_first(self, dims[0]), wrap_dim(dim, rank) + 1, index)), 0
    if not rank or index.ndim != 2:
        return None
    d = wrap_dim(dim, rank)
    self, at = batch_first(self, dims[0], size), batch_first(index, dims[2])
    at = at.reshape((size, *(1,) * d, -1, *(1,) * (rank - 1 - d)))
    return self.gather(d + 1, at.expand((*self.shape[: d + 1], at.shape[d + 1], *self.shape[d + 2 :]))), 0


# ---- select
def _select_meta(self, dim, index) -> Spec:
    d = wrap_dim(dim, self._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    shape = self._array.shape
    refuse_any_of_none(shape or (1,), (d,), index._array.shape)
    return Spec((*shape[:d], index._array.size, *shape[d + 1 :]) if shape else (), self.dtype)


def _select_rule(g, self_shape, dim, index):
    zeros = g.new_zeros(self_shape)
    return dispatch(index_add, (zeros, dim, index, g, 1))


index_select = operator(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    lower=lower_index_select,
    kernel=kernels.select,
    meta=_select_meta,
    strict=True,
    plain=CheckedKernelCase(),
    jvp=LINEAR,
    vjp={"self": _select_rule},
    vmap=_batch_select,
    cost="cheap",
    check_out=exact_out,
    out_apart="all",
)


def _selected(g, dim, index, source_shape):
    """The slices of a gradient that came from `source`."""
    if not len(source_shape):
        return g.index_select(dim, index.reshape(-1)).reshape(())
    return g.index_select(dim, index)


# ---- add, copy, fill
def _add(xp, out, dim, index, source, alpha=1) -> None:
    check_fits(alpha, by_numpy[out.dtype])
    kernels.add(xp, out, dim, index, source, alpha)


def _add_meta(self, dim, index, source, alpha) -> Spec:
    check_fits(alpha, self.dtype)
    kernels.check_slices("index_add_", self._array.shape, index._array, source._array.shape, dim)
    return _same(self, dim, index)


def _scale(g, alpha):
    return (
        g
        if isinstance(alpha, (int, float)) and alpha == 1
        else g * (alpha.conjugate() if isinstance(alpha, complex) else alpha)
    )


index_add = operator(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    lower=lower_index_add,
    **writer(_add, meta=_add_meta),
    inplace=True,
    scatters=True,
    jvp=LINEAR,
    vjp={
        "self": lambda g: g,
        "source": lambda g, dim, index, source_shape, alpha: _scale(_selected(g, dim, index, source_shape), alpha),
    },
    vmap=_batch_slices(lambda: index_add, (0, 3)),
)


def _copy_meta(self, dim, index, source) -> Spec:
    kernels.check_copy(self._array.shape, index._array, source._array.shape, dim)
    return _same(self, dim, index)


def _emptied(g, dim, index):
    return dispatch(fill_number, (g, dim, index, 0))


index_copy = operator(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    moves=True,
    lower=lower_index_copy,
    **writer(kernels.copy, meta=_copy_meta),
    inplace=True,
    scatters=True,
    jvp=LINEAR,
    vjp={"self": _emptied, "source": _selected},
    vmap=_batch_slices(lambda: index_copy, (0, 3)),
    autocast_cpu="widest",
)


def _fill_number(xp, out, dim, index, value) -> None:
    if not (isinstance(value, complex) and out.dtype.kind != "c"):
        check_fits(value, by_numpy[out.dtype])
    kernels.fill(xp, out, dim, index, value)


def _fill_meta(self, dim, index, value) -> Spec:
    return _same(self, wrap_dim(dim, self._array.ndim), index)


def _filler(apply) -> dict:
    """Options of an operator that fills slices, those of expanded tensors too."""
    options = writer(apply, meta=_fill_meta, strides=dense_like_first)
    expanded = deprecated_on_expanded("index_fill_", "tensor[mask] = scalar", options["write"])
    return {**options, "expanded": expanded, "scatters": "indices"}


fill_number = operator(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    lower=lower_index_fill,
    **_filler(_fill_number),
    function=False,
    method=False,
    inplace="hidden",
    jvp={"self": lambda t, dim, index: _emptied(t, dim, index)},
    vjp={"self": _emptied},
    vmap=_batch_slices(lambda: fill_number, (0,)),
)


def _fill_tensor(xp, out, dim, index, value) -> None:
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    _fill_number(xp, out, dim, index, value if value.dtype is out.dtype else value.item())


def _fill_value(g: Tensor, dim: int, index: Tensor) -> Tensor:
    """The gradient of the number that was filled in: the sum over the elements filled, each counted once."""
    if not g.ndim:
        return g
    dim = wrap_dim(dim, g.ndim)
    kept = g.new_ones((g.shape[dim],), dtype=dtypes.bool).index_fill(0, index.reshape(-1), False)
    return g.masked_fill(kept.reshape([-1 if d == dim else 1 for d in range(g.ndim)]), 0).sum()


fill_tensor = operator(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    **_filler(_fill_tensor),
    function=False,
    method=False,
    inplace="hidden",
    reads_first=True,
    number=1,
    jvp=LINEAR,
    vjp={"self": _emptied, "value": _fill_value},
)
overloaded("index_fill", fill_tensor, fill_number)
overloaded_inplace("index_fill_", fill_tensor, fill_number)


# ---- reductions
def _reduce_rule(g, self, dim, index, source, reduce, include_self, out, mask):
    """Gradients of (self, source); the rules of scatter_reduce with slices for elements."""
    ours, theirs = _RULES[reduce](g, self, dim, index, source, reduce, include_self, out)
    return (ours if include_self else _emptied(ours, dim, index)), theirs


def _mean_rule(g, self, dim, index, source, reduce, include_self, out):
    start = g.new_ones(g.shape) if include_self else g.new_zeros(g.shape)
    count = start.index_add(dim, index, source.new_ones(source.shape))
    count = count.masked_fill(count == 0, 1)
    return g / count, g.index_select(dim, index) / count.index_select(dim, index)


def _prod_rule(g, self, dim, index, source, reduce, include_self, out):
    nonzero_self = self.masked_fill(self == 0, 1)
    rest = nonzero_self.index_reduce(dim, index, source, reduce, include_self=include_self)
    zero = source == 0
    zeros = self.new_zeros(self.shape).index_add(dim, index, zero.to(self.dtype)).index_select(dim, index)
    single = zero & (zeros == 1)
    without = self.index_reduce(dim, index, source.masked_fill(single, 1), reduce, include_self=include_self)
    by_division = (g * out.conj()).index_select(dim, index) / source.masked_fill(zero, 1).conj()
    by_leaving_out = (g * without.conj()).index_select(dim, index)
    return g * (rest / nonzero_self).conj(), exports["torch"]["where"](single, by_leaving_out, by_division)


def _extreme_rule(g, self, dim, index, source, reduce, include_self, out):
    ours = (self == out).to(g.dtype)
    theirs = (source == out.index_select(dim, index)).to(g.dtype)
    share = g / ours.index_add(dim, index, theirs)
    return ours * share, theirs * share.index_select(dim, index)


_RULES = {"mean": _mean_rule, "prod": _prod_rule, "amax": _extreme_rule, "amin": _extreme_rule}


def _reduce_meta(self, dim, index, source, reduce, include_self) -> Spec:
    kernels.check_slices("index_reduce_", self._array.shape, index._array, source._array.shape, dim)
    return _same(self, dim, index)


index_reduce = operator(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    lower=lower_index_reduce,
    **writer(kernels.reduce_slices, meta=_reduce_meta),
    inplace=True,
    scatters=True,
    vjp={("self", "source"): _reduce_rule},
    vmap=_batch_slices(lambda: index_reduce, (0, 3)),
)
