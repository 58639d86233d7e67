"""Loops of picking by indices, and of writing, adding or otherwise combining at places that indices name.

An index is read where the loops are, and checked: one that is out of bounds makes the call run as operators, which raise. What
meets at equal places does so one after the other, in the order of the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ...core.geometry import broadcast_shapes, wrap_dim
from ...core.records import Record
from ..lowering import NotLowerable, of_complex, overflow

if TYPE_CHECKING:
    from ..lowering.builder import Builder, Place
    from ..lowering.elements import Element
    from ..lowering.loops import Value


def _others(v: Value, dim: int) -> list[int]:
    """The strides of a value but along one dimension."""
    return [0 if d == dim or v.shape[d] == 1 else s for d, s in enumerate(v.strides)]


def _place(v: Value, dim: int, at: Element) -> Place:
    """Where an index along one dimension leads; the stride of a dimension of one says nothing."""
    return at, v.strides[dim] if v.shape[dim] > 1 else 1, v.shape[dim]


def _along(b: Builder, at: Value, dim: int, rank: int) -> Element:
    """The element of a vector at the index of one loop."""
    return b.gather(at, [at.strides[0] if d == dim else 0 for d in range(rank)])


# ---- along a dimension (numbers are vectors of one)
@of_complex
def lower_gather(b: Builder, x: Value, dim, at: Value, sparse_grad):
    out, x, at = b.result(), x.vector(), at.vector()
    dim = wrap_dim(dim, len(x.shape))
    b.fill(out.vector(), b.gather(x, _others(x, dim), [_place(x, dim, b.raw(at))]))
    return out


def _misfit(x: Value, dim: int, at: Value, source: Value | None) -> NotLowerable | None:
    """Why a scatter cannot be: what the operator refuses when it runs, in its own words."""
    if at.dtype not in (dtypes.int32, dtypes.int64) or source is not None and source.dtype is not x.dtype:
        return NotLowerable("an index that is no int32 or int64, or a source of another dtype")
    if len(at.shape) != len(x.shape) or source is not None and len(source.shape) != len(at.shape):
        return NotLowerable("an index of another rank")
    inside = all(n <= x.shape[d] for d, n in enumerate(at.shape) if d != dim)
    if not inside or source is not None and any(n > source.shape[d] for d, n in enumerate(at.shape)):
        return NotLowerable("an index that reaches beyond the tensor or the source")
    return None


def _scattered(b: Builder, x: Value, dim, at: Value, source, how: str, include_self: bool = True):
    """A copy of a value with an element per index met by one of `source` (a value, or a number)."""
    read = None if isinstance(source, (int, float)) else source.vector()
    x, at = x.vector(), at.vector()
    dim = wrap_dim(dim, len(x.shape))
    refused = _misfit(x, dim, at, read) if at.numel else None
    refused = overflow(source, x.dtype) if read is None else refused
    if refused is not None:
        return refused
    value = b.number(source, x.dtype) if read is None else b.element(read.window(at.shape, read.strides))
    return _met(b, x, Written(dim, at.shape, value, b.raw(at)), how, include_self)


class Written(Record):
    """What is written along a dimension: over loops of `dims`, `value` at index `at`."""

    dim: int
    dims: tuple
    value: Element
    at: Element


HOW = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "max", "amin": "min"}
START = {"sum": 0, "mean": 0, "prod": 1}


def _met(b: Builder, x: Value, w: Written, how: str, include_self: bool):
    """A copy of a value where what is written meets what is there; narrow floats are combined wide, and rounded once."""
    if how == "mean" and not x.dtype.is_floating_point:
        return NotLowerable("a mean of integers")
    out = b.result()
    d = x.dtype if how == "set" else b.wide(x.dtype)
    target = out.vector() if d is out.dtype else b.blank(x.shape, d)
    b.store(target, x)

    def write(into: Value, value: Element, how: str) -> None:
        b.scatter(into, w.dims, value, _others(into, w.dim), [_place(into, w.dim, w.at)], how)

    if not include_self:  # elements that are written start anew; extremes with any of what is written
        write(target, b.number(START[how], d) if how in START else w.value, "set")
    write(target, w.value, HOW.get(how, how))
    if how == "mean":
        count = b.fill(b.blank(x.shape, d), b.number(1 if include_self else 0, d))
        write(count, b.number(1, d), "sum")
        target = b.pointwise(lambda s, n: s / b.o.maximum(n, 1.0), target, count)
    if target.buffer is not out.buffer:
        b.store(out.vector(), target)
    return out


def lower_scatter(b: Builder, x: Value, dim, at: Value, source):
    return _scattered(b, x, dim, at, source, "set")


def lower_scatter_add(b: Builder, x: Value, dim, at: Value, source: Value):
    return _scattered(b, x, dim, at, source, "sum")


def lower_scatter_reduce(b: Builder, x: Value, dim, at: Value, source: Value, reduce, include_self):
    return _scattered(b, x, dim, at, source, reduce, include_self)


@of_complex
def lower_index_select(b: Builder, x: Value, dim, at: Value):
    out, x, at = b.result(), x.vector(), at.vector()
    dim = wrap_dim(dim, len(x.shape))
    place = _place(x, dim, _along(b, at, dim, len(x.shape)))
    b.fill(out.vector(), b.gather(x, _others(x, dim), [place]))
    return out


def _slices(b: Builder, x: Value, dim, at: Value, source, how: str, include_self: bool = True, alpha=1):
    """A copy of a value with a slice per index met by one of `source` (a value, or a number)."""
    x, at = x.vector(), at.vector()
    dim = wrap_dim(dim, len(x.shape))
    number = isinstance(source, (int, float))
    refused = overflow(source, x.dtype) if number else None
    if refused is not None:
        return refused
    if not number and source.dtype is not x.dtype:
        return NotLowerable("a source of another dtype")
    dims = tuple(at.shape[0] if d == dim else n for d, n in enumerate(x.shape)) if number else source.vector().shape
    value = b.number(source, x.dtype) if number else b.element(source.vector())
    value = value if alpha == 1 else value * alpha
    return _met(b, x, Written(dim, dims, value, _along(b, at, dim, len(dims))), how, include_self)


def lower_index_add(b: Builder, x: Value, dim, at: Value, source: Value, alpha):
    return _slices(b, x, dim, at, source, "sum", alpha=alpha)


def lower_index_copy(b: Builder, x: Value, dim, at: Value, source: Value):
    return _slices(b, x, dim, at, source, "set")


def lower_index_fill(b: Builder, x: Value, dim, at: Value, value):
    return _slices(b, x, dim, at, value, "set")


def lower_index_reduce(b: Builder, x: Value, dim, at: Value, source: Value, reduce, include_self):
    if reduce in ("prod", "mean") and b.wide(x.dtype) is not x.dtype:
        return NotLowerable("products of narrow floats that are rounded at every step")
    return _slices(b, x, dim, at, source, reduce, include_self)


# ---- by several indices
def _wrapped(b: Builder, at: Element, n: int) -> Element:
    """An index, a negative one counted from the end."""
    return b.o.where(at < 0, at + n, at)


def _window(b: Builder, x: Value, indices: list) -> tuple[tuple, list[int], list[Place]]:
    """(shape of what is picked, strides of the dimensions that are not indexed, places)."""
    given = [d for d, at in enumerate(indices) if at is not None]
    rest = [d for d in range(len(x.shape)) if d not in given]
    shape = broadcast_shapes(*[indices[d].shape for d in given])
    start = given[0] if given == list(range(given[0], given[-1] + 1)) else 0  # where the indices stand in the result
    places: list[Place] = []
    for d in given:
        at = indices[d].expand(shape)
        strides = [*[0] * start, *at.element().args[2], *[0] * (len(rest) - start)]
        e = b.o.cast(b.gather(at, strides), dtypes.int64)
        places.append((_wrapped(b, e, x.shape[d]), x.strides[d] if x.shape[d] > 1 else 1, x.shape[d]))
    sizes = [x.shape[d] for d in rest]
    strides = [0 if x.shape[d] == 1 else x.strides[d] for d in rest]
    return (*sizes[:start], *shape, *sizes[start:]), [*strides[:start], *[0] * len(shape), *strides[start:]], places


def _refuses(indices: list) -> NotLowerable | None:
    given = [at for at in indices if at is not None]
    if any(at.dtype in (dtypes.bool, dtypes.uint8) for at in given):
        return NotLowerable("indexing by a mask")
    return None if given else NotLowerable("indexing by nothing")


@of_complex
def lower_index(b: Builder, x: Value, indices):
    refused = _refuses(indices)
    if refused is not None:
        return refused
    _, strides, places = _window(b, x, indices)
    return b.fill(b.result(), b.gather(x, strides, places))


def lower_index_put(b: Builder, x: Value, indices, values: Value, accumulate):
    refused = _refuses(indices)
    if refused is not None:
        return refused
    if values.dtype is not x.dtype:
        return NotLowerable("values of another dtype")
    out = b.result()
    d = b.wide(x.dtype) if accumulate else x.dtype
    target = out if d is out.dtype else b.blank(x.shape, d)
    shape, strides, places = _window(b, target, indices)
    if len(values.shape) > len(shape):
        return NotLowerable("values of more dimensions than the places")
    b.store(target, x)
    b.scatter(target, shape, b.element(values, len(shape)), strides, places, "sum" if accumulate else "set")
    return out if target is out else b.store(out, target)
