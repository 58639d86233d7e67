"""The runner: programs of a range of seeds, beside the library of the given name."""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter

from tests.laws.beside.choices import chosen
from tests.laws.beside.compose import Composed
from tests.laws.beside.pair import judged


def run(seed: int, other: str, counts: Counter, show: bool = False, compiles: bool = True) -> str | None:
    """Run one program; words about the first difference, with its text."""
    return judged(Composed(seed, other, compiles), counts, chosen, show)


def records(other: str) -> bool:
    """Whether a library records and counts writes. Errors inside PyTorch's transforms can leave it as it is within them."""
    torch = importlib.import_module(other)
    leaf, written = torch.ones(1, requires_grad=True), torch.zeros(1)
    written.add_(1)
    return (leaf * 2).requires_grad and written._version == 1


LIMIT = 6 << 30  # bytes: programs that want more raise in both libraries


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("other", help="the library to import and run beside")
    ap.add_argument("--seeds", default="0:1000", help="FIRST:LAST or one seed")
    ap.add_argument("--show", action="store_true", help="print every program")
    ap.add_argument(
        "--before", type=int, nargs=2, default=(0, 0), help="programs that ran before, and how many differed"
    )
    args = ap.parse_args()
    first, _, last = args.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    (ran, different), counts = args.before, Counter()
    start = time.perf_counter()
    for done, seed in enumerate(seeds):
        if not records(args.other):  # the rest in a process of its own
            rest = ("--seeds", f"{seed}:{seeds.stop}", "--before", str(ran + done), str(different))
            shown = ("--show",) if args.show else ()
            os.execv(sys.executable, (sys.executable, "-m", "tests.laws.beside", args.other, *rest, *shown))
        try:
            words = run(seed, args.other, counts, args.show)
        except Exception:
            words = f"seed {seed}\n-> the generator raised\n{traceback.format_exc()}"
        if words:
            different += "-> the same" not in words
            print(words, flush=True)
    took = time.perf_counter() - start
    print(
        f"{ran + len(seeds)} programs (to {seeds.stop}), {different} different, {len(seeds) / took:.0f} a second; {dict(counts)}"
    )
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
