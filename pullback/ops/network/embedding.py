"""Rows of a table by index: embedding, embedding_bag, embedding_renorm_.

Indices are int32 or int64 and inside the table, checked before anything is read. Gradients of the table are dense: rows
that share an index are added up; the row `padding_idx` gets none. With `sparse=True` they are COO tensors with one row
per look-up.
"""

from __future__ import annotations

import numpy as np

from ...core import dtype as dtypes
from ...core import spatial
from ...core.layers import above
from ...core.modes import ambient, no_grad, process
from ...core.tensor import PLAIN, Tensor, wrap
from ..eager.functions import bypassing
from ..eager.straight import FunctionCase
from ..elementwise.arithmetic import conj
from ..family.base import PLAIN_FAMILY, operator
from ..index.index_kernels import combined_natively
from ..linalg.contraction_shapes import require_tensors
from ..lowering import NotLowerable
from ..system.calls import export_operator, front, make_function
from ..system.operator import NONDIFFERENTIABLE, Operator, Spec, export, public

SUM, MEAN, MAX = range(3)
_MODES = {"sum": SUM, "mean": MEAN, "max": MAX}


def _check_indices(function: str, indices: Tensor, number: int = 1, name: str = "indices") -> None:
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            f"Expected tensor for argument #{number} '{name}' to have one of the following scalar types: Long, Int; "
            f"but got torch.{indices.dtype.scalar_name}Tensor instead (while checking arguments for {function})"
        )


def _check_range(xp, indices, size: int) -> None:
    if process.cuda_captures:  # nothing has run: there are no numbers to look at
        return
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= size):
        raise IndexError("index out of range in self")


# ---- embedding
def _embedding_shape(weight, indices, padding_idx, scale_grad_by_freq, sparse) -> Spec:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices("embedding", indices)
    return Spec((*indices._array.shape, weight._array.shape[1]), weight.dtype)


class Lookup(type(PLAIN_FAMILY)):  # type: ignore[misc]
    """Operators whose shape rule checks the dtype of the indices: it runs before the kernel."""

    direct = "family"

    def execute(self, op: Operator, args: tuple):
        require_tensors(op, args)
        op.meta_rule(*args)
        return super().execute(op, args)


LOOKUP = Lookup()


def _lookup(schema: str, **rules) -> Operator:
    return export_operator(Operator(schema, LOOKUP, **rules))


def _take_rows(xp, weight, indices, *rest):
    _check_range(xp, indices, weight.shape[0])
    return weight.take(indices, axis=0)


def _table_grad(g, indices, weight_shape, padding_idx, scale_grad_by_freq, sparse):
    if sparse:
        return above.sparse_rows(g, indices, weight_shape[0], padding_idx, scale_grad_by_freq)
    return embedding_dense_backward(g, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


def _vmap_embedding(args, dims, size):
    weight, indices, *rest = args
    if dims[0] is None:
        return embedding(weight, indices, *rest), dims[1]
    weight = weight.movedim(dims[0], 0)
    rows = weight.shape[1]
    indices = indices.movedim(dims[1], 0) if dims[1] is not None else indices.unsqueeze(0)
    shift = indices.new_tensor(range(size)).reshape(size, *(1,) * (indices.ndim - 1)) * rows
    return embedding(weight.reshape(size * rows, weight.shape[2]), indices + shift, -1, *rest[1:]), 0


@bypassing("embedding.default")
def _quick_rows(weight, indices, padding_idx, scale_grad_by_freq, sparse) -> Tensor | None:
    """Rows of a plain table by plain int64 indices; None for everything else, errors included."""
    if weight.__class__ not in PLAIN or indices.__class__ not in PLAIN or weight._keys or indices._keys:
        return None
    table, places = weight._array, indices._array
    if ambient.mode >= 2 or table.ndim != 2 or indices.dtype is not dtypes.int64 or not places.size:
        return None
    low, high = (min(few), max(few)) if (few := _few(places)) else (int(places.min()), int(places.max()))
    if low < 0 or high >= table.shape[0]:
        return None
    t = wrap(table.take(places, 0), weight.dtype)
    if weight._autograd is not None and ambient.mode:
        return embedding.record(t, weight, indices, padding_idx, scale_grad_by_freq, sparse)
    return t


def _few(places) -> list:
    """A handful of indices as a list, which Python's min and max read faster than NumPy's do an array."""
    return places.ravel().tolist() if places.size <= 64 else []


def _lower_take_rows(b, weight, indices, *_):
    out = b.result()
    rank = len(out.shape)
    row = b.raw(indices.unsqueeze(len(indices.shape)), rank)
    place = (row, weight.strides[0], weight.shape[0])
    return b.fill(out, b.gather(weight, [*[0] * (rank - 1), weight.strides[1]], [place]))


embedding = _lookup(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) "
    "-> Tensor",
    lower=_lower_take_rows,
    meta=_embedding_shape,
    kernel=_take_rows,
    plain=FunctionCase(_quick_rows),
    method=False,
    out=False,
    vjp={"weight": _table_grad},
    jvp={
        "weight": lambda t, indices, padding_idx, scale_grad_by_freq, sparse: embedding(
            t, indices, padding_idx, scale_grad_by_freq, sparse
        )
    },
    vmap=_vmap_embedding,
)


