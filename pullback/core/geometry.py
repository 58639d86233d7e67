"""Shapes and strides as plain arithmetic: no data.

Every function here works on tuples of ints (or symbolic ints) and is the single source of what shapes, strides and
offsets come out of views, broadcasts and element-wise calls. `Geometry` stands in the place of an array for tensors
that have no data (device `meta`, fake tensors): it answers `shape`, `strides`, `ndim`, `size`, `dtype` as an array does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .symbolic import holds, likely, surely, undecided


class Geometry:
    """The array of a tensor without data. `strides` are in bytes, as NumPy's are; `stride` in elements."""

    __slots__ = ("shape", "stride", "dtype")

    def __init__(self, shape: tuple, stride: tuple, numpy_dtype):
        self.shape = tuple(shape)
        self.stride = tuple(stride)
        self.dtype = numpy_dtype

    @property
    def strides(self) -> tuple:
        return tuple(s * self.dtype.itemsize for s in self.stride)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


def contiguous_strides(shape: Sequence) -> tuple:
    """Row-major strides, in elements; sizes of zero count as one, as in PyTorch."""
    out, step = [], 1
    for s in reversed(shape):
        out.append(step)
        step = step * (s if not isinstance(s, int) or s > 1 else 1)
    return tuple(reversed(out))


def channels_last_strides(shape: Sequence) -> tuple:
    """Strides of (N, H, W, C) memory for an (N, C, H, W) shape; likewise for five dimensions."""
    order = (0, *range(2, len(shape)), 1)
    return strides_for_order(shape, order)


def strides_for_order(shape: Sequence, order: Sequence[int]) -> tuple:
    """Dense strides with dimensions laid out in `order`, outermost first."""
    out, step = [0] * len(shape), 1
    for d in reversed(order):
        out[d] = step
        size = shape[d]
        step = step * (size if likely(size >= 1, otherwise=True) else 1)
    return tuple(out)


def is_contiguous(shape: Sequence, stride: Sequence) -> bool:
    """Whether elements stand in row-major order without gaps; dimensions of size 1 do not matter, nor any where one is 0."""
    step = 1
    for s, st in zip(reversed(shape), reversed(stride), strict=True):
        if s.__class__ is not int and undecided(s == 0):
            return surely_contiguous(shape, stride)
        if s == 0:
            return True
        if s != 1:
            if st != step:
                return any(n.__class__ is int and n == 0 for n in shape)
            step *= s
    return True


def surely_contiguous(shape: Sequence, stride: Sequence) -> bool:
    """Whether symbolic sizes are row-major whatever their values: asks nothing that a guard would have to record."""
    return all(surely(st == dense) for st, dense in zip(stride, contiguous_strides(shape), strict=True))


def is_channels_last(shape: Sequence, stride: Sequence) -> bool:
    """Whether memory is channels-last for 4 or 5 dimensions (PyTorch's rule for ambiguous shapes)."""
    if len(shape) not in (4, 5):
        return False
    step = 0
    if stride[1] == 0:
        return False
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or stride[d] < step:
            return False
        if d == 0 and step == stride[1]:
            return False
        step = stride[d]
        if shape[d] > 1:
            step *= shape[d]
    return True


def is_channels_last_contiguous(shape: Sequence, stride: Sequence) -> bool:
    """Whether 4 or 5 dimensions lie channels-last without gaps; dimensions of size 1 do not matter."""
    if len(shape) not in (4, 5):
        return False
    step = 1
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] != 1:
            if stride[d] != step:
                return False
            step *= shape[d]
    return True


def strides_like(shape: Sequence, stride: Sequence, memory_format: str) -> bool:
    """Whether strides order the dimensions as a channels-last format does, however far apart the elements are."""
    if len(shape) != {"channels_last": 4, "channels_last_3d": 5}.get(str(memory_format).rpartition(".")[2]):
        return False
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or stride[d] < least or d == 0 and least == stride[1]:
            return False
        least = stride[d] * max(shape[d], 1)
    return stride[1] != 0


