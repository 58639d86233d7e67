"""Steps that make, call and import: functions, classes, modules, and the ends of frames (see `handlers`)."""

from __future__ import annotations
import __future__

import builtins
import functools
import operator
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .assembled import in_module, instruction
from .building import FUNCTION_PARTS, words_for
from .frame import NULL, Frame
from .generators import Generator, outside
from .handlers import step
from .signals import Break


@step("CALL")
def call(machine: Any, frame: Frame, arg: Any) -> None:
    count, names = arg
    stack = frame.stack
    base = len(stack) - count
    args = stack[base:]
    function, second = stack[base - 2], stack[base - 1]
    if function is NULL:
        function = second
    elif second is not NULL:
        args.insert(0, second)
    kwargs = {}
    if names:
        positional = len(args) - len(names)
        kwargs = dict(zip(names, args[positional:]))
        del args[positional:]
    perform(machine, frame, base - 2, function, tuple(args), kwargs)


@step("CALL_FUNCTION_EX")
def call_function_ex(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    kwargs = stack[-1] if arg else {}
    args = stack[-1 - arg]
    base = len(stack) - 3 - arg
    function = stack[base + 1] if stack[base] is NULL else stack[base]
    if type(args) is not tuple:
        if not hasattr(type(args), "__iter__") and not hasattr(type(args), "__getitem__"):
            words = f"{words_for(function)} argument after * must be an iterable, not {type(args).__name__}"
            raise TypeError(words)
        args = tuple(args)
    perform(machine, frame, base, function, args, dict(kwargs))


def perform(machine: Any, frame: Frame, base: int, function: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Calls, and puts the result in the place of everything from `base` on."""
    special = OF_FRAME.get(id(function))
    if special is not None:
        result = special(machine, frame, function, args, kwargs)
    else:
        result = machine.world.call(function, args, kwargs)
    machine.settle(frame, result, base)


# The flags of code objects that say which features were imported from `__future__`.
FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)

# What a call of these means depends on the frame that calls.


def call_super(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not args and not kwargs:
        args = super_arguments(machine, frame)
    return machine.world.call(function, args, kwargs)


def super_arguments(machine: Any, frame: Frame) -> tuple[Any, Any]:
    code = frame.code
    if not code.co_argcount:
        raise RuntimeError("super(): no arguments")
    if "__class__" not in code.co_freevars:
        raise RuntimeError("super(): __class__ cell not found")
    name = code.co_varnames[0]
    if name not in frame.cells and name not in frame.locals:
        raise RuntimeError("super(): arg[0] deleted")
    load = machine.world.load_cell if name in frame.cells else machine.world.load_local
    found = load(frame, name)
    with suppress(ValueError):
        frame.cells["__class__"].cell_contents  # noqa: B018 - whether it has a value
        return machine.world.load_cell(frame, "__class__"), found
    raise RuntimeError("super(): empty __class__ cell")


def call_globals(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return machine.world.call(function, args, kwargs) if args or kwargs else machine.world.globals_of(frame)


def call_locals(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return machine.world.call(function, args, kwargs) if args or kwargs else machine.world.locals_of(frame)


def call_dir(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return machine.world.call(function, args, kwargs) if args or kwargs else sorted(machine.world.locals_of(frame))


def call_eval(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`eval` and `exec`: source is compiled and namespaces are given as in the frame that calls."""
    if not args:
        return machine.world.call(function, args, kwargs)
    source, *given = args
    if isinstance(source, (str, bytes, bytearray)):
        if function is eval and not isinstance(source, bytearray):
            source = source.lstrip(" \t" if isinstance(source, str) else b" \t")
        source = compile(source, "<string>", function.__name__, frame.code.co_flags & FUTURES, dont_inherit=True)
    globals = given[0] if given else kwargs.get("globals")
    if globals is None:
        locals = given[1] if len(given) > 1 else kwargs.get("locals")
        given = [machine.world.globals_of(frame), machine.world.locals_of(frame) if locals is None else locals]
        kwargs = {key: value for key, value in kwargs.items() if key not in ("globals", "locals")}
    return machine.world.call(function, (source, *given), kwargs)


def call_compile(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`compile` inherits the `__future__` imports of the code that calls it, not those of this module."""
    names = ("source", "filename", "mode", "flags", "dont_inherit")
    given = dict(zip(names, args)) | kwargs
    if len(args) > len(names) or given.get("dont_inherit"):
        return machine.world.call(function, args, kwargs)
    given["flags"] = operator.index(given.get("flags", 0)) | frame.code.co_flags & FUTURES
    return machine.world.call(function, (), given | {"dont_inherit": True})


def call_build_class(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    body, name, *bases = args
    return machine.world.build_class(body, name, tuple(bases), kwargs)


def refuse(machine: Any, frame: Frame, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The real frames are the machine's: a world that runs natively takes them, any other must break."""
    if machine.native:
        return machine.world.call(function, args, kwargs)
    raise Break(f"{function.__name__} looks at the frames of the interpreter")


OF_FRAME: dict[int, Callable] = {
    id(super): call_super,
    id(globals): call_globals,
    id(locals): call_locals,
    id(vars): call_locals,
    id(dir): call_dir,
    id(eval): call_eval,
    id(exec): call_eval,
    id(compile): call_compile,
    id(builtins.__build_class__): call_build_class,
    id(sys._getframe): refuse,
}


# Making and leaving functions.


@step("MAKE_FUNCTION")
def make_function(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    attributes = {}
    place = -1
    for flag, name in reversed(FUNCTION_PARTS):
        if arg & flag:
            place -= 1
            attributes[name] = stack[place]
    stack[place:] = (machine.world.make_function(frame, stack[-1], attributes),)


@step("RETURN_VALUE")
def return_value(machine: Any, frame: Frame, arg: Any) -> None:
    machine.leave(frame, frame.stack[-1])


@step("RETURN_GENERATOR")
def return_generator(machine: Any, frame: Frame, arg: Any) -> None:
    if frame.code.co_flags & 0x280:
        raise Break(f"async: {frame.code.co_qualname} is a coroutine or an async generator")
    result = Generator(frame)
    machine.world.made_generator(result)
    on_return, frame.on_return = frame.on_return, None
    frame.waiting = True
    machine.frames.pop()
    machine.give(result if on_return is None else on_return(result))


@step("YIELD_VALUE")
def yield_value(machine: Any, frame: Frame, arg: Any) -> None:
    value = frame.stack.pop()
    frame.generator.suspend(frame)
    machine.frames.pop()
    machine.give(value, "yielded")


@step("GET_ITER")
def get_iter(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1] = machine.world.iterate(frame.stack[-1])


@step("GET_YIELD_FROM_ITER")
def get_yield_from_iter(machine: Any, frame: Frame, arg: Any) -> None:
    value = frame.stack[-1]
    if type(value).__name__ == "coroutine":
        raise Break("async: a coroutine in a yield from")
    frame.stack[-1] = machine.world.iterate(value)


@step("FOR_ITER")
def for_iter(machine: Any, frame: Frame, arg: Any) -> int | None:
    stack = frame.stack
    try:
        value = machine.world.advance(stack[-1])
    except StopIteration:
        stack.pop()
        return arg
    machine.settle(frame, value, len(stack))
    return None


@step("SEND")
def send(machine: Any, frame: Frame, arg: Any) -> int | None:
    stack = frame.stack
    try:
        value = machine.world.send(stack[-2], stack[-1])
    except StopIteration as end:
        stack[-1] = end.value
        return received(frame, arg)
    machine.settle(frame, value, len(stack) - 1)
    return None


def received(frame: Frame, arg: tuple[int, bool]) -> int:
    """What was delegated to has returned; its value is on top."""
    target, keeps = arg
    if not keeps:
        del frame.stack[-2]
    return target


@step("END_SEND")
def end_send(machine: Any, frame: Frame, arg: Any) -> None:
    del frame.stack[-2]


@step("CLEANUP_THROW")
def cleanup_throw(machine: Any, frame: Frame, arg: Any) -> int | None:
    exception = frame.stack[-1]
    if not isinstance(exception, StopIteration):
        return machine.reraise(exception)
    frame.stack[-3:] = (None, exception.value)
    return None


# Imports.


@step("IMPORT_NAME")
def import_name(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-2:] = (machine.world.import_name(frame, arg, stack[-1], stack[-2]),)


@step("IMPORT_FROM")
def import_from(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.import_from(frame.stack[-1], arg))


@step("IMPORT_STAR")
def import_star(machine: Any, frame: Frame, arg: Any) -> None:
    raise Break("import * into a namespace")


@step("LOAD_BUILD_CLASS")
def load_build_class(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.builtins["__build_class__"])


@step("LOAD_ASSERTION_ERROR")
def load_assertion_error(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(AssertionError)


@step("PRINT_EXPR")
def print_expr(machine: Any, frame: Frame, arg: Any) -> None:
    sys.displayhook(frame.stack[-1])
    frame.stack.pop()


@step("STOPITERATION_ERROR")
def stopiteration_error(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1] = outside(frame.stack[-1])


@step("INTRINSIC_1")
def intrinsic_1(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1] = in_module(instruction("CALL_INTRINSIC_1", arg, 1), frame.globals)(frame.stack[-1])


@step("INTRINSIC_2")
def intrinsic_2(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-2:] = (in_module(instruction("CALL_INTRINSIC_2", arg, 2), frame.globals)(stack[-2], stack[-1]),)


@step("ASYNC")
def refuse_async(machine: Any, frame: Frame, arg: Any) -> None:
    raise Break(f"async: {arg}")


@step("UNKNOWN")
def refuse_unknown(machine: Any, frame: Frame, arg: Any) -> None:
    raise Break(f"instruction {arg}")
