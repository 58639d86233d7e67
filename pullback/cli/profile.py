"""`pullback profile SCRIPT`: run a script and say where its time goes.

Out: seconds by kind of work and by line of the program, as tables; with `--html FILE` a flame graph, with `--trace FILE` every
operator as a trace for Chrome or Perfetto (recording them makes the run slower).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..report.sampling import Profile

__all__ = ["profile"]
LINES = 12  # of the program that the terminal shows


def profile(
    target: str, arguments: Sequence[str] = (), html: str | None = None, trace: str | None = None, compile: bool = False
) -> int:
    """Run a script and print the tables; what it raises is left to the caller, after them."""
    for file in (html, trace):
        if file is not None and not os.path.isdir(os.path.dirname(os.path.abspath(file))):
            print(f"pullback profile: can't write {file!r}: there is no such folder", file=sys.stderr)
            return 2
    from ..autograd import profiler
    from ..report.flame import flame_page
    from ..report.sampling import sampling
    from .run import run

    status = 0
    with contextlib.ExitStack() as stack:
        recorded = stack.enter_context(profiler.profile()) if trace else None
        seen = stack.enter_context(sampling())
        try:
            status = run(target, arguments, compile=compile)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    if not seen.looks:
        return status
    show(seen)
    if recorded is not None and trace:
        recorded.export_chrome_trace(trace)
        print(f"Every operator, for Chrome or Perfetto: {trace}")
    if html is not None:
        Path(html).write_text(flame_page(seen, f"{os.path.basename(target)}: where the time went"), encoding="utf-8")
        print(f"Flame graph: {html}")
    return status


def show(seen: Profile) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..report.flame import data_of

    data = data_of(seen, LINES)
    kinds = Table("kind of work", "seconds", "share", title=f"{seen.seconds:.2f} s, {seen.looks} looks")
    for kind, seconds in sorted(data["kinds"], key=lambda row: -row[1]):
        kinds.add_row(kind, f"{seconds:.3f}", f"{seconds / seen.seconds:.0%}")
    lines = Table("line", "text", "seconds", "share", title="Lines of the program")
    for file, line, _, text, seconds in data["lines"]:
        lines.add_row(f"{os.path.basename(file)}:{line}", Text(text), f"{seconds:.3f}", f"{seconds / seen.seconds:.0%}")
    console = Console()
    console.print(kinds)
    console.print(lines)
