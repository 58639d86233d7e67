"""Runs a program in segments: graphs where they can be made, single steps of plain Python between them.

`Driver` belongs to one compiled function. A call makes a frame; the segment of its state is entered; where a graph ended,
the step that could not be captured is executed in plain Python, with real values, and the next segment goes on from
there, in the middle of whatever loops, blocks and calls the program was in.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import NamedTuple

from ...core.events import publish, stage
from ...core.modes import ambient
from ...core.start_up import searched_later
from ...nn.module import Module
from ..front.dynamic import Moving, moving_at
from . import custom_functions
from .binding import frame_of
from .calls import OUTSIDE_WORLD, is_ours, module_of
from .direct import AS_IT_IS, direct
from .frame import Frame
from .hooked_later import hooks_later
from .lookups import class_attribute
from .machine import Machine, native_step
from .modules import PLAIN_CALL
from .segment import MISS, STOP, Entry, Segment, Uncapturable, Wanted
from .world import NOT_ENTERED, NativeWorld, World, looks_at_frames

GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Opening(NamedTuple):
    """How calls reach the function of a driver: arguments that each gets first, and the module whose `forward` it is, if it is one's."""

    first: tuple
    module: Module | None


class Driver:
    """See the module's docstring. `policy` says what may be captured, hears of what was not, and compiles graphs."""

    def __init__(self, function: types.FunctionType, policy, wanted: Wanted = Wanted(), opening: Opening | None = None):
        self.function, self.policy, self.wanted, self.opening = function, policy, wanted, opening
        self.segments: dict[tuple, Segment] = {}
        self.why_not = why_uncapturable(function.__code__)  # known before it is called
        self.hooking: dict[tuple, bool] = {}  # where frames stand -> whether they may hook tensors from there on

    def __call__(self, args: tuple, kwargs: dict):
        if self.why_not is not None:
            self.policy.uncaptured(self.why_not)
            return self.function(*args, **kwargs)
        return self.drive(self.function, args, kwargs)

    def drive(self, function: types.FunctionType, args: tuple, kwargs: dict, hooked: bool = False):
        """Call a function in segments; `hooked`: its caller may hook what it gives."""
        frames = [frame_of(function, args, kwargs)]
        run_whole = functools.partial(function, *args, **kwargs)
        while True:
            try:
                out = self._run_segment(frames, run_whole, hooked)
            except BaseException as error:
                leave_blocks(frames, error)
                raise
            if out is not STOP:
                return out
            state, out = native_step(frames, Between(self, hooked))
            if state == "returned":
                return out
            run_whole = None

    def _run_segment(self, frames: list[Frame], run_whole: Callable | None, hooked: bool):
        """Run the graph that fits; make one where none does. Where a block that is open looks at all calls (a level of forward mode,
        a function or dispatch mode), instructions run as they are."""
        if ambient.mode & AS_IT_IS:
            return STOP
        key = (hooked, *[(f.code, f.index, len(f.stack)) for f in frames])
        segment = self.segments.get(key)
        if segment is None:
            is_first = run_whole is not None and frames[0].code is self.function.__code__
            wanted = (self.wanted if is_first else Wanted(self._still_stolen(frames[0])))._replace(
                hooked=hooked, fewer=self.policy.fewer, whole=self.policy.fullgraph
            )
            segment = self.segments[key] = Segment(self.policy.new_sizes(moving=moving_here(frames)), wanted)
        for entry in segment.entries:
            out = entry.run(frames)
            if out is not MISS:
                if run_whole is not None and not entry.is_opened and not hooked:
                    self._open(entry, frames[0].function)
                return out
        if not segment.is_uncaptured:
            entry = self._capture(segment, frames)
            out = MISS if entry is None else entry.run(frames)
            if out is not MISS:
                segment.entries.append(entry)
                return out
            if entry is not None:
                self.policy.uncaptured(f"what it reads changed while it was captured: {entry.why_not(frames)}")
                segment.is_uncaptured = True
        return run_whole() if run_whole is not None else Machine(NotTracing(), frames).run()

    def _still_stolen(self, frame: Frame) -> tuple[str, ...]:
        """The lists that graphs before this place have left for those after it to empty."""
        names = self.wanted.stolen if frame.code is self.function.__code__ else ()
        return tuple(name for name in names if isinstance(frame.locals.get(name), list))

    def _open(self, entry: Entry, function: types.FunctionType | None) -> None:
        """An entry was run again, from the start of a function: from now on the policy may have a short way to it."""
        entry.is_opened = True
        if self.opening is None or function is not self.function or entry.reason is not None or self.wanted.stolen:
            return
        if self.policy.compile_backward is not None or self.policy.is_disabled:
            return
        found = direct(entry.text, entry.run, self.function, *self.opening)
        if found is not None:
            self.policy.direct.append(found)

    def _capture(self, segment: Segment, frames: list[Frame]) -> Entry | None:
        """Another entry of a segment, for frames like these; None where there is none to be had."""
        if segment.entries:
            count, why = len(segment.entries), segment.entries[-1].why_not(frames)
            if not self.policy.may_recompile(count, why, warn=not segment.is_full):
                segment.is_full = True
                return None
        try:
            with stage("capture"), searched_later():
                entry = segment.capture(frames, self.policy.compile, self.policy.broke, self.policy.escaped)
        except Uncapturable as error:
            self.policy.uncaptured(str(error))
            segment.is_uncaptured = True
            return None
        publish("entered", function=self.policy, conditions=entry.conditions)
        self.policy.captured(entry, frames)
        return entry


