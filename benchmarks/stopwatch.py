"""The stopwatch and the table that all benchmarks share: cases timed in turns, ratios of ours to PyTorch's.

Imported by the scripts beside it. The two libraries take turns, round by round, so that a busy machine is busy for
both; each figure is the best round. A side that fails is left out, with the last line of what went wrong.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import timeit
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Case:
    """A statement to time, and the names it may use, made once for each library."""

    name: str
    statement: str
    setup: Callable[[ModuleType], dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """Seconds a call: ours, and theirs where they could be measured; `first` are those of the first calls."""

    name: str
    ours: float
    theirs: float | None
    first: tuple[float, float | None] = (0.0, None)

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs


# -------------------------------------------------------------------------------------------------------- the stopwatch
def _timers(
    case: Case, libraries: list[ModuleType], clock: Callable[[], float]
) -> list[tuple[timeit.Timer, float] | None]:
    """A timer for each library, and the seconds of its first call; None where the statement does not run there yet."""
    timers: list[tuple[timeit.Timer, float] | None] = []
    for lib in libraries:
        try:
            timer = timeit.Timer(case.statement, timer=clock, globals=case.setup(lib))
            timers.append((timer, timer.timeit(1)))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = (str(error).strip() or "no message").splitlines()[0]
            at = f"{Path(where.filename).name}:{where.lineno}"
            print(f"{lib.__name__} cannot run {case.name!r}: {type(error).__name__}: {message} ({at})", file=sys.stderr)
            timers.append(None)
    return timers


def _calls(timer: timeit.Timer, seconds: float) -> int:
    """How many calls fill about so many seconds; finding out also warms the caches."""
    calls = 1
    while (spent := timer.timeit(calls)) < seconds / 4:
        calls *= 4
    return max(1, int(seconds / (spent / calls)))


def measure(
    case: Case, libraries: list[ModuleType], rounds: int, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> Figure | None:
    """The best round of each library, in turns; None where ours cannot run."""
    timers = _timers(case, libraries, clock)
    if timers[0] is None:
        return None
    live = [timer for timer in timers if timer is not None]
    calls = [_calls(timer, seconds) for timer, _ in live]
    best = [float("inf")] * len(live)
    for _ in range(rounds):
        for i, ((timer, _), n) in enumerate(zip(live, calls)):
            best[i] = min(best[i], timer.timeit(n) / n)
    paired = len(live) > 1
    return Figure(case.name, best[0], best[1] if paired else None, (live[0][1], live[1][1] if paired else None))


# ------------------------------------------------------------------------------------------------------------ the table
def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    scale, unit = next((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")) if seconds >= s)
    return f"{seconds / scale:.2f} {unit}"


def show(title: str, figures: list[Figure]) -> None:
    """Print one group of figures."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("", "pullback", "PyTorch", "ratio"):
        table.add_column(heading, justify="left" if not heading else "right")
    for figure in figures:
        style = None if figure.ratio is None or figure.ratio <= 1 else "red"
        ratio = "-" if figure.ratio is None else f"{figure.ratio:.2f}"
        table.add_row(Text(figure.name), _time(figure.ours), _time(figure.theirs), ratio, style=style)
    console = Console(highlight=False)
    console.print(table)
    console.print()


def row(figure: Figure) -> str:
    """One figure as a line of text: times, their ratio, and the times of the first calls."""
    ratio = "-" if figure.ratio is None else f"{figure.ratio:.2f}"
    times = (figure.ours, figure.theirs, *figure.first)
    ours, theirs, first, first_theirs = (_time(t) for t in times)
    return f"{figure.name:<60}{ours:>12}{theirs:>12}{ratio:>8}   first {first:>10}{first_theirs:>12}"


def libraries() -> list[ModuleType]:
    """Ours, and PyTorch where it can be imported."""
    names = ["pullback", *(["torch"] if importlib.util.find_spec("torch") else [])]
    return [importlib.import_module(name) for name in names]
