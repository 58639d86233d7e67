"""Where a call comes from, remembered cheaply and read later: `torch.utils._traceback`.

In: nothing. Out: frames, the innermost first where they are symbolized and last where they are a `StackSummary`, as in PyTorch. What
always holds: gathering keeps code objects and line numbers, and no frame, so that nobody's locals live longer.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Sequence
from types import CodeType, FrameType, TracebackType


class Gathered:
    """The code and the lines of a stack, the innermost first."""

    __slots__ = ("places",)

    def __init__(self, places: list[tuple[CodeType, int]]):
        self.places = places


def gather_traceback(python: bool = True, script: bool = False, cpp: bool = False, *, skip: int = 1) -> Gathered:
    """The stack of the caller. There are no frames of TorchScript or C++ here."""
    places: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(skip) if python else None
    while frame is not None:
        places.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return Gathered(places)


def symbolize_tracebacks(gathered: Sequence[Gathered]) -> list[list[dict]]:
    """The frames of each stack as dictionaries of their name, file and line."""
    return [
        [{"name": code.co_qualname, "filename": code.co_filename, "line": line} for code, line in one.places]
        for one in gathered
    ]


def format_traceback_short(tb: TracebackType) -> str:
    """Where a traceback ends: its file, line and function."""
    last = traceback.extract_tb(tb)[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"


class CapturedTraceback:
    """A stack that is read when it is asked for."""

    __slots__ = ("gathered", "skip")

    def __init__(self, gathered: Gathered | None, skip: int = 0):
        self.gathered, self.skip = gathered, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack of the caller, without the innermost `skip` frames."""
        return CapturedTraceback(gather_traceback(skip=2 + skip))

    def cleanup(self) -> None:
        """Forget the stack."""
        self.gathered = None

    def summary(self) -> traceback.StackSummary:
        """The frames, the outermost first."""
        places = self.gathered.places[self.skip :] if self.gathered is not None else []
        return traceback.StackSummary.from_list(
            [
                (code.co_filename, line, code.co_name, linecache.getline(code.co_filename, line).strip())
                for code, line in reversed(places)
            ]
        )

    def format(self) -> list[str]:
        """The lines of a printed traceback."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(captured: Sequence[CapturedTraceback | None]) -> list[list[str]]:
        """The lines of each; none for None."""
        return [[] if one is None else one.format() for one in captured]

    def __getstate__(self) -> tuple:
        return (None, {"gathered": None, "skip": self.skip})
