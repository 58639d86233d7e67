"""gather, scatter and the reductions that scatter into a tensor: one index for every element.

In: a tensor, a dimension, an index tensor of the same rank. Out: the elements named (gather), or the tensor with
others put in their places (scatter), combined if a reduction is asked for. In-place forms write the elements named
and nothing else.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.arrays import library
from ...core.dtype import by_numpy
from ...core.geometry import wrap_dim
from ...core.layers import above
from ...core.tensor import META, Tensor, wrap_dim_of_scalar
from ..eager.functions import ANY
from ..eager.straight import CheckedKernelCase
from ..family.base import array_of, composite, operator
from ..family.batching import batch_first
from ..shape.view_backward import slice_backward
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Operator, Spec, exports
from ..system.overloads import overloaded, publish, resolve
from ..system.scalars import check_fits, exact_out
from . import scatter_kernels as kernels
from .index_lowering import lower_gather, lower_scatter, lower_scatter_add, lower_scatter_reduce


def writer(apply, **options) -> dict:
    """Options of an operator whose kernel changes a copy of its first argument, its in-place form the argument itself.

    `apply(xp, array, *args)` writes; it raises before it has changed anything.
    """

    def kernel(xp, self, *args):
        out = self.copy()
        apply(xp, out, *args)
        return out

    def write(self, *args) -> None:
        if not self._keys & META:
            apply(library(self.device), self._array, *[array_of(a) for a in args])

    return {"kernel": kernel, "write": write, "strict": True, "meta": _like_self, **options}


def _like_self(self, *rest) -> Spec:
    return Spec(self._array.shape, self.dtype)


def overloaded_inplace(name: str, *operators: Operator, homes=("Tensor",)):
    """One in-place function for the in-place forms of several operators."""

    def function(*args, **kwargs):
        return resolve(function, tuple(op.inplace for op in operators), args, kwargs)

    function.__name__ = function.__qualname__ = name
    publish(function, name, homes=homes)
    return function


# ---- batching
def batch_elements(op, tensors: tuple[int, ...], dim_at: int = 1):
    """The vmap rule of operators whose tensors (at these positions) have one rank; the dimension moves up by one."""

    def rule(args, dims, size):
        ranks = [args[i].ndim - (dims[i] is not None) for i in tensors]
        if not all(ranks):
            return None  # elements without dimensions: the loop is quick enough
        moved = list(args)
        for i in tensors:
            moved[i] = batch_first(args[i], dims[i], size)
        moved[dim_at] = wrap_dim(args[dim_at], ranks[0]) + 1
        return dispatch(op(), tuple(moved)), 0

    return rule


# ---- gather
def _gather_meta(self, dim, index, sparse_grad) -> Spec:
    kernels.check_index_type("gather", index._array)
    kernels.check_gather(self._array.shape, index._array.shape, dim)
    return Spec(index._array.shape, self.dtype)


def _gather_rule(g, self_shape, dim, index, sparse_grad):
    if sparse_grad:
        return above.sparse_elements(g, self_shape, dim, index)
    return dispatch(scatter_add, (g.new_zeros(self_shape), dim, index, g))


gather = operator(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    moves=True,
    lower=lower_gather,
    kernel=kernels.gather,
    meta=_gather_meta,
    strict=True,
    plain=CheckedKernelCase(),
    jvp=LINEAR,
    vjp={"self": _gather_rule},
    vmap=batch_elements(lambda: gather, (0, 2)),
    check_out=exact_out,
    out_apart="all",
    cost="cheap",
)


@front("torch.take_along_dim", "Tensor.take_along_dim", past=(ANY,))
def take_along_dim(input, indices, dim=None, *, out=None) -> Tensor:
    """Elements along a dimension, `indices` broadcast against the rest; all elements in a row without a dimension."""
    if indices.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return exports["torch"]["gather"](input.reshape(-1), 0, indices.reshape(-1), out=out)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if not input.ndim:
        wrap_dim_of_scalar(dim)
    d = wrap_dim(dim, input.ndim)
    ours, theirs = list(input.shape), list(indices.shape)
    ours[d] = theirs[d] = 1
    indices = indices % input.shape[d] if input.shape[d] and indices.dtype.category == 1 else indices
    if ours == theirs:
        return exports["torch"]["gather"](input, d, indices, out=out)
    shape = exports["torch"]["broadcast_tensors"](input.new_empty(ours), input.new_empty(theirs))[0].shape
    wide = lambda t: t.expand((*shape[:d], t.shape[d], *shape[d + 1 :]))  # noqa: E731
    return exports["torch"]["gather"](wide(input), d, wide(indices), out=out)


# ---- scatter
def spread_source(g, shape):
    """The gradient of the part of a source that was read, as a gradient of the whole source."""
    for d, (have, want) in enumerate(zip(g.shape, shape, strict=True)):
        if have != want:
            g = slice_backward(g, (*g.shape[:d], want, *g.shape[d + 1 :]), d, 0, have, 1)
    return g


def _source_rule(g, dim, index, src_shape):
    return spread_source(dispatch(gather, (g, dim, index, False)), src_shape)


scatter_src = operator(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    moves=True,
    lower=lower_scatter,
    **writer(lambda xp, out, dim, index, src: kernels.scatter(xp, out, dim, index, src)),
    function=False,
    method=False,
    inplace="hidden",
    scatters=True,
    jvp=LINEAR,
    vjp={"self": lambda g, dim, index: dispatch(scatter_value, (g, dim, index, 0)), "src": _source_rule},
    vmap=batch_elements(lambda: scatter_src, (0, 2, 3)),
)


def _scatter_number(xp, out, dim, index, value) -> None:
    check_fits(value, by_numpy[out.dtype])
    kernels.scatter(xp, out, dim, index, xp.asarray(value).astype(out.dtype), "scatter.value")


def _zeroed(g, dim, index):
    return dispatch(scatter_value, (g, dim, index, 0))


scatter_value = operator(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    lower=lower_scatter,
    **writer(_scatter_number),
    function=False,
    method=False,
    inplace="hidden",
    scatters=True,
    number=1,
    jvp={"self": lambda t, dim, index: _zeroed(t, dim, index)},
    vjp={"self": _zeroed},
    vmap=batch_elements(lambda: scatter_value, (0, 2)),
)

scatter_add = operator(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    lower=lower_scatter_add,
    **writer(lambda xp, out, dim, index, src: kernels.scatter_reduce(xp, out, dim, index, src, "sum")),
    inplace=True,
    scatters=True,
    jvp=LINEAR,
    vjp={"self": lambda g: g, "src": _source_rule},
    vmap=batch_elements(lambda: scatter_add, (0, 2, 3)),
    autocast_cuda="widest",
)


# ---- scatter with a reduction
def _cut_source(src, shape):
    """The part of a source that an index of `shape` reads."""
    for d, (have, want) in enumerate(zip(src.shape, shape, strict=True)):
        src = src.narrow(d, 0, want) if have != want else src
    return src


def _reduce_rule(g, self, dim, index, src, reduce, include_self, out, mask):
    """Gradients of (self, src)."""
    read = _cut_source(src, index.shape)
    ours, theirs = _REDUCE_RULES[reduce](g, self, dim, index, read, reduce, include_self, out)
    if not include_self:
        ours = _zeroed(ours, dim, index)
    return ours, spread_source(theirs, src.shape)


def _sum_rule(g, self, dim, index, src, reduce, include_self, out):
    return g, g.gather(dim, index)


def _mean_rule(g, self, dim, index, src, reduce, include_self, out):
    start = g.new_ones(g.shape) if include_self else g.new_zeros(g.shape)
    count = start.scatter_add(dim, index, g.new_ones(src.shape))
    count = count.masked_fill(count == 0, 1)
    return g / count, g.gather(dim, index) / count.gather(dim, index)


def _prod_rule(g, self, dim, index, src, reduce, include_self, out):
    """Products without the one element: by division, or by leaving a single zero out, which nothing divides by."""
    nonzero_self = self.masked_fill(self == 0, 1)
    rest = nonzero_self.scatter_reduce(dim, index, src, reduce, include_self=include_self)
    zero = src == 0
    zeros = self.new_zeros(self.shape).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
    single = zero & (zeros == 1)
    without = self.scatter_reduce(dim, index, src.masked_fill(single, 1), reduce, include_self=include_self)
    by_division = (g * out.conj()).gather(dim, index) / src.masked_fill(zero, 1).conj()
    return (
        g * (rest / nonzero_self).conj(),
        exports["torch"]["where"](single, (g * without.conj()).gather(dim, index), by_division),
    )


def _extreme_rule(g, self, dim, index, src, reduce, include_self, out):
    """Elements that tie share the gradient."""
    ours = (self == out).to(g.dtype)
    theirs = (src == out.gather(dim, index)).to(g.dtype)
    share = g / ours.scatter_add(dim, index, theirs)
    return ours * share, theirs * share.gather(dim, index)


_REDUCE_RULES = {"sum": _sum_rule, "mean": _mean_rule, "prod": _prod_rule, "amax": _extreme_rule, "amin": _extreme_rule}

scatter_reduce = operator(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    lower=lower_scatter_reduce,
    **writer(kernels.scatter_reduce),
    inplace=True,
    scatters=True,
    vjp={("self", "src"): _reduce_rule},
    vmap=batch_elements(lambda: scatter_reduce, (0, 2, 3)),
)

_SCATTER_REDUCES = {"add": "sum", "multiply": "prod"}


def _reduction(reduce: str) -> str:
    if reduce not in _SCATTER_REDUCES:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return _SCATTER_REDUCES[reduce]


@composite(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    function=False,
    method=False,
)
def scatter_with(self, dim, index, src, reduce):
    return dispatch(scatter_reduce, (self, dim, index, src, _reduction(reduce), True))


@composite(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    function=False,
    method=False,
)
def scatter_value_with(self, dim, index, value, reduce):
    src = self.new_full(index.shape, value)
    return dispatch(scatter_reduce, (self, dim, index, src, _reduction(reduce), True))


overloaded("scatter", scatter_src, scatter_value, scatter_with, scatter_value_with)
_scatter_plain = overloaded_inplace("scatter_", scatter_src, scatter_value, homes=())


@front("Tensor.scatter_")
def scatter_(input, dim, index, *source, src=None, value=None, reduce=None) -> Tensor:
    """Write elements (or one number) in the places named, replacing or combining."""
    source = source[0] if source else value if src is None else src
    if reduce is None:
        return _scatter_plain(input, dim, index, source)
    how = _reduction(reduce)
    source = source if isinstance(source, Tensor) else input.new_full(index.shape, source)
    return input.scatter_reduce_(dim, index, source, how)
