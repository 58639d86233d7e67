"""Public functions, generated from schemas: straight-line code, made at the first call (see `eager.functions`).

`make_function(name, op)` gives a function object at once. Its source is the parameter list that the schema states, the
plain case if the operator's family has one (`plain_lines`), and the general path.
"""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core.arrays import LARGE
from ...core.calls import simple
from ...core.errors import no_memory
from ...core.modes import ambient
from ...core.objects import make_tensor
from ...core.small import fronts
from ...core.tensor import PLAIN, Tensor
from ..eager import direct
from ..eager.functions import ANY, COMMON, choose, generate
from ..eager.signature import describe
from ..eager.text import Call
from .dispatch import mark_views
from .general import general
from .old_forms import call_old_form, has_old_form
from .operator import Operator, export, inplace_key, key_of, public_names
from .overrides import any_overridden, call_overridden
from .return_types import pack_results
from .schema import Argument
from .spelling import RENAMED, UNSET, by_own_names, in_own_words, raise_missing, respelled, speller

COMMON.update({
    "ambient": ambient, "general": general, "Tensor": Tensor, "PLAIN": PLAIN, "cpu": devices.cpu,
    "LARGE": LARGE, "UNSET": UNSET, "np": np, "make_tensor": make_tensor, "mark_views": mark_views, "pack_results": pack_results,
    "call_old_form": call_old_form, "respelled": respelled, "raise_missing": raise_missing,
})  # fmt: skip


def bypassed(op: Operator, inplace: bool = False) -> tuple[str, ...]:
    """The operators that the plain case of an operator goes past: itself, what it is made of, its overloads for numbers."""
    key = inplace_key if inplace else key_of
    declared = op.declared
    others = tuple([key(other) for other in declared.overloads.values()]) if hasattr(declared, "overloads") else ()
    if inplace:
        return (key(op), *others)
    inlined = [key(case.recorded_as) for case in declared.plain_cases if case.recorded_as is not None]
    past_body = (ANY,) if op.body is not None and op.native is not None else ()
    return (key(op), *others, *inlined, *getattr(declared, "inlines", past_body))


def make_function(name: str, op: Operator, inplace: bool = False, space: str = "torch", defaults: dict | None = None):
    """The public function of an operator (or of its in-place form). `defaults`: those that are not the schema's, by name."""

    def write(plain: bool) -> tuple[str, dict]:
        target = op.inplace if inplace else op
        return wrapper_source(name, target, plain), {
            "op": target,
            **direct.names_of(target),
            **target.family.plain_names(target),
            **{f"default_{argument}": value for argument, value in (defaults or {}).items()},
        }

    function = generate(name, f"{'Tensor' if inplace else space}.{name}", lambda: bypassed(op, inplace), write)
    function.operator = op  # type: ignore[attr-defined]
    if inplace or space == "Tensor":
        function.is_method = True  # type: ignore[attr-defined]
    return describe(function, (op,), inplace)


