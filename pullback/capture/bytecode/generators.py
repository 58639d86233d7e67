"""Interpreted generators: a frame that was paused comes in, values come out, one for every time it is run on.

A machine runs a generator on in its own frames where the interpreted code itself asks for the next value (`for`,
`yield from`, `next`); where native code asks (`list`, `sum`), a nested machine does it, in the world that runs on this
thread. What always holds: a generator is suspended, running or finished; a suspended one owns its frame, which waits
for the value sent; one whose frame was left by return or exception is finished.
"""

from __future__ import annotations

import sys
from types import GeneratorType
from typing import Any

from .frame import Frame
from .signals import RUNNING


class Generator:
    __slots__ = ("__name__", "__qualname__", "__weakref__", "frame", "gi_code", "running", "started")

    def __init__(self, frame: Frame) -> None:
        self.frame: Frame | None = frame
        self.gi_code = frame.code
        self.running = False
        self.started = False
        self.__name__ = frame.function.__name__ if frame.function else frame.code.co_name
        self.__qualname__ = frame.function.__qualname__ if frame.function else frame.code.co_qualname

    # `isinstance(g, types.GeneratorType)` is asked by code that wants to know how to iterate.
    @property
    def __class__(self) -> type:  # type: ignore[override]
        return GeneratorType

    def __repr__(self) -> str:
        return f"<generator object {self.__qualname__} at {id(self):#x}>"

    @property
    def suspended(self) -> bool:
        return self.frame is not None and not self.running

    @property
    def gi_running(self) -> bool:
        return self.running

    @property
    def gi_frame(self) -> Frame | None:
        return self.frame

    @property
    def gi_suspended(self) -> bool:
        return self.started and self.suspended

    @property
    def gi_yieldfrom(self) -> Any:
        frame = self.frame
        return frame.stack[-1] if self.gi_suspended and frame is not None and frame.current.arg is True else None

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle 'generator' object")

    # How a machine runs it on.

    def begin(self, value: Any) -> Frame:
        """The frame, ready to run on with `value` sent."""
        frame = self.check()
        if not self.started and value is not None:
            raise TypeError("can't send non-None value to a just-started generator")
        self.started = self.running = True
        frame.stack.append(value)
        frame.waiting = False
        frame.generator = self
        return frame

    def check(self) -> Frame:
        if self.running:
            raise ValueError("generator already executing")
        if self.frame is None:
            raise StopIteration
        return self.frame

    def suspend(self, frame: Frame) -> None:
        frame.generator = None
        frame.waiting = True
        self.running = False

    def finish(self) -> None:
        if self.frame is not None:
            self.frame.generator = None
        self.frame = None
        self.running = False

    @property
    def is_inside_block(self) -> bool:
        """Whether it waits inside of a `try` or `with` block, which is left when it is dropped."""
        frame = self.frame
        return self.gi_suspended and frame is not None and frame.steps.handler(frame.index - 1) is not None

    # What a step that breaks takes back.

    def snapshot(self) -> tuple:
        return self.frame, None if self.frame is None else self.frame.copy(), self.running, self.started

    def restore(self, saved: tuple) -> None:
        frame, state, self.running, self.started = saved
        self.frame = frame
        if frame is not None:
            for slot in Frame.__slots__:
                setattr(frame, slot, getattr(state, slot))

    # What native code calls.

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        self.check()
        machine = self.nested()
        machine.frames.append(self.begin(value))
        return self.run(machine)

    # An exception refers to the frames that it passed: those that refer to it let it go, or neither would be freed
    # before the next collection of garbage, and with them all that the frames hold.

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Any:
        exception = as_exception(kind, value, traceback)
        del kind, value, traceback
        try:
            if self.running:
                raise ValueError("generator already executing")
            frame = self.frame
            if frame is None or not self.started:
                self.finish()
                raise exception
            if frame.current.arg is True:
                return self.delegate(frame, exception)
            return self.throw_here(frame, exception)
        finally:
            del exception

    def throw_here(self, frame: Frame, exception: BaseException) -> Any:
        machine = self.nested()
        self.running = True
        frame.generator = self
        machine.frames.append(frame)
        try:
            return self.run(machine, exception)
        finally:
            del exception

    def delegate(self, frame: Frame, exception: BaseException) -> Any:
        """Throws into what a `yield from` waits for; its end goes on here, with the value it returned."""
        self.running = True
        try:
            yielded, value, raised = delegated(frame.stack[-1], exception)
        finally:
            self.running = False
            del exception
        try:
            if raised is not None:
                return self.throw_here(frame, raised)
        finally:
            del raised
        return value if yielded else self.delegate_ended(frame, value)

    def delegate_ended(self, frame: Frame, value: Any) -> Any:
        target, keeps = frame.steps[frame.index - 2].arg  # the SEND before the YIELD_VALUE
        if not keeps:
            frame.stack.pop()
        frame.index = target
        return self.send(value)

    def close(self) -> None:
        if self.frame is None or not self.started:
            self.finish()
            return None
        try:
            self.throw(GeneratorExit())
        except GeneratorExit:
            return None
        except StopIteration as end:
            return end.value if sys.version_info >= (3, 13) else None
        raise RuntimeError("generator ignored GeneratorExit")

    def __del__(self) -> None:
        # As Python does for one that is dropped half way: its `finally` blocks run.
        if self.started and self.suspended and not sys.is_finalizing():
            self.close()

    def nested(self) -> Any:
        """A machine for one run, in the world that runs on this thread or in plain Python."""
        outer = RUNNING.machine
        if outer is not None:
            return outer.nested(self)
        from .machine import Machine
        from .world import World

        return Machine(World(), [])

    def run(self, machine: Any, exception: BaseException | None = None) -> Any:
        try:
            if exception is not None:
                machine.throw(exception)
            value = machine.run()
        finally:
            del exception
        if machine.finished == "yielded":
            return value
        raise StopIteration() if value is None else StopIteration(value)


def delegated(receiver: Any, exception: BaseException) -> tuple[bool, Any, BaseException | None]:
    """Throws into `receiver`: whether it yielded, what it yielded or returned, what is then raised in the delegator."""
    try:
        if isinstance(exception, GeneratorExit):
            close = getattr(receiver, "close", None)
            if close is not None:
                close()
            return False, None, exception
        throw = getattr(receiver, "throw", None)
        return (False, None, exception) if throw is None else (True, throw(exception), None)
    except StopIteration as end:
        return False, end.value, None
    except BaseException as other:
        return False, None, other
    finally:
        del exception


def as_exception(kind: Any, value: Any, traceback: Any) -> BaseException:
    """The one exception that the arguments of `throw` name."""
    if isinstance(kind, type) and issubclass(kind, BaseException):
        if isinstance(value, kind):
            result = value
        elif value is None:
            result = kind()
        else:
            result = kind(*value) if isinstance(value, tuple) else kind(value)
    elif isinstance(kind, BaseException):
        if value is not None:
            raise TypeError("instance exception may not have a separate value")
        result = kind
    else:
        words = "exceptions must be classes or instances deriving from BaseException, not "
        raise TypeError(words + type(kind).__name__)
    return result if traceback is None else result.with_traceback(traceback)


def outside(exception: BaseException) -> BaseException:
    """An exception that leaves a generator: a StopIteration would look like its end."""
    if not isinstance(exception, StopIteration):
        return exception
    error = RuntimeError("generator raised StopIteration")
    error.__cause__ = error.__context__ = exception
    return error
