"""Array functions behind gather, scatter and the `index_*` operators.

In: arrays, a dimension, integer indices. Out: fresh arrays (`gather`), or the first array written (all others, named
for what they do). What always holds: shapes and every index are checked, in PyTorch's words, before anything is
written; places named more than once count every time; float16 and bfloat16 are combined in float32 and rounded once.
"""

from __future__ import annotations

from math import prod

from ...core.arrays import LARGE, run_chunks
from ...core.dtype import by_numpy
from ...core.geometry import wrap_dim
from ...core.threads import thread_count
from .index_kernels import combine_rows

CHUNK = 1 << 16  # elements per piece of large work: temporaries stay in cache
UFUNCS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def at_least_1d(array):
    """A view with at least one dimension: tensors without any count as one element."""
    return array if array.ndim else array.reshape(1)


def scalar_name(array) -> str:
    return by_numpy[array.dtype].scalar_name


def is_narrow(array) -> bool:
    return array.dtype.itemsize <= 2 and array.dtype.kind not in "iub"


# ---- gather and scatter: an index for every element
def check_index_type(name: str, index) -> None:
    if index.size and not (index.dtype.kind == "i" and index.dtype.itemsize >= 4):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def check_gather(shape, index_shape, dim: int) -> int:
    """The wrapped dimension of a gather, or PyTorch's error."""
    d = wrap_dim(dim, len(shape))
    if 0 in index_shape:
        return d
    if max(len(shape), 1) != max(len(index_shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for k, (have, want) in enumerate(zip(shape, index_shape, strict=False)):
        if k != d and want > have:
            raise RuntimeError(
                f"Size does not match at dimension {k} expected index {list(index_shape)} to be no larger than self "
                f"{list(shape)} apart from dimension {d}"
            )
    return d


def check_scatter(shape, index_shape, src_shape, dim: int) -> int:
    """The wrapped dimension of a scatter; `src_shape` is None for a number."""
    d = wrap_dim(dim, len(shape))
    if 0 in index_shape:
        return d
    if max(len(shape), 1) != max(len(index_shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src_shape is not None and max(len(src_shape), 1) != max(len(index_shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    wide = any(k != d and w > h for k, (h, w) in enumerate(zip(shape, index_shape, strict=False)))
    if wide or src_shape is not None and any(w > h for h, w in zip(src_shape, index_shape, strict=False)):
        tail = "" if src_shape is None else f" and to be no larger size than src {list(src_shape)}"
        raise RuntimeError(
            f"Expected index {list(index_shape)} to be no larger than self {list(shape)} apart from dimension {d}{tail}"
        )
    return d


def outside(index, size: int) -> bool:
    """Whether any index is negative or too large: as unsigned numbers, negative ones are too large as well."""
    index = index[tuple(slice(None) if s else slice(1) for s in index.strides)]  # those of an expanded one, once
    return index.size > 0 and int(index.view(f"u{index.itemsize}").max()) >= size


def check_range(index, size: int, dim: int) -> None:
    if outside(index, size):
        bad = index[(index < 0) | (index >= size)].flat[0]
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def gather(xp, array, dim, index, sparse_grad=False):
    check_index_type("gather", index)
    d = check_gather(array.shape, index.shape, dim)
    if not index.size:
        return xp.empty(index.shape, array.dtype)
    source, at = at_least_1d(array), at_least_1d(index)
    check_range(at, source.shape[d], d)
    if d == source.ndim - 1 and at.ndim > 1 and at.size >= LARGE and at.shape[:-1] == source.shape[:-1]:
        return _gather_rows(xp, source, at)
    cut = _reached(at, d)
    if (rows := of_slices(at, d)) is not None:
        return source[cut].take(rows, axis=d)
    picked = source.take(at) if at.ndim == 1 else xp.take_along_axis(source[cut], at, axis=d)
    return picked if index.ndim else picked.reshape(())


def _reached(index, dim: int) -> tuple:
    """The part of an array that an index of a dimension reaches."""
    return tuple(slice(None) if k == dim else slice(0, s) for k, s in enumerate(index.shape))


def of_slices(index, dim: int):
    """One index for each slice, where an index of elements says the same in all of it, since it was expanded; else None."""
    others = (k for k in range(index.ndim) if k != dim)
    if index.ndim < 2 or any(index.strides[k] and index.shape[k] > 1 for k in others):
        return None
    return index[tuple(slice(None) if k == dim else 0 for k in range(index.ndim))]


def _gather_rows(xp, source, index):
    """gather along the last dimension of large arrays: a few rows at a time, on several threads."""
    n, flat = source.shape[-1], source.reshape(-1)
    at = index.reshape(-1, index.shape[-1])
    out = xp.empty(at.shape, source.dtype)
    step = max(1, CHUNK // at.shape[1])

    def work(first: int, last: int) -> None:
        for start in range(first, last, step):
            stop = min(start + step, last)
            places = at[start:stop] + (xp.arange(start, stop) * n)[:, None]
            flat.take(places, out=out[start:stop], mode="clip")  # all were checked; "clip" writes straight into `out`

    share = -(-len(at) // thread_count())
    run_chunks([lambda s=s: work(s, min(s + share, len(at))) for s in range(0, len(at), share)])
    return out.reshape(index.shape)


def _places(xp, shape, index, dim: int):
    """Flat positions, in a row-major array of `shape`, of the elements that a scatter writes."""
    at, step = xp.zeros((), "i8"), 1
    for d in range(len(shape) - 1, -1, -1):
        if d == dim:
            part = index.astype("i8") * step
        else:
            part = xp.reshape(xp.arange(index.shape[d]) * step, (-1,) + (1,) * (len(shape) - 1 - d))
        at = at + part
        step *= shape[d]
    return xp.broadcast_to(at, index.shape).reshape(-1)


def _cut(source, shape):
    return at_least_1d(source)[tuple(slice(0, s) for s in shape)]


def scatter(xp, out, dim, index, src, name="scatter") -> None:
    """`out[.., index, ..] = src`, element by element; `src` may be a number (a 0-d array)."""
    target, at, d = prepare(xp, out, dim, index, src, name)
    if at is not None:
        values, part = src if not src.ndim else _cut(src, at.shape), target[_reached(at, d)]
        if (rows := of_slices(at, d)) is not None:
            xp.moveaxis(part, d, 0)[rows] = xp.moveaxis(values, d, 0) if values.ndim else values
        else:
            xp.put_along_axis(part, at, values, axis=d)


def prepare(xp, out, dim, index, src, name: str) -> tuple:
    """(target, index, dimension), at least 1-d and all checked; the index is None where there is nothing to do."""
    check_index_type("scatter", index)
    number = not src.ndim and name == "scatter.value"
    d = check_scatter(out.shape, index.shape, None if number else src.shape, dim)
    if not number and src.dtype != out.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        return out, None, d
    target, at = at_least_1d(out), at_least_1d(index)
    check_range(at, target.shape[d], d)
    return target, at, d


def scatter_reduce(xp, out, dim, index, src, reduce, include_self=True) -> None:
    """`out[.., index, ..]` combined with `src` by sum, prod, mean, amax or amin."""
    if reduce not in UFUNCS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    target, at, d = prepare(xp, out, dim, index, src, "scatter_reduce")
    check_reducible(f"scatter_gather_tensor_cpu_reduce_{reduce}", out, reduce)
    if at is None:
        return
    if (rows := of_slices(at, d)) is not None:
        part = target[_reached(at, d)]
        _store_rows(
            xp, part, d, combine(xp, _rows(xp, part, d), rows, _rows(xp, _cut(src, at.shape), d), reduce, include_self)
        )
        return
    places = _places(xp, target.shape, at, d)
    values = xp.ascontiguousarray(_cut(src, at.shape)).reshape(-1, 1)
    work = xp.ascontiguousarray(target).reshape(-1, 1)
    done = combine(xp, work, places, values, reduce, include_self)
    if not xp.may_share_memory(target, done):
        target[...] = done.reshape(target.shape)


def check_reducible(kernel: str, array, reduce: str) -> None:
    """Complex numbers have no order, and truth values no mean."""
    if reduce in ("amax", "amin") and array.dtype.kind == "c" or reduce == "mean" and array.dtype.kind == "b":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(array)}'")


def combine(xp, rows, at, values, reduce: str, include_self: bool):
    """Rows combined at places; a fresh or the same array comes back."""
    dtype = rows.dtype
    if is_narrow(rows):
        rows, values = rows.astype("f4"), values.astype("f4")
    if not include_self:
        rows[at] = identity(xp, rows.dtype, reduce)
    combine_rows(xp, UFUNCS[reduce], rows, at, values)
    if reduce == "mean":
        counts = xp.full(rows.shape[0], int(include_self), "i8")
        xp.add.at(counts, at, 1)
        counts = xp.maximum(counts, 1)[:, None]
        rows = xp.floor_divide(rows, counts) if rows.dtype.kind in "iu" else rows / counts.astype(rows.real.dtype)
    return rows.astype(dtype, copy=False)


def identity(xp, dtype, reduce: str):
    """What a reduction starts from."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        info = xp.iinfo(dtype)
        return info.min if reduce == "amax" else info.max
    return -xp.inf if reduce == "amax" else xp.inf


# ---- index_*: one index for a whole slice
def select(xp, array, dim, index):
    """`index_select`."""
    d = wrap_dim(dim, array.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not (index.dtype.kind == "i" and index.dtype.itemsize >= 4):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not array.ndim:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        check_inside(index, 1)
        return array.copy()
    at = index.reshape(-1)
    if outside(at, array.shape[d]):
        raise _no_such_row(array.shape, d, at)
    return array.take(at, axis=d)


def _no_such_row(shape: tuple, d: int, index) -> Exception:
    """The error of index_select, whose type depends on the dimension."""
    size, empty = shape[d], 0 in shape
    if len(shape) == 1 or d == 0 and not empty:
        return IndexError("index out of range in self")
    if not size:
        return RuntimeError("index_select(): self indexing axis dim should be positive")
    wrong = next(int(i) for i in index.tolist() if not 0 <= i < size)
    return RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}")


def _no_place(shape: tuple, d: int, index) -> Exception:
    """The error of index_add, whose type depends on the dimension too."""
    if len(shape) < 2 or 0 < d < len(shape) - 1:
        return IndexError("index out of range in self")
    wrong = next(int(i) for i in index.tolist() if not 0 <= i < shape[d])
    return RuntimeError(f"index {wrong} is out of bounds for dimension {d} with size {shape[d]}")


def check_inside(index, size: int) -> None:
    if outside(index, size):
        raise IndexError("index out of range in self")


def check_slices(name: str, self_shape, index, source_shape, dim: int) -> int:
    """Checks of index_add and index_reduce that need metadata alone (`index`: anything with shape, ndim, dtype)."""
    d = wrap_dim(dim, len(self_shape))
    if index.ndim > 1:
        kind = by_numpy[index.dtype].scalar_name
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {kind} and size: "
            f"{list(index.shape)}"
        )
    if not (index.dtype.kind == "i" and index.dtype.itemsize >= 4):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {by_numpy[index.dtype].scalar_name}"
        )
    if d != 0 and d >= len(source_shape):
        raise RuntimeError(
            f"{name}(): Indexing dim {d} is out of bounds of the source tensor with dim {len(source_shape)}"
        )
    count = prod(index.shape)
    have = source_shape[d] if len(source_shape) else 1
    if count != have:
        raise RuntimeError(
            f"{name}(): Number of indices ({count}) should be equal to source.size(dim): ({have}), for dim: {d}"
        )
    kept, given = (*self_shape[:d], *self_shape[d + 1 :]), (*source_shape[:d], *source_shape[d + 1 :])
    if kept != given or len(self_shape) != len(source_shape):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self_shape)} source.shape = {list(source_shape)}"
        )
    return d


def check_same_type(name: str, out, source) -> None:
    if out.dtype != source.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(out)}) and source ({scalar_name(source)}) must have the same scalar type"
        )


def _rows(xp, array, dim: int):
    """The array with `dim` in front as rows of the rest, row-major."""
    moved = xp.moveaxis(at_least_1d(array), dim, 0)
    return xp.ascontiguousarray(moved).reshape(moved.shape[0], -1 if moved.size else prod(moved.shape[1:]))


def _store_rows(xp, out, dim: int, rows) -> None:
    if not xp.may_share_memory(out, rows):
        moved = xp.moveaxis(at_least_1d(out), dim, 0)
        moved[...] = rows.reshape(moved.shape)


def add(xp, out, dim, index, source, alpha=1) -> None:
    """`index_add`."""
    check_same_type("index_add_", out, source)
    d = check_slices("index_add_", out.shape, index, source.shape, dim)
    at = index.reshape(-1)
    if outside(at, at_least_1d(out).shape[d]):
        raise _no_place(out.shape, d, at)
    values = _rows(xp, source, d)
    if not isinstance(alpha, (int, float)) or alpha != 1:
        values = values * xp.asarray(alpha).astype(values.dtype)
    rows = _rows(xp, out, d)
    combine_rows(xp, "add", rows, at, values)
    _store_rows(xp, out, d, rows)


def reduce_slices(xp, out, dim, index, source, reduce, include_self=True) -> None:
    """`index_reduce`."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_same_type("index_reduce_", out, source)
    d = check_slices("index_reduce_", out.shape, index, source.shape, dim)
    check_reducible("index_func_" if include_self else "index_reduce_func_exclude_input_init", out, reduce)
    if out.dtype.kind == "b":
        raise NotImplementedError("\"index_func_\" not implemented for 'Bool'")
    at = index.reshape(-1)
    check_inside(at, at_least_1d(out).shape[d])
    step = _combine_rounding if is_narrow(out) and reduce in ("prod", "mean") else combine
    rows = step(xp, _rows(xp, out, d), at, _rows(xp, source, d), reduce, include_self)
    _store_rows(xp, out, d, rows)


def _combine_rounding(xp, rows, at, values, reduce: str, include_self: bool):
    """As `combine`, of narrow floats that PyTorch rounds after every product or sum here, counts included."""
    width, rows = rows.shape[1], rows.copy()
    if not include_self:
        rows[at] = identity(xp, rows.dtype, reduce)
    places = (at[:, None].astype("i8") * width + xp.arange(width)).reshape(-1)
    flat = rows.reshape(-1)
    getattr(xp, UFUNCS[reduce]).at(flat, places, xp.ascontiguousarray(values).reshape(-1))
    if reduce == "mean":
        counts = xp.full(rows.shape[0], int(include_self), rows.dtype)
        xp.add.at(counts, at, xp.ones(at.shape, rows.dtype))
        counts = xp.maximum(counts.astype("f4"), 1)[:, None]
        rows = (flat.reshape(rows.shape).astype("f4") / counts).astype(rows.dtype)
    return rows


def check_copy(self_shape, index, source_shape, dim: int) -> int:
    """Checks of index_copy that need metadata alone."""
    d = wrap_dim(dim, len(self_shape))
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    count = prod(index.shape)
    if not len(source_shape) and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if len(source_shape) != len(self_shape) and len(source_shape) and len(self_shape):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({len(source_shape)}), destination dimensionality ({len(self_shape)})"
        )
    if not (index.dtype.kind == "i" and index.dtype.itemsize == 8):
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {by_numpy[index.dtype].scalar_name}"
        )
    ours, theirs = (*self_shape[:d], *self_shape[d + 1 :]), (*source_shape[:d], *source_shape[d + 1 :])
    if ours != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, ours))} at dimension {d} and source slice shape: {' '.join(map(str, theirs))} "
            f"at dimension {d}."
        )
    if len(source_shape) and count != source_shape[d]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({source_shape[d]})"
        )
    return d


