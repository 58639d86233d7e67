"""Code objects in, version-independent steps out.

`steps_of(code)` decodes the bytecode of Python 3.11, 3.12 and 3.13 into one small set of steps with their arguments
resolved: names, constants, operators, and jump targets as step indices. What only serves the real interpreter (caches,
prefixes, RESUME, the cells made before the first line) is gone; what one version fuses is split again.

What always holds: the stack of the steps has, slot for slot, the depth of the stack that the compiler laid out, so that
the depths of the exception table mean the same here. A call finds two slots below its arguments: a callable and NULL
in either order, or a callable and its first argument.
"""

from __future__ import annotations

import dis
import sys
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

Handler = tuple[int, int, bool]


class Step(NamedTuple):
    name: str
    arg: Any
    offset: int
    line: int | None
    positions: Any = None


class Steps:
    """The steps of one code object, and where its exceptions go."""

    __slots__ = ("binder", "code", "handlers", "live", "steps")

    def __init__(self, steps: list[Step], handlers: list[Handler | None]) -> None:
        self.steps = steps
        self.handlers = handlers
        # What the machine reads at every step.
        self.code = [(step.name, step.arg) for step in steps]
        # What binds the arguments of a call to this code object, once there was one (see `binding`).
        self.binder: Any = None
        # Which variables may be read from each step on, once somebody asked (see `liveness`).
        self.live: list[frozenset[str]] | None = None

    def __getitem__(self, index: int) -> Step:
        return self.steps[index]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def handler(self, index: int) -> Handler | None:
        """Where an exception of step `index` goes: (target index, stack depth, whether the place is pushed too)."""
        return self.handlers[index]


# By identity, because equal code objects of different places differ in what users see of them; a code object that dies
# takes its steps along.
_cache: dict[int, tuple[weakref.ref, Steps]] = {}


def steps_of(code: CodeType) -> Steps:
    """The steps of `code`, decoded once."""
    key = id(code)
    found = _cache.get(key)
    if found is not None and found[0]() is code:
        return found[1]
    steps = _Decoder(code).decode()
    _cache[key] = (weakref.ref(code, lambda _: _cache.pop(key, None)), steps)
    return steps


def exception_table(code: CodeType) -> Iterator[tuple[int, int, int, int, bool]]:
    """The rows of the exception table: first offset, offset past the last, target offset, depth, push_lasti."""
    data = iter(code.co_exceptiontable)

    def number() -> int:
        byte = next(data)
        value = byte & 63
        while byte & 64:
            byte = next(data)
            value = value << 6 | byte & 63
        return value

    while True:
        try:
            start = number() * 2
        except StopIteration:
            return
        end = start + number() * 2
        target = number() * 2
        depth_and_flag = number()
        yield start, end, target, depth_and_flag >> 1, bool(depth_and_flag & 1)


class _Jump(int):
    """A jump target that is still an offset."""


SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "COPY_FREE_VARS", "INTERPRETER_EXIT", "END_FOR"})
ASYNC = frozenset(
    {
        "GET_AITER",
        "GET_ANEXT",
        "GET_AWAITABLE",
        "BEFORE_ASYNC_WITH",
        "END_ASYNC_FOR",
        "ASYNC_GEN_WRAP",
        "INTRINSIC_ASYNC_GEN_WRAP",
    }
)
SAME = frozenset(
    {
        "BEFORE_WITH", "BINARY_SLICE", "BINARY_SUBSCR", "BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_SLICE",
        "BUILD_STRING", "BUILD_TUPLE", "CHECK_EG_MATCH", "CHECK_EXC_MATCH", "CLEANUP_THROW", "COPY", "DELETE_SUBSCR",
        "DICT_MERGE", "DICT_UPDATE", "END_SEND", "GET_ITER", "GET_LEN", "GET_YIELD_FROM_ITER", "LIST_APPEND",
        "LIST_EXTEND", "LIST_TO_TUPLE", "LOAD_ASSERTION_ERROR", "LOAD_BUILD_CLASS", "LOAD_LOCALS", "MAP_ADD",
        "MATCH_CLASS", "MATCH_KEYS", "MATCH_MAPPING", "MATCH_SEQUENCE", "POP_EXCEPT", "POP_TOP", "PREP_RERAISE_STAR",
        "PRINT_EXPR", "PUSH_EXC_INFO", "PUSH_NULL", "RAISE_VARARGS", "RERAISE", "RETURN_GENERATOR", "RETURN_VALUE",
        "SETUP_ANNOTATIONS", "SET_ADD", "SET_UPDATE", "STORE_SLICE", "STORE_SUBSCR", "SWAP", "UNPACK_SEQUENCE",
        "WITH_EXCEPT_START", "IMPORT_STAR", "TO_BOOL",
    }
)  # fmt: skip
# The argument is what the name, constant or cell is called.
NAMED = frozenset(
    {
        "DELETE_ATTR", "DELETE_DEREF", "DELETE_GLOBAL", "DELETE_NAME", "IMPORT_FROM", "IMPORT_NAME", "LOAD_CLOSURE",
        "LOAD_CONST", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_METHOD", "LOAD_NAME",
        "STORE_ATTR", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME",
    }
)  # fmt: skip
UNARY = {"UNARY_INVERT": "~", "UNARY_NEGATIVE": "-", "UNARY_NOT": "not", "UNARY_POSITIVE": "+"}
# Steps on one local, and what they are on one that lives in a cell.
FAST = {
    "LOAD_FAST": ("LOAD_FAST", "LOAD_CLOSURE"),
    "LOAD_FAST_CHECK": ("LOAD_FAST", "LOAD_CLOSURE"),
    "LOAD_FAST_AND_CLEAR": ("LOAD_FAST_AND_CLEAR", "TAKE_CELL"),
    "STORE_FAST": ("STORE_FAST", "PUT_CELL"),
    "DELETE_FAST": ("DELETE_FAST", "DELETE_FAST"),
}
FUSED = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
CONVERSIONS = (None, str, repr, ascii)
JUMPS = {
    f"{prefix}{middle}{suffix}": f"{prefix}{suffix}"
    for prefix in ("POP_JUMP_",)
    for middle in ("", "FORWARD_", "BACKWARD_")
    for suffix in ("IF_FALSE", "IF_TRUE", "IF_NONE", "IF_NOT_NONE")
} | dict.fromkeys(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP"), "JUMP")
JUMPS |= {name: name for name in ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP")}
NEW = sys.version_info >= (3, 13)


class _Decoder:
    """One pass over the instructions: emits steps with offsets for targets, then turns offsets into indices."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.steps: list[Step] = []
        self.index_at: dict[int, int] = {}
        self.keywords: tuple[str, ...] = ()
        self.running = False  # whether RESUME was passed: cells made before it belong to the binding of arguments
        self.names = (*code.co_varnames, *(n for n in code.co_cellvars if n not in code.co_varnames), *code.co_freevars)
        self.plain = frozenset(i for i, n in enumerate(code.co_varnames) if n not in code.co_cellvars)

    def decode(self) -> Steps:
        instructions = list(dis.get_instructions(self.code))
        self.ends = {one.offset for one in instructions if one.opname == "END_FOR"}
        for one in instructions:
            self.index_at[one.offset] = len(self.steps)
            self.one = one
            self.instruction(one)
        steps = [self.resolved(step) for step in self.steps]
        return Steps(steps, self.handlers(steps))

    def emit(self, name: str, arg: Any = None) -> None:
        positions = self.one.positions
        self.steps.append(Step(name, arg, self.one.offset, positions.lineno if positions else None, positions))

    def target(self, offset: int) -> int:
        """The index of the first step at or after `offset`: prefixes and caches have no step of their own."""
        while offset not in self.index_at:
            offset += 2
        return self.index_at[offset]

    def resolved(self, step: Step) -> Step:
        arg = step.arg
        if type(arg) is _Jump:
            return step._replace(arg=self.target(arg))
        if type(arg) is tuple and arg and type(arg[0]) is _Jump:
            return step._replace(arg=(self.target(arg[0]), *arg[1:]))
        return step

    def handlers(self, steps: list[Step]) -> list[Handler | None]:
        table = list(exception_table(self.code))
        found: list[Handler | None] = []
        for step in steps:
            row = next((row for row in table if row[0] <= step.offset < row[1]), None)
            found.append(row and (self.target(row[2]), row[3], row[4]))
        return found

    def instruction(self, one: dis.Instruction) -> None:
        name = one.opname
        if name in SKIPPED:
            return
        if name in SAME:
            self.emit(name, one.arg)
        elif name in NAMED:
            self.emit(name, one.argval)
        elif name in FAST:
            self.fast(name, one.arg)
        elif name in FUSED:
            first, second = FUSED[name]
            self.fast(first, one.arg >> 4)
            self.fast(second, one.arg & 15)
        elif name in JUMPS:
            self.emit(JUMPS[name], _Jump(one.argval))
        elif name in UNARY:
            self.emit("UNARY", UNARY[name])
        elif name in ASYNC:
            self.emit("ASYNC", name)
        else:
            special = getattr(self, name, None)
            if special is None:
                self.emit("UNKNOWN", name)
            else:
                special(one)

    def fast(self, name: str, slot: int) -> None:
        plain, cell = FAST[name]
        self.emit(plain if slot in self.plain else cell, self.names[slot])

    # The rest, each by the name of its instruction.

    def RESUME(self, one: dis.Instruction) -> None:
        self.running = True
        if one.arg & 3 == 2:  # after a `yield from`: an exception thrown in goes to what is delegated to
            self.steps[-1] = self.steps[-1]._replace(arg=True)

    def MAKE_CELL(self, one: dis.Instruction) -> None:
        if self.running:  # that of a comprehension laid inside this function
            self.emit("NEW_CELL", one.argval)

    def YIELD_VALUE(self, one: dis.Instruction) -> None:
        self.emit("YIELD_VALUE", False)

    def RETURN_CONST(self, one: dis.Instruction) -> None:
        self.emit("LOAD_CONST", one.argval)
        self.emit("RETURN_VALUE")

    def LOAD_GLOBAL(self, one: dis.Instruction) -> None:
        self.emit("LOAD_GLOBAL_NULL" if one.arg & 1 else "LOAD_GLOBAL", one.argval)

    def LOAD_ATTR(self, one: dis.Instruction) -> None:
        method = sys.version_info >= (3, 12) and one.arg & 1
        self.emit("LOAD_METHOD" if method else "LOAD_ATTR", one.argval)

    def LOAD_SUPER_ATTR(self, one: dis.Instruction) -> None:
        self.emit("LOAD_SUPER", (one.argval, bool(one.arg & 1), bool(one.arg & 2)))

    def LOAD_CLASSDEREF(self, one: dis.Instruction) -> None:
        self.emit("LOAD_LOCALS")
        self.emit("LOAD_FROM_DICT_OR_DEREF", one.argval)

    def BINARY_OP(self, one: dis.Instruction) -> None:
        symbol = one.argrepr
        inplace = symbol.endswith("=")
        self.emit("BINARY", (symbol[:-1] if inplace else symbol, inplace))

    def COMPARE_OP(self, one: dis.Instruction) -> None:
        self.emit("COMPARE", one.argval)
        if NEW and one.arg & 16:
            self.emit("TO_BOOL")

    def CONTAINS_OP(self, one: dis.Instruction) -> None:
        self.emit("CONTAINS", bool(one.arg))

    def IS_OP(self, one: dis.Instruction) -> None:
        self.emit("IS", bool(one.arg))

    def KW_NAMES(self, one: dis.Instruction) -> None:
        self.keywords = self.code.co_consts[one.arg]

    def CALL(self, one: dis.Instruction) -> None:
        self.emit("CALL", (one.arg, self.keywords))
        self.keywords = ()

    def CALL_KW(self, one: dis.Instruction) -> None:
        names = self.steps.pop()  # the compiler loads the names right before
        if names.name != "LOAD_CONST":
            raise NotImplementedError(f"CALL_KW after {names.name}")
        self.emit("CALL", (one.arg, names.arg))

    def CALL_FUNCTION_EX(self, one: dis.Instruction) -> None:
        self.emit("CALL_FUNCTION_EX", bool(one.arg & 1))

    def CALL_INTRINSIC_1(self, one: dis.Instruction) -> None:
        name = one.argrepr
        if name in ASYNC:
            self.emit("ASYNC", name)
        elif name == "INTRINSIC_UNARY_POSITIVE":
            self.emit("UNARY", "+")
        elif name in ("INTRINSIC_LIST_TO_TUPLE", "INTRINSIC_IMPORT_STAR", "INTRINSIC_STOPITERATION_ERROR"):
            self.emit(name.removeprefix("INTRINSIC_"))
        elif name == "INTRINSIC_PRINT":
            self.emit("PRINT_EXPR")
            self.emit("LOAD_CONST", None)
        else:
            self.emit("INTRINSIC_1", one.arg)

    def CALL_INTRINSIC_2(self, one: dis.Instruction) -> None:
        if one.argrepr == "INTRINSIC_PREP_RERAISE_STAR":
            self.emit("PREP_RERAISE_STAR")
        else:
            self.emit("INTRINSIC_2", one.arg)

    def BUILD_CONST_KEY_MAP(self, one: dis.Instruction) -> None:
        self.emit("BUILD_CONST_KEY_MAP", one.arg)

    def UNPACK_EX(self, one: dis.Instruction) -> None:
        self.emit("UNPACK_EX", (one.arg & 255, one.arg >> 8))

    def FORMAT_VALUE(self, one: dis.Instruction) -> None:
        self.emit("FORMAT", (CONVERSIONS[one.arg & 3], bool(one.arg & 4)))

    def FORMAT_SIMPLE(self, one: dis.Instruction) -> None:
        self.emit("FORMAT", (None, False))

    def FORMAT_WITH_SPEC(self, one: dis.Instruction) -> None:
        self.emit("FORMAT", (None, True))

    def CONVERT_VALUE(self, one: dis.Instruction) -> None:
        self.emit("CONVERT", CONVERSIONS[one.arg])

    def FOR_ITER(self, one: dis.Instruction) -> None:
        target = one.argval
        if target in self.ends:  # never executed here: an iterator at its end is popped by the step itself
            target += 4 if NEW else 2
        self.emit("FOR_ITER", _Jump(target))

    def SEND(self, one: dis.Instruction) -> None:
        """With the target, whether the receiver stays below what it returned (an END_SEND then drops it)."""
        self.emit("SEND", (_Jump(one.argval), sys.version_info >= (3, 12)))

    def MAKE_FUNCTION(self, one: dis.Instruction) -> None:
        self.emit("MAKE_FUNCTION", one.arg or 0)

    def SET_FUNCTION_ATTRIBUTE(self, one: dis.Instruction) -> None:
        result = self.steps[-1]
        self.steps[-1] = result._replace(arg=result.arg | one.arg)
