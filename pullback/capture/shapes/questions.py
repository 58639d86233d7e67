"""Functions that ask about numbers, symbolic or not: carefully (`guard_or_false`), statically, or for good (`guard_int`).

What always holds: a plain number answers for itself, so that code may ask without knowing what it has.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from .expressions import Expr
from .expressions import free_symbols as _symbols
from .numbers import SymNumber
from .relations import compare


def _is(value, kind: type) -> bool:
    return isinstance(value, SymNumber) and value.symbolic_type is kind


def is_symbolic(val) -> bool:
    """Whether the number is not known for certain."""
    return isinstance(val, SymNumber) and isinstance(val.node.expr, Expr)


def guard_int(a) -> int:
    return a.node.guard_int() if _is(a, int) else _plain(a, int)


def guard_float(a) -> float:
    return a.node.guard_float() if _is(a, float) else _plain(a, float)


def guard_bool(a) -> bool:
    return a.node.guard_bool() if _is(a, bool) else _plain(a, bool)


def guard_scalar(a):
    """A definite number of the kind that `a` is."""
    return a.node.guard() if isinstance(a, SymNumber) else a


def _plain(a, kind: type):
    if type(a) is not kind:
        raise AssertionError(f"expected {kind.__name__}, got {type(a).__name__}")
    return a


def guard_or_false(a) -> bool:
    """The answer, with a guard; False where it hangs on data."""
    return a.node.guard_or_false() if _is(a, bool) else bool(a)


def guard_or_true(a) -> bool:
    """The answer, with a guard; True where it hangs on data."""
    return a.node.guard_or_true() if _is(a, bool) else bool(a)


def guard_size_oblivious(expr) -> bool:
    """The answer if data-dependent sizes are neither 0 nor 1."""
    return expr.node.guard_size_oblivious() if _is(expr, bool) else bool(expr)


def statically_known_true(x) -> bool:
    """Whether it follows from what is known; never a guard."""
    return x.node.statically_known_true() if _is(x, bool) else bool(x)


def statically_known_false(x) -> bool:
    return x.node.shape_env.statically(x.node.expr) is False if _is(x, bool) else not x


definitely_true = guard_or_false


def definitely_false(a) -> bool:
    return not guard_or_true(a)


def expect_true(a, skip: int = 0) -> bool:
    """Say that it holds: learned now, checked at run time where it hangs on data."""
    return a.node.expect_true() if _is(a, bool) else bool(a)


def hint_int(a, fallback: int | None = None) -> int:
    """The value in the example."""
    if not _is(a, int):
        return int(a)
    value = a.node.hint
    return value if value is not None else fallback if fallback is not None else a.node.require_hint()


def size_hint(a, fallback: int | None = None) -> int:
    return hint_int(a, fallback)


def guarding_hint_or_throw(a):
    return a.node.require_hint() if isinstance(a, SymNumber) else a


def optimization_hint(a, fallback: int | None = None) -> int:
    return a.node.shape_env.optimization_hint(a.node.expr, fallback) if _is(a, int) else a


def has_hint(a) -> bool:
    return not isinstance(a, SymNumber) or a.node.hint is not None


def is_concrete_int(a) -> bool:
    """Whether the number is known for certain."""
    return not is_symbolic(a)


is_concrete_float = is_concrete_bool = is_concrete_int


def is_expr_static(a) -> bool:
    """Whether an expression or number has no symbol left."""
    return not has_free_symbols(a)


def has_static_value(a) -> bool:
    """Whether only one value fits what is known."""
    if not isinstance(a, SymNumber):
        return True
    if a.node.pytype is not int:
        return not is_symbolic(a)
    low, high = a.node.shape_env.bounds(a.node.expr)
    return low == high


def _exprs(val) -> list:
    if isinstance(val, SymNumber):
        return [val.node.expr]
    if isinstance(val, Expr):
        return [val]
    if hasattr(val, "shape") and hasattr(val, "stride"):
        return _exprs((*val.shape, *val.stride(), val.storage_offset()))
    if isinstance(val, dict):
        return _exprs(tuple(val.values()))
    if isinstance(val, Iterable) and not isinstance(val, (str, bytes)):
        return [e for v in val for e in _exprs(v)]
    return []


def free_symbols(val) -> frozenset:
    """The symbols in a number, an expression, a tensor's geometry, or a collection of these."""
    return _symbols(_exprs(val))


def free_unbacked_symbols(x) -> frozenset:
    return frozenset(s for s in free_symbols(x) if s.is_unbacked)


def has_free_symbols(val) -> bool:
    return bool(free_symbols(val))


def has_free_unbacked_symbols(x) -> bool:
    return bool(free_unbacked_symbols(x))


def has_symbolic_sizes_strides(elem) -> bool:
    return builtins.any(map(is_symbolic, (*elem.shape, *elem.stride(), elem.storage_offset())))


def sym_and(x, *others):
    """`and` that keeps symbols."""
    for other in others:
        x = other if x is True else False if x is False or other is False else x if other is True else x & other
    return x


def sym_or(x, *others):
    """`or` that keeps symbols."""
    for other in others:
        x = other if x is False else True if x is True or other is True else x if other is False else x | other
    return x


def sym_eq(x, y):
    """Equality of numbers or of sequences of numbers, that keeps symbols."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return False if len(x) != len(y) else sym_and(True, *map(sym_eq, x, y))
    return x == y


def constrain_range(a, *, min: int | None, max: int | None = None) -> None:
    """Take it as given that `min <= a <= max`."""
    low, high = (-builtins.float("inf") if min is None else min), (builtins.float("inf") if max is None else max)
    if high < low:
        raise ValueError("Maximum value to constrain_as_size can't be less than the specified min value")
    if _is(a, int):
        a.node.shape_env.constrain_range(a, low, high)
    elif not low <= a <= high:
        raise ValueError(f"Invalid value {a} for range [{min}:{max}]")


def constrain_range_for_size(a, min: int | None = None, max: int | None = None) -> None:
    """Take it as given that `a` is a size within these bounds."""
    if not _is(a, int):
        constrain_range(a, min=min or 0, max=max)
        return
    a.node.shape_env.constrain_for_size(a, min, max)


def constrain_unify(a, b) -> None:
    """Take it as given that the two are equal."""
    number = a if _is(a, int) else b
    if _is(number, int):
        number.node.shape_env.constrain_unify(a, b)
    elif a != b:
        raise AssertionError(f"{a} and {b} are not equal")


def advise_is_size(a) -> None:
    """`a` is used as a size."""
    if _is(a, int):
        a.node.shape_env.constrain_for_size(a)


def is_nested_int(s) -> bool:
    return bool(getattr(s, "is_ragged", False))


def create_contiguous(shape) -> list:
    """Row-major strides of a shape."""
    out = [1]
    for size in reversed(shape[1:]):
        out.append(out[-1] * size)
    return out[::-1] if len(shape) else []


class SymIntEqByExpr:
    """A number as a key: equal where the expressions are, without a guard."""

    __slots__ = ("expr",)

    def __init__(self, val):
        self.expr = val.node.expr if isinstance(val, SymNumber) else val

    def __repr__(self) -> str:
        return repr(self.expr)

    def __eq__(self, other) -> bool:
        return isinstance(other, SymIntEqByExpr) and (
            self.expr is other.expr or not isinstance(self.expr, Expr) and self.expr == other.expr
        )

    def __hash__(self) -> int:
        return hash(self.expr)


def rename_unbacked(env, old, new) -> None:
    """`new` is the same data-dependent number as `old`, made again."""
    env.expect_true(compare("==", new, old))
