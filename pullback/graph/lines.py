"""The user's lines behind generated code: which node a frame of a graph's `forward` stands at, and where that came from.

In: a frame. Out: the stack that the node's metadata holds. What always holds: a line that belongs to no node, or to one
without a stack, gives None; nothing here raises.
"""

from __future__ import annotations

import linecache
import types
import weakref

from .module import GENERATED, GraphModule

_stacks: weakref.WeakKeyDictionary[types.CodeType, dict[int, str]] = weakref.WeakKeyDictionary()


def stack_behind(frame: types.FrameType, line: int) -> str | None:
    """The stack of the node whose code stands at a line of a frame; None where the frame is not a graph's."""
    code = frame.f_code
    if not code.co_filename.startswith(GENERATED):
        return None
    known = _stacks.get(code)
    if known is None:
        owner = frame.f_locals.get("self")
        known = _stacks[code] = _by_line(owner, code.co_filename) if isinstance(owner, GraphModule) else {}
    return known.get(line)


def _by_line(owner: GraphModule, filename: str) -> dict[int, str]:
    stacks = {n.name: n.meta["stack_trace"] for n in owner.graph.nodes if n.meta.get("stack_trace")}
    found = {}
    for number, text in enumerate(linecache.getlines(filename), 1):
        name, equals, _ = text.partition(" = ")
        stack = stacks.get(name.strip().partition(":")[0]) if equals else None
        if stack is not None:
            found[number] = stack
    return found
