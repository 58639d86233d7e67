"""Arithmetic that works alike on numbers and on symbolic numbers: `sym_max`, `sym_int`, ...

A symbolic number is any object with `is_symbolic`; it answers the method of the same name (`__sym_max__`, ...).
"""

from __future__ import annotations

import builtins
import math


def symbolic(*values) -> bool:
    """Whether any of these is a symbolic number."""
    return builtins.any(getattr(v, "is_symbolic", False) for v in values)


def _method(name: str, value, *rest):
    return getattr(value, f"__{name}__")(*rest)


def holds(question) -> bool:
    """Whether it holds; what data decides is taken to hold, and checked when the program runs."""
    if question.__class__ is bool:
        return question
    return question.node.expect_true() if symbolic(question) else bool(question)


def surely(question) -> bool:
    """Whether it holds for all values of the symbols; never a guard."""
    return question if question.__class__ is bool else question.node.statically_known_true()


def undecided(question) -> bool:
    """Whether nothing but data decides it."""
    if question.__class__ is bool or not symbolic(question):
        return False
    node = question.node
    return node.hint is None and node.shape_env.statically(node.expr) is None


def likely(question, otherwise: bool) -> bool:
    """Whether it holds; `otherwise` where nothing but data decides it. No check is left behind."""
    if question.__class__ is bool:
        return question
    return otherwise if undecided(question) else bool(question)


def concrete(value):
    """The definite number of a symbolic one; a guard records that it was asked for."""
    return value.concrete() if hasattr(value, "concrete") else value.__index__()


def sym_int(a):
    """`int(a)` that keeps symbols.

    >>> torch.sym_int(3.7)
    3
    """
    return _method("sym_int", a) if symbolic(a) else math.trunc(a)


def sym_float(a):
    """`float(a)` that keeps symbols.

    >>> torch.sym_float(3)
    3.0
    """
    return _method("sym_float", a) if symbolic(a) else float(a)


def sym_not(a):
    """`not a` that keeps symbols.

    >>> torch.sym_not(True)
    False
    """
    return _method("sym_not", a) if symbolic(a) else not a


def sym_max(a, b):
    """`max(a, b)` that keeps symbols; a float among the two makes the result a float.

    >>> torch.sym_max(1, 2)
    2
    """
    if symbolic(a, b):
        return _method("sym_max", a, b) if symbolic(a) else _method("sym_max", b, a)
    result = builtins.max(a, b)
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_min(a, b):
    """`min(a, b)` that keeps symbols; a float among the two makes the result a float.

    >>> torch.sym_min(1, 2)
    1
    """
    if symbolic(a, b):
        return _method("sym_min", a, b) if symbolic(a) else _method("sym_min", b, a)
    result = builtins.min(a, b)
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_ite(condition, then, otherwise):
    """`then if condition else otherwise` that keeps symbols.

    >>> torch.sym_ite(True, 1, 2)
    1
    """
    if symbolic(condition):
        return _method("sym_ite", condition, then, otherwise)
    if type(then) is not type(otherwise) and not symbolic(then, otherwise):
        raise TypeError(
            f"sym_ite: both values must be of one type, got {type(then).__name__} and {type(otherwise).__name__}"
        )
    return then if condition else otherwise


def sym_sum(args):
    """`sum(args)` that keeps symbols.

    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return builtins.sum(args)


def _unary(name: str):
    plain = getattr(math, name)

    def call(a):
        return _method(f"sym_{name}", a) if symbolic(a) else plain(a)

    call.__name__ = call.__qualname__ = f"sym_{name}"
    call.__doc__ = f"`math.{name}(a)` that keeps symbols.\n\n>>> torch.sym_{name}(0.25)\n{plain(0.25)}"
    return call


sym_sqrt, sym_cos, sym_cosh, sym_sin, sym_sinh, sym_tan = map(_unary, ("sqrt", "cos", "cosh", "sin", "sinh", "tan"))
sym_tanh, sym_asin, sym_acos, sym_atan, sym_log2 = map(_unary, ("tanh", "asin", "acos", "atan", "log2"))


_IMPROVE = "(Could this error message be improved? If so, please report an enhancement request to PyTorch.)"


def _checker(error: type[Exception], suffix: str):
    def check(cond, message=None) -> None:
        if not isinstance(cond, bool) and not symbolic(cond):
            raise TypeError(f"cond must be a bool, but got {type(cond)}")
        if cond.node.expect_true() if symbolic(cond) else cond:
            return
        if message is None:
            raise error(f"Expected cond to be True, but got False. {_IMPROVE}")
        if not callable(message):
            raise TypeError("message must be a callable")
        raise error(str(message()))

    check.__name__ = check.__qualname__ = f"_check{suffix}"
    check.__doc__ = (
        f"Raise {error.__name__} unless `cond` holds; a symbolic one is learned, and checked when the program runs."
    )
    return check


_check, _check_index, _check_value = map(_checker, (RuntimeError, IndexError, ValueError), ("", "_index", "_value"))
_check_type, _check_not_implemented = map(_checker, (TypeError, NotImplementedError), ("_type", "_not_implemented"))


def _check_with(error_type, cond, message) -> None:
    """Raise `error_type` unless `cond` holds."""
    _checker(error_type, "_with")(cond, message)


def _check_is_size(i, message=None, *, max=None) -> None:
    """`i` is a size: not negative, at most `max`."""
    _check(i >= 0, message)
    if symbolic(i):
        i.node.shape_env.constrain_for_size(i)
    if max is not None:
        _check(i <= max, message)


_UNARY = (sym_sqrt, sym_cos, sym_cosh, sym_sin, sym_sinh, sym_tan, sym_tanh, sym_asin, sym_acos, sym_atan, sym_log2)
_CHECKS = (_check, _check_index, _check_value, _check_type, _check_not_implemented, _check_with, _check_is_size)

public = {f.__name__: f for f in (sym_int, sym_float, sym_not, sym_max, sym_min, sym_ite, sym_sum, sym_sqrt, *_CHECKS)}
public |= {f"_{f.__name__}": f for f in _UNARY}
