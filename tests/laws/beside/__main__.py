"""The runner: programs of a range of seeds, beside the library of the given name."""

from __future__ import annotations

import argparse
import resource
import sys
import time
import traceback
import warnings
from collections import Counter

from tests.laws.beside.choices import chosen
from tests.laws.beside.draw import Drawn
from tests.laws.beside.pair import Chosen, Different


def run(seed: int, other: str, counts: Counter, show: bool = False, compiles: bool = True) -> str | None:
    """Run one program; words about the first difference, with its text."""
    drawn = Drawn(seed, other, compiles)
    words = None
    try:
        drawn.run()
    except Different as different:
        words = str(different)
        if reason := chosen(drawn.pair.lines, words):
            counts[reason] += 1
            words = None
    except Chosen as reason:
        counts[str(reason)] += 1
    pair = drawn.pair
    counts["statements"] += len(pair.lines)
    counts["raised"] += len(pair.errors)
    if show or words:
        text = "\n".join(pair.lines)
        return f"seed {seed}\n{text}\n-> {words or 'the same'}"
    return None


LIMIT = 6 << 30  # bytes: programs that want more raise in both libraries


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("other", help="the library to import and run beside")
    ap.add_argument("--seeds", default="0:1000", help="FIRST:LAST or one seed")
    ap.add_argument("--show", action="store_true", help="print every program")
    args = ap.parse_args()
    first, _, last = args.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    start, different, counts = time.perf_counter(), 0, Counter()
    for seed in seeds:
        try:
            words = run(seed, args.other, counts, args.show)
        except Exception:
            words = f"seed {seed}\n-> the generator raised\n{traceback.format_exc()}"
        if words:
            different += "-> the same" not in words
            print(words, flush=True)
    took = time.perf_counter() - start
    print(
        f"{len(seeds)} programs ({args.seeds}), {different} different, {len(seeds) / took:.0f} a second; {dict(counts)}"
    )
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
