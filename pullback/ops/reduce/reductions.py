"""Sums, products, extremes and truth of whole dimensions.

Every reduction takes one dimension, several, or all; float16 and bfloat16 are reduced in float32 and rounded once. Sums
keep their accuracy (see `reduction_kernels`); extremes propagate NaN; the index of an extreme is its first place.
"""

from __future__ import annotations

import math

from ...core import dtype as dtypes
from ...core import modes, native, small
from ...core.geometry import wrap_dim, wrap_dims
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import Tensor
from ..eager.rows import export_reduction
from ..elementwise.arithmetic import conj
from ..family.along import along
from ..family.base import composite, operator
from ..family.reduction import INT_TO_LONG, batch_reduction, reduced_shape, reduction, restore_dims
from ..shape.joining import cat
from ..system.concrete import may_have_zeros
from ..system.operator import LINEAR, NONDIFFERENTIABLE, Spec
from ..system.overloads import overloaded
from ..system.precision import widened
from ..system.scalars import exact_out, input_out
from . import reduction_kernels as kernels
from .reduction_lowering import lower_all, lower_any, lower_argmax, lower_extreme, lower_max_dim, lower_prod, lower_sum

HIDDEN = dict(function=False, method=False)  # one overload of several: the public function is made by `overloaded`


def whole(reduce_rows):
    """The vmap rule of a whole-tensor reduction: `reduce_rows(t, *rest)` reduces dimension 1 of a matrix."""

    def rule(args: tuple, dims: tuple, size: int):
        t = args[0].movedim(dims[0], 0) if dims[0] else args[0]
        return reduce_rows(t.reshape(size, math.prod(t.shape[1:])), *args[1:]), 0  # not -1: there may be no example

    return rule


def shared(reduce_rows):
    """`reduce_rows` of an operator that picks an element of each row, such that all that equal it share its gradient."""

    def rows(t: Tensor) -> Tensor:
        if not t.dtype.is_floating_point or not (requires_grad(t) or ambient.mode & modes.FORWARD):
            return reduce_rows(t)
        fixed = t.detach()
        picked = reduce_rows(fixed).unsqueeze(1)
        equal = (fixed == picked).logical_or(fixed.isnan().logical_and(picked.isnan()))
        # Elements less what is picked are zeros, which no sum rounds; what is not finite is its own sum.
        base = picked.nan_to_num(0.0, 0.0, 0.0)
        shares = (t - base).masked_fill(equal.logical_not(), 0) / equal.sum(1, True)
        return shares.sum(1) + base.squeeze(1)

    return rows


