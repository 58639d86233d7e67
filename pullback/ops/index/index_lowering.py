"""Loops of picking by indices and of adding at places that indices name.

An index is read where the loops are, and checked: one that is out of bounds makes the call run as operators, which raise. Sums at
equal places are added one after the other, in the order of the loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ...core.geometry import broadcast_shapes, wrap_dim
from ..lowering import NotLowerable

if TYPE_CHECKING:
    from ..lowering.builder import Builder, Place
    from ..lowering.elements import Element
    from ..lowering.loops import Value

SUMMED = frozenset((dtypes.float32, dtypes.float64, dtypes.int64))  # what is added up in memory as it is
LOW_PRECISION = NotLowerable("sums in low precision")


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
def lower_gather(b: Builder, x: Value, dim, at: Value, sparse_grad):
    out, x, at = b.result(), x.vector(), at.vector()
    dim = wrap_dim(dim, len(x.shape))
    b.fill(out.vector(), b.gather(x, _others(x, dim), [_place(x, dim, b.raw(at))]))
    return out


def lower_scatter_add(b: Builder, x: Value, dim, at: Value, source: Value):
    out = b.result()
    if out.dtype not in SUMMED:
        return LOW_PRECISION
    b.store(out, x)
    target, at, source = out.vector(), at.vector(), source.vector()
    dim = wrap_dim(dim, len(target.shape))
    value = b.raw(source.window(at.shape, source.strides))
    b.scatter_add(target, at.shape, value, _others(target, dim), [_place(target, dim, b.raw(at))])
    return out


def lower_index_select(b: Builder, x: Value, dim, at: Value):
    out, x, at = b.result(), x.vector(), at.vector()
    dim = wrap_dim(dim, len(x.shape))
    place = _place(x, dim, _along(b, at, dim, len(x.shape)))
    b.fill(out.vector(), b.gather(x, _others(x, dim), [place]))
    return out


def lower_index_add(b: Builder, x: Value, dim, at: Value, source: Value, alpha):
    out = b.result()
    if x.dtype not in SUMMED:
        return LOW_PRECISION
    b.store(out, x)
    target, at, source = out.vector(), at.vector(), source.vector()
    dim = wrap_dim(dim, len(target.shape))
    value = b.raw(source) * alpha if alpha != 1 else b.raw(source)
    place = _place(target, dim, _along(b, at, dim, len(source.shape)))
    b.scatter_add(target, source.shape, value, _others(target, dim), [place])
    return out


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
    if not accumulate or x.dtype not in SUMMED or values.dtype is not x.dtype:
        return NotLowerable("index_put that does not add, or in low precision")
    out = b.result()
    shape, strides, places = _window(b, out, indices)
    b.store(out, x)
    b.scatter_add(out, shape, b.raw(values, len(shape)), strides, places)
    return out
