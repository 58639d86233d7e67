"""Public functions with several signatures: `sum(x)` and `sum(x, dim)`, `max(x)`, `max(x, dim)` and `max(x, y)`.

In: the operators that share a public name, in the order in which they are tried. Out: one function that binds its
arguments to the first operator they fit and runs it. What always holds: an argument fits where PyTorch's parser says so
(no bool for an int, no number for a tensor), NumPy's names (`axis`, `keepdims`) are understood, and where nothing fits
the error names the types that were given and the signatures there are.
"""

from __future__ import annotations

from ...core.calls import choose, plan_key
from ...core.dtype import dtype
from ...core.layers import above
from ...core.modes import LISTENING, ambient
from ...core.tensor import PLAIN, Tensor
from ..eager.signature import describe
from .dispatch import dispatch
from .general import write_out
from .operator import Operator, export, is_list_of_ints
from .overrides import any_overridden, call_overridden
from .schema import Argument, Unfit
from .spelling import NUMPY

_SYNONYMS = {**NUMPY, **{name: "self" for name, target in NUMPY.items() if target == "input"}, "input": "self"}
_SHOWN = {("int", True): "tuple of ints", ("Scalar", False): "Number", ("ScalarType", False): "torch.dtype"}
_MISSING = object()


def overloaded(
    name: str, *operators: Operator, homes: tuple[str, ...] = ("torch", "Tensor"), aliases: tuple[str, ...] = ()
):
    """Export a function for several operators under `homes`; the one of the first home is returned."""
    result = {home: _choosing(name, operators, method=home == "Tensor") for home in homes}
    for home, function in result.items():
        publish(function, name, *aliases, homes=(home,))
    return result[homes[0]]


def _choosing(name: str, operators: tuple[Operator, ...], method: bool):
    def function(*args, **kwargs):
        return resolve(function, operators, args, kwargs, method)

    function.__name__ = function.__qualname__ = name
    function.operators = operators  # type: ignore[attr-defined]
    return describe(function, operators)


def publish(function, *names: str, homes: tuple[str, ...] = ("torch", "Tensor")):
    """Export a hand-written function that minds overrides itself (through `resolve` or `overridden`)."""
    for home in homes:
        for n in names:
            export(home, n, function)
    return function


def resolve(function, operators: tuple[Operator, ...], args: tuple, kwargs: dict, method: bool = False):
    """Run the first operator that the arguments fit; `function` is what overrides are told was called."""
    if ambient.mode < LISTENING:
        chosen = choose(_plans, operators, args, kwargs)
        if chosen is not None:
            return dispatch(*chosen)
    if ambient.mode & 2 or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
        return call_overridden(function, args, kwargs)
    out = None
    given = kwargs
    if kwargs:
        given = dict(kwargs)
        out = given.pop("out", None)
    for op in operators:
        bound = None if out is not None and not op.declared.out else fit(op, args, given)
        if bound is not None:
            if out is None:
                _keep_plan(operators, op, args, kwargs)
                return dispatch(op, bound)

            return write_out(op, bound, out)
    named = above.positions(args, kwargs)
    if named is not None:
        return resolve(function, operators, *named, method)
    raise mismatch(function.__name__, operators, args, kwargs, method)


# ---- calls with arguments of types that were seen before
_plans: dict[tuple, tuple] = {}  # see `core.calls.choose`
_KEPT = 4096
# Classes whose values fit a signature or not whatever they are, and are canonical as they are, but for lists.
_TELLING = frozenset((*PLAIN, int, float, bool, str, type(None), dtype))


def _plan(op: Operator, args: tuple, kwargs: dict) -> tuple:
    """The operator that arguments of some types fit, and where its arguments are taken from."""
    names = {_own_name(op, k): k for k in kwargs}
    places = []
    for i, a in enumerate(op.schema.arguments):
        times = (a.list_size or 0) if a.is_list and a.base in ("int", "SymInt") else None
        convert = a.convert_value if a.is_list else None
        places.append((i if i < len(args) else None, names.get(a.name), a.default, convert, times))
    return op, tuple(places)


def _keep_plan(operators: tuple[Operator, ...], op: Operator, args: tuple, kwargs: dict) -> None:
    """Remember which operator such arguments fit, where that is said by their types alone."""
    values = [*args, *kwargs.values()]
    if len(_plans) >= _KEPT or any(v.__class__ not in _TELLING and not is_list_of_ints(v) for v in values):
        return
    for tried in operators[: operators.index(op) + 1]:
        by_name = {_own_name(tried, k): v for k, v in kwargs.items()}
        for i, a in enumerate(tried.schema.arguments):
            if i < len(args) and a.kwarg_only:
                break  # too many positions, whatever they are
            value = args[i] if i < len(args) else by_name.get(a.name)
            if value.__class__ in PLAIN and a.base != "Tensor":
                return  # a tensor for a number: its value counts
            if is_list_of_ints(value) and (a.base not in ("int", "SymInt") or not a.is_list):
                return
    _plans[plan_key(operators, args, kwargs)] = _plan(op, args, kwargs)


def fit(op: Operator, args: tuple, kwargs: dict) -> tuple | None:
    """Canonical arguments, or None where the arguments are not of this signature."""
    arguments = op.schema.arguments
    if len(args) > len(arguments):
        return None
    left = {_own_name(op, k): v for k, v in kwargs.items()} if kwargs else kwargs
    if len(left) != len(kwargs):
        return None
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


def _own_name(op: Operator, keyword: str) -> str:
    """The schema's name for a keyword."""
    other = _SYNONYMS.get(keyword)
    return other if other in op.schema.index and keyword not in op.schema.index else keyword


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
        return not any(isinstance(v, (bool, float)) for v in (value if isinstance(value, (tuple, list)) else (value,)))
    return True


def mismatch(name: str, operators: tuple[Operator, ...], args: tuple, kwargs: dict, method: bool = False) -> TypeError:
    """PyTorch's words for arguments that fit no signature."""
    firsts = [op.schema.arguments[0] for op in operators]
    tensors_first = all(a.base == "Tensor" and not a.is_list for a in firsts)
    if args and not isinstance(args[0], Tensor) and tensors_first:
        return TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(args[0]).__name__}")
    args = args[1:] if method else args
    keywords = [f"{k}={type(v).__name__}" for k, v in kwargs.items()]
    got = ", ".join([*(type(a).__name__ for a in args), *keywords]) + (", " if keywords and not args else "")
    signatures = "".join(f"\n * ({', '.join(_shown(op))})" for op in operators)
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:{signatures}\n"
    )


def _shown(op: Operator) -> list[str]:
    out, starred = [], False
    for a in op.schema.arguments:
        if a.kwarg_only and not starred:
            out.append("*")
            starred = True
        default = "" if not a.has_default else f" = {a.default}"
        kind = _SHOWN.get((a.base, a.is_list), a.base)
        out.append(f"{kind} {'input' if a.name == 'self' else a.name}{default}")
    return out
