"""The user's lines behind generated code: which node a frame of a graph's `forward` stands at, and where that came from.

In: a frame, and the instruction it stands at. Out: the stack that the node's metadata holds. What always holds: a line that belongs to
no node, or to one without a stack, gives None; nothing here raises. What a question costs does not depend on the length of the code: a
graph asks for every node.
"""

from __future__ import annotations

import bisect
import linecache
import types
import weakref

from .module import GENERATED, GraphModule

# By identity, with what takes them out again: code is equal to code with the same content, and its hash is of all of it.
_stacks: dict[int, tuple[weakref.ref, list[int], list[str | None]]] = {}


def stack_behind(frame: types.FrameType, instruction: int) -> str | None:
    """The stack of the node whose code an instruction (`f_lasti`) is of; None where the frame is not a graph's."""
    code = frame.f_code
    if not code.co_filename.startswith(GENERATED):
        return None
    key = id(code)
    known = _stacks.get(key)
    if known is None:
        owner = frame.f_locals.get("self")
        found = _by_line(owner, code.co_filename) if isinstance(owner, GraphModule) else {}
        lines = [(start, found.get(line or 0)) for start, _, line in code.co_lines()]
        gone = weakref.ref(code, lambda _: _stacks.pop(key, None))
        known = _stacks[key] = (gone, [start for start, _ in lines], [stack for _, stack in lines])
    _, starts, stacks = known
    at = bisect.bisect_right(starts, instruction) - 1
    return stacks[at] if at >= 0 else None


def _by_line(owner: GraphModule, filename: str) -> dict[int, str]:
    stacks = {n.name: n.meta["stack_trace"] for n in owner.graph.nodes if n.meta.get("stack_trace")}
    found = {}
    for number, text in enumerate(linecache.getlines(filename), 1):
        name, equals, _ = text.partition(" = ")
        stack = stacks.get(name.strip().partition(":")[0]) if equals else None
        if stack is not None:
            found[number] = stack
    return found
