"""Steps that steer: jumps, exceptions, and the blocks of `with`, `except` and `except*` (see `handlers`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .assembled import instruction
from .frame import Frame
from .handlers import step


@step("JUMP")
def jump(machine: Any, frame: Frame, arg: Any) -> int:
    return arg


@step("POP_JUMP_IF_TRUE")
def pop_jump_if_true(machine: Any, frame: Frame, arg: Any) -> int | None:
    value = frame.stack[-1]
    holds = value if value is True or value is False else machine.world.truth(value)
    frame.stack.pop()
    return arg if holds else None


@step("POP_JUMP_IF_FALSE")
def pop_jump_if_false(machine: Any, frame: Frame, arg: Any) -> int | None:
    value = frame.stack[-1]
    holds = value if value is True or value is False else machine.world.truth(value)
    frame.stack.pop()
    return None if holds else arg


@step("POP_JUMP_IF_NONE")
def pop_jump_if_none(machine: Any, frame: Frame, arg: Any) -> int | None:
    holds = machine.world.is_same(frame.stack[-1], None, False)
    frame.stack.pop()
    return arg if holds else None


@step("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(machine: Any, frame: Frame, arg: Any) -> int | None:
    holds = machine.world.is_same(frame.stack[-1], None, False)
    frame.stack.pop()
    return None if holds else arg


@step("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(machine: Any, frame: Frame, arg: Any) -> int | None:
    if machine.world.truth(frame.stack[-1]):
        return arg
    frame.stack.pop()
    return None


@step("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(machine: Any, frame: Frame, arg: Any) -> int | None:
    if not machine.world.truth(frame.stack[-1]):
        return arg
    frame.stack.pop()
    return None


# Exceptions.


@step("RAISE_VARARGS")
def raise_varargs(machine: Any, frame: Frame, arg: Any) -> int | None:
    """A real `raise`: with what is being handled in force around it, Python sets the context itself."""
    stack = frame.stack
    if arg == 0:
        active = sys.exception()
        if active is None:
            raise RuntimeError("No active exception to reraise")
        return machine.reraise(active)
    kind, cause = (stack[-2], stack[-1]) if arg == 2 else (stack[-1], None)
    exception = machine.call_now(kind) if isinstance(kind, type) and issubclass(kind, BaseException) else kind
    if arg == 1:
        raise exception
    if isinstance(cause, type) and issubclass(cause, BaseException):
        cause = machine.call_now(cause)
    raise exception from cause


@step("RERAISE")
def reraise(machine: Any, frame: Frame, arg: Any) -> int | None:
    return machine.reraise(frame.stack[-1])


@step("PUSH_EXC_INFO")
def push_exc_info(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack.insert(-1, frame.handled[-1] if frame.handled else None)
    frame.handled.append(stack[-1])
    machine.active = stack[-1]


@step("POP_EXCEPT")
def pop_except(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.pop()
    frame.handled.pop()
    machine.refresh()


@step("CHECK_EXC_MATCH")
def check_exc_match(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-1] = machine.world.match_exception(stack[-2], stack[-1])


@step("CHECK_EG_MATCH")
def check_eg_match(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    rest, match = instruction("CHECK_EG_MATCH", 0, 2, (("BUILD_TUPLE", 2),))(stack[-2], stack[-1])
    stack[-2:] = (rest, match)
    if match is not None:
        frame.handled[-1] = match
        machine.active = match


@step("PREP_RERAISE_STAR")
def prep_reraise_star(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-2:] = (PREP_RERAISE_STAR()(stack[-2], stack[-1]),)


def PREP_RERAISE_STAR() -> Callable:
    try:
        return instruction("PREP_RERAISE_STAR", 0, 2)
    except KeyError:  # since Python 3.12 one of the intrinsics
        return instruction("CALL_INTRINSIC_2", 1, 2)


# Context managers.


@step("BEFORE_WITH")
def before_with(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    exit, entered = machine.world.enter_context(stack[-1])
    machine.settle(frame, entered, len(stack) - 1, exit)


@step("WITH_EXCEPT_START")
def with_except_start(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    value = stack[-1]
    result = machine.world.leave_context(stack[-4], type(value), value, value.__traceback__)
    machine.settle(frame, result, len(stack))
