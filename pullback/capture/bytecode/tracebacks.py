"""Tracebacks of interpreted programs: the lines that a program would show if Python ran it.

An exception that leaves a frame of the machine gets an entry for that frame (`passed`), as one that leaves a frame of
Python's does. When it leaves a compiled function, `shown` takes out what belongs to this package, so that the user's lines
are what is left; `PULLBACK_TRACEBACK=full` or `TORCHDYNAMO_VERBOSE=1` keeps everything. A line of a generated graph is shown as the user's line that the
graph has it from.
"""

from __future__ import annotations

import functools
import os
import re
from types import CodeType, FunctionType, TracebackType
from typing import TYPE_CHECKING

from ...core.machinery import is_full
from ..trace.graph_trace import PACKAGE

if TYPE_CHECKING:
    from .frame import Frame

OWN = (PACKAGE, "<captured", "<pullback", "<native call>", "<eval_with_key>", "<frozen")
NO_COLUMN = 0x80 | 13 << 3  # an entry of a table of lines: this many instructions, on a line, no columns
LINE = re.compile(r'File "(.+)", line (\d+), in (\S+)')


def entry(filename: str, line: int, name: str, rest: TracebackType | None) -> TracebackType:
    """An entry of a traceback, at the user's line, above others."""
    frame = FunctionType(_standing_at(filename, line, name), {})().gi_frame  # which refers to no other frame
    return TracebackType(rest, frame, 0, line)


def _nowhere():
    yield


@functools.lru_cache(maxsize=256)
def _standing_at(filename: str, line: int, name: str) -> CodeType:
    """The code of a generator that says of all its instructions that they are at a line."""
    code = _nowhere.__code__
    count = len(code.co_code) // 2
    table = b"".join(bytes([NO_COLUMN | min(8, count - k) - 1, 0]) for k in range(0, count, 8))
    return code.replace(
        co_filename=filename, co_name=name, co_qualname=name, co_firstlineno=line, co_linetable=table
    )  # fmt: skip


def passed(exception: BaseException, frame: Frame) -> None:
    """An exception passes a frame: one more line of its traceback; the machine's own are taken out on the way."""
    rest = exception.__traceback__
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(MACHINERY) and not is_full():
        rest = rest.tb_next
    exception.__traceback__ = entry(frame.code.co_filename, frame.line or 0, frame.code.co_name, rest)


def shown(exception: BaseException) -> BaseException:
    """An exception as it leaves a compiled function, with the user's lines alone."""
    if not is_full():
        exception.__traceback__ = _without_own(exception.__traceback__)
        for slot in ("__cause__", "__context__"):
            if type(getattr(exception, slot)).__module__.startswith(INTERNAL):
                setattr(exception, slot, None)
    return exception


def lines_of(traceback: TracebackType | None) -> tuple[tuple[str, int, str], ...]:
    """The user's lines of a traceback, outermost first."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(OWN):
            found.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return tuple(found)


def traceback_of(lines: tuple[tuple[str, int, str], ...]) -> TracebackType | None:
    """A traceback of these lines."""
    result = None
    for line in reversed(lines):
        result = entry(*line, result)
    return result


def _without_own(traceback: TracebackType | None) -> TracebackType | None:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    result = None
    for one in reversed(entries):
        for filename, line, name in _users_lines(one):
            result = entry(filename, line, name, result)
        if not one.tb_frame.f_code.co_filename.startswith(OWN):
            result = TracebackType(result, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return result


def _users_lines(one: TracebackType) -> list[tuple[str, int, str]]:
    """The user's lines, innermost first, that a line of a generated graph stands for."""
    module = (
        one.tb_frame.f_locals.get("self") if one.tb_frame.f_code.co_filename.startswith("<eval_with_key>") else None
    )
    lines = getattr(module, "_lineno_map", None) or {}
    place = lines.get(one.tb_lineno - (getattr(module, "_prologue_start", 0) or 0))
    if place is None:
        return []
    trace = list(module.graph.nodes)[place].stack_trace or ""
    return [(file, int(line), name) for file, line, name in reversed(LINE.findall(trace))]


MACHINERY = os.path.dirname(os.path.abspath(__file__)) + os.sep
INTERNAL = (__name__.rpartition(".")[0],)
