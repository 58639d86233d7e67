"""Placeholders for the parameters of a function about to be traced.

In: the function, and values for some of its parameters (`concrete_args`). Out: a function to run and the proxies to run
it on. What always holds: a parameter given a value is checked, in the traced graph, to have that value when it runs.
"""

from __future__ import annotations

import inspect
import warnings
from types import FunctionType
from typing import Any

from ..core import tree
from ..core.tensor import Tensor
from .assertions import _assert, _assert_is_none
from .recording import base_types
from .tree_codegen import _PyTreeCodeGen, _PyTreeInfo

_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class PHBase:
    """In `concrete_args`: a leaf that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A `PH` whose attributes go to its node."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key


def root_arguments(tracer: Any, function: Any, is_module: bool, concrete: Any) -> tuple[Any, list]:
    """The function to run, and its arguments as proxies."""
    plain = inspect.unwrap(function)
    code = plain.__code__
    total = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames)
    args: list[Any] = []
    if is_module:
        if total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args.append(tracer.root)
    own = names[len(args) : total]
    if isinstance(concrete, tuple):
        if code.co_flags & _VARIADIC and total == 1 and concrete:
            result = [
                _flagged(tracer.create_proxy("placeholder", f"input_{i}", (), {}), c) for i, c in enumerate(concrete)
            ]
            return function, args + result
        if len(own) != len(concrete):
            raise RuntimeError(f"Tracing expected {len(own)} arguments but got {len(concrete)} concrete arguments")
        concrete = dict(zip(own, concrete))
    args += [_placeholder(tracer, name, concrete, plain) for name in own]
    if code.co_kwonlyargcount or code.co_flags & _VARIADIC:
        rest = iter(names[total:])
        for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(_placeholder(tracer, stars + next(rest), concrete, plain))
        function = _positional(function, len(args))
    return _flat(tracer, function, args, names[:total])


def _flat(tracer: Any, function: Any, args: list, names: list[str]) -> tuple[Any, list]:
    """Where arguments are nested: let the graph see leaves only, in and out."""
    leaves, spec = tree.tree_flatten(tuple(args))
    if len(leaves) == len(args) and all(child.is_leaf() for child in spec.children()):
        return function, args
    tracer.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None))

    def run(*leaves: Any) -> list:
        out, out_spec = tree.tree_flatten(function(*tree.tree_unflatten(list(leaves), spec)))
        codegen = tracer.graph._codegen
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
        return out

    return run, leaves


def _placeholder(tracer: Any, name: str, concrete: dict | None, function: Any) -> Any:
    """A proxy for one parameter, or the value given for it."""
    default: tuple = ()
    if not name.startswith("*"):
        given = inspect.signature(function).parameters[name].default
        default = () if given is inspect.Parameter.empty else (given,)
    if concrete is None or name not in concrete:
        kind = function.__annotations__.get(name)
        return tracer.create_proxy("placeholder", name, default, {}, type_expr=kind)
    count = 0

    def leaf(value: Any) -> Any:
        nonlocal count
        count += 1
        result = tracer.create_proxy("placeholder", f"{name}_{count}", default, {})
        if isinstance(value, PHBase):
            return _flagged(result, value)
        _guard(tracer, result, name, value)
        return value

    return tree.tree_map(leaf, concrete[name])


def _flagged(proxy: Any, mark: Any) -> Any:
    """Copy the attributes of a PHWithMeta to the node."""
    if isinstance(mark, PHBase) and mark is not PH:
        for name, value in vars(mark).items():
            if not name.startswith("__") and not callable(value) and not hasattr(proxy.node, name):
                setattr(proxy.node, name, value)
    return proxy


def _guard(tracer: Any, proxy: Any, name: str, value: Any) -> None:
    """Record the check that an input has the value it was traced with."""
    if type(value) in base_types and not isinstance(value, Tensor):
        words = f"{name} has been specialized to have value {value} but got another value"
        _assert(proxy == value, words)
    elif value is None:
        words = f"{name} has been specialized to have value None but got another value"
        tracer.create_proxy("call_function", _assert_is_none, (proxy, words), {})
    else:
        warnings.warn(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
            "user to make sure that your inputs match the inputs you specialized the function with.",
            stacklevel=2,
        )


def _positional(function: Any, count: int) -> Any:
    """The same function with all of its parameters positional, so that proxies can stand for `*args` and `**kwargs`."""
    code = function.__code__
    code = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~_VARIADIC
    )
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
