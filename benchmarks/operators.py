"""One call of every operator at three sizes, side by side with PyTorch in one process.

In: nothing but options. Out: the calls with the highest ratios of our time to theirs (below 1 is ahead), and the geometric mean of all. The
two libraries take turns, round by round; each figure is the best round.

    python benchmarks/operators.py                      every call, three sizes
    python benchmarks/operators.py --only pool,conv     calls whose name contains one of these
    python benchmarks/operators.py --backward           each call that can be differentiated, with its gradients
    python benchmarks/operators.py --threads 1 --cpu    one thread, by processor time: for a machine that others use too
    python benchmarks/operators.py --json run.json      every figure into a file; --page run.json puts a summary of it into docs/measure.md
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from operator_calls import CALLS, SIZES, names
from stopwatch import Case, Figure, libraries, measure, show

DIFFERENTIATED = (
    "x",
    "y",
    "p",
    "u",
    "v",
    "row",
    "image",
    "volume",
    "filters",
    "filters3",
    "batch",
    "batch2",
    "heads",
    "grid",
    "square",
    "spd",
)


def _recording(found: dict[str, Any]) -> dict[str, Any]:
    """The same arguments, those that are differentiated asking for gradients, and `gradients(result)`."""
    t = found["t"]
    leaves = [found[name].requires_grad_() for name in DIFFERENTIATED]

    def gradients(result: Any) -> Any:
        result = result[0] if isinstance(result, (tuple, list)) else result
        return t.autograd.grad(result, leaves, t.ones_like(result), allow_unused=True)

    return {**found, "gradients": gradients}


def _is_recorded(call: str, found: dict[str, Any]) -> bool:
    """Whether gradients flow from what a call gives, or would: one that fails is left to the stopwatch, which reports it."""
    try:
        result = eval(call, dict(found))
    except Exception:
        return True
    result = result[0] if isinstance(result, (tuple, list)) and result else result
    return getattr(result, "requires_grad", False)


def cases(size: str, libs: list[ModuleType], words: list[str], backward: bool) -> list[Case]:
    shared = {lib.__name__: names(lib, size) for lib in libs}
    if backward:
        shared = {name: _recording(found) for name, found in shared.items()}
    chosen = [(name, call) for name, call in CALLS if any(word in name for word in words)]
    if backward:
        # what is written gets its history anew in each call
        chosen = [(name, call.replace("x2.", "x2.detach().")) for name, call in chosen]
        chosen = [(name, call) for name, call in chosen if any(_is_recorded(call, found) for found in shared.values())]
        chosen = [(name, f"gradients({call})") for name, call in chosen]
    return [Case(f"{name}  [{size}]", call, lambda lib: shared[lib.__name__]) for name, call in chosen]


def geometric_mean(figures: list[Figure]) -> float:
    ratios = [figure.ratio for figure in figures if figure.ratio]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


PAGE = Path(__file__).parents[1] / "docs" / "measure.md"
BEGIN, END = "<!-- operators: written by benchmarks/operators.py --page -->", "<!-- end of operators -->"


def summary(figures: list[Figure], worst: int) -> str:
    """Calls, mean ratio and calls above two by size, and the calls with the highest ratios, as tables."""
    lines = ["| size | calls | geometric mean | above 2 |", "| - | - | - | - |"]
    for size in SIZES:
        own = [f for f in figures if f.name.endswith(f"[{size}]")]
        if not own:
            continue
        above = sum((f.ratio or 0) > 2 for f in own)
        lines.append(f"| {size} | {len(own)} | {geometric_mean(own):.2f} | {above} |")
    highest = sorted(figures, key=lambda f: -(f.ratio or 0))[:worst]
    shown = ", ".join(f"{' '.join(f.name.split())} {f.ratio:.0f}" for f in highest)
    return "\n".join([*lines, "", f"The {len(highest)} highest: {shown}."])


def write_page(file: str, worst: int) -> None:
    with open(file, encoding="utf-8") as text:
        figures = [Figure(name, ours, theirs) for name, (ours, theirs) in json.load(text).items()]
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{summary(figures, worst)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.01, help="how long a round of a call takes at least")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--page", metavar="FILE", help="write the summary of an earlier run's figures; measure nothing")
    options = parser.parse_args()
    if options.page:
        write_page(options.page, options.worst)
        return
    warnings.simplefilter("ignore")
    clock = time.process_time if options.cpu else time.perf_counter
    libs = libraries()
    for lib in libs if options.threads else ():
        lib.set_num_threads(options.threads)
    figures = []
    for size in options.sizes.split(","):
        wanted = cases(size, libs, options.only.split(","), options.backward)
        found = [measure(case, libs, options.rounds, options.seconds, clock) for case in wanted]
        figures += [figure for figure in found if figure is not None and figure.ratio]
        print(f"{size}: {len(figures)} calls so far, geometric mean {geometric_mean(figures):.3f}", flush=True)
    worst = sorted(figures, key=lambda figure: -(figure.ratio or 0))[: options.worst]
    show(f"the {len(worst)} highest of {len(figures)} ratios; geometric mean {geometric_mean(figures):.3f}", worst)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({figure.name: [figure.ours, figure.theirs] for figure in figures}, out, indent=1)


if __name__ == "__main__":
    main()