def _add_rows(xp, g, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The transpose of taking rows: rows of `g` with one index are summed; on the CPU in a loop, or by sorting them together."""
    flat = indices.reshape(-1)
    rows = g.reshape(flat.size, -1 if g.size else g.shape[-1])
    out = xp.zeros((num_weights, rows.shape[1]), dtype=g.dtype)
    if not flat.size or not rows.shape[1]:
        return out
    if xp is not np and g.dtype.kind == "f" and g.dtype.itemsize > 2 and not scale_grad_by_freq:
        xp.add.at(out, flat.astype(xp.int64), rows)  # a device adds at all places at once, and need not be waited for
        if padding_idx >= 0:
            out[padding_idx] = 0
        return out
    if not scale_grad_by_freq and combined_natively("add", out, flat, rows):
        if padding_idx >= 0:
            out[padding_idx] = 0
        return out
    order = flat.argsort(kind="stable")
    ordered = flat[order]
    starts = xp.flatnonzero(xp.concatenate((xp.ones(1, dtype=bool), ordered[1:] != ordered[:-1])))
    working = rows[order]
    if g.dtype.itemsize == 2:
        working = working.astype(xp.float32)
    sums = xp.add.reduceat(working, starts, axis=0)
    if scale_grad_by_freq:
        counts = xp.diff(xp.concatenate((starts, xp.asarray([flat.size]))))
        sums = sums / counts[:, None].astype(sums.dtype)
    out[ordered[starts]] = sums
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def _take_back(g, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of `embedding_dense_backward`: rows are taken again, without the padding row."""
    result = embedding(g, indices, padding_idx)
    if scale_grad_by_freq:
        counts = indices.reshape(-1).bincount(minlength=num_weights)
        result = result / embedding(counts.unsqueeze(1).to(g.dtype), indices)
    return result.masked_fill((indices == padding_idx).unsqueeze(-1), 0) if padding_idx >= 0 else result


def _lower_add_rows(b, g, indices, num_weights, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        return NotLowerable("gradients scaled by frequency")
    out = b.result()
    if out.dtype is not b.wide(out.dtype):
        return NotLowerable("embedding gradients in low precision")
    b.fill(out, b.number(0, out.dtype))
    rank = len(g.shape)
    row, value = b.raw(indices.unsqueeze(len(indices.shape)), rank), b.raw(g)
    if padding_idx >= 0:
        value = b.o.where(row == padding_idx, 0.0, value)
    strides = [*[0] * (rank - 1), out.strides[1]]
    b.scatter(out, g.shape, value, strides, [(row, out.strides[0], num_weights)])
    return out


embedding_dense_backward = operator(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
    "scale_grad_by_freq) -> Tensor",
    lower=_lower_add_rows,
    meta=lambda grad_output, indices, num_weights, padding_idx, scale_grad_by_freq: Spec(
        (num_weights, grad_output.shape[-1]), grad_output.dtype
    ),
    kernel=_add_rows,
    function=False,
    method=False,
    vjp={"grad_output": _take_back},
)


@front("nn.functional.embedding")
def embedding_function(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """Rows of `weight` at the indices `input`; rows longer than `max_norm` are shortened in place first."""
    if padding_idx is not None:
        padding_idx = _wrapped_padding(padding_idx, weight)
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        with no_grad():
            renorm_(weight, input, max_norm, norm_type)
    return embedding.function(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _wrapped_padding(padding_idx: int, weight: Tensor) -> int:
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


# ---- embedding_renorm_
def _renormed(xp, weight, indices, max_norm, norm_type):
    _check_range(xp, indices, weight.shape[0])
    out = weight.copy()
    rows = xp.unique(indices)
    values = out[rows].astype(xp.float32) if out.dtype.itemsize == 2 else out[rows]
    sizes = xp.abs(values)
    if norm_type == float("inf"):
        norms = sizes.max(axis=1)
    else:
        norms = (sizes**norm_type).sum(axis=1) ** (1.0 / norm_type)
    scale = xp.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0).astype(values.dtype)
    out[rows] = values * scale[:, None]
    return out


def _renorm_shape(self, indices, max_norm, norm_type) -> Spec:
    if self.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for embedding_renorm_)"
        )
    _check_indices("embedding_renorm_", indices, 2)
    return Spec(self._array.shape, self.dtype)


embedding_renorm = Operator(
    "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    LOOKUP,
    meta=_renorm_shape,
    kernel=_renormed,
    vjp=NONDIFFERENTIABLE,
    inplace=True,
)
renorm_ = export("torch", "embedding_renorm_", make_function("embedding_renorm_", embedding_renorm, inplace=True))


# ---- embedding_bag
def _check_bag_weight(d: dtypes.dtype) -> None:
    if not d.is_floating_point:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
            f"Double; but got torch.{d.scalar_name}Tensor instead (while checking arguments for embedding_bag)"
        )


