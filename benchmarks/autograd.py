"""What recording and backward cost, side by side with PyTorch in one process where PyTorch can be imported.

In: nothing but options. Out: a table of times and ratios (below 1 is ahead), and the memory that a recorded node takes here.
Tensors have 8 elements and one thread is used, so the figures are the engine's own.

    python benchmarks/autograd.py               everything
    python benchmarks/autograd.py --only wide   cases whose name contains a word
"""

from __future__ import annotations

import argparse
import os
import sys
import tracemalloc
from types import ModuleType
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from stopwatch import Case, libraries, measure, show  # noqa: E402 - after the threads are set

DEEP = 100_000


def _setup(lib: ModuleType) -> dict[str, Any]:
    w = lib.ones(8, requires_grad=True)
    x = lib.ones(8)

    def chain(forward_only: bool = False) -> Any:
        y = w
        for _ in range(50):
            y = (y * 1.01).sin()
        if not forward_only:
            y.sum().backward()
            w.grad = None
        return y

    def wide() -> None:
        y = w * 2
        lib.stack([y] * 1000).sum().backward()
        w.grad = None

    def affine() -> None:
        y = x
        for _ in range(50):
            y = y * w + x
        y.sum().backward()
        w.grad = None

    def deep() -> None:
        y = w
        for _ in range(DEEP):
            y = y + 1
        y.sum().backward()
        w.grad = None

    return {"chain": chain, "wide": wide, "affine": affine, "deep": deep}


CASES = [
    Case("100 operators, forward", "chain(True)", _setup),
    Case("100 operators, forward and backward", "chain()", _setup),
    Case("fan-in of 1,000", "wide()", _setup),
    Case("y = y * w + x, fifty times and back", "affine()", _setup),
    Case(f"{DEEP:,} nodes deep: built, run, freed", "deep()", _setup),
]


def bytes_per_node(lib: ModuleType) -> float:
    """Memory that one recorded call keeps, its 8-element result included."""
    w = lib.ones(8, requires_grad=True)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    y = w
    for _ in range(10_000):
        y = y * 1.5
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return kept / 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    libs = libraries()
    for lib in libs:
        lib.set_num_threads(1)
    found = [measure(case, libs, args.rounds, 0.1) for case in CASES if args.only in case.name]
    show("recording and backward, 8 elements, one thread", [f for f in found if f is not None])
    print(f"pullback keeps {bytes_per_node(libs[0]):.0f} bytes for a recorded x * 1.5 of 8 elements")
    return 0


if __name__ == "__main__":
    sys.exit(main())
