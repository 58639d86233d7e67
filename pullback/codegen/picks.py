"""Loops of indexing, of places of extremes, and of elements put in another order: rules by `lower="name"`, as in `rules`."""

from __future__ import annotations

import math

from ..core import dtype as dtypes
from ..core.geometry import broadcast_shapes, wrap_dim, wrap_dims
from ..graph.node import Node
from .elements import ELEMENTS as o
from .elements import Element, Unlowerable
from .expressions import cast, const, index, make
from .loops import Value
from .lower import Lowering, rule
from .rules import moments, result, scatter_add, store, wide, wrapped


# ---- places of extremes
def _place(b: Lowering, x: Value, axes: list[int], largest: bool) -> tuple[Value, Value]:
    """(extreme, place of the first element that is it) over some axes, which are kept; places count row by row."""
    if not x.numel or x.dtype in dtypes.reduced_precision:
        raise Unlowerable("the place of an extreme of nothing, or in low precision")
    d = x.dtype
    best = b.reduce("max" if largest else "min", [x], lambda e: e, axes, d)
    count = math.prod(x.shape[k] for k in axes)
    at = const(0, dtypes.int64)
    for k in axes:
        at = make("add", dtypes.int64, make("multiply", dtypes.int64, at, const(x.shape[k], dtypes.int64)), index(k))

    def first(e: Element, m: Element) -> Element:
        same = o.logical_or(e == m, o.logical_and(o.isnan(e), o.isnan(m))) if d.is_floating_point else e == m
        return Element(make("where", dtypes.int64, same.expr, at, const(count, dtypes.int64)))

    return best, b.reduce("min", [x, best], first, axes, dtypes.int64)


def _without(v: Value, axes: list[int]) -> Value:
    kept = [k for k in range(len(v.shape)) if k not in axes]
    return Value(v.buffer, [v.shape[k] for k in kept], [v.strides[k] for k in kept], v.offset)


@rule("argmax")
def argmax(b: Lowering, node: Node, x, dim, keepdim):
    axes = list(range(len(x.shape))) if dim is None else [wrap_dim(dim, len(x.shape))] if x.shape else []
    place = _place(b, x, axes, node.target.name == "argmax")[1]
    return place if keepdim else _without(place, axes)


@rule("max_dim")
def max_dim(b: Lowering, node: Node, x, dim, keepdim):
    axes = [wrap_dim(dim, len(x.shape))] if x.shape else []
    made = _place(b, x, axes, node.target.name == "max")
    return made if keepdim else tuple(_without(v, axes) for v in made)


# ---- indexing
def _places(x: Value, indices: list, rank: int, start: int, shape: tuple) -> tuple[list, list[int]]:
    """Where a gather reads: ((index expression, stride, size) of indexed dimensions), and which those are."""
    places, indexed = [], []
    for d, at in enumerate(indices):
        if at is None:
            continue
        if at.dtype in (dtypes.bool, dtypes.uint8):
            raise Unlowerable("indexing by a mask")
        inside = at.expand(shape).element()
        strides = [0] * start + list(inside.args[2]) + [0] * (rank - start - len(shape))
        e = cast(make("load", at.dtype, at.buffer, inside.args[1], tuple(strides), ()), dtypes.int64)
        places.append((wrapped(e, x.shape[d]), x.strides[d] if x.shape[d] > 1 else 1, x.shape[d]))
        indexed.append(d)
    if not indexed:
        raise Unlowerable("indexing by nothing")
    return places, indexed


def _layout(x: Value, indices: list) -> tuple[tuple, int, list[int]]:
    """(shape of the indices together, where it stands in the result, the dimensions that are not indexed)."""
    given = [d for d, at in enumerate(indices) if at is not None]
    shape = broadcast_shapes(*[indices[d].shape for d in given])
    together = given == list(range(given[0], given[-1] + 1))
    return shape, given[0] if together else 0, [d for d in range(len(x.shape)) if d not in given]


def _window(x: Value, indices: list) -> tuple[tuple, list[int], list]:
    """(shape of what is picked, strides of the dimensions that are not indexed, places)."""
    shape, start, rest = _layout(x, indices)
    sizes = [x.shape[d] for d in rest]
    rank = len(shape) + len(rest)
    places, _ = _places(x, indices, rank, start, shape)
    strides = [0 if x.shape[d] == 1 else x.strides[d] for d in rest]
    return (*sizes[:start], *shape, *sizes[start:]), [*strides[:start], *[0] * len(shape), *strides[start:]], places


@rule("index")
def indexed(b: Lowering, node: Node, x, indices):
    _, strides, places = _window(x, indices)
    return b.fill(result(b, node), make("load", x.dtype, x.buffer, x.offset, tuple(strides), tuple(places)))


@rule("index_put")
def index_put(b: Lowering, node: Node, x, indices, values, accumulate):
    if not accumulate or x.dtype not in (dtypes.float32, dtypes.float64, dtypes.int64) or values.dtype is not x.dtype:
        raise Unlowerable("index_put that does not add, or in low precision")
    out = result(b, node)
    shape, strides, places = _window(out, indices)
    store(b, out, x)
    scatter_add(b, out, shape, values.element(len(shape)), strides, tuple(places))
    return out


