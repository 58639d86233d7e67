"""Uncaught errors as they are printed: the program's lines, and of this package the lines that read like a program's.

In: an error that nobody caught. Out: its traceback on stderr. Frames of the machinery (dispatch, the engine, generated code,
the compiler) are left out where others remain, and one line says how many; `PULLBACK_TRACEBACK=full` shows them all. Only
what is printed is folded: an error that is caught keeps every frame, and a hook that a program sets itself is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ..core.machinery import is_full, is_machinery


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those it came from."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def folded(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """A traceback without the frames of the machinery, and how many those are; whole where nothing else would remain."""
    entries = []
    at = trace
    while at is not None:
        entries.append(at)
        at = at.tb_next
    kept = [e for e in entries if not is_machinery(e.tb_frame.f_code.co_filename)]
    if not kept or len(kept) == len(entries):
        return trace, 0
    result = None
    for e in reversed(kept):
        result = TracebackType(result, e.tb_frame, e.tb_lasti, e.tb_lineno)
    return result, len(entries) - len(kept)


def fold(error: BaseException) -> str:
    """Fold the tracebacks of an error and of those it came from; the line that says so, or nothing."""
    count = 0
    if not is_full():
        for one in chain(error):
            one.__traceback__, hidden = folded(one.__traceback__)
            count += hidden
    frames = "1 frame" if count == 1 else f"{count} frames"
    return f"({frames} inside pullback left out: PULLBACK_TRACEBACK=full shows them)" if count else ""


def print_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What prints errors that nobody caught; lines of generated code are found too, which the interpreter's own hook does not."""
    import traceback

    if sys.stderr is None:  # a program without a terminal
        return
    note = fold(error.with_traceback(trace))
    if note:
        print(note, file=sys.stderr)
    traceback.print_exception(error)


def install() -> None:
    """Print uncaught errors so, in scripts and in notebooks, unless something else prints them already; in a notebook, also
    let it display our objects."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = print_uncaught
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        from .notebook import register

        register(shell)
        if not shell.custom_exceptions:
            shell.set_custom_exc((Exception,), _print_in_notebook)


def _print_in_notebook(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    note = fold(error.with_traceback(trace))
    if note:
        print(note, file=sys.stderr)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)
