"""Element-wise arithmetic with sparse tensors.

Comes in: canonical arguments of a pointwise operator. Goes out: a sparse tensor, or a dense one where a dense tensor is
added to. Always holds: an element that is not specified counts as zero, and only operators that keep zero at zero are
here; the rest has no rule.
"""

from __future__ import annotations

import math

from ....core import device as devices
from ....core import dtype as dtypes
from ....core.arrays import library
from ....core.promotion import result_type
from ....core.tensor import Tensor
from ...family.pointwise import POINTWISE
from ...make.factories import zeros as dense_zeros
from ...system.dispatch import dispatch
from ...system.operator import Operator, registry
from . import kernels
from .convert import as_tensor, coalesced, convert, coo_to_compressed, to_coo, to_dense, with_index_dtype
from .layouts import (
    BLOCKED,
    BY_ROW,
    COMPRESSED,
    NAMES,
    CompressedArray,
    is_compressed,
    is_coo,
    is_sparse,
    layout_name,
    wrap_coo,
    wrap_sparse,
)
from .masks import masked
from .table import not_implemented, run_dense, sparse_rule
from .without_data import empty_on_meta


def with_values(t: Tensor, values: Tensor) -> Tensor:
    """The same indices with other values."""
    return wrap_sparse(t._array.with_values(values))


def linear(op: Operator, self, *rest):
    """f(a + b) = f(a) + f(b): values at one index may stay apart."""
    return with_values(self, run_dense(op, self._array.values, *rest))


def unary(op: Operator, self, *rest):
    """f(0) = 0, but f(a + b) is not f(a) + f(b)."""
    source = coalesced(self) if is_coo(self) else self
    return with_values(source, run_dense(op, source._array.values, *rest))


for _op in registry.values():
    if _op.family is POINTWISE and _op.declared.zero is not None:
        _op.declared.sparse = linear if _op.declared.zero == "linear" else unary


@sparse_rule("_conj")
def conj(op: Operator, self):
    """At once: the values of a sparse tensor have no lazy bits."""
    return with_values(self, self._array.values.conj_physical())


@sparse_rule("pow")
def power(op: Operator, self, exponent):
    if not is_sparse(self) or isinstance(exponent, Tensor) or exponent == 0:
        raise not_implemented(op, (self, exponent))
    return unary(op, self, exponent)


@sparse_rule("threshold_backward")
def threshold_backward(op: Operator, grad_output, self, threshold):
    """The gradient of relu: where both are sparse, at the places of `self`."""
    if not is_sparse(self):
        raise not_implemented(op, (grad_output, self, threshold))
    source = coalesced(self) if is_coo(self) else self
    g = masked(grad_output, source)
    return with_values(source, run_dense(op, g._array.values, source._array.values, threshold))


# ---- products
def _is_number(x) -> bool:
    return not isinstance(x, Tensor) or not is_sparse(x) and not x.ndim


def _scale(op: Operator, t: Tensor, by, *rest) -> Tensor:
    return with_values(t, run_dense(op, t._array.values, by, *rest))


@sparse_rule("mul")
def mul(op: Operator, self, other):
    return apart(_product(op, self, other))


def apart(t: Tensor) -> Tensor:
    """A product or a sum with coordinates that count as others: written in place it takes memory of its own (`writes`), as in PyTorch."""
    a = t._array
    return wrap_coo(a.indices.shallow(), a.values, a.shape, a.coalesced, a.fresh) if is_coo(t) else t


def _product(op: Operator, self, other):
    if isinstance(self, Tensor) and isinstance(
        other, Tensor
    ):  # values have a dimension more than what they are the values of
        dtype = result_type(self, other)
        self, other = (_cast(t, dtype) if is_sparse(t) else t.to(dtype) for t in (self, other))
    if _is_number(other):
        return _scale(op, self, other)
    if _is_number(self):
        return _scale(op, other, self)
    if not is_sparse(other):
        return _mul_dense(op, self, other)
    if not is_sparse(self):
        return _mul_dense(op, other, self)
    if is_coo(self) and is_coo(other) and not (self.ndim and other.ndim):  # one number, though it be sparse
        return _mul_dense(op, *((other, to_dense(self)) if other.ndim else (self, to_dense(other))))
    return _intersect(op, self, other)


def _mul_dense(op: Operator, t: Tensor, dense: Tensor) -> Tensor:
    """Values times the dense numbers at their places."""
    if dense.ndim > t.ndim:
        t = _repeated(t, dense)
    there = masked(dense.expand(t.shape), t)
    return with_values(t, run_dense(op, t._array.values, there._array.values))


