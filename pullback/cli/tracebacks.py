"""Tracebacks of programs that `pullback run` runs: they begin at the program, as under `python`, not at the command."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from ..surface.tracebacks import chain, print_uncaught

_COMMAND = (
    os.path.dirname(os.path.abspath(__file__)),
    os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "__main__.py")),
)


def _of_the_command(file: str, function: str) -> bool:
    """Whether a frame belongs to the way from the command to the program: the command itself, what started it, or runpy."""
    if file.startswith(_COMMAND) or file == "<frozen runpy>":
        return True
    return function == "<module>" and os.path.basename(file).startswith("pullback")  # the script that pip installs


def program_part(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on; all of it where the program has none (an error of the command)."""
    at = trace
    while at is not None and _of_the_command(at.tb_frame.f_code.co_filename, at.tb_frame.f_code.co_name):
        at = at.tb_next
    return trace if at is None else at


def print_program_errors() -> None:
    """Let uncaught errors be printed with the program's frames alone, as long as the program sets no hook of its own."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        for one in chain(error):
            one.__traceback__ = program_part(one.__traceback__)
        print_uncaught(kind, error, error.__traceback__)

    sys.excepthook = hook
