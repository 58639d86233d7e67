"""The arithmetic of views: (shape, stride, offset) in, the same of the view out, or an error in PyTorch's words.

Every function takes shape, stride (in elements), offset, then the operator's arguments, and is pure. What comes out
reads only memory that the input's geometry could reach, except for `as_strided`, whose caller checks the storage.
Sizes may be symbolic.
"""

from __future__ import annotations

from ...core.geometry import infer_size, view_strides, wrap_dim, wrap_dims
from ...core.symbolic import holds, surely, sym_ite, sym_max, sym_min, undecided
from ...core.tensor import wrap_dim_of_scalar

Placed = tuple[tuple, tuple, int]


def numel(shape) -> int:
    """The number of elements of a shape."""
    n = 1
    for s in shape:
        n = n * s
    return n


def same(shape, stride, offset) -> Placed:
    return shape, stride, offset


NEEDS_A_COPY = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
    "subspaces). Use .reshape(...) instead."
)


def view(shape, stride, offset, size) -> Placed:
    new = infer_size(size, numel(shape))
    strides = view_strides(shape, stride, new)
    if strides is None:
        raise RuntimeError(NEEDS_A_COPY)
    return new, strides, offset


def restride(shape, stride, offset, size, strides) -> Placed:
    return tuple(size), tuple(strides), offset


def expand(shape, stride, offset, size, implicit=False) -> Placed:
    lead = len(size) - len(shape)
    if not len(shape) and any(isinstance(s, int) and s < 0 for s in size):
        raise RuntimeError("numel: integer multiplication overflow")
    new, strides = list(size), []
    for i in range(len(size) - 1, -1, -1):
        s = size[i]
        have = shape[i - lead] if i >= lead else 1
        if isinstance(s, int) and s == -1:
            if i < lead:
                raise RuntimeError(
                    f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing dimension {i}"
                )
            s = have
        if have is not s and have != 1 and not holds(have == s):
            raise RuntimeError(
                f"The expanded size of the tensor ({s}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  "
                f"Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
        if isinstance(s, int) and s < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({s}) isn't allowed in dimension {i}: sizes are not negative"
            )
        new[i] = s
    for i in range(len(new) - 1, -1, -1):
        repeats = new[i] != 1 if new[i].__class__ is int else True  # a symbolic size counts as more than 1, unasked
        if i >= lead:
            strides.append(0 if repeats and shape[i - lead] == 1 else stride[i - lead])
        else:  # new dimensions repeat; those of size 1 get the stride that a row-major tensor would have there
            strides.append(0 if repeats or not len(shape) else new[i + 1] * strides[-1])
    return tuple(new), tuple(reversed(strides)), offset


def transpose(shape, stride, offset, dim0, dim1) -> Placed:
    a, b = wrap_dim(dim0, len(shape)), wrap_dim(dim1, len(shape))
    if not len(shape):
        return shape, stride, offset
    shape, stride = list(shape), list(stride)
    shape[a], shape[b] = shape[b], shape[a]
    stride[a], stride[b] = stride[b], stride[a]
    return tuple(shape), tuple(stride), offset


def t(shape, stride, offset) -> Placed:
    if len(shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    return tuple(reversed(shape)), tuple(reversed(stride)), offset


def permute(shape, stride, offset, dims) -> Placed:
    if len(dims) != len(shape):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
            "desired ordering of dimensions "
            f"i.e. input.dim() = {len(shape)} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(d, len(shape)) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return tuple(shape[d] for d in order), tuple(stride[d] for d in order), offset


def without(shape, stride, offset, dims) -> Placed:
    keep = [d for d in range(len(shape)) if d not in dims]
    return tuple(shape[d] for d in keep), tuple(stride[d] for d in keep), offset


def squeeze(shape, stride, offset) -> Placed:
    return without(shape, stride, offset, {d for d, s in enumerate(shape) if s == 1})


def squeeze_dim(shape, stride, offset, dim) -> Placed:
    d = wrap_dim(dim, len(shape))
    return without(shape, stride, offset, {d} if len(shape) and shape[d] == 1 else ())


def squeeze_dims(shape, stride, offset, dim) -> Placed:
    dims = wrap_dims(tuple(dim), len(shape))
    return without(shape, stride, offset, {d for d in dims if shape[d] == 1})


def unsqueeze(shape, stride, offset, dim) -> Placed:
    d = wrap_dim(dim, len(shape) + 1)
    new = shape[d] * stride[d] if d < len(shape) else 1
    return (*shape[:d], 1, *shape[d:]), (*stride[:d], new, *stride[d:]), offset


def select(shape, stride, offset, dim, index) -> Placed:
    if not len(shape):
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, len(shape))
    size = shape[d]
    plain = index.__class__ is int and size.__class__ is int
    if not (-size <= index < size if plain else holds(-size <= index) and holds(index < size)):
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {d}")
    if not plain and undecided(index < 0):
        at = sym_ite(index < 0, index + size, index)
    else:
        at = index + size if index < 0 else index
    return (*shape[:d], *shape[d + 1 :]), (*stride[:d], *stride[d + 1 :]), offset + at * stride[d]


