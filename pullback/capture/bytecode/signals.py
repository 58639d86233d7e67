"""What a world may answer instead of a value: `Break` refuses, `Enter` and `Resume` let the machine run a frame.

`RUNNING` knows the innermost machine of the thread, for generators that native code advances.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .binding import frame_of
from .frame import Frame


class Break(BaseException):
    """The world refuses the step: never seen by the code that is interpreted."""

    def __init__(self, reason: str = "", stop_at: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.stop_at = stop_at  # the step before which the graph must end, where that is an earlier one


class Prepare(BaseException):
    """Something must be done once, before the program can be captured as a whole; then it is captured anew."""

    def __init__(self, prepare: Callable[[], Any], module: Any) -> None:
        super().__init__()
        self.prepare, self.module = prepare, module


class Enter:
    """What `World.call` returns to have the machine run a Python function in a frame of its own."""

    __slots__ = ("args", "function", "kwargs", "names", "on_return")

    def __init__(
        self,
        function: FunctionType,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        on_return: Callable[[Any], Any] | None = None,
        names: Any = None,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs or {}
        self.on_return = on_return
        self.names = names  # the namespace of a class body

    def frame(self) -> Frame:
        result = frame_of(self.function, self.args, self.kwargs, self.on_return)
        result.names = self.names
        return result


class Resume:
    """What `World.advance`, `send` or `call` returns to have the machine run an interpreted generator on."""

    __slots__ = ("generator", "value")

    def __init__(self, generator: Any, value: Any = None) -> None:
        self.generator = generator
        self.value = value


class Running(threading.local):
    """The innermost machine that runs on this thread."""

    machine: Any = None


RUNNING = Running()


class GraphBreaks:
    """Whether a graph that ends early is an error, whatever a compiled function says of itself; None: as it says."""

    error: bool | None = None


BREAKS = GraphBreaks()
