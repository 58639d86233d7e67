"""Warnings of a captured program: they are given when its graph has run, in the blocks that the program gives them in.

`warnings.warn` is one call after the graph, for the line of the program that it is about. A block of
`warnings.catch_warnings()` is one, too: of the filters that the program sets inside and the warnings that it gives there.
While a program is captured its blocks are open for real, so that what warns in the capture is treated as the program
says. A filter that makes errors of warnings ends the graph, and so does a block whose warnings the program looks at.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

from .journal import Effect
from .signals import Break

if TYPE_CHECKING:
    from .tracing import Tracing

BLOCK = warnings.catch_warnings


class Open(NamedTuple):
    """A block that the program is in: it, and what is called inside when the graph has run."""

    block: warnings.catch_warnings
    calls: list[tuple]


def warned(calls: tuple) -> None:
    """A block of the program: its filters and warnings, in order."""
    with warnings.catch_warnings():
        for function, args, named in calls:
            function(*args, **named)


def later(world: Tracing, function, args: tuple, named: dict) -> None:
    """Call a function when the graph has run, in the block that the program is in."""
    world.outside.constant(function)
    if world.warning_blocks:
        world.warning_blocks[-1].calls.append((function, args, named))
    else:
        world.journal.log.append(Effect("later", function, args, named))


def warn(world: Tracing, message, category=None, stacklevel=1, source=None, **named):
    """`warnings.warn`."""
    frames = [f for f in world.machine.frames if f.code is not None]
    if named or source is not None or not isinstance(message, str) or not 1 <= stacklevel <= len(frames):
        raise Break("it warns")
    frame = frames[-stacklevel]
    name = frame.globals.get("__name__")
    registry = frame.globals.setdefault("__warningregistry__", {})
    kind = UserWarning if category is None else category
    _check_no_error(world, (str(message), kind, frame.line, name))
    given = (str(message), kind, frame.code.co_filename, frame.line, name, world.outside.constant(registry))
    later(world, warnings.warn_explicit, given, {})


def filter_of(message: str, kind: type[Warning], line: int, module: str) -> tuple | None:
    """The filter that says what becomes of a warning."""
    for found in warnings.filters:
        _, words, category, place, number = found
        fits = (words is None or words.match(message)) and (place is None or place.match(module))
        if fits and issubclass(kind, category) and number in (0, line):
            return found
    return None


def is_error(*warning) -> bool:
    """Whether a warning, now, is an error."""
    return (filter_of(*warning) or (warnings.defaultaction,))[0] == "error"  # type: ignore[attr-defined]


def _check_no_error(world: Tracing, warning: tuple) -> None:
    """A warning that is an error is raised where it is given, which is no work of a graph."""
    if is_error(*warning):
        raise Break("it gives a warning that is an error")
    found, blocks = filter_of(*warning), world.warning_blocks
    if blocks and not any(found is f for f in blocks[0].block._filters):  # type: ignore[attr-defined]
        return  # by a filter of the program's
    conditions = world.outside.conditions
    test = f"not {conditions.constant(is_error)}(*{conditions.constant(warning)})"
    conditions.test(test, f"the warning {warning[0]!r} is no error")


def enter(world: Tracing, manager: warnings.catch_warnings):
    """`catch_warnings().__enter__()`."""
    state = vars(manager)
    plain = not world.outside.is_outside(manager) and state.get("_module") is warnings and state.get("_filter") is None
    frame = world.machine.frames[-1]
    after = frame.steps.code[frame.index + 1][0] if frame.index + 1 < len(frame.steps.code) else ""
    if not plain or state.get("_record") and after != "POP_TOP":
        raise Break("it looks at warnings that it catches")
    block = warnings.catch_warnings()
    block.__enter__()
    world.warning_blocks.append(Open(block, []))
    world.context_changes.append(world.top.count)


def leave(world: Tracing, manager: warnings.catch_warnings, *error) -> None:
    """`catch_warnings().__exit__(...)`: a recorded block keeps its warnings to itself."""
    if not world.warning_blocks:
        raise Break("it leaves a block that catches warnings, which was entered before the graph")
    block, calls = world.warning_blocks.pop()
    block.__exit__(None, None, None)
    world.context_changes.append(world.top.count)
    if any(function in (warnings.warn_explicit, warned) for function, _, _ in calls) and not vars(manager)["_record"]:
        later(world, warned, (tuple(calls),), {})


def leave_all(world: Tracing) -> None:
    """The capture is over, wherever it stopped."""
    while world.warning_blocks:
        world.warning_blocks.pop().block.__exit__(None, None, None)


def _filtering(function):
    """A function that changes the filters of the block that the program is in."""

    def call(world: Tracing, *args, **named):
        action = args[0] if args else named.get("action")
        if not world.warning_blocks or action == "error":
            raise Break(f"it calls warnings.{function.__name__}")
        function(*args, **named)
        later(world, function, args, named)

    return call


CALLS = {
    warnings.warn: warn, BLOCK.__enter__: enter, BLOCK.__exit__: leave,
    **{f: _filtering(f) for f in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings)},
}  # fmt: skip