def not_implemented(kernel: str, dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'")


# ---- sums and products
sum_dim = reduction(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_sum,
    number=1,
    combine=None if native.available else "add",
    result=INT_TO_LONG,
    kernel=kernels.add_reduce,
    vjp=lambda g, self_shape, dim, keepdim: restore_dims(g, self_shape, dim, keepdim).expand(self_shape),
    jvp=LINEAR,
    **HIDDEN,
    autocast_cuda="float32",
)

sum_all = reduction(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_sum,
    combine=None if native.available else "add",
    result=INT_TO_LONG,
    kernel=kernels.add_reduce,
    vjp=lambda g, self_shape: g.expand(self_shape),
    jvp=LINEAR,
    vmap=whole(lambda t, dtype: sum_dim(t, (1,), False, dtype=dtype)),
    **HIDDEN,
    autocast_cuda="float32",
)
export_reduction("sum", native.SUM, sum_all, sum_dim, defaults=(None,))


def _product_of_others(x: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along `dim`: exact, and differentiable, where some are zero."""
    quick = small.table.get("prod.others")
    if (
        quick is not None
        and not ambient.mode
        and x.__class__ is Tensor
        and not x._keys
        and (found := quick((x, dim))) is not None
    ):
        return found
    n = x.shape[dim]
    one = x.new_ones((*x.shape[:dim], min(n, 1), *x.shape[dim + 1 :]))
    if n <= 1:
        return one
    before = cat((one, x.narrow(dim, 0, n - 1).cumprod(dim)), dim)
    after = cat((one, x.narrow(dim, 1, n - 1).flip(dim).cumprod(dim)), dim).flip(dim)
    return before * after


def _without_each(x: Tensor, dim: int) -> Tensor:
    """As `_product_of_others`, by a division where the product of all is an ordinary number."""
    if not may_have_zeros(x):
        whole = prod_dim(x, dim, True)
        if not may_have_zeros(whole) and not may_have_zeros(whole.reciprocal()):  # neither underflown nor overflown
            return whole / x
    return _product_of_others(x, dim)


def _prod_dim_vjp(g, self, out, dim, keepdim):
    """Of `self` alone, in both branches: `out` is kept so that a write to the result is noticed, and one that hides from
    autograd (through `.data`) changes a gradient neither here nor in a trace, which cannot tell whether there are zeros."""
    x = self.to(g.dtype)
    if not x.ndim:
        return g
    dim = wrap_dim(dim, x.ndim)
    return restore_dims(g, x.shape, (dim,), keepdim) * conj(_without_each(x, dim))


def _prod_all_vjp(g, self, out):
    """As `_prod_dim_vjp`, over all elements."""
    x = self.to(g.dtype)
    if not x.ndim:
        return g
    return g * conj(_without_each(x.reshape(-1), 0).reshape(x.shape))


prod_dim = reduction(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_prod,
    number=1,
    combine="multiply",
    result=INT_TO_LONG,
    kernel=kernels.multiply_reduce,
    vjp=_prod_dim_vjp,
    **HIDDEN,
    autocast_cpu="float32",
    autocast_cuda="float32",
)

prod_all = reduction(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_prod,
    combine="multiply",
    result=INT_TO_LONG,
    kernel=kernels.multiply_reduce,
    vjp=_prod_all_vjp,
    vmap=whole(lambda t, dtype: prod_dim(t, 1, False, dtype=dtype)),
    **HIDDEN,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
overloaded("prod", prod_all, prod_dim)


# ---- truth
def _truths(name: str, kernel, lower):
    """`all` or `any`: of everything, of one dimension, of several (of none of them where the list is empty)."""
    shared = dict(kernel=kernel, lower=lower, cast=False, vjp=NONDIFFERENTIABLE, check_out=_truth_out(name), **HIDDEN)
    shared["result"] = lambda d: d if d is dtypes.uint8 else dtypes.bool
    one = reduction(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", **shared)
    everything = reduction(f"{name}(Tensor self) -> Tensor", vmap=whole(lambda t: one(t, 1)), **shared)
    several = reduction(
        f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", empty="keep", **shared
    )
    return overloaded(name, everything, one, several)


def _truth_out(name: str):
    def check(result, out) -> None:
        if out.dtype not in (dtypes.bool, dtypes.uint8):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {out.dtype.scalar_name}")

    return check


_truths("all", kernels.all_reduce, lower_all)
_truths("any", kernels.any_reduce, lower_any)


def _truth(name: str, of: str):
    """`_is_all_true`, `_is_any_true`: of a boolean tensor, as a tensor."""

    def body(self):
        if self.dtype is not dtypes.bool:
            raise RuntimeError(f"{name}(): expected a boolean tensor, got {self.dtype}")
        return getattr(self, of)()

    return composite(f"{name}(Tensor self) -> Tensor", vjp=NONDIFFERENTIABLE)(body)


_is_all_true, _is_any_true = _truth("_is_all_true", "all"), _truth("_is_any_true", "any")

count_nonzero_dims = reduction(
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    cast=False,
    result=lambda d: dtypes.int64,
    kernel=lambda xp, a, axis, keepdims: xp.add.reduce(a != 0, axis=axis, dtype=xp.int64),
    combine="add",
    vjp=NONDIFFERENTIABLE,
    **HIDDEN,
)


@composite("count_nonzero(Tensor self, int? dim=None) -> Tensor", **HIDDEN)
def count_nonzero_dim(self, dim):
    return count_nonzero_dims(self, () if dim is None else (dim,))


overloaded("count_nonzero", count_nonzero_dim, count_nonzero_dims)


# ---- extremes
def check_not_empty(name: str, t: Tensor, dim: int) -> None:
    """Extremes have no identity: the dimension must hold something."""
    dim = wrap_dim(dim, t._array.ndim)
    if t._array.ndim and t._array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _check_all(name: str, kernel: str):
    def check(self):
        if not self._array.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        if self.dtype.is_complex:
            raise not_implemented(kernel, self.dtype)

    return check


def _check_dims(name: str, kernel: str):
    check_all = _check_all(name, kernel)

    def check(self, dim, keepdim):
        if self.dtype.is_complex or not self._array.size and not dim:
            check_all(self)
        for d in wrap_dims(dim or None, self._array.ndim):
            check_not_empty(name, self, d)

    return check


def _check_dim(name: str):
    def check(self, dim, keepdim):
        check_not_empty(name, self, dim)
        if self.dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support complex input")

    return check


def _share_among_equals(g, self, out, dim, keepdim):
    """The gradient of an extreme: shared by all elements that attain it."""
    mask = self == restore_dims(out, self.shape, dim, keepdim)
    axes = wrap_dims(dim or None, self.ndim)
    g = restore_dims(g, self.shape, dim, keepdim)
    if g.dtype is dtypes.float32 or g.dtype is dtypes.float64:  # which count well, and meet `g` without promotion
        mask = mask.to(g.dtype)
        return g / mask.sum(axes or None, True) * mask
    return g * mask / mask.sum(axes or None, True)


def share_among_all_equals(g, self, out):
    if ambient.mode < modes.LISTENING and not (
        self._keys | out._keys
    ):  # nobody writes a program down: look at the result
        extreme = out.item()
        others = self == self if extreme != extreme else self != extreme
        return (g / (self.numel() - int(others.sum().item()))).expand(self.shape).masked_fill(others, 0)
    mask = (self == out).logical_or(self.isnan().logical_and(out.isnan()))
    return (
        (g / mask.sum()).expand(self.shape).masked_fill(mask.logical_not(), 0)
    )  # not a product: that is NaN where `g` is


def select_backward(g: Tensor, dim: int, indices: Tensor, shape, keepdim: bool) -> Tensor:
    """The gradient of values picked along `dim` at `indices`: each goes back to its place."""
    if len(shape) and not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    return g.new_zeros(shape).scatter(dim, indices, g)


def selection_vjp(g, dim, indices, self_shape, keepdim):
    """The rule of `(values, indices)` operators that reduce `dim`."""
    return select_backward(g, dim, indices, self_shape, keepdim)


@composite(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor",
    **HIDDEN,
)
def value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim):
    return select_backward(grad, dim, indices, sizes, keepdim)


def _extremes(name: str, reduce, locate, with_index, combine: str):
    """`max` or `min`, in every form: amax, argmax, max of everything, along a dimension, of two tensors."""
    n = name[-1]  # amax: 'x', amin: 'n'
    short, kernel = f"ma{n}" if n == "x" else f"mi{n}", "max" if n == "x" else "min"
    combine = None if native.available else combine
    by_dims = reduction(
        f"a{short}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        lower=lower_extreme[kernel], kernel=reduce, combine=combine, check=_check_dims(f"a{short}", f"{kernel}_values_cpu"), vjp=_share_among_equals,
        check_out=input_out,
    )  # fmt: skip
    place = reduction(
        f"arg{short}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        lower=lower_argmax, kernel=locate, cast=False, result=lambda d: dtypes.int64, check=_check_place(f"arg{short}"),
        vjp=NONDIFFERENTIABLE, check_out=exact_out,
    )  # fmt: skip
    everything = reduction(
        f"{short}(Tensor self) -> Tensor",
        lower=lower_extreme[kernel], kernel=reduce, combine=combine, check=_check_all(short, f"{short}_all"), vjp=share_among_all_equals, number=1,
        vmap=whole(shared(lambda t: by_dims(t, (1,)))), **HIDDEN,
    )  # fmt: skip
    one = along(
        f"{short}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        check_out=exact_out,
        lower=lower_max_dim, kernel=with_index, reduces=True, split=True, check=_check_dim(short), vjp=selection_vjp, **HIDDEN,
    )  # fmt: skip
    pairwise = composite(f"{short}.other(Tensor self, Tensor other) -> Tensor", **HIDDEN)(
        (lambda self, other: self.maximum(other)) if n == "x" else (lambda self, other: self.minimum(other))
    )
    export_reduction(short, native.MAX if n == "x" else native.MIN, everything, one, pairwise)
    return by_dims, place, everything, one


def _check_place(name: str):
    def check(self, dim, keepdim):
        if dim is None and not self._array.size:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        if dim is not None:
            check_not_empty(name, self, dim)
        if self.dtype.is_complex or self.dtype is dtypes.bool:
            raise RuntimeError(f"{name}(): does not support {'bool' if self.dtype is dtypes.bool else 'complex'} input")

    return check


amax, argmax, max_all, max_dim = _extremes("max", kernels.max_reduce, kernels.argmax, kernels.max_with_index, "maximum")
amin, argmin, min_all, min_dim = _extremes("min", kernels.min_reduce, kernels.argmin, kernels.min_with_index, "minimum")


def _check_aminmax(self, dim, keepdim):
    if self.dtype.is_complex:
        raise not_implemented("aminmax_cpu", self.dtype)
    if dim is None and not self._array.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if dim is not None and self._array.ndim and not self._array.shape[wrap_dim(dim, self._array.ndim)]:
        raise IndexError(f"aminmax: Expected reduction dim {wrap_dim(dim, self._array.ndim)} to have non-zero size.")


@widened
def _aminmax(xp, a, dim, keepdim):
    axis = wrap_dims(dim, a.ndim)
    return xp.asarray(kernels.min_reduce(xp, a, axis, keepdim)), xp.asarray(kernels.max_reduce(xp, a, axis, keepdim))


def _aminmax_vjp(gs, self, dim, keepdim, min, max):
    dims = () if dim is None else (dim,)
    parts = [
        _share_among_equals(g, self, out, dims, keepdim) for g, out in zip(gs, (min, max), strict=True) if g is not None
    ]
    return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]


aminmax = operator(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    check_out=exact_out,
    kernel=_aminmax,
    check=_check_aminmax,
    meta=lambda self, dim, keepdim: (
        (Spec(reduced_shape(self._array.shape, wrap_dims(dim, self._array.ndim), keepdim), self.dtype),) * 2
    ),
    vjp={"self": _aminmax_vjp},
    vmap=lambda args, dims, size: batch_reduction(aminmax, args, dims),
)


# ---- hashes
def _check_hash(self, dim, keepdim, mode):
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if self.dtype.is_complex:
        raise not_implemented("xor_sum_cpu", self.dtype)
    if not self._array.size and not dim:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    for d in wrap_dims(dim, self._array.ndim) if self._array.ndim else ():
        if self._array.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")


hash_tensor = reduction(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    kernel=lambda xp, a, axis, keepdims, mode: kernels.xor_reduce(xp, a, axis, keepdims),
    check=_check_hash,
    cast=False,
    result=lambda d: dtypes.uint64,
    vjp=NONDIFFERENTIABLE,
    cost="passes",
)
