"""Public functions, generated from schemas: straight-line code, made at the first call.

`make_function(name, op)` gives a function object at once (see `lazy_function`); its code is a stub that, when first called, compiles the
real wrapper and swaps it in (`__code__`), so the object stays the same for everybody who holds it. A family may supply
a fast path (`fast_lines`): lines that run before the general path and return the result in the plain case.
"""

from __future__ import annotations

import types

import numpy as np

from ...core import device as devices
from ...core.arrays import LARGE
from ...core.modes import ambient
from ...core.node import UNTRACKED_VIEW, View
from ...core.objects import make_tensor
from ...core.storage import storage_of
from ...core.tensor import PLAIN, Parameter, Tensor, new_object
from .dispatch import general
from .operator import Operator, export, public_names
from .overrides import any_overridden, call_overridden

UNSET = type("Unset", (), {"__repr__": lambda self: "<unset>", "__bool__": lambda self: False})()
_RENAMED = {"dim": "axis", "keepdim": "keepdims"}


def _stub(*args, **kwargs):
    materialize()  # noqa: F821 - each stub's globals hold its own
    return this(*args, **kwargs)  # noqa: F821


COMMON = {
    "ambient": ambient, "general": general, "Tensor": Tensor, "Parameter": Parameter, "PLAIN": PLAIN, "new": new_object, "cpu": devices.cpu,
    "LARGE": LARGE, "UNSET": UNSET, "View": View, "UNTRACKED_VIEW": UNTRACKED_VIEW, "storage_of": storage_of, "np": np,
    "make_tensor": make_tensor,
}  # fmt: skip


def lazy_function(name: str, prepare):
    """A function whose code is made at its first call: `prepare()` gives its source (of `wrapper`) and the names it uses."""
    namespace: dict = {"__builtins__": __builtins__, "__name__": "pullback"}
    function = types.FunctionType(_stub.__code__, namespace, name)
    function.__qualname__ = name

    def materialize() -> None:
        source, names = prepare()
        namespace.update(COMMON | names)
        made: dict = {}
        exec(compile(source, f"<pullback {name}>", "exec"), namespace, made)
        real = made["wrapper"]
        function.__defaults__ = real.__defaults__
        function.__kwdefaults__ = real.__kwdefaults__
        function.__code__ = real.__code__.replace(co_name=name, co_qualname=name)

    namespace.update(materialize=materialize, this=function, function=function)
    return function


def make_function(name: str, op: Operator, inplace: bool = False):
    """The public function of an operator (or of its in-place twin)."""

    def prepare() -> tuple[str, dict]:
        target = op.inplace if inplace else op
        return wrapper_source(name, target), {"op": target, **target.family.fast_names(target)}

    function = lazy_function(name, prepare)
    function.__doc__ = f"{name}: `{op.text}`"
    function.operator = op  # type: ignore[attr-defined]
    op.wrappers.append(function)
    return function


def rewrite(op: Operator) -> None:
    """Make the functions of an operator again, from what is registered for it now (an in-place twin's are its original's)."""
    for function in (*op.wrappers, *(op.inplace_of.wrappers if op.inplace_of is not None else ())):
        if function.__code__ is not _stub.__code__:
            function.__globals__["materialize"]()


def wrapper_source(name: str, op: Operator) -> str:
    """The text of a public function: parameters from the schema, a fast path if the family has one, the general path."""
    arguments = op.schema.arguments
    signature, fixes, values = [], [], []
    variadic = op.declared.variadic
    starred = False
    has_out = op.inplace_of is None and op.declared.out and not op.is_view
    renamed = [a for a in arguments if a.name in _RENAMED and not a.kwarg_only]
    for i, a in enumerate(arguments):
        pname = "input" if i == 0 and a.name == "self" else _pname(a.name)
        values.append(pname)
        if a.kwarg_only and not starred:
            signature.append("*")
            starred = True
        if a.name == variadic:
            signature += [f"*{pname}s", f"{pname}=UNSET"]
            starred = True
            fixes += _variadic_lines(name, a, pname)
        elif a.has_default or (a.optional and i and not a.kwarg_only and arguments[i - 1].has_default):
            signature.append(f"{pname}=default_{pname}")
        elif a in renamed:
            signature.append(f"{pname}=UNSET")
        elif any(before in renamed and not before.has_default for before in arguments[:i]) and not a.kwarg_only:
            signature.append(f"{pname}=UNSET")
            fixes += _missing_lines(name, pname)
        else:
            signature.append(pname)
    extra = ["out=None"] if has_out else []
    for a in renamed:
        extra.append(f"{_RENAMED[a.name]}=UNSET")
        fixes += _rename_lines(name, a)
    if extra and not starred:
        signature.append("*")
    lines = [f"def wrapper({', '.join(signature + extra)}):"] + fixes
    if op.layer is None and op.backend is None:
        lines += op.family.fast_lines(op, values, has_out)
    tail = ", out" if has_out else ""
    lines.append(f"    return general(function, op, ({', '.join(values)},){tail})")
    return "\n".join(lines)


def _rename_lines(name: str, a) -> list[str]:
    alias = _RENAMED[a.name]
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


def _pname(name: str) -> str:
    return {"from": "from_", "lambda": "lambd", "in": "in_"}.get(name, name)


def default_names(op: Operator) -> dict:
    """Default values, as the generated signature names them."""
    names = {f"default_{_pname(a.name)}": a.default for a in op.schema.arguments}
    return {**names, "INTS": INTS}


INTS = {int, bool, np.int64, np.int32}  # what a lone size may be; symbolic integers join when they are loaded


def export_operator(op: Operator) -> Operator:
    """Make and export the public function, method, in-place twin and aliases that a declaration asks for."""
    declared = op.declared
    space, name = public_names(op)
    if declared.public is not None:
        space, _, name = declared.public.rpartition(".")
    function = make_function(name, op)
    op.function = function  # type: ignore[attr-defined]
    names = (name, *declared.aliases)
    is_method = space == "torch" if declared.method is None else declared.method
    for n in names:
        if declared.function:
            export(space, n, function)
        if is_method:
            export("Tensor", n, function)
    if declared.inplace:
        op.inplace_function = twin = make_function(f"{name}_", op, inplace=True)  # type: ignore[attr-defined]
    if declared.inplace and declared.inplace != "hidden":
        for n in names:
            export("Tensor", f"{n}_", twin)
            if declared.inplace == "function":
                export(space, f"{n}_", twin)
    return op


def front(*names: str):
    """Export a hand-written function under the names given ("torch.max", "Tensor.max"), open to overrides."""

    def decorate(body):
        def function(*args, **kwargs):
            if ambient.mode & 2 or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
                return call_overridden(function, args, kwargs)
            return body(*args, **kwargs)

        function.__name__ = function.__qualname__ = body.__name__
        function.__doc__ = body.__doc__
        function.__wrapped__ = body
        function.__module__ = body.__module__
        for n in names:
            space, _, short = n.rpartition(".")
            export(space, short, function)
        return function

    return decorate
