"""Array functions behind indexing: elements picked and put by integer arrays and masks.

In: arrays, and indices as `aten::index` takes them (one per dimension, None for "all of it", a mask for as many
dimensions as it has). Out: fresh arrays, or the first argument written. What always holds: every index is checked
before anything is written, and errors are in PyTorch's words.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...core import small
from ...core.dtype import by_numpy
from ...core.geometry import broadcast_shapes
from ...core.objects import make_tensor
from ..system.scalars import check_fits

_MASKS = "b"  # dtype kind of masks; uint8 counts as one too
_REDUCED = (2, 1)  # item sizes of float types that are summed in float32


def is_mask(index) -> bool:
    """Whether an index selects by truth rather than by number."""
    return index.dtype.kind == _MASKS or index.dtype.kind == "u" and index.dtype.itemsize == 1


def check_types(indices) -> None:
    """Only int32, int64, bool and uint8 may index."""
    for index in indices:
        if index is None or is_mask(index) or index.dtype.kind == "i" and index.dtype.itemsize >= 4:
            continue
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def check_mask(mask_shape, shape, dim: int) -> None:
    """A mask must have the sizes of the dimensions it stands for."""
    for j, size in enumerate(mask_shape):
        if dim + j >= len(shape) or size != shape[dim + j]:
            raise IndexError(
                f"The shape of the mask {list(mask_shape)} at index {j} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {dim + j}"
            )


def check_count(count: int, rank: int) -> None:
    if count > rank:
        raise IndexError(f"too many indices for tensor of dimension {rank} (got {count})")


def integer_indices(xp, shape, indices) -> list:
    """One integer array or None per dimension: masks become the places where they are true."""
    if not indices:
        raise IndexError("at least one index must be provided")
    check_types(indices)
    out: list = []
    for index in indices:
        if index is None or not is_mask(index):
            out.append(index)
        else:
            check_count(len(out) + index.ndim, len(shape))
            check_mask(index.shape, shape, len(out))
            out.extend(xp.nonzero(index) if index.ndim else (xp.zeros(int(index), "i8"),))
    check_count(len(out), len(shape))
    return out


def index_shape(shapes) -> tuple:
    """The common shape of the index arrays."""
    try:
        return broadcast_shapes(*shapes)
    except RuntimeError:
        listed = ", ".join(str(list(s)) for s in shapes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None


def result_shape(shape, known, picked) -> tuple:
    """The shape of `x[...]`, from whether each dimension is indexed (`known`) and the indices' shape."""
    at = [d for d, indexed in enumerate(known) if indexed]
    rest = [s for d, s in enumerate(shape) if d >= len(known) or not known[d]]
    adjacent = at == list(range(at[0], at[0] + len(at))) if at else True
    lead = at[0] if at and adjacent else 0
    return (*rest[:lead], *picked, *rest[lead:])


def _key(indices) -> tuple:
    return tuple(slice(None) if i is None else i for i in indices)


def refuse_any_of_none(shape, dims, picked) -> None:
    """What shapes alone say of indices: into a dimension of size 0 there is none. Symbolic sizes are not asked."""
    if any(shape[d].__class__ is int and shape[d] == 0 for d in dims) and not any(
        n.__class__ is not int or n == 0 for n in picked
    ):
        raise IndexError("index is out of bounds for dimension with size 0")


def raise_out_of_range(indices, shape) -> None:
    """Name the first index that lies outside its dimension."""
    picked = [(i, shape[d]) for d, i in enumerate(indices) if i is not None]
    for position, (index, size) in enumerate(picked):
        if index.size and (index.min() < -size or index.max() >= size):
            if not size:
                raise IndexError("index is out of bounds for dimension with size 0")
            bad = index[(index < -size) | (index >= size)].flat[0]
            raise IndexError(f"index {bad} is out of bounds for dimension {position} with size {size}")


def _leading_mask(array, indices):
    """The mask that is the only index, over the first dimensions; None where there is anything else."""
    mask = indices[0] if indices else None
    if mask is None or not is_mask(mask) or not mask.ndim or any(i is not None for i in indices[1:]):
        return None
    check_count(mask.ndim, array.ndim)
    check_mask(mask.shape, array.shape, 0)
    return mask


def _rows_under(array, mask):
    """The array as rows, one per element of the mask."""
    return array.reshape(mask.size, *array.shape[mask.ndim :])


def pick(xp, array, indices):
    """`array[indices]`."""
    mask = _leading_mask(array, indices)
    if mask is not None:  # several times faster than NumPy's own masks
        return _rows_under(array, mask).take(xp.flatnonzero(mask), axis=0)
    indices = integer_indices(xp, array.shape, indices)
    given = [d for d, i in enumerate(indices) if i is not None]
    index_shape([indices[d].shape for d in given])
    if xp.__name__ != "numpy":  # CuPy reads something where there is nothing to read
        raise_out_of_range(indices, array.shape)
    try:
        if len(given) == 1:
            return array.take(indices[given[0]], axis=given[0])
        return array[_key(indices)] if given else array.copy()
    except IndexError as error:
        failure = error
    raise_out_of_range(indices, array.shape)
    raise failure


