"""Kernels of sorting: the order of elements along an axis, and what is read off it.

All orders are stable and put NaN last (first when descending). Elements of up to 32 bits are sorted as 64-bit keys, the
element's rank in the upper half and its place in the lower, by one plain sort, which NumPy vectorizes; wider ones by a
stable argsort of ranks.
"""

from __future__ import annotations

from ...core import native
from . import tie_order


def ranks(xp, a):
    """Unsigned integers in the order of the elements: NaN highest, zeros of both signs equal."""
    if a.dtype.kind == "b":
        return a.astype(xp.uint32)
    if a.dtype.kind == "u":
        return a if a.itemsize >= 4 else a.astype(xp.uint32)
    if a.dtype.kind == "i":
        wide = a if a.itemsize >= 4 else a.astype(xp.int32)
        unsigned = wide.view(xp.uint32 if wide.itemsize == 4 else xp.uint64)
        return unsigned ^ unsigned.dtype.type(1 << (8 * wide.itemsize - 1))
    bits = (a + 0).view(xp.uint32 if a.itemsize == 4 else xp.uint64)
    top = bits.dtype.type(1 << (8 * a.itemsize - 1))
    out = xp.where(bits & top, ~bits, bits | top)
    out[a != a] = xp.iinfo(bits.dtype).max
    return out


def order(xp, a, axis: int, descending: bool = False):
    """The stable order of the elements along an axis, as places."""
    if a.ndim and axis != a.ndim - 1:
        return xp.moveaxis(order(xp, xp.moveaxis(a, axis, -1), a.ndim - 1, descending), -1, axis)
    rows = xp.ascontiguousarray(a)
    if (found := native.sorted_rows(rows, descending, False)) is not None:
        return found[1]
    key = ranks(xp, rows)
    key = ~key if descending else key
    if key.itemsize == 4 and a.shape[-1] < 1 << 32:
        return _packed(xp, key, sort=True).astype(xp.int64)
    return xp.argsort(key, axis=-1, kind="stable")


def _packed(xp, key, sort: bool, k: int = 0):
    """Places in the order of 32-bit keys (all of them, or the first k in order), the earlier first among equals."""
    pairs = (key.astype(xp.uint64) << xp.uint64(32)) | xp.arange(key.shape[-1], dtype=xp.uint64)
    if not sort:
        pairs.partition(k - 1, axis=-1)
        pairs = xp.ascontiguousarray(pairs[..., :k])
    pairs.sort(axis=-1)
    return pairs & xp.uint64(0xFFFFFFFF)


def sorted_with_places(xp, a, axis: int, descending: bool = False):
    """Sorted elements and where they were."""
    if not native.is_host(a) and a.ndim:
        last = axis == a.ndim - 1
        rows = a if last else xp.moveaxis(a, axis, -1)
        found = native.sorted_rows(rows if rows.flags.c_contiguous else xp.ascontiguousarray(rows), descending, True)
        if found is not None:
            return found if last else tuple(xp.moveaxis(m, -1, axis) for m in found)
    at = order(xp, a, axis, descending)
    return xp.take_along_axis(a, at, axis), at


def top(xp, a, axis: int, k: int, largest: bool):
    """The k largest (smallest) elements in order, and where they were."""
    rows = xp.ascontiguousarray(xp.moveaxis(a, axis, -1))
    n = rows.shape[-1]
    if k == 0 or not rows.size:
        shape = (*a.shape[:axis], k, *a.shape[axis + 1 :])
        return xp.empty(shape, a.dtype), xp.empty(shape, xp.int64)
    at = _retraced(xp, rows, lambda key, less: tie_order.top(n, k, less), largest) if k * 64 > n else None
    if at is None and k * 16 <= n and (result := native.topk(rows, k, largest)) is not None:
        return tuple(xp.moveaxis(m, -1, axis) for m in result)
    if at is None:
        key = None if k >= n // 4 else ranks(xp, rows)
        at = (
            order(xp, rows, rows.ndim - 1, largest)[..., :k] if key is None else _first(xp, ~key if largest else key, k)
        )
    at = xp.moveaxis(at, -1, axis)
    return xp.take_along_axis(a, at, axis), at


def _first(xp, key, k: int):
    """Places of the k smallest keys in order, without sorting the rest."""
    if key.itemsize == 4 and key.shape[-1] < 1 << 32:
        return _packed(xp, key, sort=False, k=k).astype(xp.int64)
    top = xp.partition(key, k - 1, axis=-1)[..., k - 1 : k]
    below, equal = key < top, key == top
    wanted = k - xp.add.reduce(below, axis=-1, keepdims=True, dtype=xp.int64)  # how many of those that equal the last
    taken = below | (equal & (xp.cumsum(equal, axis=-1) <= wanted))
    some = xp.nonzero(taken)[-1].reshape((*key.shape[:-1], k))
    return xp.take_along_axis(some, xp.argsort(xp.take_along_axis(key, some, -1), axis=-1, kind="stable"), -1)


def _retraced(xp, rows, pick, descending: bool = False):
    """Places that `pick(keys, less)` gives for each row, where the input is small and has ties; else None."""
    n = rows.shape[-1]
    if not 1 < n <= rows.size <= tie_order.SMALL:
        return None
    keys = ~ranks(xp, rows) if descending else ranks(xp, rows)
    in_order = xp.sort(keys, axis=-1)
    if not (in_order[..., 1:] == in_order[..., :-1]).any():
        return None
    result = [pick(key, lambda i, j, key=key: key[i] < key[j]) for key in keys.reshape(-1, n).tolist()]
    return xp.asarray(result, xp.int64).reshape((*rows.shape[:-1], -1))


