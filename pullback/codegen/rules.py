"""Loops of operators that are more than element-wise: reductions, products, copies, joins, lookups, factories.

`rule("name")` serves every operator that is declared with `lower="name"`: `rule(b, node, *arguments)`, tensors as `Value`s, gives
the value or values of the node, as fake tensors say they are. `norms` has the rest: softmax, norms, losses, attention.
"""

from __future__ import annotations

import math

from ..core import dtype as dtypes
from ..core.geometry import wrap_dim
from ..core.tensor import stride_of
from ..graph.node import Node
from .elements import Element, Unlowerable, number
from .expressions import affine, cast, const, index, make
from .loops import Compute, Product, Value
from .lower import Lowering, reduction_of, rule


def result(b: Lowering, node: Node, which: int | None = None) -> Value:
    """Memory for a result, as the fake tensor has it."""
    t = node.meta["val"] if which is None else node.meta["val"][which]
    return b.blank(t.array.shape, t.dtype, stride_of(t))


def store(b: Lowering, target: Value, source: Value, fn=lambda x: x) -> Value:
    """Fill one value with a function of the elements of another that broadcasts to it."""
    made = fn(b.element(source, len(target.shape)))
    return b.fill(target, made.expr)


def wide(d):
    return dtypes.float32 if d in dtypes.reduced_precision else d


# ---- reductions
def _reduction(how: str, before=lambda x: x, after=None, working=None):
    def lower(b: Lowering, node: Node, *_):
        x, axes, keepdim, d, _ = reduction_of(b, node)
        out = result(b, node)
        d = working(d) if working else wide(d)
        count = math.prod(x.shape[k] for k in axes)
        made = b.reduce(how, [x], lambda e: Element(cast(before(e).expr, d)), axes, d, keepdim=bool(keepdim))
        return store(b, out, made, (lambda e: after(e, count)) if after else lambda e: e)

    return lower


rule("sum")(_reduction("sum"))
rule("mean")(_reduction("sum", after=lambda e, n: e / float(n) if n else e * math.nan))
rule("amax")(_reduction("max"))
rule("amin")(_reduction("min"))
rule("prod")(_reduction("prod"))
rule("any")(_reduction("any", before=lambda e: e != 0, working=lambda d: dtypes.bool))
rule("all")(_reduction("all", before=lambda e: e != 0, working=lambda d: dtypes.bool))


@rule("var")
def variance(b: Lowering, node: Node, *_):
    x, axes, keepdim, d, rest = reduction_of(b, node)
    n = math.prod(x.shape[k] for k in axes)
    divisor = n - (1 if rest[0] is None else rest[0])
    if divisor <= 0:
        raise Unlowerable("a variance of too few elements")
    total = moments(b, x, axes)[1]
    root = node.target.name == "std"
    made = b.pointwise(lambda v: _root(v / float(divisor)) if root else v / float(divisor), total)
    out = result(b, node)
    if not keepdim:
        kept = [k for k in range(len(x.shape)) if k not in axes]
        made = Value(made.buffer, [made.shape[k] for k in kept], [made.strides[k] for k in kept])
    return store(b, out, made)


def _root(e: Element) -> Element:
    return Element(make("sqrt", e.expr.dtype, e.expr))


def moments(b: Lowering, x: Value, axes) -> tuple[Value, Value]:
    """The mean, and the sum of squared differences from it, over some axes, which are kept."""
    d = wide(x.dtype)
    n = math.prod(x.shape[k] for k in axes)
    mean = b.pointwise(lambda s: s / float(n), b.reduce("sum", [x], lambda e: e, axes, d))
    return mean, b.reduce("sum", [x, mean], lambda e, m: (e - m) * (e - m), axes, d)


# ---- products
def blas_ready(b: Lowering, v: Value, d) -> Value:
    """A matrix, or batch of them, that BLAS can read in place."""
    rows, columns = v.shape[-2:]
    s, t = v.strides[-2:]
    by_rows = (t == 1 or columns == 1) and (s >= columns or rows == 1)
    by_columns = (s == 1 or rows == 1) and (t >= rows or columns == 1)
    if v.dtype is d and (by_rows or by_columns):
        return v
    return b.pointwise(lambda e: e, v, dtype=d)


def product(b: Lowering, x: Value, y: Value, out: Value | None = None) -> Value:
    """`x @ y` of matrices or batches of them, in the wide dtype; into a new value, or into `out`."""
    d = wide(x.dtype)
    if d not in (dtypes.float32, dtypes.float64):
        raise Unlowerable(f"a product in {d}")
    shape = (*x.shape[:-1], y.shape[-1])
    out = b.blank(shape, d) if out is None or out.dtype is not d else out
    if not x.shape[-1]:
        return b.fill(out, const(0.0, d))
    if out.numel:
        b.emit(Product(out, blas_ready(b, x, d), blas_ready(b, y, d)))
    return out


def _rounded(b: Lowering, node: Node, made: Value) -> Value:
    return made if made.dtype is node.meta["val"].dtype else store(b, result(b, node), made)


