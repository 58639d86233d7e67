"""Whole training steps (forward, backward, Adam) side by side with PyTorch.

In: nothing but options. Out: a table of milliseconds a step: ours eager, ours compiled (the loss; the optimizer as it is), ours with the
whole step compiled, PyTorch eager and, with `--peers`, the two compiled ways of PyTorch, with `--jax` a whole step of JAX; and the ratio of ours to
theirs, eager to eager and best to best (below 1 is ahead). All take turns, round by round; each figure is the best round.

    python benchmarks/train.py                     every workload, eager and compiled
    python benchmarks/train.py --only GPT          those whose name contains it
    python benchmarks/train.py --ways eager        eager alone
    python benchmarks/train.py --threads 1 --cpu   one thread, by processor time: for a machine that others use too
    python benchmarks/train.py --torch PYTHON      PyTorch in a process of an interpreter that has it; in one process, its threads go on
                                                   waiting for work beside ours for a while, so with several threads this is the fair way
    python benchmarks/train.py --jax PYTHON        JAX too, in a process of an interpreter that has it (see `jax_models.py`)
    python benchmarks/train.py --peers --torch PYTHON --jax PYTHON --threads 2
                                                   the whole table: every way of each library, each library in a process of its own. What a
                                                   library cannot do is `-`, and the reason stands above
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

from models import WORKLOADS
from stopwatch import libraries

WAYS = ("eager", "compiled", "whole step")


def stepping(lib: ModuleType, name: str, way: str) -> Callable:
    """One training step of a workload."""
    lib.manual_seed(0)
    model, loss = WORKLOADS[name](lib)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-4)
    forward = lib.compile(loss) if way == "compiled" else loss

    def step():
        value = forward()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    return lib.compile(step) if way == "whole step" else step


class Timed:
    """A step of a library in this process: called for a round of steps, it gives the seconds of the best."""

    def __init__(self, step: Callable, clock: Callable[[], float]):
        self.step, self.clock = step, clock

    def __call__(self) -> float:
        best = float("inf")
        for _ in range(3):
            start = self.clock()
            self.step()
            best = min(best, self.clock() - start)
        return best


class Apart:
    """A library in a process of its own, which waits between rounds: it reads what to time, and writes the seconds of the best step."""

    def __init__(self, python: str, script: str, options: argparse.Namespace):
        command = [python, str(Path(__file__).with_name(script))]
        command += ["--threads", str(options.threads)] if options.threads else []
        command += ["--cpu"] if options.cpu else []
        command += ["--serve"] if script == Path(__file__).name else []
        self.command, self.failed = command, set()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def round(self, what: str) -> float:
        """Seconds; NaN, from then on, for what the process did not survive."""
        if what in self.failed:
            return float("nan")
        assert self.process.stdin is not None and self.process.stdout is not None
        print(what, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            print(f"{' '.join(self.command)}: {what} ended it, with {self.process.wait()}", file=sys.stderr)
            self.failed.add(what)
            self.start()
            return float("nan")
        return float(line)


def serve(clock: Callable[[], float], threads: int | None) -> None:
    """Be the process of PyTorch: a line in, of a workload and a way, is a round."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    made: dict[str, Timed] = {}
    for line in sys.stdin:
        name, _, way = line.strip().partition("/")
        if not any(key.startswith(f"{name}/") for key in made):
            made.clear()  # one workload at a time
        if line not in made:
            made[line] = Timed(stepping(torch, name, way), clock)
        print(made[line](), flush=True)


def best_times(timed: dict[tuple, Callable[[], float]], rounds: int) -> dict[tuple, float]:
    """Seconds a step, each the best of its rounds; the first one, in which programs are compiled, does not count."""
    for each in timed.values():
        each()
    results = [{key: each() for key, each in timed.items()} for _ in range(rounds)]
    return {key: min(r[key] for r in results) for key in timed}


def measure(
    name: str,
    libs: list[ModuleType],
    apart: dict[str, Apart],
    ways: tuple[str, ...],
    options: argparse.Namespace,
    clock: Callable,
) -> dict:
    timed: dict[tuple, Callable[[], float]] = {}
    theirs = ways if options.peers else ways[:1]
    for lib in libs:
        for way in ways if lib.__name__ == "pullback" else theirs:
            timed[lib.__name__, way] = Timed(stepping(lib, name, way), clock)
    if "torch" in apart:
        for way in theirs:
            timed["torch", way] = partial(apart["torch"].round, f"{name}/{way}")
    if "jax" in apart:
        timed["jax", "whole step"] = partial(apart["jax"].round, name)
    best = best_times(timed, options.rounds)
    return {f"{lib} {way}": seconds * 1e3 for (lib, way), seconds in best.items()}


def show(figures: dict[str, dict]) -> None:
    from rich.console import Console
    from rich.table import Table

    headings = list(next(iter(figures.values())))
    table = Table(title="milliseconds a step", title_justify="left", box=None, pad_edge=False)
    for heading in ("", *headings, "eager ratio", "best ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, row in figures.items():
        ours = [v for k, v in row.items() if k.startswith("pullback")]
        theirs = [v for k, v in row.items() if not k.startswith("pullback") and v == v]
        eager = [row[f"{lib} eager"] for lib in ("pullback", "torch") if f"{lib} eager" in row]
        ratios = [
            f"{eager[0] / eager[1]:.2f}" if len(eager) == 2 else "-",
            f"{min(ours) / min(theirs):.2f}" if theirs else "-",
        ]
        table.add_row(name, *[f"{row[h]:.3f}" if row[h] == row[h] else "-" for h in headings], *ratios)
    Console(highlight=False, width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that can import PyTorch")
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that can import JAX")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    clock = time.process_time if options.cpu else time.perf_counter
    if options.serve:
        return serve(clock, options.threads)
    libs = libraries()[: 1 if options.torch else None]
    for lib in libs if options.threads else ():
        lib.set_num_threads(options.threads)
    ways = tuple(options.ways.split(","))
    names = [name for name in WORKLOADS if any(part in name for part in options.only.split(","))]
    scripts = {"torch": Path(__file__).name, "jax": "jax_models.py"}
    apart = {k: Apart(python, script, options) for k, script in scripts.items() if (python := getattr(options, k))}
    figures = {name: measure(name, libs, apart, ways, options, clock) for name in names}
    show(figures)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)


if __name__ == "__main__":
    main()
