"""Which variables a frame may still read.

In: the steps of code, and where a frame stands. Out: names. A value that nothing reads again is not worth a graph's
result: it would keep memory, and a backward would visit what made it. What always holds: a name that may be read is among
them, whichever way the code takes; where code can ask for all its variables, all are.
"""

from __future__ import annotations

from .frame import Frame
from .steps import Steps

ALL_VARIABLES = frozenset({"locals", "vars", "dir", "eval", "exec"})
READS = frozenset({"LOAD_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST", "LOAD_NAME", "DELETE_NAME"})


def dead_names(frame: Frame) -> list[str]:
    """The local variables of a frame that nothing reads any more."""
    if not ALL_VARIABLES.isdisjoint(frame.code.co_names) or frame.names is not None:
        return []
    live = live_names(frame.steps)
    wanted = set(live[frame.index]) if frame.index < len(live) else set()
    if frame.waiting:  # what it waits for may raise
        handler = frame.steps.handler(frame.index - 1)
        wanted |= live[handler[0]] if handler is not None else set()
    return [name for name in frame.locals if name not in wanted]


def live_names(steps: Steps) -> list[frozenset[str]]:
    """For each step, the names that may be read from there on. Any number that could be a place to go on at counts as one."""
    if steps.live is None:
        steps.live = _fixed_point(steps)
    return steps.live


def _fixed_point(steps: Steps) -> list[frozenset[str]]:
    count = len(steps)
    live: list[frozenset[str]] = [frozenset()] * count
    after = [_successors(steps, i, count) for i in range(count)]
    changed = True
    while changed:
        changed = False
        for i in range(count - 1, -1, -1):
            name, arg = steps.code[i]
            found = frozenset().union(*[live[k] for k in after[i]])
            if name == "STORE_FAST":
                handler = steps.handler(i)
                found = found - {arg} if handler is None else found - {arg} | live[handler[0]]
            elif name in READS:
                found = found | {arg}
            if found != live[i]:
                live[i], changed = found, True
    return live


def _successors(steps: Steps, i: int, count: int) -> list[int]:
    arg, handler = steps.code[i][1], steps.handler(i)
    found = {i + 1} if i + 1 < count else set()
    if type(arg) is int and 0 <= arg < count:
        found.add(arg)
    if handler is not None:
        found.add(handler[0])
    return list(found)
