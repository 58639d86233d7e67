"""Whose line asked: the nearest frame outside this package."""

from __future__ import annotations

import linecache
import os
import sys
from typing import NamedTuple

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(_HERE))) + os.sep
_MACHINE = os.path.join(
    os.path.dirname(os.path.dirname(_HERE)), "bytecode", "machine.py"
)  # which interprets users' lines
_RULES = tuple(os.path.join(_PACKAGE, part, "") for part in ("core", "ops"))


class Location(NamedTuple):
    """A line of the user's code."""

    filename: str
    lineno: int
    name: str

    @property
    def line(self) -> str:
        return linecache.getline(self.filename, self.lineno).strip()

    def __str__(self) -> str:
        return f"({os.path.basename(self.filename)}:{self.lineno} in {self.name})"


def _interpreted(frames: list) -> Location | None:
    """The innermost line of the user's that a machine executes."""
    for frame in reversed(frames):
        if not frame.code.co_filename.startswith(_PACKAGE):
            return Location(frame.code.co_filename, frame.line or 0, frame.code.co_name)
    return None


def asked_within() -> bool:
    """Whether the line that asks is a shape rule of this package, and not the user's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_RULES)


def user_location() -> Location | None:
    """The innermost line that runs now and is not this package's own."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename == _MACHINE and code.co_name == "step":
            found = _interpreted(frame.f_locals["self"].frames)
            if found is not None:
                return found
        if not code.co_filename.startswith(_PACKAGE) and not code.co_filename.startswith("<frozen"):
            return Location(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None
