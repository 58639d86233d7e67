"""What one eager call costs, side by side with PyTorch in one process where PyTorch can be imported.

In: nothing but options. Out: a table of times and ratios (ours to theirs: below 1 is ahead), the import time first. The
two libraries take turns, round by round, so that a busy machine is busy for both; each figure is the best round.
Small tensors (8 elements, one thread) measure the call itself; large ones (4M elements, two threads) the kernels.

    python benchmarks/eager.py                    everything
    python benchmarks/eager.py --only softmax     cases whose name contains a word
    python benchmarks/eager.py --json times.json  the figures, for a record
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

# Read by the BLAS library when it is loaded, so before anything is imported.
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

SMALL, SIDE = 8, 2048


@dataclass(frozen=True)
class Case:
    """A statement to time, and the names it may use, made once for each library."""

    name: str
    statement: str
    setup: Callable[[ModuleType], dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """Seconds a call: ours, and theirs where they could be measured."""

    name: str
    ours: float
    theirs: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs


# ------------------------------------------------------------------------------------------------------------ the cases
def _random(lib: ModuleType, *shape: int) -> Any:
    """Numbers from NumPy's generator, so that both libraries work on the same ones."""
    import numpy as np

    return lib.from_numpy(np.random.default_rng(0).standard_normal(shape, np.float32))


def _small(lib: ModuleType) -> dict[str, Any]:
    return {
        "lib": lib,
        "x": _random(lib, SMALL),
        "y": _random(lib, SMALL),
        "r": _random(lib, SMALL).requires_grad_(),
        "m": _random(lib, 2, 4),
        "w": _random(lib, 4, 4),
        "weight": _random(lib, 4),
        "bias": _random(lib, 4),
    }


def _large(lib: ModuleType) -> dict[str, Any]:
    return {"lib": lib, "x": _random(lib, SIDE, SIDE), "y": _random(lib, SIDE, SIDE)}


SMALL_CASES = [
    Case(name, statement, _small)
    for name, statement in [
        ("x + y", "x + y"),
        ("x + 1", "x + 1"),
        ("x * y", "x * y"),
        ("x * y, recording", "r * y"),
        ("x @ w", "m @ w"),
        ("x.sum()", "x.sum()"),
        ("x[1:3]", "x[1:3]"),
        ("x.view(-1)", "m.view(-1)"),
        ("softmax(x, -1)", "lib.softmax(x, -1)"),
        ("layer_norm(x)", "lib.nn.functional.layer_norm(m, (4,), weight, bias)"),
        ("x.add_(y)", "x.add_(y)"),
        ("cat([x, y])", "lib.cat([x, y])"),
        ("x.sin().sum() and backward", "r.sin().sum().backward()"),
    ]
]
LARGE_CASES = [
    Case(name, statement, _large)
    for name, statement in [
        ("x + y", "x + y"),
        ("(x * y + x) * 0.5 - y", "(x * y + x) * 0.5 - y"),
        ("x.tanh()", "x.tanh()"),
        ("x.exp()", "x.exp()"),
        ("x.sum()", "x.sum()"),
        ("x.sum(0)", "x.sum(0)"),
        ("x.mean(1)", "x.mean(1)"),
        ("x.amax(1)", "x.amax(1)"),
        ("softmax(x, -1)", "lib.softmax(x, -1)"),
        ("x @ y", "x @ y"),
    ]
]


# -------------------------------------------------------------------------------------------------------- the stopwatch
def _timers(case: Case, libraries: list[ModuleType]) -> list[timeit.Timer | None]:
    """A timer for each library; None where the statement does not run there yet."""
    timers: list[timeit.Timer | None] = []
    for lib in libraries:
        try:
            timer = timeit.Timer(case.statement, globals=case.setup(lib))
            timer.timeit(1)
            timers.append(timer)
        except Exception as error:
            print(f"{lib.__name__} cannot run {case.name!r}: {type(error).__name__}: {error}", file=sys.stderr)
            timers.append(None)
    return timers


def _calls(timer: timeit.Timer, seconds: float) -> int:
    """How many calls fill about so many seconds; the first guess also warms the caches."""
    guess = min(1000, max(1, int(seconds / timer.timeit(1))))
    return max(1, int(seconds / (timer.timeit(guess) / guess)))


def measure(case: Case, libraries: list[ModuleType], rounds: int, seconds: float) -> Figure | None:
    """The best round of each library, in turns; None where ours cannot run."""
    timers = _timers(case, libraries)
    if timers[0] is None:
        return None
    live = [timer for timer in timers if timer is not None]
    calls = [_calls(timer, seconds) for timer in live]
    best = [float("inf")] * len(live)
    for _ in range(rounds):
        for i, (timer, n) in enumerate(zip(live, calls)):
            best[i] = min(best[i], timer.timeit(n) / n)
    return Figure(case.name, best[0], best[1] if len(best) > 1 else None)


def import_times(names: list[str], rounds: int) -> Figure:
    """Seconds to import each library in a fresh interpreter, less the interpreter's own start."""
    best = dict.fromkeys(["", *names], float("inf"))
    for _ in range(rounds):
        for name in best:
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {name}" if name else "pass"], check=True)
            best[name] = min(best[name], time.perf_counter() - began)
    ours, *theirs = (best[name] - best[""] for name in names)
    return Figure("import", ours, theirs[0] if theirs else None)


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


def groups(libraries: list[ModuleType], args: argparse.Namespace) -> Iterator[tuple[str, list[Figure]]]:
    """Each group's title and figures, as they come."""
    for title, cases, threads, seconds in (
        (f"{SMALL} elements, one thread", SMALL_CASES, 1, 0.05),
        (f"{SIDE} x {SIDE} float32, two threads", LARGE_CASES, 2, 0.1),
    ):
        for lib in libraries:
            lib.set_num_threads(threads)
        chosen = [case for case in cases if args.only in case.name]
        found = [measure(case, libraries, args.rounds, seconds) for case in chosen]
        yield title, [figure for figure in found if figure is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-import", action="store_true", help="leave the import time out")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    names = ["pullback", *(["torch"] if importlib.util.find_spec("torch") else [])]
    record: dict[str, list[dict]] = {}
    if not args.no_import and not args.only:
        figure = import_times(names, rounds=5)
        show("a fresh interpreter", [figure])
        record["import"] = [asdict(figure)]
    for title, figures in groups([importlib.import_module(name) for name in names], args):
        show(title, figures)
        record[title] = [asdict(figure) for figure in figures]
    if args.json:
        with open(args.json, "w") as file:
            json.dump(record, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