def moving_here(frames: list[Frame]) -> Moving:
    """What changes from call to call where the frames stand, in whichever compiled function."""
    place = [(f.code.co_qualname, f.code.co_firstlineno, f.index, len(f.stack)) for f in frames]
    return moving_at(frames[0].code, tuple(place))


def leave_blocks(frames: list[Frame], error: BaseException) -> None:
    """Leave the `with` blocks that frames stand in, innermost first, when the graph from there on has raised."""
    for frame in reversed(frames):
        place = frame.index - 1 if frame.waiting else frame.index
        while place < len(frame.steps) and (handler := frame.steps.handler(place)) is not None:
            place, depth, _ = handler
            if any(step.name == "WITH_EXCEPT_START" for step in frame.steps.steps[place : place + 2]):
                frame.stack[depth - 1](type(error), error, error.__traceback__)
    frames.clear()


class Between(NativeWorld):
    """Plain Python between two graphs: functions of the program that it calls are compiled on their own."""

    def __init__(self, driver: Driver, hooked: bool):
        self.driver, self.hooked = driver, hooked

    def call(self, function, args: tuple, kwargs: dict):
        if isinstance(function, types.MethodType):
            return self.call(function.__func__, (function.__self__, *args), kwargs)
        if isinstance(function, types.FunctionType) and is_capturable(function):
            return self.driver.drive(function, args, kwargs, self.hooked or self._may_hook(self.machine.frames))
        if function is custom_functions.APPLY:
            return custom_functions.apply(args[0], args[1:], kwargs, self.call)
        if isinstance(function, Module):
            return self._call_module(function, args, kwargs)
        called = class_attribute(type(function), "__call__")
        is_class = isinstance(function, type)  # a metaclass makes objects as it is
        if isinstance(called, types.FunctionType) and not is_class:
            return self.call(called, (function, *args), kwargs)
        return function(*args, **kwargs)

    def _call_module(self, module: Module, args: tuple, kwargs: dict):
        """Call a module: its `forward` is a function of the program; hooks around it run as they are."""
        if class_attribute(type(module), "__call__") is not PLAIN_CALL or "_compiled_call_impl" in module.__dict__:
            return module(*args, **kwargs)
        if not module._is_hooked():
            return self.call(module.forward, args, kwargs)
        inside = Between(self.driver, True)  # hooks see what forward gives
        return module._call_with_hooks(args, kwargs, lambda *a, **k: inside.call(module.forward, a, k))

    def _may_hook(self, frames: list[Frame]) -> bool:
        """Whether frames may hook tensors when the call that they are about to make is over."""
        key = tuple([(f.code, f.index) for f in frames])
        if key not in self.driver.hooking:
            self.driver.hooking[key] = any(map(hooks_later, frames))
        return self.driver.hooking[key]


class NotTracing(World):
    """Plain Python: what a frame calls runs by itself."""

    def enters(self, function) -> bool:
        return False


def why_uncapturable(code: types.CodeType) -> str | None:
    """Why no call of a function can be captured, in words."""
    if looks_at_frames(code):
        return "it looks at frames, which are not real ones while it is captured"
    return "it is a coroutine function" if code.co_flags & NOT_ENTERED else None


def is_capturable(function: types.FunctionType) -> bool:
    """Whether a function is the program's own, and none for which compilation is disabled."""
    module = module_of(function)
    if is_ours(module) or module.partition(".")[0] in OUTSIDE_WORLD or function.__code__.co_flags & GENERATORS:
        return False
    if looks_at_frames(function.__code__):
        return False
    return not any(name.startswith("_torchdynamo") for name in function.__dict__)
