"""Loops as text that people read: one line for the loops, one for each step in them."""

from __future__ import annotations

from ..ops.lowering.expressions import Expr
from ..ops.lowering.loops import Awaited, Call, Compute, Convolved, Launched, Product, Sort, Started
from .fuse import Kernel

SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=", "logical_and": "and", "logical_or": "or",
}  # fmt: skip


MEETS = {"sum": "+=", "prod": "*=", "set": "="}
LONG, DEEP = 400, 4  # the cost of an expression that is written out wherever it stands, and how deep larger ones are


def place(offset: int, strides, indirect=()) -> str:
    """An address, in elements."""
    parts = [f"i{d}" if s == 1 else f"{s}*i{d}" for d, s in enumerate(strides) if s]
    parts += [f"{s}*{text(i)}" if s != 1 else text(i) for i, s, _ in indirect]
    return " + ".join([*parts, *([str(offset)] if offset or not parts else [])])


def text(e: Expr, depth: int = 0) -> str:
    """An expression, in Python's way of writing it; of one in which parts come again and again (the largest of a window), the outside."""
    if e.op == "const":
        return f"{e.args[0]:g}" if isinstance(e.args[0], float) else str(e.args[0])
    if e.op == "index":
        return f"i{e.args[0]}"
    if e.op == "load":
        return f"{e.args[0].name}[{place(*e.args[1:])}]"
    if depth > DEEP and e.cost > LONG:
        return "..."
    if e.op in SYMBOLS:
        return f"({text(e.args[0], depth + 1)} {SYMBOLS[e.op]} {text(e.args[1], depth + 1)})"
    name = e.dtype.name if e.op == "cast" else e.op
    return f"{name}({', '.join(text(a, depth + 1) for a in e.args)})"


def step(s: Compute) -> str:
    value = text(s.expr)
    value = value[1:-1] if value.startswith("(") and _outermost(value) else value
    target = f"{s.buffer.name}[{place(s.offset, s.strides, s.scatter)}]"
    if s.scatter:
        return f"{target} {MEETS.get(s.meets, s.meets + '=')} {value}"
    if s.scan:
        return f"{target} = running {s.reduce} of {value}"
    return f"{target} = {s.reduce} of {value}" if s.reduce else f"{target} = {value}"


def _outermost(value: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for n, c in enumerate(value):
        depth += (c == "(") - (c == ")")
        if not depth:
            return n == len(value) - 1
    return False


def describe(item: Kernel | Call) -> str:
    """A kernel, or a call."""
    if isinstance(item, Sort):
        order = "falling" if item.descending else "rising"
        part = (
            f", ranks {item.first} to {last}"
            if (last := item.first + item.target.shape[-1]) - item.first < item.source.shape[-1]
            else ""
        )
        return (
            f"{item.buffer.name} = places of {item.source.buffer.name} {list(item.source.shape)} in {order} order{part}"
        )
    if isinstance(item, Product):
        a, b, out = item.a, item.b, item.target
        added = "" if item.bias is None else f" + {item.bias.buffer.name}"
        return f"{out.buffer.name} = {a.buffer.name} {list(a.shape)} @ {b.buffer.name} {list(b.shape)}{added}"
    if isinstance(item, Convolved):
        a, b, out = item.first, item.second, item.target
        sizes = f"{list(a.shape)}, {b.buffer.name} {list(b.shape)} to {list(out.shape)}"
        return f"{out.buffer.name} = convolution of {a.buffer.name} {sizes}"
    if isinstance(item, Launched):
        targets, sources = (
            ", ".join(dict.fromkeys(v.buffer.name for v in some)) for some in (item.targets, item.sources)
        )
        return f"{targets} = {item.label} of {sources}"
    if isinstance(item, Started):
        return f"{item.buffer.name} = {item.routine.name} of {(item.source or item.target).buffer.name}, started"
    if isinstance(item, Awaited):
        return f"{item.buffer.name}, awaited"
    if not isinstance(item, Kernel):
        raise TypeError(f"a call of {type(item).__name__} has no description")
    inner = item.inner or ()
    kept = ", ".join(f"i{d} < {n}" for d, n in enumerate(item.dims) if d not in inner)
    row = ", ".join(f"i{d} < {n}" for d, n in enumerate(item.dims) if d in inner)
    head = f"for {kept or 'once'}" + (f", rows of {row}" if row else "")
    return "\n    ".join([f"{head}:", *[step(s) for s in item.steps]])
