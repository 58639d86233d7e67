"""A function and its arguments in, a frame at its first step out.

The interpreter itself binds where defaults, keywords or gathered arguments take part: a code object with the same
parameters hands them back, so that the words of every TypeError are exactly Python's. What always holds: an argument that
inner functions share is in the cell and not among the locals.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CellType, CodeType, FunctionType
from typing import Any

from .assembled import binder
from .frame import Frame
from .steps import steps_of


def bind(function: FunctionType, args: tuple, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, CellType]]:
    """The locals and cells that a call of `function` starts with."""
    code = function.__code__
    if not kwargs and len(args) == code.co_argcount and is_positional(code):
        locals = dict(zip(code.co_varnames, args))  # every parameter has its argument: nothing is left to bind
    else:
        locals = _bound(function, code, args, kwargs)
    cells = {}
    for name in code.co_cellvars:
        cells[name] = CellType(locals.pop(name)) if name in locals else CellType()
    if code.co_freevars:
        cells.update(zip(code.co_freevars, function.__closure__ or ()))
    return locals, cells


def is_positional(code: CodeType) -> bool:
    """Whether each argument of a function may be given by its position, and none are gathered."""
    return not (code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS))


def _bound(function: FunctionType, code: CodeType, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The parameters by name, as the interpreter binds them."""
    steps = steps_of(code)
    if steps.binder is None:
        steps.binder = binder(code)
    names = steps.binder.co_varnames
    bound = FunctionType(steps.binder, function.__globals__, function.__name__, function.__defaults__)
    bound.__qualname__ = function.__qualname__
    if function.__kwdefaults__:
        bound.__kwdefaults__ = function.__kwdefaults__
    return dict(zip(names, bound(*args, **kwargs)))


def frame_of(
    function: FunctionType, args: tuple, kwargs: dict[str, Any], on_return: Callable[[Any], Any] | None = None
) -> Frame:
    """The frame of a call, before its first step."""
    locals, cells = bind(function, args, kwargs)
    return Frame(
        function.__code__,
        function.__globals__,
        locals,
        cells,
        function=function,
        on_return=on_return,
        builtins=function.__builtins__,
    )
