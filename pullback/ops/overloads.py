"""Public functions with several signatures: `sum(x)` and `sum(x, dim)`, `max(x)`, `max(x, dim)` and `max(x, y)`.

In: the operators that share a public name, in the order in which they are tried. Out: one function that binds its
arguments to the first operator they fit and runs it. What always holds: an argument fits where PyTorch's parser says so
(no bool for an int, no number for a tensor), NumPy's names (`axis`, `keepdims`) are understood, and where nothing fits
the error names the types that were given and the signatures there are.
"""

from __future__ import annotations

from ..core.modes import ambient
from ..core.tensor import Tensor
from .dispatch import dispatch
from .operator import Operator, export
from .overrides import any_overridden, call_overridden
from .schema import Argument, Unfit, wrong_type

_SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "self", "input": "self", "x2": "other"}
_MISSING = object()


def overloaded(name: str, *operators: Operator, homes: tuple[str, ...] = ("torch", "Tensor"), aliases: tuple[str, ...] = ()):
    """Export one function for several operators under `homes`."""

    def function(*args, **kwargs):
        return resolve(function, operators, args, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}: " + "; ".join(f"`{op.text}`" for op in operators)
    function.operators = operators  # type: ignore[attr-defined]  # read by the stubs
    return publish(function, name, *aliases, homes=homes)


def publish(function, *names: str, homes: tuple[str, ...] = ("torch", "Tensor")):
    """Export a hand-written function that minds overrides itself (through `resolve` or `overridden`)."""
    for home in homes:
        for n in names:
            export(home, n, function)
    return function


def resolve(function, operators: tuple[Operator, ...], args: tuple, kwargs: dict):
    """Run the first operator that the arguments fit; `function` is what overrides are told was called."""
    if ambient.mode & 2 or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
        return call_overridden(function, args, kwargs)
    out = None
    given = kwargs
    if kwargs:
        given = dict(kwargs)
        out = given.pop("out", None)
    for op in operators:
        bound = None if out is not None and not op.options.get("out", True) else fit(op, args, given)
        if bound is not None:
            if out is None:
                return dispatch(op, bound)
            from .inplace import write_out

            return write_out(op, bound, out)
    raise mismatch(function.__name__, operators, args, kwargs)


def fit(op: Operator, args: tuple, kwargs: dict) -> tuple | None:
    """Canonical arguments, or None where the arguments are not of this signature."""
    arguments = op.schema.arguments
    if len(args) > len(arguments):
        return None
    left = {_SYNONYMS.get(k, k) if _SYNONYMS.get(k) in op.schema.index else k: v for k, v in kwargs.items()} if kwargs else kwargs
    out = []
    for i, argument in enumerate(arguments):
        if i < len(args):
            if argument.kwarg_only or argument.name in left:
                return None
            value = args[i]
        else:
            value = left.get(argument.name, _MISSING)
            if value is _MISSING:
                if not argument.has_default:
                    return None
                out.append(argument.default)
                continue
        if not accepts(argument, value):
            return None
        try:
            out.append(argument.convert_value(value))
        except Unfit:
            return None
    used = sum(a.name in left for a in arguments) if left else 0
    return tuple(out) if used == len(left) else None


def accepts(argument: Argument, value) -> bool:
    """What the converters would bend but PyTorch's parser refuses."""
    if value is None:
        return argument.optional or argument.has_default and argument.default is None
    if argument.base == "Tensor":
        listed = argument.is_list and isinstance(value, (tuple, list))
        return isinstance(value, Tensor) or listed and all(isinstance(v, Tensor) for v in value)
    if argument.base == "Scalar" and argument.is_list:
        return isinstance(value, (tuple, list)) and not any(isinstance(v, Tensor) for v in value)
    if argument.base in ("int", "SymInt"):
        return not isinstance(value, (bool, float)) and not (isinstance(value, (tuple, list)) and any(isinstance(v, (bool, float)) for v in value))
    return True


def mismatch(name: str, operators: tuple[Operator, ...], args: tuple, kwargs: dict) -> TypeError:
    """PyTorch's words for arguments that fit no signature."""
    first = operators[0].schema.arguments[0]
    if args and not isinstance(args[0], Tensor) and first.base == "Tensor" and not first.is_list:
        return TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(args[0]).__name__}")
    possible = [op for op in operators if _plausible(op, args, kwargs)]
    if len(possible) == 1 and (wrong := _first_wrong(possible[0], args, kwargs)) is not None:
        return wrong_type(name, *wrong)
    keywords = [f"{k}={type(v).__name__}" for k, v in kwargs.items()]
    got = ", ".join([*(type(a).__name__ for a in args), *keywords]) + (", " if keywords and not args else "")
    signatures = "".join(f"\n * ({', '.join(_shown(op))})" for op in operators)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:{signatures}\n")


def _plausible(op: Operator, args: tuple, kwargs: dict) -> bool:
    arguments = op.schema.arguments
    names = {*op.schema.index, "out", *(k for k, v in _SYNONYMS.items() if v in op.schema.index)}
    required = sum(not a.has_default for a in arguments)
    positional = sum(not a.kwarg_only for a in arguments)
    return len(args) <= positional and set(kwargs) <= names and len(args) + len(kwargs) >= required


def _first_wrong(op: Operator, args: tuple, kwargs: dict) -> tuple[Argument, object] | None:
    given = list(zip(op.schema.arguments, args, strict=False))
    given += [(op.schema.arguments[op.schema.index[_SYNONYMS.get(k, k)]], v) for k, v in kwargs.items() if _SYNONYMS.get(k, k) in op.schema.index]
    return next(((a, v) for a, v in given if not accepts(a, v) or not _converts(a, v)), None)


def _converts(argument: Argument, value) -> bool:
    try:
        argument.convert_value(value)
    except Unfit:
        return False
    return True


def _shown(op: Operator) -> list[str]:
    out, starred = [], False
    for a in op.schema.arguments:
        if a.kwarg_only and not starred:
            out.append("*")
            starred = True
        default = "" if not a.has_default else f" = {a.default}"
        kind = {"int": "tuple of ints" if a.is_list else "int", "Scalar": "Number", "ScalarType": "torch.dtype"}.get(a.base, a.base)
        out.append(f"{kind} {'input' if a.name == 'self' else a.name}{default}")
    return out