def _check_bag_ranks(weight: int, indices: int, offsets: int) -> None:
    wrong = (
        ("input has to be a 1D or 2D", indices) if indices not in (1, 2)
        else ("offsets has to be a 1D", offsets) if indices == 1 and offsets != 1
        else ("weight has to be a 2D", weight) if weight != 2
        else None
    )  # fmt: skip
    if wrong is not None:
        raise RuntimeError(f"{wrong[0]} Tensor, but got Tensor of dimension {wrong[1]}")


def _bag_shape(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    _check_indices("embedding_bag", indices)
    _check_indices("embedding_bag", offsets, 1, "offsets")
    _check_bag_ranks(weight._array.ndim, indices._array.ndim, offsets._array.ndim)
    _check_bag_weight(weight.dtype)
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type torch.{weight.dtype.scalar_name}Tensor does not equal "
            f"torch.{per_sample_weights.dtype.scalar_name}Tensor (while checking arguments for embedding_bag)"
        )
    bags = offsets._array.shape[0] - (1 if include_last_offset else 0)
    width = weight._array.shape[1]
    index = indices.dtype
    # Sums need no bookkeeping: their bag sizes are left at zero.
    return (
        Spec((bags, width), weight.dtype),
        Spec((0,) if mode == SUM else indices._array.shape, index),
        Spec((bags,), index),
        Spec((bags, width) if mode == MAX else (bags,), index),
    )


def _check_offsets(offsets, count: int, include_last_offset: bool) -> None:
    if offsets.size:
        if int(offsets[0]) != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {int(offsets[0])}"
            )
        if int(offsets[-1]) > count:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {int(offsets[-1])}"
            )
    elif include_last_offset:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")


def _bag_kernel(
    xp, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    _check_bag_weight(dtypes.by_numpy[weight.dtype])
    _check_offsets(offsets, indices.size, include_last_offset)
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= weight.shape[0]):
        raise RuntimeError(
            "Expected i < index_size to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)"
        )
    starts = offsets[:-1] if include_last_offset else offsets
    stop = int(offsets[-1]) if include_last_offset else indices.size
    bag, sizes = _owners(xp, starts, stop)
    chosen, owner, factors = indices[:stop], bag, per_sample_weights
    if padding_idx >= 0:
        kept = xp.flatnonzero(chosen != padding_idx)
        chosen, owner = chosen[kept], bag[kept]
        factors = None if per_sample_weights is None else per_sample_weights[kept]
        sizes = xp.bincount(owner, minlength=starts.size)[: starts.size]
    out, largest = _sum_bags(xp, weight, chosen, factors, sizes, mode), None
    if out is None:
        rows = weight[chosen]
        if weight.dtype.itemsize == 2:
            rows = rows.astype(xp.float32)
        if factors is not None:
            rows = rows * factors.astype(rows.dtype)[:, None]
        out, largest = _reduce_bags(xp, rows, chosen, owner, sizes, mode)
    index = indices.dtype
    if mode == SUM:
        nothing = xp.zeros(starts.size, dtype=index)
        return out.astype(weight.dtype), xp.zeros(0, dtype=index), nothing, nothing.copy()
    whole = xp.zeros(indices.size, dtype=index)
    whole[:stop] = bag
    sizes = sizes.astype(index)
    return out.astype(weight.dtype), whole, sizes, largest.astype(index) if mode == MAX else sizes.copy()


def _owners(xp, starts, stop: int):
    """The bag of each index, and how many each has; offsets never go down."""
    if xp is not np or not starts.size:
        bag = xp.searchsorted(starts, xp.arange(stop), side="right") - 1
        return bag, xp.bincount(bag, minlength=starts.size)[: starts.size]
    sizes = np.maximum(np.diff(starts, append=stop), 0)
    return np.repeat(np.arange(starts.size), sizes)[:stop], sizes


def _sum_bags(xp, weight, chosen, factors, sizes, mode):
    """Sums or means of the rows of each bag by a loop in C, which copies no row; None where there is none."""
    if xp is not np or mode == MAX or not weight.flags.c_contiguous:
        return None
    start = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    read = np.ascontiguousarray(chosen, np.int64)
    out = spatial.axis_map(weight, 0, start, read, None if factors is None else np.ascontiguousarray(factors))
    if out is not None and mode == MEAN:
        out /= np.maximum(sizes, 1).astype(out.dtype)[:, None]
    return out


