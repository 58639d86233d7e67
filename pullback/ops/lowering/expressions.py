"""Scalar expressions: what one iteration of a loop computes.

An `Expr` is an operation on expressions of one dtype each: a constant, the index of a loop, a load from a buffer, or a
function of others. Expressions are immutable and interned while one graph is lowered, so equal ones are one object and a
value that is used twice is computed once. A load is affine in the loop indices: `offset + sum(stride * index)`, plus, for
gathers, terms whose index is itself an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core import dtype as dtypes
from ...core.dtype import dtype

_table: dict = {}  # interned expressions of the graph that is being lowered


class Expr:
    """One node of an expression. `args` of a constant, an index and a load are plain values; of others, expressions.

    `children`: the expressions in it. `loads` is written down when it is first asked for, by the function of that name.
    """

    __slots__ = ("op", "dtype", "args", "cost", "children", "loads")

    def __init__(self, op: str, dtype: dtype, args: tuple):
        self.op, self.dtype, self.args = op, dtype, args
        self.loads: list[Expr] | None = None
        self.children: tuple[Expr, ...] = args
        if op == "load":
            self.children = tuple([index for index, _, _ in args[3]]) if args[3] else ()
        elif op in LEAVES:
            self.children = ()
        self.cost = COSTS.get(op, 1)
        for child in self.children:
            self.cost += child.cost

    def __repr__(self) -> str:
        return f"{self.op}{self.args}" if self.args else self.op


LEAVES = frozenset(("const", "index"))
# Roughly, how many additions an operation costs: what is cheap is computed again rather than stored.
COSTS = {"const": 0, "index": 0, "load": 1, "cast": 1, "where": 1, "true_divide": 4, "sqrt": 6} | dict.fromkeys(
    (
        "exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "erf", "erfc", "sigmoid", "power",
        "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "fmod", "remainder",
        "floor_divide", "hypot", "lgamma", "expit",
    ),
    20,
)  # fmt: skip


def forget() -> None:
    """Start a new graph: expressions of the last one are no longer shared."""
    _table.clear()


def make(op: str, dtype: dtype, *args) -> Expr:
    """The one expression of this operation on these arguments."""
    key = (op, dtype, args) if op != "const" else (op, dtype, repr(args[0]))  # 0.0 == -0.0, and NaN is not NaN
    found = _table.get(key)
    if found is None:
        found = _table[key] = Expr(op, dtype, args)
    return found


def const(value, dtype: dtype) -> Expr:
    return make("const", dtype, value)


def index(dim: int) -> Expr:
    return make("index", dtypes.int64, dim)


def load(buffer, offset: int, strides: Sequence[int], indirect: tuple = ()) -> Expr:
    """An element of a buffer. `indirect`: (index expression, stride, size) of each gathered dimension."""
    return make("load", buffer.dtype, buffer, offset, tuple(strides), indirect)


def cast(x: Expr, target: dtype) -> Expr:
    """PyTorch's meaning of a cast; constants are cast here."""
    if x.dtype is target:
        return x
    if x.op == "const" and (folded := _cast_number(x.args[0], target)) is not None:
        return const(folded, target)
    if (
        x.op == "cast"
        and x.dtype is dtypes.float32
        and x.args[0].dtype is target
        and target in dtypes.reduced_precision
    ):
        return x.args[0]  # widened and narrowed again
    return make("cast", target, x)


def _cast_number(value, target: dtype):
    if target is dtypes.bool:
        return bool(value)
    if target.is_complex:
        return complex(value) if target is dtypes.complex128 else complex(target.numpy.type(value))
    value = value.real if isinstance(value, complex) else value
    if target.is_floating_point:
        return float(value) if target is dtypes.float64 else float(target.numpy.type(value))
    if isinstance(value, float) and not -(2.0**62) < value < 2.0**62:
        return None
    bits = target.itemsize * 8
    wrapped = int(value) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if target.is_signed and wrapped >> (bits - 1) else wrapped


def within(x: Expr, size: int, dims: Sequence[int]) -> bool:
    """Whether an index is that of a loop which stays below `size`."""
    return x.op == "index" and dims[x.args[0]] <= size


# ---- rewriting
def rewrite(x: Expr, leaf: Callable[[Expr], Expr | None], memo: dict | None = None) -> Expr:
    """An expression with loads, indices and constants replaced where `leaf` gives something for them."""
    memo = {} if memo is None else memo
    found = memo.get(x)
    if found is not None:
        return found
    if x.op == "load":
        if x.args[3]:
            indirect = tuple([(rewrite(i, leaf, memo), stride, size) for i, stride, size in x.args[3]])
            if indirect != x.args[3]:
                x_new = make("load", x.dtype, *x.args[:3], indirect)
                result = leaf(x_new) or x_new
            else:
                result = leaf(x) or x
        else:
            result = leaf(x) or x
    elif x.op in LEAVES:
        result = leaf(x) or x
    else:
        args = tuple([rewrite(a, leaf, memo) for a in x.args])
        result = x if args == x.args else make(x.op, x.dtype, *args)
    memo[x] = result
    return result


def walk(x: Expr) -> list[Expr]:
    """Every expression in one, each once, arguments first."""
    seen: set = set()
    order: list[Expr] = []

    def visit(e: Expr) -> None:
        seen.add(e)
        for child in e.children:
            if child not in seen:
                visit(child)
        order.append(e)

    visit(x)
    return order


def loads(x: Expr) -> list[Expr]:
    """Every load in an expression, each once; the list is the expression's own."""
    if x.loads is None:
        x.loads = [e for e in walk(x) if e.op == "load"]
    return x.loads


def affine(terms: Sequence[tuple[int, int]], base: int) -> Expr:
    """`base + sum(step * index)` as an int64 expression."""
    total: Expr | None = None
    for dim, step in terms:
        term = index(dim) if step == 1 else make("multiply", dtypes.int64, index(dim), const(step, dtypes.int64))
        total = term if total is None else make("add", dtypes.int64, total, term)
    if total is None:
        return const(base, dtypes.int64)
    return total if not base else make("add", dtypes.int64, total, const(base, dtypes.int64))


def reindex(x: Expr, rows: Sequence[tuple[Sequence[tuple[int, int]], int]], rank: int) -> Expr:
    """An expression over other loops: old index `d` is `rows[d] = (((new dim, step), ...), base)`, of `rank` new loops; or it is the
    expression `rows[d][0]`, which must be below `rows[d][1]`."""

    def leaf(e: Expr) -> Expr | None:
        if e.op == "index":
            terms, base = rows[e.args[0]]
            return terms if isinstance(terms, Expr) else affine(terms, base)
        if e.op == "load":
            buffer, offset, strides, indirect = e.args
            new = [0] * rank
            for stride, (terms, base) in zip(strides, rows, strict=True):
                if isinstance(terms, Expr):
                    indirect = (*indirect, (terms, stride, base)) if stride else indirect
                    continue
                offset += stride * base
                for dim, step in terms:
                    new[dim] += stride * step
            return make("load", e.dtype, buffer, offset, tuple(new), indirect)
        return None

    return rewrite(x, leaf)
