"""A function and its arguments in, a frame at its first step out.

The interpreter itself binds: a code object with the same parameters hands them back, so that defaults, keywords and
the words of every TypeError are exactly Python's. What always holds: an argument that inner functions share is in the
cell and not among the locals.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from .assembled import binder
from .frame import Frame
from .steps import steps_of


def bind(function: FunctionType, args: tuple, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, CellType]]:
    """The locals and cells that a call of `function` starts with."""
    code = function.__code__
    steps = steps_of(code)
    if steps.binder is None:
        steps.binder = binder(code)
    names = steps.binder.co_varnames
    bound = FunctionType(steps.binder, function.__globals__, function.__name__, function.__defaults__)
    bound.__qualname__ = function.__qualname__
    if function.__kwdefaults__:
        bound.__kwdefaults__ = function.__kwdefaults__
    locals = dict(zip(names, bound(*args, **kwargs)))
    cells = {}
    for name in code.co_cellvars:
        cells[name] = CellType(locals.pop(name)) if name in locals else CellType()
    if code.co_freevars:
        cells.update(zip(code.co_freevars, function.__closure__ or ()))
    return locals, cells


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