def _repeated(t: Tensor, dense: Tensor) -> Tensor:
    """A COO tensor once for each index of the leading dimensions that a dense one has more than it."""
    lead, rest = dense._array.shape[: dense.ndim - t.ndim], dense._array.shape[dense.ndim - t.ndim :]
    if rest != t._array.shape or not is_coo(t):
        raise RuntimeError(
            f"mul: a sparse tensor of shape {list(t.shape)} cannot be broadcast to the dense shape {list(dense.shape)}"
        )
    a, xp, times = t._array, library(t.device), math.prod(lead)
    leading = xp.repeat(kernels.unflatten(xp, xp.arange(times), lead), a.nnz, axis=1)
    indices = xp.concatenate((leading, xp.tile(a.indices._array, (1, times))))
    values = xp.tile(a.values._array, (times, *(1,) * a.dense_dim))
    return wrap_coo(as_tensor(indices, t), as_tensor(values, t), (*lead, *rest), a.coalesced)


def _intersect(op: Operator, a: Tensor, b: Tensor) -> Tensor:
    """Elements specified in both."""
    if a.layout in COMPRESSED or b.layout in COMPRESSED:
        return _intersect_compressed(op, a, b)
    k = a._array.sparse_dim
    if a.ndim != b.ndim or k != b._array.sparse_dim or a.shape[:k] != b.shape[:k]:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse "
            f"dimensions, and shape of sparse dimensions, but got {list(a.shape)} and {list(b.shape)}, of which {k} "
            f"and {b._array.sparse_dim} are sparse"
        )
    a, b = coalesced(a), coalesced(b)
    xp = library(a.device)
    keys_a, keys_b = (kernels.flat_keys(xp, t._array.indices._array, t._array.shape) for t in (a, b))
    at, there = kernels.find(xp, keys_a, keys_b)
    values = run_dense(op, as_tensor(a._array.values._array[there], a), as_tensor(b._array.values._array[at[there]], b))
    shape = (*a._array.shape[:k], *values._array.shape[1:])
    return wrap_coo(as_tensor(a._array.indices._array[:, there], a), values, shape, True)


def _intersect_compressed(op: Operator, a: Tensor, b: Tensor) -> Tensor:
    """Blocks and batches keep the places of the first: those of one batch must be as many as those of another."""
    both = is_compressed(a) and is_compressed(b)
    if not both or a.layout is not b.layout and (a._array.blocksize or b._array.blocksize):
        raise RuntimeError(
            f"mul(sparse_csr, sparse_csr): expected both operands to have one layout, but got {a.layout} and {b.layout}"
        )
    if a._array.blocksize or a._array.batch_dim:
        return with_values(a, run_dense(op, a._array.values, masked(b, a)._array.values))
    product = coo_to_compressed(_intersect(op, to_coo(a), to_coo(b)), a.layout, None, None)
    return with_index_dtype(product, a)


@sparse_rule("div", "floor_divide")
def div(op: Operator, self, other, *rest):
    if not _is_number(other) or not is_sparse(self):
        shape = list(other.shape) if isinstance(other, Tensor) else []
        raise RuntimeError(
            f"Sparse {'floor ' if op.name == 'floor_divide' else ''}division requires a scalar or zero-dim dense tensor "
            f"divisor (got shape {shape} for divisor)"
        )
    mode = rest[0] if rest else "floor" if op.name == "floor_divide" else None
    source = coalesced(self) if mode and is_coo(self) else self
    return _scale(op, source, other, *rest)


# ---- sums
@sparse_rule("add")
def add(op: Operator, self, other, alpha=1):
    return _add(op, self, other, alpha)


@sparse_rule("sub")
def sub(op: Operator, self, other, alpha=1):
    op.family.validate(op, (self, other, alpha))
    return _add(op, self, other, -alpha)


def _add(op: Operator, self, other, alpha):
    name = op.name
    if not is_sparse(self) or not is_sparse(other):
        alone = (
            isinstance(self, Tensor) and is_coo(other) and not (self.ndim or other.ndim)
        )  # one dense number and a sparse one
        if is_sparse(self) and is_coo(self) or not alone and (_is_number(self) or _is_number(other)):
            raise RuntimeError(f"{name}(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if self.shape != other.shape:
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size {list(self.shape)} while "
                f"other has size {list(other.shape)}"
            )
        if is_compressed(self) and name == "add":  # the factor goes with the sparse one, on whichever side it stands
            return _add_to_dense(other, self, alpha)
        return _add_to_dense(to_dense(self), other, alpha)
    if self.shape != other.shape:
        same = (
            "Expected input tensors to have the same shape"
            if is_compressed(self)
            else "expected sizes of 'self' and 'other' to match"
        )
        raise RuntimeError(f"add: {same}, but {list(self.shape)} != {list(other.shape)}")
    if is_coo(self) != is_coo(other):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have one layout, but got {self.layout} and {other.layout}"
        )
    dtype = result_type(self, other)
    left, right = _cast(self, dtype), _cast(other, dtype)
    right = right if alpha == 1 else with_values(right, right._array.values * alpha)
    return _add_coo(left, right) if is_coo(left) else _add_compressed(left, right)