def wrapper_source(name: str, op: Operator, plain: bool = True, stated: bool = False) -> str:
    """The text of a public function: parameters from the schema, the plain case if there is one, the general path.

    Functions that take `out=` get it, and NumPy's names, in the keywords that they do not know (`rest`), which costs nothing where there
    are none. With `stated`, the parameters are those that a reader is told of.
    """
    arguments = op.schema.arguments
    signature, fixes, values, required = [], [], [], []
    variadic = op.declared.variadic
    starred = False
    has_out = op.inplace_of is None and op.declared.out and not op.is_view
    has_rest = has_out and not stated
    renamed = [a for a in arguments if a.name in RENAMED and not a.kwarg_only]
    old = has_old_form((op.inplace_of or op).name) and any(a.kwarg_only for a in arguments)
    for i, a in enumerate(arguments):
        pname = _public_name(a)
        values.append(pname)
        if a.kwarg_only and not starred:
            signature.append("*old" if old else "*")
            starred = True
        if a.name == variadic:
            signature += [f"*{pname}s", f"{pname}=UNSET"]
            starred = True
            fixes += _variadic_lines(name, a, pname)
        elif a.has_default or (a.optional and i and not a.kwarg_only and arguments[i - 1].has_default):
            signature.append(f"{pname}=default_{pname}")
        elif has_rest and not a.kwarg_only:
            signature.append(f"{pname}=UNSET")
            required.append(a)
        elif a in renamed:
            signature.append(f"{pname}=UNSET")
        elif any(before in renamed and not before.has_default for before in arguments[:i]) and not a.kwarg_only:
            signature.append(f"{pname}=UNSET")
            fixes += _missing_lines(name, pname)
        else:
            signature.append(pname)
    extra = ["out=None"] if has_out and not has_rest else []
    for a in renamed if not has_rest else ():
        extra.append(f"{RENAMED[a.name]}=UNSET")
        fixes += _rename_lines(name, a)
    if extra and not starred:
        signature.append("*")
    rest = _rest_lines(values) if has_rest else []
    if has_rest:
        extra = ["**rest"]
        if any(not a.is_tensor for a in required):  # plain cases ask whether tensors are plain tensors
            fixes += [*rest, *_required_lines(name, [_public_name(a) for a in required])]
            rest = []
    lines = [f"def wrapper({', '.join(signature + extra)}):", *fixes]
    lines += _old_lines(values, arguments, rest, has_out) if old else []
    call = Call(op.inplace_of or op, op.inplace_of is not None, values, has_out)
    lines += [f"    {line}" for line in (op.family.plain_lines(call) if plain else [])]
    lines += [*rest, *_required_lines(name, [_public_name(a) for a in required])] if rest else []
    cases = op.family.choice_lines(call) + (direct.lines_of(call) if plain else [])
    lines += [f"    {line}" for line in cases]
    tail = ", out" if has_out else ""
    lines.append(f"    return general(function, op, ({', '.join(values)},){tail})")
    return "\n".join(lines)


def _rest_lines(values: list[str]) -> list[str]:
    """`out` from the keywords that are no parameters; others are NumPy's names, or errors."""
    names = "".join(f"'{v}', " for v in values)
    return [
        "    out = None",
        "    if rest:",
        "        if len(rest) > 1 or 'out' not in rest:",
        f"            return respelled(function, ({names}), ({', '.join(values)},), rest)",
        "        out = rest['out']",
    ]


def _required_lines(name: str, required: list[str]) -> list[str]:
    """An error where a parameter has no value. The last one lacks it wherever too few were given, and is asked about first."""
    if not required:
        return []
    given = ", ".join(f"{r}={r}" for r in required)
    return [f"    if {' or '.join(f'{r} is UNSET' for r in required)}:", f"        raise_missing('{name}', {given})"]


def _old_lines(values: list[str], arguments, rest: list[str], has_out: bool) -> list[str]:
    """A call with more positional arguments than there are now: a deprecated form, or an error."""
    positional = [v for v, a in zip(values, arguments, strict=True) if not a.kwarg_only]
    keywords = "{}" if not has_out else "{'out': out} if out is not None else {}"
    call = f"        return call_old_form(function, ({', '.join(positional)}, *old), {keywords})"
    return ["    if old:", *[f"    {line}" for line in rest], call]


def _rename_lines(name: str, a) -> list[str]:
    alias = RENAMED[a.name]
    lines = [f"    if {alias} is not UNSET:", f"        {a.name} = {alias}"]
    return lines if a.has_default else lines + _missing_lines(name, a.name)


def _missing_lines(name: str, pname: str) -> list[str]:
    return [
        f"    if {pname} is UNSET:",
        f"        raise TypeError('{name}() missing 1 required positional arguments: \"{pname}\"')",
    ]


def _variadic_lines(name: str, a, pname: str) -> list[str]:
    """`x.view(2, 3)`, `x.view((2, 3))` and `x.view(size=(2, 3))`."""
    lines = [
        f"    if {pname} is UNSET:",
        f"        {pname} = {pname}s",
        f"        if len({pname}) == 1 and {pname}[0].__class__ not in INTS:",
        f"            {pname} = {pname}[0]",
        f"        elif not {pname}:",
    ]
    if a.has_default:
        return [*lines, f"            {pname} = default_{pname}"]
    return [*lines, *(f"        {line}" for line in _missing_lines(name, pname)[1:])]


