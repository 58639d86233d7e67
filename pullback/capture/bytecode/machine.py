"""Runs frames: a world and frames come in, the value of the bottom frame (or what escapes it) goes out.

Calls of Python functions push frames instead of recursing. What always holds between steps: the top frame stands
before its next step, every frame below waits for the one above it. A step that breaks has changed nothing: `frames` can
be kept and given to another machine, now or later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from . import handlers_blocks, handlers_stack, handlers_values  # noqa: F401  (they fill the table)
from .defects import as_break
from .frame import Frame
from .generators import Generator, outside
from .handlers import HANDLERS, Handler
from .handlers_calls import received
from .signals import RUNNING, Break, Enter, Resume
from .tracebacks import passed
from .world import NativeWorld, World


class Machine:
    # Whether calls are real calls, so that what looks at frames may see the machine's.
    native = False
    handlers = HANDLERS

    def __init__(self, world: World, frames: list[Frame], outer: Machine | None = None) -> None:
        self.world = world
        self.frames = frames
        self.outer = outer
        self.count = 0
        self.finished: str | None = None
        self.result: Any = None
        # Before the first nested run of a step: the step's count, the world's mark, the generators as they were.
        self.marked = -1
        self.mark: Any = None
        self.generators: dict[int, tuple[Generator, tuple]] = {}
        # The exception being handled now, in whichever frame: kept, because every step runs with it in force.
        self.active: BaseException | None = None
        for frame in frames[:-1]:
            frame.waiting = True
        self.refresh()

    # Running.

    def run(self) -> Any:
        """Runs until the bottom frame returns (or, for a generator, yields) and gives its value."""
        self.refresh()
        with self.in_charge():
            step = self.step
            while self.finished is None:
                step()
            return self.result

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """This machine is the innermost one of its world and of this thread."""
        world = self.world
        previous, above, calling = RUNNING.machine, world.machine, world.calling
        RUNNING.machine = world.machine = self
        world.calling = False
        try:
            yield
        finally:
            RUNNING.machine, world.machine, world.calling = previous, above, calling

    def step(self) -> None:
        """Executes one step."""
        frame = self.frames[-1]
        index = frame.index
        name, arg = frame.steps.code[index]
        self.count += 1
        try:
            if self.active is None:
                target = self.handlers[name](self, frame, arg)
            else:
                target = in_force(self.active, self.handlers[name], self, frame, arg)
        except BaseException as raised:
            if not self.frames:
                raise
            defect = as_break(raised)
            if defect is not None or self.breaks(raised):
                self.undo()
                if defect is not None:
                    raise defect from raised
                raise
            self.unwind(raised)
        else:
            frame.index = index + 1 if target is None else target
            if self.generators:  # what the step would have put back is let go
                self.generators = {}

    def breaks(self, exception: BaseException) -> bool:
        """Whether an exception out of a step is a break, and not one for the code that is interpreted."""
        return isinstance(exception, Break)

    def undo(self) -> None:
        """Takes back what the step that breaks did so far: its frame is untouched, its nested runs are not."""
        self.count -= 1
        if self.marked == self.count + 1:
            for generator, state in self.generators.values():
                generator.restore(state)
            self.world.undo_nested(self.mark)
            self.marked = -1

    # Values that arrive.

    def settle(self, frame: Frame, result: Any, base: int, *below: Any) -> None:
        """Puts `below` and then the result, now or when it arrives, in the place of the stack from `base` on."""
        kind = type(result)
        if kind is Enter or kind is Resume:
            if len(self.frames) >= sys.getrecursionlimit():
                raise RecursionError("maximum recursion depth exceeded")
            callee = result.frame() if kind is Enter else self.resumed(result)
            frame.stack[base:] = below
            frame.waiting = True
            self.frames.append(callee)
            if callee.handled:
                self.active = callee.handled[-1]
        else:
            frame.stack[base:] = (*below, result)

    def resumed(self, resume: Resume) -> Frame:
        if self.outer is not None:
            self.outer.note(resume.generator)
        return resume.generator.begin(resume.value)

    def give(self, value: Any, how: str = "returned") -> None:
        """Hands a value to the frame that waits on top, or ends the run."""
        if not self.frames:
            self.finished, self.result = how, value
            return
        caller = self.frames[-1]
        caller.waiting = False
        caller.stack.append(value)
        if self.active is not None:
            self.refresh()

    def leave(self, frame: Frame, value: Any) -> None:
        """The top frame returns `value`."""
        if frame.generator is not None:
            self.end_generator(frame, value)
            return
        if frame.on_return is not None:
            value = self.completed(frame.on_return, value)
            if type(value) is Enter:  # the next call of a protocol takes the place of this frame
                self.frames[-1] = value.frame()
                return
        self.frames.pop()
        self.give(value)

    def completed(self, on_return: Callable[[Any], Any], value: Any) -> Any:
        try:
            return on_return(value)
        except BaseException as raised:
            defect = as_break(raised)
            if defect is not None:
                raise defect from raised
            if not self.breaks(raised):
                self.frames.pop()  # it is the caller's, whatever blocks the function returned from
            raise

    def end_generator(self, frame: Frame, value: Any) -> None:
        """A generator returns: a `for` ends, a `yield from` has its value, `next` raises StopIteration."""
        frame.generator.finish()
        self.frames.pop()
        if not self.frames:
            self.finished, self.result = "returned", value
            return
        caller = self.frames[-1]
        name, arg = caller.steps.code[caller.index - 1]
        if name == "FOR_ITER":
            caller.stack.pop()
            caller.index = arg
        elif name == "SEND":
            caller.stack.append(value)
            caller.index = received(caller, arg)
        else:
            raise StopIteration() if value is None else StopIteration(value)
        caller.waiting = False
        self.refresh()

    # Exceptions.

    def refresh(self) -> None:
        """Finds the exception that is being handled: that of the topmost frame that handles one."""
        self.active = next((frame.handled[-1] for frame in reversed(self.frames) if frame.handled), None)

    def unwind(self, exception: BaseException) -> int:
        """Takes `exception` to its handler, and gives the handler's index; raises it where there is none."""
        frames = self.frames
        while frames:
            frame = frames[-1]
            place = frame.index - 1 if frame.waiting else frame.index
            handler = frame.steps.handler(place)
            passed(exception, frame)
            if handler is not None:
                target, depth, with_place = handler
                frame.stack[depth:] = (place, exception) if with_place else (exception,)
                frame.waiting = False
                frame.index = target
                self.refresh()
                return target
            frames.pop()
            frame.stack.clear()  # the traceback keeps the frame; what it iterated over is let go
            if frame.generator is not None:
                frame.generator.finish()
                exception = outside(exception)
        self.active = None
        self.finished = "raised"
        try:
            raise_again(exception)
        finally:
            del exception  # which refers to this very call

    def reraise(self, exception: BaseException) -> int:
        """As `unwind`, from within a handler, for an exception that was raised before."""
        try:
            return self.unwind(exception)
        finally:
            del exception

    def throw(self, exception: BaseException) -> None:
        """Raises `exception` in the top frame, which waits for a value (a generator in its `yield`)."""
        try:
            self.refresh()
            if self.active is not None:
                in_force(self.active, set_context, self, self.frames[-1], exception)
            self.unwind(exception)
        finally:
            del exception

    # Nested runs.

    def note(self, generator: Generator | None) -> None:
        """A nested run begins inside the step being executed (of a generator, which may have to be put back)."""
        if self.marked != self.count:
            self.marked = self.count
            self.mark = self.world.mark_nested()
            self.generators = {}
        if generator is not None and id(generator) not in self.generators:
            self.generators[id(generator)] = (generator, generator.snapshot())
        if self.outer is not None:
            self.outer.note(generator)

    def nested(self, generator: Generator | None = None) -> Machine:
        """A machine in the same world, for a run inside the step being executed."""
        self.note(generator)
        return type(self)(self.world, [], self)

    def call_now(self, function: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Calls, and runs to the end what the world wants interpreted."""
        result = self.world.call(function, args, kwargs or {})
        if type(result) is Enter:
            machine = self.nested()
            machine.frames.append(result.frame())
            return machine.run()
        if type(result) is Resume:
            return result.generator.send(result.value)
        return result


class NativeMachine(Machine):
    """One step at a time, in plain Python."""

    native = True


def in_force(active: BaseException, handler: Handler, machine: Machine, frame: Frame, arg: Any) -> int | None:
    """Executes a step while `active` is really being handled: contexts and `sys.exc_info()` are then Python's."""
    traceback, context = active.__traceback__, active.__context__
    try:
        raise active
    except BaseException:
        active.__traceback__, active.__context__ = traceback, context
        return handler(machine, frame, arg)


def set_context(machine: Machine, frame: Frame, exception: BaseException) -> None:
    """Gives `exception` the context that it has when it is raised here."""
    try:
        raise exception
    except BaseException:
        return None
    finally:
        del exception


def raise_again(exception: BaseException) -> NoReturn:
    """Raises what was raised before: its context stays what it was."""
    context = exception.__context__
    try:
        raise exception
    finally:
        exception.__context__ = context
        del exception, context


def native_step(frames: list[Frame], world: World | None = None) -> tuple[str, Any]:
    """Executes one step of the top frame in plain Python, where calls are real calls.

    Gives ("running", frames) or ("returned", value); raises what escapes the bottom frame.
    """
    machine = NativeMachine(NativeWorld() if world is None else world, frames)
    with machine.in_charge():
        machine.step()
    return ("running", frames) if machine.finished is None else ("returned", machine.result)


def interpret(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls `function` in a plain machine."""
    world = World()
    result = world.call(function, args, kwargs)
    return Machine(world, [result.frame()]).run() if type(result) is Enter else result
