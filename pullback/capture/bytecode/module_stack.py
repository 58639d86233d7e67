"""In which calls of modules a node of a captured graph was made, read off the frames that are running."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...nn.module import Module

TABLE = re.compile(r"\._modules\['(\w+)'\]")


def module_stack(machine: Any, found_at: Callable) -> dict[str, tuple[str, type]]:
    """The modules whose `forward` is running, outermost first: by a name for each, (where it was found, its class).
    `found_at(local)` gives a value and its source."""
    frames: list[Any] = []
    while machine is not None:
        frames = [*machine.frames, *frames]
        machine = machine.outer
    found: dict[str, tuple[str, type]] = {}
    for frame in frames:
        if frame.code.co_name != "forward" or not frame.code.co_argcount:
            continue
        value = frame.locals.get(frame.code.co_varnames[0])
        value, source = found_at(value)
        if isinstance(value, Module):
            place = type(value).__name__ if source is None else TABLE.sub(r".\1", source.name)
            found["".join(c if c.isalnum() else "_" for c in place)] = (place, type(value))
    return found
