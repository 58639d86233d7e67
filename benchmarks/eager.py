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
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from types import ModuleType
from typing import Any

from stopwatch import Case, Figure, libraries, measure, show

# Read by the BLAS library when it is loaded, so before anything is imported.
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

SMALL, SIDE = 8, 2048


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
    record: dict[str, list[dict]] = {}
    if not args.no_import and not args.only:
        figure = import_times([lib.__name__ for lib in libraries()], rounds=5)
        show("a fresh interpreter", [figure])
        record["import"] = [asdict(figure)]
    for title, figures in groups(libraries(), args):
        show(title, figures)
        record[title] = [asdict(figure) for figure in figures]
    if args.json:
        with open(args.json, "w") as file:
            json.dump(record, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
