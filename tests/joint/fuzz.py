"""Random programs by hand, as many as wanted: `python -m tests.joint.fuzz --count 100000 --seed 0 --jobs 2`.

Prints each program that differs, shrunk, as a script with what differs, and at the end how many there were.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import time
from collections.abc import Callable

from .compare import refusals
from .generator import generate
from .programs import Program, shrink
from .targets import TARGETS


def check(job: tuple[int, str, int]) -> tuple[int, str, list[str]]:
    """A seed, a target, and how the program of that seed (of a length) differs there."""
    seed, target, length = job
    return seed, target, safely(TARGETS[target], generate(seed, length))


def safely(compare: Callable[[Program], list[str]], program: Program) -> list[str]:
    try:
        return compare(program)
    except Exception as error:
        return [f"comparing raises {type(error).__name__}: {error}"]


def kind(reason: str) -> str:
    """What a difference is about: its words before the values."""
    return "".join(c for c in reason[:60] if not c.isdigit())


def report(seed: int, target: str, reasons: list[str], shrunk: bool, length: int) -> None:
    program, compare = generate(seed, length), TARGETS[target]
    if shrunk:
        program = shrink(program, lambda p: [kind(r) for r in safely(compare, p)[:1]] == [kind(reasons[0])])
        reasons = safely(compare, program)
    print(f"# seed {seed}, target {target}")
    for reason in reasons:
        print("#", reason.replace("\n", " ")[:400])
    print(program.source(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--length", type=int, default=9, help="how many statements a program has at most")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="one or more; all if none is named")
    parser.add_argument("--rotate", action="store_true", help="compare each program in one form, in turn")
    parser.add_argument("--show", type=int, default=10, help="how many different programs to print")
    parser.add_argument("--whole", action="store_true", help="print them as generated, not shrunk")
    options = parser.parse_args()
    started = time.time()
    targets = options.target or list(TARGETS)
    jobs = (
        (seed, t, options.length)
        for seed in range(options.seed, options.seed + options.count)
        for t in ([targets[seed % len(targets)]] if options.rotate else targets)
    )
    shown: collections.Counter = collections.Counter()
    failed: list[tuple[int, str]] = []
    with multiprocessing.Pool(options.jobs) if options.jobs > 1 else _Serial() as pool:
        for seed, target, reasons in pool.imap_unordered(check, jobs, 50):
            if not reasons:
                continue
            failed.append((seed, target))
            what = (target, kind(reasons[0]))
            shown[what] += 1
            if shown[what] == 1 and len(shown) <= options.show:
                report(seed, target, reasons, not options.whole, options.length)
    for (target, what), count in shown.most_common():
        print(f"# {count} x {target}: {what!r}")
    if refusals:
        print(f"# {sum(refusals.values())} refused: {refusals.most_common()}")
    print(f"# {options.count} programs in {time.time() - started:.0f} s, {len(failed)} differ: {failed[:20]}")


class _Serial:
    """A pool of this process alone."""

    def __enter__(self) -> _Serial:
        return self

    def __exit__(self, *exc) -> None:
        return None

    def imap_unordered(self, function: Callable, jobs, chunk: int):
        return map(function, jobs)


if __name__ == "__main__":
    main()
