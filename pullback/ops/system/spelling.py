"""Arguments under NumPy's names: `torch.sum(x=t, axis=0, keepdims=True)`, `torch.add(x1=a, x2=b)`.

In: a call of a public function with keywords that its signature does not have. Out: the call under the names that it has, or
TypeError for a keyword that nobody knows, and for an argument that is given twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

UNSET = type("Unset", (), {"__repr__": lambda self: "...", "__bool__": lambda self: False})()
NUMPY = {"x": "input", "a": "input", "x1": "input", "x2": "other", "axis": "dim", "keepdims": "keepdim"}
RENAMED = {"dim": "axis", "keepdim": "keepdims"}  # those that functions without `out` have in their signature

_LEFT_OUT = re.compile(r"([\w.<>]+)\(\) missing (\d+) required positional arguments?: (.*)")


def respelled(function, names: tuple[str, ...], values: tuple, rest: dict):
    """Call a generated function again, with what `rest` says for the parameters that its other values leave open."""
    open_values = _defaults(function)
    given = {n: v for n, v in zip(names, values, strict=True) if v is not open_values.get(n, UNSET)}
    for name, value in rest.items():
        target = "out" if name == "out" else NUMPY.get(name)
        if target is None or target in given or target != "out" and target not in names:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
        given[target] = value
    return function(**given)


def _defaults(function) -> dict:
    """The values of parameters that nobody has given."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    return {**dict(zip(names, defaults, strict=True)), **(function.__kwdefaults__ or {})}


def raise_missing(name: str, **values) -> None:
    """Raise for the parameters without a value, in PyTorch's words; nothing where each has one."""
    missing = [f'"{parameter}"' for parameter, value in values.items() if value is UNSET]
    if missing:
        raise TypeError(f"{name}() missing {len(missing)} required positional arguments: {', '.join(missing)}")


def in_own_words(error: TypeError) -> TypeError:
    """What Python says of a call that leaves arguments out, in PyTorch's words; any other error as it is, and those of calls inside."""
    inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
    words = None if inside else _LEFT_OUT.fullmatch(str(error))
    if words is None:
        return error
    quoted = re.sub("'(\\w+)'", '"\\1"', words[3].replace(", and ", ", ").replace(" and ", ", "))
    return TypeError(f"{words[1].rpartition('.')[2]}() missing {words[2]} required positional arguments: {quoted}")


def by_own_names(kwargs: Mapping, parameters: Iterable[str]) -> dict:
    """Keywords of a call, under the names that a function written by hand has for them."""
    names = set(parameters)
    own = {}
    for name, value in kwargs.items():
        target = name if name in names else next((t for t in _targets(name) if t in names), name)
        if target in own or target != name and target in kwargs:
            raise TypeError(f"got an unexpected keyword argument '{name}'")
        own[target] = value
    return own


def _targets(name: str) -> tuple[str, ...]:
    """The parameters that a name of NumPy's may stand for."""
    target = NUMPY.get(name)
    return () if target is None else ("input", "self") if target == "input" else (target,)


def speller(body: Callable) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names of NumPy's that a function written by hand takes by other names, and its own."""
    code = body.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return frozenset(n for n in NUMPY if n not in own and any(t in own for t in _targets(n))), own
