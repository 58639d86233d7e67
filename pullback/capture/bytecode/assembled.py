"""Functions assembled from single instructions: an instruction comes in, a function that executes just that comes out.

Some instructions (what `except*` raises again, class patterns, type parameters evaluated lazily, the binding of
arguments) have no counterpart that Python code could call. A code object of a few instructions around one of them
has it done by the interpreter itself, so that results and error words are Python's in every version.
"""

from __future__ import annotations

import functools
import opcode
from collections.abc import Iterable
from inspect import CO_NEWLOCALS, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType

Instruction = tuple[str, int]


def _bytes(instructions: Iterable[Instruction]) -> bytes:
    """Bytecode of instructions that have no caches."""
    code = bytearray()
    for name, arg in instructions:
        if arg > 255:
            code += bytes([opcode.EXTENDED_ARG, arg >> 8])
        code += bytes([opcode.opmap[name], arg & 255])
    return bytes(code)


def _lines(code: bytes) -> bytes:
    """The table of lines that belongs to `code`: all of it is on the first line.

    It must cover exactly what there is: a debugger or a coverage tool walks it and trusts it.
    """
    units, table = len(code) // 2, bytearray()
    while units:
        length = min(units, 8)
        table += bytes([0x80 | 13 << 3 | length - 1, 0])  # an entry without columns, no line further
        units -= length
    return bytes(table)


def _template() -> None:
    """Whose code object the assembled ones are changed from."""


@functools.cache
def instruction(
    name: str, arg: int, inputs: int, after: tuple[Instruction, ...] = (), names: tuple[str, ...] = ()
) -> FunctionType:
    """A function of `inputs` values that executes instruction `name` on them, then `after`, and returns the top."""
    loads = [("LOAD_FAST", i) for i in range(inputs)]
    body = _bytes([("RESUME", 0), *loads, (name, arg), *after, ("RETURN_VALUE", 0)])
    code = _template.__code__.replace(
        co_code=body,
        co_linetable=_lines(body),
        co_argcount=inputs,
        co_nlocals=inputs,
        co_varnames=tuple(f"value{i}" for i in range(inputs)),
        co_stacksize=inputs + 4,
        co_names=names,
        co_name=name,
    )
    return FunctionType(code, globals())


def in_module(function: FunctionType, globals: dict) -> FunctionType:
    """The same in a module of its user: type parameters remember where they were made."""
    return FunctionType(function.__code__, globals) if "__builtins__" in globals else function


def binder(code: CodeType) -> CodeType:
    """A code object with the parameters of `code` that returns them as one tuple."""
    flags = code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) | CO_OPTIMIZED | CO_NEWLOCALS
    count = code.co_argcount + code.co_kwonlyargcount + bool(flags & CO_VARARGS) + bool(flags & CO_VARKEYWORDS)
    loads = [("LOAD_FAST", i) for i in range(count)]
    body = _bytes([("RESUME", 0), *loads, ("BUILD_TUPLE", count), ("RETURN_VALUE", 0)])
    return code.replace(
        co_code=body,
        co_linetable=_lines(body),
        co_flags=flags,
        co_nlocals=count,
        co_varnames=code.co_varnames[:count],
        co_cellvars=(),
        co_freevars=(),
        co_consts=(None,),
        co_names=(),
        co_exceptiontable=b"",
        co_stacksize=count + 1,
    )
