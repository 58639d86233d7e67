"""`comptime`: Python that runs while a program is captured, and not when it runs.

`comptime(f)` calls `f(ctx)` at capture, once for each attempt; uncompiled it calls `fallback()`, or nothing. `ctx` shows the
program where it stands: variables, the graph so far, conditions; it may end the graph, or ask that a number be what it is.
`comptime.graph_break()` and its like are short for a function that only does that.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...core.tensor import Tensor
from .frame import Frame
from .outside import is_symbol
from .signals import Break

if TYPE_CHECKING:
    from .tracing import Tracing


def numbers_of(value) -> Iterator:
    """The symbols that a value is or has among its sizes."""
    sizes = value.shape if isinstance(value, Tensor) else (value,)
    return filter(is_symbol, sizes)


def is_known(number) -> bool:
    """Whether a symbol is one certain number by now."""
    node = number.node
    return any(v is not None for v in (node.maybe_as_int(), node.maybe_as_float(), node.maybe_as_bool()))


class ComptimeVar:
    """A value of the program."""

    def __init__(self, value):
        self.value = value

    def as_fake(self):
        """The fake tensor or the symbol that stands for the value."""
        return self.value

    def python_type(self) -> type:
        return self.value.symbolic_type if is_symbol(self.value) else type(self.value)

    def is_proxy(self) -> bool:
        """Whether the graph computes it."""
        return isinstance(self.value, Tensor) or is_symbol(self.value)

    def is_python_constant(self) -> bool:
        return not self.is_proxy()

    def as_python_constant(self):
        if self.is_proxy():
            raise NotImplementedError(f"{self!r} is no constant of the program")
        return self.value

    def is_dynamic(self) -> bool:
        return not all(map(is_known, numbers_of(self.value)))

    def size(self, dim: int | None = None):
        return self.value.size() if dim is None else self.value.size(dim)

    def force_static(self) -> None:
        """Make the numbers in it constants, as a condition of the graph."""
        for number in numbers_of(self.value):
            number.symbolic_type(number)

    def __repr__(self) -> str:
        return repr(self.value)


class ComptimeContext:
    """What a function that runs at capture sees of the program."""

    def __init__(self, world: Tracing):
        self.world = world

    def _frame(self, stacklevel: int = 0) -> Frame:
        machine: Any = self.world.machine
        frames = []
        while machine is not None:
            frames += reversed(machine.frames)
            machine = machine.outer
        return frames[stacklevel]

    def get_local(self, name: str, *, stacklevel: int = 0) -> ComptimeVar:
        """A variable of the frame that is so many calls up."""
        frame = self._frame(stacklevel)
        load = self.world.load_cell if name in frame.cells else self.world.load_local
        return ComptimeVar(load(frame, name))

    def graph(self):
        """The graph so far."""
        return self.world.trace.graph

    def graph_break(self, msg: str = "comptime.graph_break()") -> None:
        raise Break(msg)

    def assert_static(self, val) -> None:
        if _variable(val).is_dynamic():
            raise AssertionError(
                f"expected static but got dynamic: {val!r} (run with TORCH_LOGS=dynamic for more info)"
            )

    def force_static(self, val) -> None:
        _variable(val).force_static()

    def print(self, val, *, file=None) -> None:
        print(repr(val), file=file)

    def print_graph(self, *, verbose: bool = True, file=None) -> None:
        graph = self.graph()
        print(graph.python_code("self", verbose=verbose).src if verbose else str(graph), file=file)

    def print_locals(self, *, file=None, stacklevel: int = 0) -> None:
        for name in self._frame(stacklevel).locals:
            print(f"{name} = {self.get_local(name, stacklevel=stacklevel)!r}", file=file)

    def print_value_stack(self, *, file=None, stacklevel: int = 0) -> None:
        for value in self._frame(stacklevel).stack:
            print(f"- {value!r}", file=file)

    def print_bt(self, *, file=None, stacklevel: int = 0) -> None:
        """The lines of the program, outermost first."""
        machine: Any = self.world.machine
        frames = machine.frames[: len(machine.frames) - stacklevel]
        lines = [traceback.FrameSummary(f.code.co_filename, f.line or 0, f.code.co_name) for f in frames]
        print("".join(traceback.format_list(lines)), file=file)

    def print_guards(self, *, file=None) -> None:
        print("\n".join(self.world.outside.conditions.words), file=file)

    def print_disas(self, *, file=None, stacklevel: int = 0) -> None:
        """The steps of the code, with the one that is being executed."""
        frame = self._frame(stacklevel)
        for i, step in enumerate(frame.steps):
            print(f"{'-->' if i == frame.index else '   '} {i:4} {step.name} {step.arg!r}", file=file)

    def sleep(self, sec: float) -> None:
        time.sleep(sec)

    def breakpoint(self) -> None:
        """Enter the debugger."""
        sys.breakpointhook()


def _variable(value) -> ComptimeVar:
    return value if isinstance(value, ComptimeVar) else ComptimeVar(value)


class Comptime:
    """See the module's docstring: there is one, `comptime`."""

    def __call__(self, fn: Callable, fallback_fn: Callable = lambda: None) -> None:
        fallback_fn()


def _uncompiled(name: str) -> Callable:
    def method(self, *args, **kwargs) -> None:
        """At capture: what `ComptimeContext` does by this name. Uncompiled: nothing."""

    method.__name__ = name
    return method


def _captured(name: str) -> Callable:
    method = getattr(ComptimeContext, name)
    return lambda world, self, *args, **kwargs: at_capture(method, ComptimeContext(world), *args, **kwargs)


def _called(world: Tracing, fn: Callable, fallback_fn: Callable | None = None) -> None:
    at_capture(fn, ComptimeContext(world))


def at_capture(function: Callable, *args, **kwargs) -> None:
    """Call a function; what it raises is of the capture, and not the program's to handle."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        error.is_of_capture = True  # type: ignore[attr-defined]
        raise


SHORT = (
    "assert_static", "breakpoint", "force_static", "graph_break", "print", "print_bt", "print_disas", "print_graph",
    "print_guards", "print_locals", "print_value_stack", "sleep",
)  # fmt: skip
for _name in SHORT:
    setattr(Comptime, _name, _uncompiled(_name))
comptime = Comptime()
# What a capture does in the place of these calls.
CALLS: dict[Any, Callable] = {comptime: _called, **{getattr(Comptime, name): _captured(name) for name in SHORT}}
