"""Arithmetic that works alike on numbers and on symbolic numbers: `sym_max`, `sym_int`, ...

A symbolic number is any object with `is_symbolic`; it answers the method of the same name (`__sym_max__`, ...).
"""

from __future__ import annotations

import builtins
import math


def _symbolic(*values) -> bool:
    return builtins.any(getattr(v, "is_symbolic", False) for v in values)


def _method(name: str, value, *rest):
    return getattr(value, f"__{name}__")(*rest)


def sym_int(a):
    """`int(a)` that keeps symbols."""
    return _method("sym_int", a) if _symbolic(a) else math.trunc(a)


def sym_float(a):
    """`float(a)` that keeps symbols."""
    return _method("sym_float", a) if _symbolic(a) else float(a)


def sym_not(a):
    """`not a` that keeps symbols."""
    return _method("sym_not", a) if _symbolic(a) else not a


def sym_max(a, b):
    """`max(a, b)` that keeps symbols; a float among the two makes the result a float."""
    if _symbolic(a, b):
        return _method("sym_max", a, b) if _symbolic(a) else _method("sym_max", b, a)
    made = builtins.max(a, b)
    return float(made) if isinstance(a, float) or isinstance(b, float) else made


def sym_min(a, b):
    """`min(a, b)` that keeps symbols; a float among the two makes the result a float."""
    if _symbolic(a, b):
        return _method("sym_min", a, b) if _symbolic(a) else _method("sym_min", b, a)
    made = builtins.min(a, b)
    return float(made) if isinstance(a, float) or isinstance(b, float) else made


def sym_ite(condition, then, otherwise):
    """`then if condition else otherwise` that keeps symbols."""
    if type(then) is not type(otherwise):
        raise TypeError(
            f"sym_ite: both values must be of one type, got {type(then).__name__} and {type(otherwise).__name__}"
        )
    return _method("sym_ite", condition, then, otherwise) if _symbolic(condition) else then if condition else otherwise


def sym_sum(args):
    """`sum(args)` that keeps symbols."""
    return builtins.sum(args)


def sym_sqrt(a):
    """The square root that keeps symbols."""
    return _method("sym_sqrt", a) if _symbolic(a) else math.sqrt(a)


public = {f.__name__: f for f in (sym_int, sym_float, sym_not, sym_max, sym_min, sym_ite, sym_sum, sym_sqrt)}