def slice_bounds(start, end, size):
    """Start and end of a slice as positions, clamped as Python clamps them."""
    start = 0 if start is None else start
    end = size if end is None else end
    if _hangs_on_data(start, size) or _hangs_on_data(end, size):
        start, end = _clamped(start, size), _clamped(end, size)
        return start, end if surely(start <= end) else sym_max(start, end)
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    start = 0 if start < 0 else size if start > size else start
    end = start if end < start else size if end > size else end
    return start, end


def _hangs_on_data(at, size) -> bool:
    """Whether data decides how a position is clamped."""
    return at.__class__ is not int and (undecided(at < size) or undecided(at > size) or undecided(at < 0))


def _clamped(at, size):
    """A position that data decides, counted from the end where it is negative, within the size."""
    if at.__class__ is int and at == 0:
        return 0
    at = sym_ite(at < 0, at + size, at) if undecided(at < 0) else at + size if at < 0 else at
    at = at if surely(at <= size) else sym_min(at, size)
    return at if surely(at >= 0) else sym_max(0, at)


def slice_(shape, stride, offset, dim=0, start=None, end=None, step=1) -> Placed:
    if not len(shape):
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, len(shape))
    if not holds(step > 0):
        raise RuntimeError("slice step must be positive")
    start, end = slice_bounds(start, end, shape[d])
    length = (end - start + step - 1) // step
    return (
        (*shape[:d], length, *shape[d + 1 :]),
        (*stride[:d], stride[d] * step, *stride[d + 1 :]),
        offset + start * stride[d],
    )


def diagonal(shape, stride, offset, diagonal=0, dim1=0, dim2=1) -> Placed:
    a, b = wrap_dim(dim1, len(shape)), wrap_dim(dim2, len(shape))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if diagonal >= 0:
        length = min(shape[a], shape[b] - diagonal)
    else:
        length = min(shape[a] + diagonal, shape[b])
    if length > 0:
        offset = offset + (diagonal * stride[b] if diagonal >= 0 else -diagonal * stride[a])
    shape_, stride_, _ = without(shape, stride, offset, (a, b))
    return (*shape_, max(length, 0)), (*stride_, stride[a] + stride[b]), offset


def unfold(shape, stride, offset, dimension, size, step) -> Placed:
    d = wrap_dim(dimension, len(shape))
    have = shape[d] if len(shape) else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > have:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {have} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not len(shape):
        return (size,), (1,), offset
    count = (have - size) // step + 1
    return (
        (*shape[:d], count, *shape[d + 1 :], size),
        (*stride[:d], step * stride[d], *stride[d + 1 :], stride[d]),
        offset,
    )


def _pieces(shape, stride, offset, d: int, sizes) -> list[Placed]:
    result, at = [], 0
    for s in sizes:
        result.append(((*shape[:d], s, *shape[d + 1 :]), tuple(stride), offset + at * stride[d]))
        at = at + s
    return result


def even_sizes(size: int, split_size: int) -> list[int]:
    """The sizes of pieces of `split_size`, the last one smaller if it must be."""
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0:
        if size != 0:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        return [0]
    count = max((size + split_size - 1) // split_size, 1)
    if count.__class__ is not int:
        count = int(count)  # how many there are is part of the result: a symbolic count is fixed
    return [split_size] * (count - 1) + [size - split_size * (count - 1)]


def split(shape, stride, offset, split_size, dim=0) -> list[Placed]:
    if not len(shape):
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, len(shape))
    return _pieces(shape, stride, offset, d, even_sizes(shape[d], split_size))


def split_with_sizes(shape, stride, offset, split_sizes, dim=0) -> list[Placed]:
    if not len(shape):
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, len(shape))
    if not all(holds(s >= 0) for s in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if not holds(sum(split_sizes) == shape[d]):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's size at "
            f"dimension {dim}), "
            f"but got split_sizes={list(split_sizes)}"
        )
    return _pieces(shape, stride, offset, d, split_sizes)


def unbind(shape, stride, offset, dim=0) -> list[Placed]:
    d = wrap_dim(dim, len(shape))
    if not len(shape):
        wrap_dim_of_scalar(d)
    rest = (*shape[:d], *shape[d + 1 :]), (*stride[:d], *stride[d + 1 :])
    return [(*rest, offset + i * stride[d]) for i in range(shape[d])]


def as_strided(shape, stride, offset, size, strides, storage_offset=None) -> Placed:
    if len(size) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s.__class__ is int and s < 0 for s in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    if any(s < 0 for s in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(strides)}")
    return tuple(size), tuple(strides), offset if storage_offset is None else storage_offset