def copy(xp, out, dim, index, source) -> None:
    """`index_copy`."""
    if out.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(out)} and (source) {scalar_name(source)}"
        )
    d = check_copy(out.shape, index, source.shape, dim)
    moved, at = xp.moveaxis(at_least_1d(out), d, 0), index.reshape(-1)
    size = moved.shape[0]
    if outside(at, size):
        bad = at[(at < 0) | (at >= size)][0]
        raise IndexError(f"index_copy_(): index {bad} is out of bounds for dimension {d} with size {size}")
    moved[at] = xp.moveaxis(at_least_1d(source), d, 0)


def fill(xp, out, dim, index, value) -> None:
    """`index_fill` with a number or a 0-d array."""
    d = wrap_dim(dim, out.ndim)
    if not (index.dtype.kind == "i" and index.dtype.itemsize == 8):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if xp.iscomplexobj(value) and out.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    moved, at = xp.moveaxis(at_least_1d(out), d, 0), index.reshape(-1)
    size = moved.shape[0]
    if size and not out.size:  # nothing to fill along another dimension: then no index is looked at
        return
    if at.size and (at.min() < -size or at.max() >= size):
        bad = at[(at < -size) | (at >= size)][0]
        raise IndexError(f"index {bad} is out of bounds for dimension {d} with size {size}")
    moved[at] = xp.asarray(value).astype(out.dtype)