@rule("mm")
def matrix_product(b: Lowering, node: Node, x, y):
    return _rounded(b, node, product(b, x, y))


@rule("addmm")
def added_product(b: Lowering, node: Node, bias, x, y, beta, alpha):
    made = product(b, x, y)
    out = result(b, node)
    rank = len(out.shape)
    e = b.element(made, rank) if alpha == 1 else b.element(made, rank) * alpha
    if beta == 0:
        return b.fill(out, e.expr)
    addend = b.element(bias, rank)
    return b.fill(out, (e + (addend if beta == 1 else addend * beta)).expr)


@rule("mv")
def matrix_vector(b: Lowering, node: Node, x, y):
    d = wide(x.dtype)
    if not d.is_floating_point:
        raise Unlowerable("an integer product")
    made = b.reduce("sum", [x, y], lambda p, q: p * q, [len(x.shape) - 1], d, keepdim=False)
    return store(b, result(b, node), made)


# ---- copies
@rule("copy")
def copied(b: Lowering, node: Node, x, *_):
    return b.fill(result(b, node), cast(x.element(), node.meta["val"].dtype))


@rule("copy_of_second")
def copied_second(b: Lowering, node: Node, x, source, *_):
    out = result(b, node)
    return b.fill(out, cast(source.element(len(out.shape)), out.dtype))


@rule("alias")
def aliased(b: Lowering, node: Node, x, *_):
    return x


@rule("unsafe_view")
def unsafe_view(b: Lowering, node: Node, x, *_):
    t = node.meta["val"]
    if x.strides != Value(x.buffer, x.shape).strides:
        raise Unlowerable("an unsafe view of what is not contiguous")
    return Value(x.buffer, t.array.shape, stride_of(t), x.offset)


# ---- factories
def _filled(at: int | None, value=None):
    def lower(b: Lowering, node: Node, *args):
        out = result(b, node)
        return b.fill(out, number(args[at] if at is not None else value, out.dtype))

    return lower


rule("zeros")(_filled(None, 0))
rule("ones")(_filled(None, 1))
rule("full")(_filled(1))
rule("full_first")(_filled(0))
rule("new_full")(_filled(2))


@rule("empty")
def empty(b: Lowering, node: Node, *_):
    out = result(b, node)
    return b.fill(out, const(0, dtypes.int64))


@rule("arange")
def arange(b: Lowering, node: Node, start, end, step, *_):
    out = result(b, node)
    if out.dtype is not dtypes.int64 or not isinstance(start, int) or not isinstance(step, int):
        raise Unlowerable("arange of floats")
    return b.fill(out, affine([(0, step)], start))


# ---- joining and parts
@rule("cat")
def joined(b: Lowering, node: Node, tensors, dim):
    out = result(b, node)
    parts = [v for v in tensors if v.shape != (0,)]
    dim = wrap_dim(dim, len(out.shape))
    start = 0
    for v in parts:
        store(b, out.narrow(dim, start, v.shape[dim]), v)
        start += v.shape[dim]
    return out


@rule("stack")
def stacked(b: Lowering, node: Node, tensors, dim):
    out = result(b, node)
    dim = wrap_dim(dim, len(out.shape))
    for k, v in enumerate(tensors):
        store(b, out.narrow(dim, k, 1), v.unsqueeze(dim))
    return out


def _within(b: Lowering, out: Value, window: Value, source: Value, base) -> Value:
    """A value that is `base` (a value, or a number) but for a window, which is `source`."""
    if isinstance(base, Value):
        store(b, out, base)
    else:
        b.fill(out, number(base, out.dtype))
    store(b, window, source)
    return out