def kth(xp, a, axis: int, k: int):
    """The k-th smallest element (from 1) and its place, the axis kept."""
    n = a.shape[axis]
    rows = xp.ascontiguousarray(xp.moveaxis(a, axis, -1))
    at = _retraced(xp, rows, lambda key, less: [tie_order.kth(n, k - 1, lambda i, j: less(j, i))])
    at = _kth_place(xp, rows, k - 1) if at is None else at
    at = xp.moveaxis(at, -1, axis)
    return xp.take_along_axis(a, at, axis), at


def _kth_place(xp, rows, k: int):
    """The place of the k-th element (from 0) of each row in stable order."""
    if rows.size <= tie_order.SMALL or rows.dtype.kind == "f" and (rows != rows).any():
        return order(xp, rows, rows.ndim - 1)[..., k : k + 1]
    parted = xp.partition(rows, k, axis=-1)
    value = parted[..., k : k + 1]
    hit = rows == value
    if (xp.add.reduce(hit, axis=-1, dtype=xp.int64) == 1).all():
        return xp.argmax(hit, axis=-1, keepdims=True)
    below = xp.add.reduce(parted[..., :k] < value, axis=-1, keepdims=True, dtype=xp.int64)
    return xp.argmax(hit & (xp.cumsum(hit, axis=-1) == k - below + 1), axis=-1, keepdims=True)


def median(xp, a, axis: int, ignore_nan: bool = False):
    """The lower median and its place, the axis kept. A NaN wins, unless ignored."""
    n = a.shape[axis]
    if a.dtype.kind != "f" or not (a != a).any():
        rows = xp.ascontiguousarray(xp.moveaxis(a, axis, -1))
        at = xp.moveaxis(_kth_place(xp, rows, (n - 1) // 2), -1, axis)
    else:
        valid = xp.add.reduce(a == a, axis=axis, keepdims=True, dtype=xp.int64)
        middle = xp.maximum(valid - 1, 0) // 2
        if not ignore_nan:  # the first NaN stands right after the last number
            middle = xp.where(valid < n, valid, middle)
        at = xp.take_along_axis(order(xp, a, axis), middle, axis)
    return xp.take_along_axis(a, at, axis), at


def mode(xp, a, axis: int):
    """The smallest of the most frequent elements, and the last of its places in sorted order, the axis kept."""
    n = a.shape[axis]
    rows = xp.ascontiguousarray(xp.moveaxis(a, axis, -1))
    retraced = _retraced(xp, rows, lambda key, less: tie_order.sorted_places(n, less))
    places = order(xp, a, axis) if retraced is None else xp.moveaxis(retraced, -1, axis)
    values = xp.moveaxis(xp.take_along_axis(a, places, axis), axis, -1)
    at = xp.arange(n)
    starts = xp.ones(values.shape, bool)
    starts[..., 1:] = values[..., 1:] != values[..., :-1]
    run = at - xp.maximum.accumulate(xp.where(starts, at, 0), axis=-1)
    end = xp.moveaxis(xp.argmax(run, axis=-1, keepdims=True), -1, axis)
    place = xp.take_along_axis(places, end, axis)
    return xp.take_along_axis(a, place, axis), place


# ---- searching
def search(xp, sequence, values, right: bool):
    """Where values belong in sorted rows: one row for all, or a row for each row of values."""
    side = "right" if right else "left"
    if sequence.ndim == 1 and not (sequence.size and sequence[-1] != sequence[-1]):  # it has NaN follow all numbers
        return xp.searchsorted(sequence, values, side=side)
    common = xp.result_type(sequence, values)
    rows, wanted = sequence.astype(common), values.astype(common)
    low = xp.zeros(values.shape, xp.int64)
    high = xp.full(values.shape, sequence.shape[-1], xp.int64)
    for _ in range(sequence.shape[-1].bit_length()):
        open_ = low < high
        middle = (low + high) // 2
        at = xp.minimum(middle, rows.shape[-1] - 1)
        found = rows[at] if rows.ndim == 1 else xp.take_along_axis(rows, at, -1)
        above = (found > wanted) if right else (found >= wanted)
        high = xp.where(open_ & above, middle, high)
        low = xp.where(open_ & ~above, middle + 1, low)
    return low


# ---- distinct elements
def distinct(xp, a, inverse: bool, counts: bool):
    """The distinct elements in order (each NaN for itself), where each went, and how often each is there."""
    result = xp.unique(a.reshape(-1), return_inverse=inverse, return_counts=counts, equal_nan=False)
    result = list(result) if isinstance(result, tuple) else [result]
    values = result.pop(0)
    none = xp.empty(0, xp.int64)
    return (
        values,
        result.pop(0).reshape(a.shape).astype(xp.int64) if inverse else none,
        result.pop(0) if counts else none,
    )


def distinct_rows(xp, rows, ordered: bool):
    """(places of the first of each run of equal rows, run number of each row, length of each run), sorted or not."""
    n = rows.shape[0]
    at = xp.lexsort(rows.T[::-1]) if ordered and rows.shape[1] else xp.arange(n)
    in_order = rows[at]
    starts = xp.ones(n, bool)
    starts[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    number = xp.cumsum(starts) - 1
    inverse = xp.empty(n, xp.int64)
    inverse[at] = number
    return at[starts], inverse, xp.bincount(number, minlength=0).astype(xp.int64)
