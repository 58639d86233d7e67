"""What every step means: a step's operands come in, its result goes out, and any of it may be overridden.

`World` is plain Python. A world that refuses raises `Break` before it changed anything; the machine then stands before
the step. `call`, `advance` and `send` may give an `Enter` or a `Resume` instead of a value: the machine then runs that
function or generator in a frame of its own and the value arrives later.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE
from types import CodeType, FunctionType, MethodType
from typing import Any

from .assembled import instruction
from .building import BUILD, EXTEND, FinishClass, bound_special, construct, function_from, merge_keywords, unpacked
from .frame import NULL, Frame
from .generators import Generator
from .signals import Break, Enter, Resume

__all__ = ["Break", "Enter", "NativeWorld", "Resume", "World"]

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "@": operator.matmul, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "@": operator.imatmul, "**": operator.ipow, "<<": operator.ilshift, ">>": operator.irshift,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor,
}  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not": operator.not_,
}
NOT_ENTERED = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE
# Functions that look at the real frame of their caller are called by the interpreter itself.
LOOKS_AT_FRAMES = frozenset({"_getframe", "_getframemodulename", "currentframe"})
LOOKS_AT_STACKS = frozenset({"inspect", "stack"})


def looks_at_frames(code: CodeType) -> bool:
    """Whether code asks for its frame or those around it: frames of the machine are none."""
    return not LOOKS_AT_FRAMES.isdisjoint(code.co_names) or LOOKS_AT_STACKS.issubset(code.co_names)


PACKAGE = __name__.partition(".")[0] + "."  # in plain Python its functions, the machinery among them, run as they are
# What a pattern accepts as a mapping or a sequence is a flag of the type.
SEQUENCE_FLAG, MAPPING_FLAG = 1 << 5, 1 << 6


class World:
    """Plain Python: the meaning of every step, each to be overridden."""

    # The machine that runs in this world, the innermost one.
    machine: Any = None
    # Whether a native function is being called for the program.
    calling = False

    # Nested runs: everything that a step did through them is to be undone when it breaks.

    def mark_nested(self) -> Any:
        """Asked before the first nested run inside a step; the answer is given to `undo_nested`."""
        return None

    def undo_nested(self, mark: Any) -> None:
        """The step that made the nested runs since `mark` breaks and will be executed again.

        The machine has put back the frames of interpreted generators. Everything else that the nested runs changed
        (objects, cells, iterators that are not generators) is for the world that allowed it to put back.
        """

    # Names.

    def load_global(self, frame: Frame, name: str) -> Any:
        globals = frame.globals
        if name in globals:
            return globals[name]
        found = frame.builtins.get(name, NULL)
        if found is NULL:
            raise NameError(f"name {name!r} is not defined", name=name)
        return found

    def store_global(self, frame: Frame, name: str, value: Any) -> None:
        frame.globals[name] = value

    def delete_global(self, frame: Frame, name: str) -> None:
        if name not in frame.globals:
            raise NameError(f"name {name!r} is not defined", name=name)
        del frame.globals[name]

    def load_name(self, frame: Frame, name: str) -> Any:
        names = frame.names if frame.names is not None else frame.locals
        try:
            return names[name]
        except KeyError:
            pass
        return self.load_global(frame, name)

    def store_name(self, frame: Frame, name: str, value: Any) -> None:
        (frame.names if frame.names is not None else frame.locals)[name] = value

    def delete_name(self, frame: Frame, name: str) -> None:
        try:
            del (frame.names if frame.names is not None else frame.locals)[name]
            return
        except KeyError:
            pass
        raise NameError(f"name {name!r} is not defined", name=name)

    def load_local(self, frame: Frame, name: str) -> Any:
        try:
            return frame.locals[name]
        except KeyError:
            pass
        raise UnboundLocalError(
            f"cannot access local variable {name!r} where it is not associated with a value", name=name
        )

    def store_local(self, frame: Frame, name: str, value: Any) -> None:
        frame.locals[name] = value

    def delete_local(self, frame: Frame, name: str) -> None:
        if name not in frame.locals:
            self.load_local(frame, name)
        del frame.locals[name]

    def load_cell(self, frame: Frame, name: str) -> Any:
        try:
            return frame.cells[name].cell_contents
        except ValueError:
            pass
        raise self.unbound_cell(frame, name)

    def store_cell(self, frame: Frame, name: str, value: Any) -> None:
        frame.cells[name].cell_contents = value

    def delete_cell(self, frame: Frame, name: str) -> None:
        self.load_cell(frame, name)
        del frame.cells[name].cell_contents

    def unbound_cell(self, frame: Frame, name: str) -> NameError:
        if name in frame.code.co_cellvars:
            words = f"cannot access local variable {name!r} where it is not associated with a value"
            return UnboundLocalError(words, name=name)
        words = f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
        return NameError(words, name=name)

    def globals_of(self, frame: Frame) -> dict[str, Any]:
        """`globals()`."""
        return frame.globals

    def locals_of(self, frame: Frame) -> dict[str, Any]:
        """`locals()`."""
        return frame.all_locals()

    # Attributes and items.

    def load_attribute(self, obj: Any, name: str) -> Any:
        return getattr(obj, name)

    def store_attribute(self, obj: Any, name: str, value: Any) -> None:
        setattr(obj, name, value)

    def delete_attribute(self, obj: Any, name: str) -> None:
        delattr(obj, name)

    def load_method(self, obj: Any, name: str) -> Any:
        return self.load_attribute(obj, name)

    def load_super(self, cls: type, obj: Any, name: str) -> Any:
        return self.load_attribute(super(cls, obj), name)

    def load_item(self, obj: Any, key: Any) -> Any:
        return obj[key]

    def store_item(self, obj: Any, key: Any, value: Any) -> None:
        obj[key] = value

    def delete_item(self, obj: Any, key: Any) -> None:
        del obj[key]

    def load_slice(self, obj: Any, start: Any, stop: Any) -> Any:
        return self.load_item(obj, slice(start, stop))

    def store_slice(self, obj: Any, start: Any, stop: Any, value: Any) -> None:
        self.store_item(obj, slice(start, stop), value)

    # Operators.

    def unary(self, name: str, value: Any) -> Any:
        return UNARY[name](value)

    def binary(self, name: str, a: Any, b: Any, inplace: bool) -> Any:
        return INPLACE[name](a, b) if inplace else BINARY[name](a, b)

    def compare(self, op: str, a: Any, b: Any) -> Any:
        return COMPARE[op](a, b)

    def contains(self, container: Any, item: Any, invert: bool) -> bool:
        return item not in container if invert else item in container

    def is_same(self, a: Any, b: Any, invert: bool) -> bool:
        return a is not b if invert else a is b

    def truth(self, value: Any) -> bool:
        return True if value else False

    def length(self, value: Any) -> int:
        return len(value)

    # Iteration.

    def iterate(self, value: Any) -> Iterator:
        return iter(value)

    def advance(self, iterator: Any) -> Any:
        """The next value, or a `Resume`; raises StopIteration at the end."""
        if type(iterator) is Generator and iterator.suspended:
            return Resume(iterator)
        return next(iterator)

    def made_generator(self, generator: Generator) -> None:
        """A generator was made, by a call of an interpreted function."""

    def send(self, receiver: Any, value: Any) -> Any:
        """What `yield from` gets of `receiver`: the next value, or a `Resume`."""
        if type(receiver) is Generator and receiver.suspended:
            return Resume(receiver, value)
        return next(receiver) if value is None else receiver.send(value)

    def unpack(self, value: Any, before: int, after: int | None = None) -> list:
        return unpacked(self.iterate, value, before, after)

    # Calls.

    def enters(self, function: FunctionType) -> bool:
        """Whether the machine runs `function` itself."""
        code = function.__code__
        if code.co_flags & NOT_ENTERED or (function.__module__ or "").startswith(PACKAGE):
            return False
        return not looks_at_frames(code)

    def call(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The value of a call, or an `Enter` or a `Resume`."""
        kind = type(function)
        if kind is FunctionType:
            return Enter(function, args, kwargs) if self.enters(function) else function(*args, **kwargs)
        if kind is MethodType:
            if type(function.__self__) is Generator:
                return self.call_generator(function, args, kwargs)
            return self.call(function.__func__, (function.__self__, *args), kwargs)
        if function is next and len(args) == 1 and not kwargs:
            return self.advance(args[0])
        if isinstance(function, type):
            return construct(self, function, args, kwargs)
        if kind is partial:
            return self.call(function.func, (*function.args, *args), {**function.keywords, **kwargs})
        method = kind.__call__ if callable(function) else None
        if type(method) is FunctionType:
            return self.call(method, (function, *args), kwargs)
        return function(*args, **kwargs)

    def call_generator(self, method: MethodType, args: tuple, kwargs: dict[str, Any]) -> Any:
        generator = method.__self__
        if generator.suspended and not kwargs:
            if method.__name__ == "__next__" and not args:
                return self.advance(generator)
            if method.__name__ == "send" and len(args) == 1:
                return Resume(generator, *args)
        return method(*args, **kwargs)

    def call_now(self, function: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """The value of a call, run to its end in a nested machine where the machine runs it."""
        return self.machine.call_now(function, args, kwargs or {})

    def build_class(self, function: FunctionType, name: str, bases: tuple, kwargs: dict[str, Any]) -> Any:
        """The class, or an `Enter` of its body that makes it at the end."""
        if not self.enters(function):
            return builtins.__build_class__(function, name, *bases, **kwargs)
        finish = FinishClass(name, bases, kwargs)
        return Enter(function, on_return=finish, names=finish.names)

    def make_function(self, frame: Frame, code: CodeType, attributes: dict[str, Any]) -> FunctionType:
        """A function of `code`; attributes: defaults, kwdefaults, annotations, closure, those that there are."""
        return function_from(frame, code, attributes)

    # Building.

    def build(self, kind: str, items: list) -> Any:
        """A new list, tuple, set, map (from key, value, key, ...), string or slice."""
        return BUILD[kind](items)

    def extend(self, kind: str, target: Any, value: Any) -> None:
        """Adds to a container being built: append, extend, add, update, item (a pair), dict_update.

        Dictionaries of keyword arguments are merged by `merge`, which names the function in its errors.
        """
        EXTEND[kind](target, value)

    def merge(self, function: Any, target: dict, value: Any) -> None:
        merge_keywords(function, target, value)

    def convert(self, value: Any, conversion: Callable[[Any], str]) -> str:
        """`!s`, `!r` and `!a`."""
        return conversion(value)

    def format_value(self, value: Any, conversion: Callable[[Any], str] | None, spec: str) -> str:
        return format(value if conversion is None else self.convert(value, conversion), spec)

    # Imports.

    def import_name(self, frame: Frame, name: str, fromlist: Any, level: int) -> Any:
        function = frame.builtins.get("__import__")
        if function is None:
            raise ImportError("__import__ not found")
        return function(name, frame.globals, frame.names, fromlist, level)

    def import_from(self, module: Any, name: str) -> Any:
        return instruction("IMPORT_FROM", 0, 1, (("SWAP", 2), ("POP_TOP", 0)), names=(name,))(module)

    # Patterns.

    def match_class(self, subject: Any, cls: Any, count: int, names: tuple[str, ...]) -> tuple | None:
        return instruction("MATCH_CLASS", count, 3)(subject, cls, names)

    def match_mapping(self, subject: Any) -> bool:
        return bool(type(subject).__flags__ & MAPPING_FLAG)

    def match_sequence(self, subject: Any) -> bool:
        return bool(type(subject).__flags__ & SEQUENCE_FLAG)

    def match_keys(self, subject: Any, keys: tuple) -> tuple | None:
        return instruction("MATCH_KEYS", 0, 2, (("SWAP", 3), ("POP_TOP", 0), ("POP_TOP", 0)))(subject, keys)

    # Blocks.

    def enter_context(self, manager: Any) -> tuple[Any, Any]:
        """The bound `__exit__`, and what calling `__enter__` gives: a value or an `Enter`."""
        kind = type(manager)
        words = f"{kind.__name__!r} object does not support the context manager protocol"
        for name in ("__enter__", "__exit__"):
            if not hasattr(kind, name):
                missed = " (missed __exit__ method)" if name == "__exit__" else ""
                raise TypeError(words + missed)
        exit = bound_special(manager, "__exit__")
        return exit, self.call(bound_special(manager, "__enter__"), (), {})

    def leave_context(self, exit: Any, kind: Any, value: Any, traceback: Any) -> Any:
        return self.call(exit, (kind, value, traceback), {})

    def match_exception(self, exception: BaseException, kind: Any) -> bool:
        return instruction("CHECK_EXC_MATCH", 0, 2, (("SWAP", 2), ("POP_TOP", 0)))(exception, kind)


class NativeWorld(World):
    """Plain Python in which calls are real calls: nothing is interpreted but generators that already are."""

    def enters(self, function: FunctionType) -> bool:
        return False

    def call(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)

    def advance(self, iterator: Any) -> Any:
        return next(iterator)

    def send(self, receiver: Any, value: Any) -> Any:
        return next(receiver) if value is None else receiver.send(value)
