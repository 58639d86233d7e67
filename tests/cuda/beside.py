"""Random programs of every kind of statement (`tests/laws/beside`), on a device and on the CPU: the first compiles statements, the second none.

    python -m tests.cuda.beside --seeds 0:2000 --jobs 14

Comes in: a range of seeds. Goes out: the programs that differ, and how many. What always holds: a program ends where it draws random
numbers, of which each device has its own, and where it names a device.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
import traceback
import warnings
import zlib
from collections import Counter
from contextlib import suppress
from functools import partial

import numpy as np

import pullback as torch
from tests.laws.beside.choices import chosen
from tests.laws.beside.compose import Composed
from tests.laws.beside.namespace import namespace
from tests.laws.beside.pair import Different, Ended, Pair, judged

OWN = re.compile(  # what each device draws, or says, for itself
    r"[Dd]ropout|[Rr][Rr]e[Ll][Uu]|dropout=0\.[1-9]|rand|bernoulli|poisson|multinomial|gumbel|exponential_|cauchy|geometric|uniform|normal_"
    r"|[Ff]ractional|binomial|torch\.normal|Transformer|'cpu'|type_as|str\(|repr\(|data_ptr|pin_memory|numpy|share_memory|dirichlet|standard_gamma|quantize|mkldnn"
)
# Differences between devices that are none of numbers: (words, statements).
WRITES = r"\w_\(|\.data\b|out=|\bsetitem|\] [-+*/]?= "
BEYOND = r"2147483647|9223372036854775807|2147483648|9223372036854775808|4294967295|18446744073709551615"
ALLOWED = (
    (r"torch\.complex32 tensors are not supported on cuda", r""),  # no dtype of CuPy's
    (r"raised None and ModifiedError", WRITES),  # a compiled call keeps other values for its gradient
    (r"raised None and IndexError\('index .* is out of bounds", r""),  # which a device tells later
    (
        r"raised None and RuntimeError\('Trying to resize storage",
        r"out=|resize_",
    ),  # inputs that share their memory with NumPy
    (r"version ", r"\.data\b"),  # which a compiled call counts with its base
    (  # a leaf that is a view has its gradient cut off by a write to its views; one that a compiled call gives is no view
        r"x\d+\[\d+\]: tensor\([^!]*!= None$",
        r"given\(\d+, '\w+', '(?!contiguous)\w+', True\)[\s\S]*with torch\.no_grad\(\):\n +x\d+.*[a-z]_\(",
    ),
    (
        rf"\(int(32|64)\): array[\s\S]*({BEYOND})",
        r"\.(int|long|to|type|fill_|copy_)\(|out=",
    ),  # of numbers that the dtype does not hold
    (r"raised NotImplementedError\('the function to compile changes whether its input", r""),
)
STATEMENT = re.compile(r"(x\d+) = (?!f\d|\w+\(f\d|list\(|flat\()(.+)")
SINGLE_SLACK = 8.0  # sums in another order, products added in one rounding


class PlacedPair(Pair):
    """The same library on two devices; `compiled`: how many of ten statements of the first are compiled."""

    def __init__(self, device: str, arrays: list[np.ndarray], compiled: int):
        super().__init__("pullback", arrays)
        self.device, self.share = device, compiled
        self.slack = SINGLE_SLACK
        self.ours = namespace("pullback", arrays, True, device)

    def run(self, line: str, *args, **kwargs) -> bool:
        if OWN.search(line):
            raise Ended
        return super().run(line, *args, **kwargs)

    def _execute(self, code, torch, names: dict, seed: int | None) -> Exception | None:
        before = torch.get_default_device()
        error = self._execute_there(code, torch, names, seed)
        if torch.get_default_device() != before:
            torch.set_default_device(before)
            raise Different(f"the default device was left, after {error!r}")
        return error

    def _execute_there(self, code, torch, names: dict, seed: int | None) -> Exception | None:
        if names is self.theirs:
            return super()._execute(code, torch, names, seed)
        line = self.lines[-1]
        if " = torch.nn.utils" in line or re.match(r"m\d+ = torch\.nn", line):  # its numbers are drawn on the CPU
            error = super()._execute(code, torch, names, seed)
            name = line.split(" = ")[0]
            if error is None and isinstance(names[name], torch.nn.Module):
                names[name].to(self.device)
            return error
        with torch.device(self.device):
            found = STATEMENT.fullmatch(line)
            if (
                found is None
                or re.search(r"grad|[a-z]_\(|compiled", line)
                or zlib.crc32(line.encode()) % 10 >= self.share
            ):
                return super()._execute(code, torch, names, seed)
            text = f"def statement():\n    return {found[2]}\n{found[1]} = compiled(statement)()"
            return super()._execute(compile(text, "<statement>", "exec"), torch, names, seed)


class Placed(Composed):
    """One program, being drawn and run on two devices."""

    def __init__(self, seed: int, device: str, compiled: int = 6):
        super().__init__(seed, "pullback")
        self.pair = PlacedPair(device, self.arrays, compiled)


def run(seed: int, device: str, counts: Counter, show: bool = False, compiled: int = 6) -> str | None:
    """Run one program; words about the first difference, with its text."""
    with suppress(
        RuntimeError if device != "cpu" else AssertionError
    ):  # an index of the program before, which a device tells now
        torch.cuda.synchronize()
    return judged(Placed(seed, device, compiled), counts, _reason, show)


def _reason(lines: list[str], words: str) -> str | None:
    return "differences between devices" if _is_allowed(lines, words) else chosen(lines, words)


def _is_allowed(lines: list[str], words: str) -> bool:
    text = "\n".join(lines)
    return any(re.search(seen, words) and re.search(program, text) for seen, program in ALLOWED)


def _some(seeds: range, device: str, compiled: int, until: float) -> tuple[list[str], Counter]:
    """The programs of some seeds that differ."""
    warnings.simplefilter("ignore")
    counts: Counter = Counter()
    found: list[str] = []
    for seed in seeds:
        if time.time() > until:
            break
        try:
            words = run(seed, device, counts, compiled=compiled)
        except Exception:
            words = f"seed {seed}\n-> the generator raised\n{traceback.format_exc()}"
        counts["programs"] += 1
        found += [words] if words else []
    torch.compiler.reset()
    return found, counts


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seeds", default="0:1000", help="FIRST:LAST or one seed")
    ap.add_argument("--device", default="cuda")
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--compiled", type=int, default=6, help="how many of ten statements are compiled")
    ap.add_argument("--seconds", type=float, default=1e9)
    args = ap.parse_args()
    first, _, last = args.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    parts = [seeds[k : k + 20] for k in range(0, len(seeds), 20)]
    work = partial(_some, device=args.device, compiled=args.compiled, until=time.time() + args.seconds)
    counts: Counter = Counter()
    different = 0
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for found, more in pool.imap_unordered(work, parts):
            counts += more
            different += len(found)
            for words in found:
                print(words, flush=True)
    print(f"{counts['programs']} programs, {different} different; {dict(counts)}")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