def _reduce_bags(xp, rows, chosen, owner, sizes, mode):
    """Sum, mean or maximum of each bag's rows; and for the maximum, which row it came from."""
    out = xp.zeros((sizes.size, rows.shape[1]), dtype=rows.dtype)
    largest = xp.zeros(out.shape, dtype=chosen.dtype) if mode == MAX else None
    filled = xp.flatnonzero(sizes)
    if not filled.size:
        return out, largest
    starts = (xp.cumsum(sizes) - sizes)[filled]
    if mode != MAX:
        out[filled] = xp.add.reduceat(rows, starts, axis=0)
        if mode == MEAN:
            out[filled] /= sizes[filled][:, None].astype(rows.dtype)
        return out, largest
    out[filled] = xp.maximum.reduceat(rows, starts, axis=0)
    hit = (rows == out[owner]) | xp.isnan(rows)
    position = xp.where(hit, xp.arange(owner.size)[:, None], owner.size)
    largest[filled] = chosen[xp.minimum.reduceat(position, starts, axis=0)]
    return out, largest


def _bag_of(indices, offsets, include_last_offset):
    """The bag that each index belongs to."""
    starts = offsets[:-1] if include_last_offset else offsets

    places = _places(indices)
    return public("torch", "searchsorted")(starts.to(places.dtype), places, right=True) - 1


def _places(indices):
    return public("torch", "arange")(indices.shape[0], dtype=indices.dtype, device=indices.device)


def _in_no_bag(indices, offsets):
    """The indices behind the last offset, where that ends the last bag: they take no part."""
    return _places(indices) >= offsets[-1]


def _bag_weight_grad(
    g, weight_shape, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
    padding_idx, bag_size, maximum_indices,
):  # fmt: skip
    if g is None:
        return None
    if mode == MAX:
        g = g * (bag_size > 0).unsqueeze(-1).to(g.dtype)
        return g.new_zeros(weight_shape).scatter_add(0, maximum_indices.long(), g)
    owner = _bag_of(indices, offsets, include_last_offset)
    if mode == MEAN:
        g = g / bag_size.clamp(min=1).unsqueeze(-1).to(g.dtype)
    rows = g.index_select(0, owner)
    if include_last_offset:
        rows = rows.masked_fill(_in_no_bag(indices, offsets).unsqueeze(-1), 0)
    if per_sample_weights is not None:
        rows = rows * conj(per_sample_weights).unsqueeze(-1)
    if sparse:
        return above.sparse_rows(rows, indices, weight_shape[0], padding_idx, scale_grad_by_freq, owned=True)
    return embedding_dense_backward(rows, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


def _bag_sample_grad(g, weight, indices, offsets, include_last_offset, padding_idx):
    if g is None:
        return None
    owner = _bag_of(indices, offsets, include_last_offset)
    result = (g.index_select(0, owner) * conj(weight).index_select(0, indices)).sum(-1)
    if include_last_offset:
        result = result.masked_fill(_in_no_bag(indices, offsets), 0)
    return result.masked_fill(indices == padding_idx, 0) if padding_idx >= 0 else result


_embedding_bag = _lookup(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
    "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor "
    "output, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices)",
    meta=_bag_shape,
    kernel=_bag_kernel,
    method=False,
    out=False,
    named=False,
    vjp={"weight": _bag_weight_grad, "per_sample_weights": _bag_sample_grad},
)


def embedding_bag_forward_only(weight, indices, offsets, *options, **named):
    """`_embedding_bag` without history."""
    with no_grad():
        return _embedding_bag(weight, indices, offsets, *options, **named)


@front("torch.embedding_bag")
def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """(result, bag of each index, bag sizes, rows of the maxima)."""
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
            )
        padding_idx = padding_idx + rows if padding_idx < 0 else padding_idx
    return _embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )


@front("nn.functional.embedding_bag")
def embedding_bag_function(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """Sums, means or maxima of bags of rows, without making the rows."""
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        input, weight = weight, input
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    input, offsets, per_sample_weights = _flat_bags(input, offsets, per_sample_weights, include_last_offset)
    number = _bag_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        with no_grad():
            renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    return embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def _flat_bags(input, offsets, per_sample_weights, include_last_offset: bool):
    """A matrix of indices is a list of bags of one size."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences. However, found "
                f"offsets of type {type(offsets)}".replace("pullback.core.tensor.", "torch.")
            )
        bags, length = input.shape
        offsets = length * public("torch", "arange")(bags + include_last_offset, dtype=input.dtype, device=input.device)
        return input.reshape(-1), offsets, None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def _bag_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> int:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    return _MODES[mode]
