"""The state of one running function, as plain data.

A frame is made from (code, index, locals, cells, stack, globals) and can be copied, kept and run on by any machine.
What always holds: `index` is the step to be executed next; a frame that waits for a callee (or for the next value sent
to its generator) is `waiting`: its `index` is already past the step that called, and the value waited for is pushed.
Every local is in `locals` or, where inner functions share it, in `cells`; an unbound one is absent or an empty cell.
"""

from __future__ import annotations

import builtins as builtins_module
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from .steps import Step, Steps, steps_of


class _Null:
    """The empty slot beside a callable, and an unbound local that a comprehension sets aside."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NULL"

    def __copy__(self) -> _Null:
        return self

    def __deepcopy__(self, memo: dict) -> _Null:
        return self

    def __reduce__(self) -> str:
        return "NULL"


NULL = _Null()


def builtins_of(globals: dict) -> dict:
    """The builtins that a function with these globals sees."""
    found = globals.get("__builtins__", builtins_module)
    return found if isinstance(found, dict) else vars(found)


class Frame:
    __slots__ = (
        "builtins",
        "cells",
        "code",
        "function",
        "generator",
        "globals",
        "handled",
        "index",
        "locals",
        "names",
        "on_return",
        "stack",
        "steps",
        "waiting",
    )

    def __init__(
        self,
        code: CodeType,
        globals: dict,
        locals: dict[str, Any] | None = None,
        cells: dict[str, CellType] | None = None,
        stack: list | None = None,
        index: int = 0,
        function: FunctionType | None = None,
        on_return: Callable[[Any], Any] | None = None,
        names: Any = None,
        builtins: dict | None = None,
    ) -> None:
        self.code = code
        self.steps: Steps = steps_of(code)
        self.index = index
        self.locals = {} if locals is None else locals
        self.cells = {} if cells is None else cells
        self.stack = [] if stack is None else stack
        self.globals = globals
        self.builtins = builtins_of(globals) if builtins is None else builtins
        self.function = function
        self.on_return = on_return
        # The namespace of a class body (any mapping); None for a function.
        self.names = names
        # The generator that this frame belongs to, while it runs; a suspended generator owns its frame, not the
        # other way round, so that one nobody holds dies at once.
        self.generator: Any = None
        # Exceptions being handled here, the innermost last: what a bare `raise` raises.
        self.handled: list[BaseException] = []
        self.waiting = False

    @property
    def current(self) -> Step:
        """The step being executed: for a frame that waits, the one that it waits in."""
        return self.steps[self.index - 1 if self.waiting else self.index]

    @property
    def line(self) -> int | None:
        return self.current.line

    def where(self) -> str:
        return f"{self.code.co_filename}:{self.line} in {self.code.co_qualname}"

    def all_locals(self) -> dict[str, Any]:
        """What `locals()` says here."""
        if self.names is not None:
            return self.names
        found = {name: self.locals[name] for name in self.code.co_varnames if name in self.locals}
        for name, cell in self.cells.items():
            try:
                found[name] = cell.cell_contents
            except ValueError:
                continue
        return found

    def copy(self) -> Frame:
        """Another frame in the same state: containers are copied, values and cells are shared."""
        other = Frame(
            self.code,
            self.globals,
            dict(self.locals),
            dict(self.cells),
            list(self.stack),
            self.index,
            self.function,
            self.on_return,
            self.names,
            self.builtins,
        )
        other.generator = self.generator
        other.handled = list(self.handled)
        other.waiting = self.waiting
        return other

    def __repr__(self) -> str:
        return f"<Frame {self.where()}, step {self.index}>"