@rule("index_add")
def index_add(b: Lowering, node: Node, x, dim, at, source, alpha):
    out = result(b, node)
    if (
        not x.shape
        or len(at.shape) != 1
        or x.dtype not in (dtypes.float32, dtypes.float64, dtypes.int64)
        or not source.shape
    ):
        raise Unlowerable("index_add of numbers, or in low precision")
    dim = wrap_dim(dim, len(x.shape))
    store(b, out, x)
    rank = len(source.shape)
    e = make("load", at.dtype, at.buffer, at.offset, tuple(at.strides[0] if d == dim else 0 for d in range(rank)), ())
    value = Element(source.element()) * alpha if alpha != 1 else Element(source.element())
    strides = [0 if d == dim or out.shape[d] == 1 else s for d, s in enumerate(out.strides)]
    scatter_add(b, out, source.shape, value.expr, strides, ((cast(e, dtypes.int64), out.strides[dim], out.shape[dim]),))
    return out


# ---- another order
@rule("flip")
def flip(b: Lowering, node: Node, x, dims):
    turned = set(wrap_dims(tuple(dims), len(x.shape))) if dims and x.shape else set()
    offset = x.offset + sum((x.shape[d] - 1) * x.strides[d] for d in turned)
    strides = [-s if d in turned else s for d, s in enumerate(x.strides)]
    return store(b, result(b, node), Value(x.buffer, x.shape, strides, offset))


@rule("repeat")
def repeat(b: Lowering, node: Node, x, repeats):
    out = result(b, node)
    lead = len(repeats) - len(x.shape)
    shape, from_, to = [], [], []
    for d, n in enumerate(repeats):
        size, stride = (x.shape[d - lead], x.strides[d - lead]) if d >= lead else (1, 0)
        shape += [n, size]
        from_ += [0, stride]
        to += [out.strides[d] * size, out.strides[d]]
    store(b, Value(out.buffer, shape, to, out.offset), Value(x.buffer, shape, from_, x.offset))
    return out


@rule("roll")
def roll(b: Lowering, node: Node, x, shifts, dims):
    out = result(b, node)
    if len(shifts) != 1 or len(dims) != 1 or not x.numel:
        raise Unlowerable("a roll of several dimensions")
    dim = wrap_dim(dims[0], len(x.shape))
    n = x.shape[dim]
    shift = shifts[0] % n
    store(b, out.narrow(dim, shift, n - shift), x.narrow(dim, 0, n - shift))
    if shift:
        store(b, out.narrow(dim, 0, shift), x.narrow(dim, n - shift, shift))
    return out


@rule("diagonal_backward")
def diagonal_backward(b: Lowering, node: Node, g, sizes, offset, dim1, dim2):
    from ..ops.shape import view_geometry

    out = result(b, node)
    b.fill(out, cast(const(0, dtypes.int64), out.dtype))
    store(b, Value(out.buffer, *view_geometry.diagonal(out.shape, out.strides, out.offset, offset, dim1, dim2)[:3]), g)
    return out


# ---- more reductions
@rule("logsumexp")
def logsumexp(b: Lowering, node: Node, x, dim, keepdim):
    d = wide(x.dtype)
    axes = list(wrap_dims(tuple(dim) or None, len(x.shape)))
    if not d.is_floating_point or not x.numel:
        raise Unlowerable("logsumexp of integers, or of nothing")
    top = b.reduce("max", [x], lambda e: e, axes, d)
    top = b.pointwise(lambda e: o.where(o.isfinite(e), e, 0.0), top)
    total = b.reduce("sum", [x, top], lambda e, m: o.exp(e - m), axes, d)
    made = b.pointwise(lambda t, m: o.log(t) + m, total, top)
    return store(b, result(b, node), made if keepdim else _without(made, axes))


@rule("vector_norm")
def vector_norm(b: Lowering, node: Node, x, order, dim, keepdim, dtype):
    d = wide(node.meta["val"].dtype)
    axes = list(range(len(x.shape))) if dim is None else list(wrap_dims(tuple(dim), len(x.shape)))
    if order not in (1, 2, math.inf) or x.dtype.is_complex or not x.numel or dtype is not None or not axes:
        raise Unlowerable("a norm of this order")
    if order == 2:
        made = b.pointwise(o.sqrt, b.reduce("sum", [x], lambda e: e * e, axes, d))
    else:
        made = b.reduce("sum" if order == 1 else "max", [x], abs, axes, d)
    return store(b, result(b, node), made if keepdim else _without(made, axes))


@rule("var_mean")
def var_mean(b: Lowering, node: Node, x, dim, correction, keepdim):
    axes = list(range(len(x.shape))) if not dim else list(wrap_dims(tuple(dim), len(x.shape)))
    divisor = math.prod(x.shape[k] for k in axes) - (1 if correction is None else correction)
    if divisor <= 0 or not x.dtype.is_floating_point:
        raise Unlowerable("a variance of too few elements")
    mean, squares = moments(b, x, axes)
    variance = b.pointwise(lambda s: s / float(divisor), squares)
    made = [v if keepdim else _without(v, axes) for v in (variance, mean)]
    return tuple(store(b, result(b, node, k), v) for k, v in enumerate(made))


@rule("safe_softmax")
def safe_softmax(b: Lowering, node: Node, x, dim, dtype):
    d = node.meta["val"].dtype
    if dtype is not None or d is not wide(d) or not x.shape or not x.numel:
        raise Unlowerable("softmax of a number, or in low precision")
    axis = [wrap_dim(dim, len(x.shape))]
    top = b.reduce("max", [x], lambda e: e, axis, d)
    powers = b.pointwise(lambda e, m: o.exp(e - m), x, top)
    total = b.reduce("sum", [powers], lambda e: e, axis, d)
    rank = len(x.shape)
    e, t, m = (b.element(v, rank) for v in (powers, total, top))
    return b.fill(result(b, node), o.where(m == -math.inf, 0.0, e / t).expr)
