"""The table of handlers: the name of a step in, the function that executes it out.

A handler is a function (machine, frame, arg): it looks at the stack, asks the world, and only then changes the stack,
so that a step that raises or breaks leaves the frame as it was. It returns the index to jump to, or None to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .frame import Frame

Handler = Callable[[Any, Frame, Any], "int | None"]
HANDLERS: dict[str, Handler] = {}


def step(*names: str) -> Callable[[Handler], Handler]:
    """Enters a handler into the table under the names of its steps."""

    def enter(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return enter
