"""What every call of an operator asks of its arguments.

`history(args)`: True or False where every tensor among canonical arguments is plain (some have history, or none has), None where one is
not. `simple(args, kwargs)`: whether no value is of a class that could override a call, lists looked into; False where that must be
looked up. `arrays_of(args)`: the arguments with arrays in the place of tensors. `choose(plans, first, args, kwargs)`: the operator that
arguments of these types fit by the plans of earlier calls, and its arguments; None without a plan, and for lists that are not of ints. A plan is (operator, places), a place
(position or None, keyword or None, default, how a value is converted or None, how often a lone integer stands in a list or None).
All are done in C where the extension is built; here stands what they do.
"""

from __future__ import annotations

from .dtype import dtype
from .extension import extension
from .size import Size
from .tensor import PLAIN, Tensor

SIMPLE = frozenset((*PLAIN, int, float, bool, type(None), str, complex, dtype))
_LISTS = (tuple, list)


def history(args: tuple) -> bool | None:
    live = False
    for v in args:
        for t in v if isinstance(v, _LISTS) else (v,):
            if isinstance(t, Tensor):
                if t._keys:
                    return None
                live = live or t._autograd is not None
    return live


def simple(args: tuple, kwargs: dict | None = None) -> bool:
    return args.__class__ is tuple and _are_simple(args, 4) and (not kwargs or _are_simple(kwargs.values(), 4))


def _are_simple(values, depth: int) -> bool:
    return all(_is_simple(v, depth - 1) for v in values)


def _is_simple(v, depth: int) -> bool:
    return v.__class__ in SIMPLE or bool(depth) and v.__class__ in _LISTS and _are_simple(v, depth)


def arrays_of(args: tuple) -> tuple:
    return tuple([_array_of(v) for v in args])


def _array_of(value):
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, _LISTS) and any(isinstance(v, Tensor) for v in value):
        return tuple([v._array if isinstance(v, Tensor) else v for v in value])
    return value


def plan_key(first, args: tuple, kwargs: dict) -> tuple:
    """The key of a call among plans: what chooses, classes of arguments, names and classes of keywords."""
    named = [x for k, v in kwargs.items() for x in (k, v.__class__)] if kwargs else ()
    return (first, *[a.__class__ for a in args], *named)


def choose(plans: dict, first, args: tuple, kwargs: dict) -> tuple | None:
    plan = plans.get(plan_key(first, args, kwargs))
    if plan is None:
        return None
    op, places = plan
    bound = []
    for position, keyword, default, convert, _ in places:
        if position is None and keyword is None:
            bound.append(default)
            continue
        value = kwargs[keyword] if position is None else args[position]
        if isinstance(value, _LISTS) and not (value and all(v.__class__ is int for v in value)):
            return None
        bound.append(value if convert is None else convert(value))
    return op, tuple(bound)


_calls = extension("_calls")
if _calls is not None:
    _calls.setup(Tensor, Size, SIMPLE)
    history, simple, arrays_of, choose = _calls.history, _calls.simple, _calls.arrays, _calls.choose  # type: ignore[assignment]