def _cast(t: Tensor, dtype) -> Tensor:
    return t if t.dtype is dtype else with_values(t, t._array.values.to(dtype))


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or a._array is b._array or a.shape == b.shape and bool((a._array == b._array).all())


def _add_coo(a: Tensor, b: Tensor) -> Tensor:
    x, y = a._array, b._array
    if x.sparse_dim != y.sparse_dim:
        if not (x.nnz and y.nnz):  # a tensor without elements adds nothing, whatever its dimensions
            return clone(None, b if y.nnz else a)
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but 'self' has "
            f"{x.sparse_dim} while 'other' has {y.sparse_dim}"
        )
    if _same(x.indices, y.indices):
        return apart(wrap_coo(x.indices, x.values + y.values, x.shape, x.coalesced, True))
    xp = library(a.device)
    indices = as_tensor(xp.concatenate((x.indices._array, y.indices._array), axis=1), a)
    values = as_tensor(xp.concatenate((x.values._array, y.values._array)), a)
    result = wrap_coo(indices, values, x.shape, False, True)
    return coalesced(result) if x.coalesced and y.coalesced else result


def _add_compressed(a: Tensor, b: Tensor) -> Tensor:
    x, y = a._array, b._array
    if (
        x.layout is y.layout
        and x.blocksize == y.blocksize
        and _same(x.compressed, y.compressed)
        and _same(x.plain, y.plain)
    ):
        return with_values(a, x.values + y.values)
    total = coalesced(_add_coo(to_coo(a), to_coo(b)))
    return with_index_dtype(coo_to_compressed(total, x.layout, x.blocksize, None), a)


def _add_to_dense(dense: Tensor, other: Tensor, alpha) -> Tensor:
    """dense + alpha * sparse, touching specified elements only."""
    if not is_sparse(other):
        return dense.add(other, alpha=alpha)
    if not is_coo(other):
        return dense.add(to_dense(other), alpha=alpha)
    dtype = result_type(dense, other)
    a = coalesced(_cast(other, dtype))._array
    kernels.check_range(a.indices._array, a.shape)
    scaled = a.values if alpha == 1 else a.values * alpha
    out = as_tensor(dense.to(dtype)._array.copy(), dense)
    if not a.sparse_dim:
        return out.add(scaled.sum(0))
    out._array[tuple(a.indices._array)] += scaled._array
    return out


# ---- copies
@sparse_rule("clone")
def clone(op: Operator | None, self, memory_format=None):
    a = self._array
    if is_coo(self):
        return wrap_coo(a.indices.clone(), a.values.clone(), a.shape, a.coalesced)
    return wrap_sparse(CompressedArray(a.layout, a.compressed.clone(), a.plain.clone(), a.values.clone(), a.shape))


@sparse_rule("detach", "alias", "lift_fresh", "resolve_conj", "resolve_neg")
def detach(op: Operator, self):
    return self.shallow()


@sparse_rule("_to_copy")
def to_copy(op: Operator, self, dtype, layout, device, *rest):
    if device is not None and device.type == "meta":
        return empty_on_meta(self if dtype is None else _cast(self, dtype))
    if layout is not None and layout is not self.layout:
        self = convert(self, layout)
        return self if dtype is None else _cast(self, dtype) if is_sparse(self) else self.to(dtype)
    source = clone(op, self)
    if device is not None and device.type != self.device.type:
        source = _moved(source, device)
    return source if dtype is None else _cast(source, dtype)


def _moved(t: Tensor, device) -> Tensor:
    """The same elements on another device."""
    a = t._array
    if is_coo(t):
        return wrap_coo(a.indices.to(device), a.values.to(device), a.shape, a.coalesced)
    parts = [p.to(device) for p in (a.compressed, a.plain, a.values)]
    return wrap_sparse(CompressedArray(a.layout, *parts, a.shape))


@sparse_rule("copy")
def copy(op: Operator, self, src, non_blocking=False):
    if is_compressed(self) or is_compressed(src):
        _check_compressed_copy(self, src)
    if not (is_sparse(self) and is_sparse(src)):
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented! Found self type = {self.type()} and src "
            f"type = {src.type()}"
        )
    if self.layout is not src.layout:
        raise RuntimeError(f"copy_: self and src must have the same layout, but got {self.layout} and {src.layout}")
    return _cast(clone(op, src), self.dtype)