def put(xp, array, indices, values, accumulate: bool) -> None:
    """`array[indices] = values`, or `+=` with every value counted, however often an element is named."""
    if not indices:
        raise RuntimeError("index_put_(): at least one index must be provided")
    if values.size == 1 and not accumulate and _only_a_mask(indices):  # one number for all: it is cast, as in a fill
        values = _cast_number(values, array.dtype)
    mask = _leading_mask(array, indices)
    if mask is not None and array.flags.c_contiguous:
        places = xp.flatnonzero(mask)
        array, indices = _rows_under(array, mask), (places, *[None] * (len(indices) - 1))
    indices = integer_indices(xp, array.shape, indices)
    known = [i is not None for i in indices]
    picked = index_shape([i.shape for i in indices if i is not None])
    target = result_shape(array.shape, known, picked)
    values = fit_values(xp, values, target)
    check_same_dtype(array, values)
    raise_out_of_range(indices, array.shape)
    if not any(known):
        array[...] = array + values if accumulate else values
    elif accumulate:
        _add(xp, array, indices, values, picked)
    else:
        array[_key(indices)] = values


def _only_a_mask(indices) -> bool:
    given = [i for i in indices if i is not None]
    return len(given) == 1 and is_mask(given[0])


def _cast_number(values, dtype):
    if values.dtype.kind == "c" and dtype.kind != "c":
        check_fits(complex(values.item()), by_numpy[dtype])
        values = values.real
    return values.astype(dtype)


def check_same_dtype(array, values) -> None:
    if array.dtype != values.dtype:
        ours, theirs = by_numpy[array.dtype].scalar_name, by_numpy[values.dtype].scalar_name
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, "
            f"got {ours} for the destination and {theirs} for the source."
        )


def fit_values(xp, values, target: tuple):
    """Values broadcast to the shape of what they are put into; leading ones are dropped."""
    shape = check_values(values.shape, target)
    return xp.broadcast_to(values.reshape(shape), target)


def check_values(given: tuple, target: tuple) -> tuple:
    """The shape of values without the leading ones that are dropped; raises where they do not fit what they go into."""
    shape = given
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    sizes = zip(reversed(shape), reversed(target), strict=False)
    if len(shape) > len(target) or any(s != 1 and s != t for s, t in sizes):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result "
            f"of shape {list(target)}"
        )
    return shape


def _add(xp, array, indices, values, picked: tuple) -> None:
    """Rows of `values` added to rows of `array`, where a row is everything that is not indexed."""
    at = [d for d, i in enumerate(indices) if i is not None]
    moved = xp.moveaxis(array, at, range(len(at)))
    rows_shape, row = moved.shape[: len(at)], moved.shape[len(at) :]
    lead = at[0] if at == list(range(at[0], at[0] + len(at))) else 0
    values = xp.moveaxis(values, range(lead, lead + len(picked)), range(len(picked)))
    flat = _flat_rows(xp, [indices[d] for d in at], rows_shape, picked)
    work = moved.reshape(prod(rows_shape), prod(row))
    shared = xp.shares_memory(work, array) if work.base is not None else False
    add_rows(xp, work, flat, values.reshape(flat.size, prod(row)))
    if not shared:
        moved[...] = work.reshape(moved.shape)


def _flat_rows(xp, indices, sizes, picked: tuple):
    flat = xp.zeros(picked, "i8")
    for index, size in zip(indices, sizes, strict=True):
        flat = flat * size + xp.where(index < 0, index + size, index)
    return flat.reshape(-1)


def add_rows(xp, rows, at, values) -> None:
    """`rows[at] += values` with repeated places summed in their order; one flat `add.at` is what NumPy does fastest."""
    combine_rows(xp, "add", rows, at, values)


def combine_rows(xp, name: str, rows, at, values) -> None:
    """`rows[at] = ufunc(rows[at], values)` for each place in turn, by the ufunc's name."""
    if not combined_natively(name, rows, at, values):
        apply_at(xp, getattr(xp, name), rows, at, values)


_native_add, _native_reduce = small.table.get("index_add_.default"), small.table.get("index_reduce.default")
_REDUCTIONS = {"multiply": "prod", "maximum": "amax", "minimum": "amin"}


def combined_natively(name: str, rows, at, values) -> bool:
    """Whether rows were combined by the loop in C, which is for row-major arrays of NumPy's of some dtypes; nothing is done where not."""
    if (
        _native_add is None
        or rows.__class__ is not np.ndarray
        or rows.dtype != values.dtype
        or rows.dtype not in by_numpy
    ):
        return False
    given = (rows, np.ascontiguousarray(at, np.int64), np.ascontiguousarray(values))
    target, places, source = (make_tensor(a, by_numpy[a.dtype]) for a in given)
    if name == "add":
        return _native_add((target, 0, places, source, 1)) is not None
    found = _native_reduce((target, 0, places, source, _REDUCTIONS[name], True))
    if found is not None:
        rows[...] = found._array
    return found is not None


def apply_at(xp, ufunc, rows, at, values) -> None:
    """`rows[at] = ufunc(rows[at], values)` for each place in turn; narrow floats in float32, rounded once."""
    width = rows.shape[1]
    if not width or not at.size:
        return
    places = at if width == 1 else (at[:, None] * width + xp.arange(width)).reshape(-1)
    values = xp.ascontiguousarray(values).reshape(-1)
    if rows.dtype.itemsize in _REDUCED and rows.dtype.kind not in "iub":
        wide = rows.astype("f4").reshape(-1)
        ufunc.at(wide, places, values.astype("f4"))
        rows[...] = wide.reshape(rows.shape).astype(rows.dtype)
        return
    flat = rows.reshape(-1)
    ufunc.at(flat, places, values.astype(rows.dtype, copy=False))
    if not xp.may_share_memory(flat, rows):
        rows[...] = flat.reshape(rows.shape)