def is_dense(shape: Sequence, stride: Sequence) -> bool:
    """Whether the elements fill a block of memory, in some order of dimensions, each once; no elements do, whatever their strides."""
    if any(likely(n == 0, otherwise=False) for n in shape):
        return True
    step = 1
    long = [d for d in range(len(shape)) if likely(shape[d] != 1, otherwise=True)]
    if not orderly(stride):
        return surely_contiguous(shape, stride)
    for d in sorted(long, key=lambda d: stride[d]):
        if likely(stride[d] != step, otherwise=True):
            return False
        step *= shape[d]
    return True


def orderly(stride: Sequence) -> bool:
    """Whether strides can be sorted: data decides the order of none."""
    symbols = any(s.__class__ is not int for s in stride)
    return not symbols or not any(undecided(s < t) for s in stride for t in stride)


def may_overlap(shape: Sequence, stride: Sequence) -> bool:
    """Whether two indices can name one element (as after `expand`)."""
    if any(s == 0 for s in shape):
        return False
    reach = 0
    for s, st in sorted(((s, st) for s, st in zip(shape, stride, strict=True) if s > 1), key=lambda p: p[1]):
        if st <= reach:
            return True
        reach += (s - 1) * st
    return False


def broadcast_shapes(*shapes: Sequence) -> tuple:
    """The common shape, or PyTorch's error naming the two sizes that do not meet."""
    out: list = []
    for shape in shapes:
        shape = list(shape)
        if len(shape) > len(out):
            out = [1] * (len(shape) - len(out)) + out
        shift = len(out) - len(shape)
        for i in range(len(shape) - 1, -1, -1):  # the last sizes that do not meet are the ones that PyTorch names
            s = shape[i]
            have = out[i + shift]
            if have == 1:
                out[i + shift] = s
            elif s is not have and s != 1 and not holds(s == have):
                raise RuntimeError(
                    f"The size of tensor a ({have}) must match the size of tensor b ({s}) at non-singleton dimension {i + shift}"
                )
    return tuple(out)


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; negative ones count from the back."""
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound


def wrap_dims(dims, ndim: int) -> tuple[int, ...]:
    """Several dimensions, each once; None or an empty list means all of them."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        only = wrap_dim(dims, ndim)
        return (only,) if ndim else ()
    if dims.__class__ is tuple and len(dims) == 1 and dims[0].__class__ is int and 0 <= dims[0] < ndim:
        return dims
    wrapped = tuple(wrap_dim(int(d), ndim) for d in dims)
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def infer_size(shape: Sequence, numel) -> tuple:
    """Resolve one -1 in a view's shape."""
    total = math.prod(shape)
    if (
        shape and total.__class__ is int and numel.__class__ is int
    ):  # the usual cases; those with a zero are looked at below
        if 0 < total == numel and min(shape) > 0:
            return tuple(shape)
        if total < 0 and min(shape) == -1 and not numel % total and tuple(shape).count(-1) == 1:
            return tuple([-(numel // total) if s == -1 else s for s in shape])
    known, hole = 1, None
    for i, s in enumerate(shape):
        if isinstance(s, int) and s == -1:
            if hole is not None:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif s < 0 if s.__class__ is int else not holds(s >= 0):
            raise RuntimeError(f"invalid shape dimension {s} at index {i} of shape {list(shape)}")
        else:
            known = known * s
    if hole is None:
        if (fits := known == numel) is not True and not holds(fits):
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return tuple(shape)
    if known == 0 if known.__class__ is int else likely(known == 0, otherwise=False):
        if numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    if (fits := numel % known == 0) is not True and not holds(fits):
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return (*shape[:hole], numel // known, *shape[hole + 1 :])


def view_strides(shape: Sequence, stride: Sequence, new_shape: Sequence) -> tuple | None:
    """Strides under which `new_shape` reads the same memory, or None where that takes a copy."""
    total = math.prod(shape)
    plain = total.__class__ is math.prod(new_shape).__class__ is int
    if not plain and surely_contiguous(shape, stride):
        return contiguous_strides(new_shape)
    if likely(total == 0, otherwise=False):
        return tuple(stride) if tuple(shape) == tuple(new_shape) else contiguous_strides(new_shape)
    out = [0] * len(new_shape)
    at = len(new_shape) - 1
    chunk_size, chunk_base = 1, stride[-1] if len(stride) else 1
    view_size = 1
    for d in range(len(shape) - 1, -1, -1):
        chunk_size *= shape[d]
        if d == 0 or _ends_chunk(shape[d - 1], stride[d - 1], chunk_size * chunk_base):
            rest = d == 0 and chunk_size.__class__ is not int  # all that is left: the elements are as many
            while at >= 0 and (rest or _reaches(view_size, chunk_size, new_shape[at])):
                out[at] = view_size * chunk_base
                view_size *= new_shape[at]
                at -= 1
            if not rest and likely(view_size != chunk_size, otherwise=True):
                return None
            if d > 0:
                chunk_base, chunk_size, view_size = stride[d - 1], 1, 1
    if not len(shape):
        return contiguous_strides(new_shape)
    return tuple(out) if at == -1 else None


def _ends_chunk(size, stride, dense) -> bool:
    """Whether memory has a gap before a dimension; where data decides that, it has one."""
    if size.__class__ is stride.__class__ is int:
        return size != 1 and stride != dense
    return likely(size != 1, otherwise=True) and likely(stride != dense, otherwise=True)


def _reaches(view_size, chunk_size, size) -> bool:
    """Whether another new dimension lies in a piece of memory; where data decides that, none does."""
    return likely(view_size < chunk_size, otherwise=False) or likely(size == 1, otherwise=False)


def elementwise_strides(shape: tuple, operands: Sequence[tuple[tuple, tuple]]) -> tuple:
    """Strides of an element-wise result: the operands' order of dimensions is kept, as PyTorch's iterator keeps it.

    `operands` are (shape, stride) pairs that broadcast to `shape`.
    """
    if len(operands) == 1 and (stride := operands[0][1]) and stride[0].__class__ is int:  # most calls: one layout
        dense = contiguous_strides(shape)
        if dense[0].__class__ is int and dense == stride:
            return dense
    full = [o for o in operands if len(o[0]) == len(shape) and tuple(o[0]) == tuple(shape)]
    if full and all(is_contiguous(*o) for o in full) and len(full) == len(operands):
        return contiguous_strides(shape)
    if len(shape) == 4 and full and len(full) == len(operands):
        last = channels_last_strides(shape)
        if all(s == 1 or st == e for o in full for s, st, e in zip(shape, o[1], last, strict=True)):
            return last
    if full and len(full) == len(operands) and all(o[1] == full[0][1] for o in full[1:]) and is_dense(*full[0]):
        return tuple(full[0][1])
    rows = [_broadcast_strides(o, shape) for o in operands]
    if not all(map(orderly, rows)):
        return contiguous_strides(shape)
    return strides_for_order(shape, _iteration_order(shape, rows))


def _broadcast_strides(operand: tuple[tuple, tuple], shape: tuple) -> list:
    size, stride = operand
    shift = len(shape) - len(size)
    repeats = [
        likely(n == 1, otherwise=False) and likely(m != 1, otherwise=True)
        for n, m in zip(size, shape[shift:], strict=True)
    ]
    return [0] * shift + [0 if r else s for r, s in zip(repeats, stride, strict=True)]


def _iteration_order(shape: tuple, rows: list[list]) -> list[int]:
    """Dimensions, outermost first, sorted by stride with PyTorch's insertion sort (ambiguous pairs stay put)."""
    perm = list(range(len(shape) - 1, -1, -1))  # innermost first

    def swap(inner: int, outer: int) -> int:
        for row in rows:
            a, b = row[inner], row[outer]
            if a == 0 or b == 0:
                continue
            if a != b:
                return -1 if a < b else 1
            if likely(shape[inner] > shape[outer], otherwise=False):
                return 1
        return 0

    for i in range(1, len(perm)):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = swap(perm[j], perm[at])
            if verdict > 0:
                perm[j], perm[at] = perm[at], perm[j]
                at = j
            elif verdict < 0:
                break
    return perm[::-1]