def _check_compressed_copy(self: Tensor, src: Tensor) -> None:
    if self.layout is not src.layout:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. "
            f"self layout is {layout_name(self)} and src layout is {layout_name(src)}"
        )
    if self._array.nnz != src._array.nnz:
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported, "
            f"but got {self._array.nnz} and {src._array.nnz}."
        )
    if (at := next((d for d in range(min(self.ndim, src.ndim)) if self.shape[d] != src.shape[d]), None)) is not None:
        raise RuntimeError(
            f"torch.copy_: expected shapes of self and src to match along dimension {at} for {self.layout} layout but the corresponding "
            f"dimensions of self and src are {self.shape[at]} and {src.shape[at]}, respectively."
        )
    if self._array.blocksize != src._array.blocksize:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. "
            f"self and src block sizes are {self._array.blocksize} and {src._array.blocksize}, respectively."
        )


@sparse_rule("empty_like", "rand_like", "randn_like", "randint_like", "full_like", "ones_like")
def filled_like(op: Operator, self, *options):
    """Other values in the same places; of COO tensors, `empty_like` has none, and nothing that says a value of every place has a rule."""
    at = op.schema.index["layout"] - 1
    layout, device = options[at] or self.layout, options[at + 1]
    if is_coo(self) and layout is devices.strided and op.name == "empty_like":
        return zeros(op, self, *options)
    if layout is not self.layout:
        raise RuntimeError(
            f"{op.name} with different sparse layout is not supported (self is {layout_name(self)} but you requested "
            f"{NAMES[layout]})"
        )
    if is_coo(self):
        if op.name != "empty_like":
            raise not_implemented(op, (self, *options))
        return zeros(op, self, *options)
    plain = (*options[:at], None, None, *options[at + 2 :])
    return _placed(with_values(self, dispatch(op, (self._array.values, *plain))), device)


@sparse_rule("zero", "zeros_like")
def zeros(op: Operator, self, *options):
    """No specified element at all."""
    dtype, layout, device = options[:3] if options else (None, None, None)
    if layout is devices.strided:
        dense = dense_zeros(self.shape, dtype=dtype or self.dtype, device=device or self.device)
        return dispatch(op, (dense, None, None, None, *options[3:]))
    a = self._array
    if layout not in (None, a.layout):
        result = _empty_of_layout(self, layout)
    elif is_coo(self):
        indices, values = a.indices[:, :0].clone(), a.values[:0].clone()
        result = wrap_coo(indices, values, a.shape, True)
    else:
        result = _empty_compressed(self)
    return _placed(result if dtype is None else _cast(result, dtype), device)


def _placed(t: Tensor, device) -> Tensor:
    """Where the call wants it; where it is, if it does not say."""
    return t if device is None or device == t.device else _moved(t, device)


def _empty_of_layout(t: Tensor, layout) -> Tensor:
    """A tensor without elements: shape, dense dimensions, blocks and the dtype of indices as another has them."""
    a = t._array
    sparse, blocks = a.ndim - a.dense_dim, a.blocksize or ()
    dense = a.shape[sparse:]
    if layout not in COMPRESSED:
        indices = dense_zeros((sparse, 0), dtype=dtypes.int64, device=t.device)
        return wrap_coo(indices, a.values.new_zeros((0, *dense)), a.shape, True)
    if bool(blocks) != (layout in BLOCKED):
        words = (
            f"blocksize cannot be specified for non-block layout {NAMES[layout]}"
            if blocks
            else "blocksize needs to be a tuple of size 2, but got 0"
        )
        raise RuntimeError(f"sparse_compressed_tensor_with_dims: {words}")
    batch, line = a.shape[: sparse - 2], 0 if layout in BY_ROW else 1
    count = a.shape[sparse - 2 + line] // (blocks[line] if blocks else 1)
    kind = dtypes.int64 if is_coo(t) else a.plain.dtype
    pointers = dense_zeros((*batch, count + 1), dtype=kind, device=t.device)
    plain = dense_zeros((*batch, 0), dtype=kind, device=t.device)
    values = a.values.new_zeros((*batch, 0, *blocks, *dense))
    return wrap_sparse(CompressedArray(layout, pointers, plain, values, a.shape))


def _empty_compressed(t: Tensor) -> Tensor:
    a, at = t._array, t._array.batch_dim
    values = a.values.narrow(at, 0, 0).clone()
    return wrap_sparse(
        CompressedArray(
            a.layout, a.compressed.new_zeros(a.compressed.shape), a.plain.narrow(at, 0, 0).clone(), values, a.shape
        )
    )
