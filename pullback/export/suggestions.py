"""What users could say instead: suggested fixes for dynamic shapes that a program does not bear, and how to apply them.

In: named dimensions, their symbols, and what tracing needed of these. Out: lines such as `dy = dx + 1` or
`dx = Dim('dx', max=12)`, and dynamic shapes changed by such lines. What always holds: a line speaks of names that the user
gave, or of one made of such a name (`_dx`).
"""

from __future__ import annotations

import re
from typing import Any

from ..capture.shapes.expressions import Expr, Symbol, substitute
from ..capture.shapes.facts import INFINITE
from ..capture.shapes.functions import mod
from ..capture.shapes.relations import Relation
from ..capture.shapes.writing import write_python
from ..core import tree
from .dynamic_shapes import Dim


def suggested_fixes(env: Any, roots: dict[str, tuple], broken: list[str]) -> list[str]:
    """One line for each named dimension that must be said otherwise."""
    now = {name: env.replace(symbol) for name, (_, symbol, _) in roots.items()}
    owners: dict[Any, str] = {}
    for name, expr in now.items():
        if isinstance(expr, Symbol):
            owners.setdefault(expr, name)
    fixes: list[str] = []
    changed = {}
    for symbol, name in owners.items():
        row = _multiple(env, symbol, name)
        if row is not None:
            changed[symbol], line = row
            fixes.append(line)
    show = lambda expr: write_python(
        substitute(expr, changed) if changed else expr, lambda s: owners.get(s) or s.name.strip("<>")
    ).replace(" * ", "*")
    for name, expr in now.items():
        if not isinstance(expr, Expr):
            fixes.append(f"{name} = {expr}")
        elif expr in changed or owners.get(expr) != name:
            fixes.append(f"{name} = {show(expr)}")
        elif name in broken:
            fixes.append(f"{name} = {_bounded(name, *env.bounds(expr))}")
    return fixes


def _bounded(name: str, low: Any, high: Any) -> str:
    bounds = [f"min={int(low)}"] if low not in (0, 2, -INFINITE) else []
    bounds += [f"max={int(high)}"] if high != INFINITE else []
    return f"Dim({', '.join([repr(name), *bounds])})"


def _multiple(env: Any, symbol: Symbol, name: str) -> tuple[Expr, str] | None:
    """Where a dimension must leave no remainder: what it is in a new one, and the line of that."""
    for guard in env.guards:
        question = env.replace(guard.expr)
        if not isinstance(question, Relation) or question.operator != "==" or question.args[1] != 0:
            continue
        left = question.args[0]
        if getattr(left, "function", None) is not mod or type(left.args[1]) is not int:
            continue
        terms = getattr(left.args[0], "terms", {})
        if terms.get((symbol,)) != 1 or not terms.keys() <= {(symbol,), ()}:
            continue
        step, offset = left.args[1], terms.get((), 0)
        low, high = env.bounds(symbol)
        low = low if low == -INFINITE else -(-(low + offset) // step)
        high = high if high == INFINITE else (high + offset) // step
        new = Symbol(f"<_{name}>")
        return new * step - offset, f"_{name} = {_bounded(f'_{name}', low, high)}"
    return None


# ---- applying them
LINE = re.compile(r"^\s*(\w+) = (.+?)\s*$")
BOUNDED = re.compile(r"^Dim\('(\w+)'(?:, min=(\d+))?(?:, max=(\d+))?\)$")
DERIVED = re.compile(r"^(?:(\d+)\s*\*\s*)?(\w+)(?:\s*([+-])\s*(\d+))?$")


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Dynamic shapes with what the error of an export suggests."""
    from .dynamic_shapes import _DerivedDim

    _, found, text = msg.partition("Suggested fixes:")
    if not found:
        raise ValueError("refine_dynamic_shapes_from_suggested_fixes: the message suggests no fixes")
    known = {d.root.__name__: d.root for d in tree.tree_leaves(dynamic_shapes) if isinstance(d, Dim)}
    lines = dict(m.groups() for line in text.splitlines() if (m := LINE.match(line)))
    fixed: dict[str, Any] = {}

    def value(name: str) -> Any:
        if name not in fixed:
            fixed[name] = read(lines[name]) if name in lines else known.get(name, Dim(name))
        return fixed[name]

    def read(line: str) -> Any:
        if line.isdigit():
            return int(line)
        if m := BOUNDED.match(line):
            name, low, high = m.groups()
            return Dim(name, min=low and int(low), max=high and int(high))
        m = DERIVED.match(line)
        if m is None:
            raise ValueError(f"refine_dynamic_shapes_from_suggested_fixes: {line!r} is no fix that can be applied")
        factor, name, sign, offset = m.groups()
        result = value(name)
        result = result * int(factor) if factor else result
        return result + int(offset) * (1 if sign == "+" else -1) if sign else result

    def changed(dim: Any) -> Any:
        if not isinstance(dim, Dim):
            return dim
        own = dim.__name__
        if not isinstance(dim, _DerivedDim):
            return value(own) if own in lines else dim
        if dim.root.__name__ not in lines:
            return dim
        root = value(dim.root.__name__)
        return root * dim.factor + dim.offset

    return tree.tree_map(changed, dynamic_shapes)