def _slice(out: Value, dim: int, start, end, step) -> Value:
    """The window `start:end:step` of a value."""
    n = out.shape[dim]
    start, end, step = slice(start, end, step).indices(n)
    length = max(0, -(-(end - start) // step))
    shape = [length if d == dim else m for d, m in enumerate(out.shape)]
    strides = [s * step if d == dim else s for d, s in enumerate(out.strides)]
    return Value(out.buffer, shape, strides, out.offset + start * out.strides[dim])


def _select(out: Value, dim: int, at: int) -> Value:
    """One entry along a dimension, which is kept."""
    return out.narrow(dim, at + (out.shape[dim] if at < 0 else 0), 1)


@rule("select_backward")
def select_backward(b: Lowering, node: Node, g, sizes, dim, at):
    out = result(b, node)
    dim = wrap_dim(dim, len(out.shape))
    return _within(b, out, _select(out, dim, at), g.unsqueeze(dim), 0)


@rule("select_scatter")
def select_scatter(b: Lowering, node: Node, x, source, dim, at):
    out = result(b, node)
    dim = wrap_dim(dim, len(out.shape))
    return _within(b, out, _select(out, dim, at), source.unsqueeze(dim), x)


@rule("slice_backward")
def slice_backward(b: Lowering, node: Node, g, sizes, dim, start, end, step):
    out = result(b, node)
    return _within(b, out, _slice(out, wrap_dim(dim, len(out.shape)), start, end, step), g, 0)


@rule("slice_scatter")
def slice_scatter(b: Lowering, node: Node, x, source, dim, start, end, step):
    out = result(b, node)
    return _within(b, out, _slice(out, wrap_dim(dim, len(out.shape)), start, end, step), source, x)


@rule("pad")
def padded(b: Lowering, node: Node, x, pad, value):
    out = result(b, node)
    if any(p < 0 for p in pad):
        raise Unlowerable("a negative pad")
    window = out
    for k in range(len(pad) // 2):
        dim = len(out.shape) - 1 - k
        window = window.narrow(dim, pad[2 * k], x.shape[dim])
    return _within(b, out, window, x, value)


@rule("triangle")
def triangle(b: Lowering, node: Node, x, diagonal):
    rank = len(x.shape)
    offset = make("subtract", dtypes.int64, index(rank - 1), index(rank - 2))
    kept = make(
        "less_equal" if node.target.name == "tril" else "greater_equal", dtypes.bool, offset, const(diagonal, dtypes.int64)
    )  # fmt: skip
    e = x.element()
    return b.fill(result(b, node), make("where", e.dtype, kept, e, cast(const(0, dtypes.int64), e.dtype)))


# ---- lookups
@rule("embedding")
def embedding(b: Lowering, node: Node, weight, indices, *_):
    out = result(b, node)
    rank = len(out.shape)
    at = cast(indices.unsqueeze(len(indices.shape)).element(rank), dtypes.int64)
    strides = [0] * (rank - 1) + [weight.strides[1]]
    place = ((at, weight.strides[0], weight.shape[0]),)
    return b.fill(out, make("load", weight.dtype, weight.buffer, weight.offset, tuple(strides), place))


@rule("embedding_backward")
def embedding_backward(b: Lowering, node: Node, g, indices, count, padding, by_frequency):
    if by_frequency:
        raise Unlowerable("gradients scaled by frequency")
    out = result(b, node)
    if out.dtype not in (dtypes.float32, dtypes.float64):
        raise Unlowerable("embedding gradients in low precision")
    b.fill(out, const(0.0, out.dtype))
    rank = len(g.shape)
    at = cast(indices.unsqueeze(len(indices.shape)).element(rank), dtypes.int64)
    value = g.element()
    if padding >= 0:
        same = make("equal", dtypes.bool, at, const(padding, dtypes.int64))
        value = make("where", value.dtype, same, const(0.0, value.dtype), value)
    scatter_add(b, out, g.shape, value, [0] * (rank - 1) + [out.strides[1]], ((at, out.strides[0], count),))
    return out


def scatter_add(b: Lowering, out: Value, dims, value, strides, places) -> None:
    if math.prod(dims):
        b.emit(Compute(out.buffer, out.offset, dims, strides, value, None, frozenset(), places))


def wrapped(at, n: int):
    """An index expression with negative indices counted from the end."""
    low = make("less", dtypes.bool, at, const(0, dtypes.int64))
    return make("where", dtypes.int64, low, make("add", dtypes.int64, at, const(n, dtypes.int64)), at)


def same_rank(x, at) -> None:
    """A single number may stand for a vector of one: that is left to the operator."""
    if len(x.shape) != len(at.shape):
        raise Unlowerable("picking by a number from a vector, or by a vector from a number")


@rule("gather")
def gather(b: Lowering, node: Node, x, dim, at, *_):
    out = result(b, node)
    same_rank(x, at)
    dim = wrap_dim(dim, len(x.shape))
    place = ((cast(at.element(), dtypes.int64), x.strides[dim] if x.shape[dim] > 1 else 1, x.shape[dim]),)
    strides = [0 if d == dim else s for d, s in enumerate(x.strides)]
    return b.fill(out, make("load", x.dtype, x.buffer, x.offset, tuple(strides), place))


@rule("scatter_add")
def scattered(b: Lowering, node: Node, x, dim, at, source):
    out = result(b, node)
    same_rank(x, at)
    if out.dtype not in (dtypes.float32, dtypes.float64, dtypes.int64):
        raise Unlowerable("sums in low precision")
    dim = wrap_dim(dim, len(x.shape))
    store(b, out, x)
    strides = [0 if d == dim else s for d, s in enumerate(out.strides)]
    value = Value(source.buffer, at.shape, source.strides, source.offset).element()
    scatter_add(
        b, out, at.shape, value, strides, ((cast(at.element(), dtypes.int64), out.strides[dim], out.shape[dim]),)
    )
    return out


@rule("index_select")
def index_select(b: Lowering, node: Node, x, dim, at):
    out = result(b, node)
    if not x.shape or len(at.shape) != 1:
        raise Unlowerable("index_select of a number")
    dim = wrap_dim(dim, len(x.shape))
    rank = len(out.shape)
    e = make("load", at.dtype, at.buffer, at.offset, tuple(at.strides[0] if d == dim else 0 for d in range(rank)), ())
    strides = [0 if d == dim else s for d, s in enumerate(x.strides)]
    place = ((cast(e, dtypes.int64), x.strides[dim], x.shape[dim]),)
    return b.fill(out, make("load", x.dtype, x.buffer, x.offset, tuple(strides), place))