def _public_name(a: Argument) -> str:
    """A parameter's name in the public function."""
    return "input" if a.name == "self" and a.position == 1 else _pname(a.name)


def _pname(name: str) -> str:
    return {"from": "from_", "lambda": "lambd", "in": "in_"}.get(name, name)


def default_names(op: Operator) -> dict:
    """Default values, as the generated signature names them."""
    names = {f"default_{_pname(a.name)}": a.default for a in op.schema.arguments}
    return {**names, "INTS": INTS}


def public_defaults(op: Operator) -> dict:
    """Defaults of an operator's public function that are not those of its schema: PyTorch's functions of losses do not reduce
    unless they are told to, though their schemas say that they give the mean."""
    return {"reduction": 0} if "int reduction=" in op.text else {}  # the text: schemas are read when they are needed


INTS = {int, np.int64, np.int32}  # what a lone size may be; symbolic integers join when they are loaded


def export_operator(op: Operator) -> Operator:
    """Make and export the public function, method, in-place form and aliases that a declaration asks for."""
    declared = op.declared
    space, name = public_names(op)
    if declared.public is not None:
        space, _, name = declared.public.rpartition(".")
    function = make_function(name, op, space=space)
    op.function = function  # type: ignore[attr-defined]
    if public := public_defaults(op):
        function = make_function(name, op, space=space, defaults=public)
    names = (name, *declared.aliases)
    is_method = space == "torch" if declared.method is None else declared.method
    # Overriding classes tell `x.add(y)` and `torch.add(x, y)` apart by the function that they are offered.
    method = make_function(name, op, space="Tensor") if is_method and declared.function else function
    for n in names:
        if declared.function:
            export(space, n, function)
        if is_method:
            export("Tensor", n, method)
    if declared.inplace:
        op.inplace_function = inplace = make_function(f"{name}_", op, inplace=True)  # type: ignore[attr-defined]
    if declared.inplace and declared.inplace != "hidden":
        for n in names:
            export("Tensor", f"{n}_", inplace)
            if declared.inplace == "function":
                export(space, f"{n}_", inplace)
    return op


def front(*names: str, spelled=None, past: tuple[str, ...] = ()):
    """Export a hand-written function under the names given ("torch.max", "Tensor.max"), open to overrides.

    `spelled(args)` gives the positional arguments as overrides and graphs are to see them. Where nothing listens, a function in C of that
    name (`core.small.fronts`) is asked first, while none of the operators that it goes past (`past`: "zeros.default") is overridden.
    """

    def decorate(body):
        functions = {}
        for n in names:
            space, _, short = n.rpartition(".")
            home = "Tensor" if space == "Tensor" else "torch"  # a function and a method are two objects
            if home not in functions:
                functions[home] = _open_to_overrides(body, short, spelled, fronts.get(n), past)
            export(space, short, functions[home])
        return next(iter(functions.values()))

    return decorate


def _open_to_overrides(body, name: str, spelled, native=None, past: tuple[str, ...] = ()):
    """A hand-written function that offers its calls to function modes and overriding classes first."""

    def function(*args, **kwargs):
        try:
            if kwargs and not foreign.isdisjoint(kwargs):
                kwargs = by_own_names(kwargs, parameters)
            if quick is not None and ambient.mode < 2 and (out := quick(args, kwargs)) is not None:
                return out
            if spelled is not None:
                args = spelled(args)
            if (
                ambient.mode & 2
                or not simple(args, kwargs)
                and (any_overridden(args) or any_overridden(kwargs.values()))
            ):
                return call_overridden(function, args, kwargs)
            return body(*args, **kwargs)
        except MemoryError as error:
            raise no_memory(error) from None
        except TypeError as error:
            if (own := in_own_words(error)) is error:
                raise
            raise own from None

    def allow(allowed: bool) -> None:
        nonlocal quick
        quick = native if allowed else None

    quick = None
    foreign, parameters = speller(body)
    if native is not None and not past:
        raise TypeError(
            f"front of {name}: a function in C stands for it, so `past` must say which operators it goes past"
        )
    if native is not None:
        choose(allow, *past)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = body.__doc__
    function.__wrapped__ = body
    function.__module__ = body.__module__
    return function
