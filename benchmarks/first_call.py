"""What the first call of a compiled training step takes, cold and warm, beside `torch.compile`.

In: nothing but options. Out: a table of seconds for each workload of `train.py`: the first step (forward and backward compiled, Adam as it is) of a
process with empty caches, and of a process that finds what an earlier one left on disk; the step itself, run eagerly, is taken off. Every
figure is a process of its own, which has imported its library and made the model before the clock starts. The modules of either are bytecode
before that, as those of an installed package are.

    python benchmarks/first_call.py                   ours alone
    python benchmarks/first_call.py --torch PYTHON    PyTorch too, by an interpreter that has it
    python benchmarks/first_call.py --only GPT        the workloads whose name contains it
    python benchmarks/first_call.py --cpu             processor time, of compilers too: for a machine that others use
    python benchmarks/first_call.py --page            writes the table into docs/measure.md
"""

from __future__ import annotations

import argparse
import atexit
import functools
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from models import WORKLOADS
from train import stepping

PAGE = Path(__file__).parent.parent / "docs" / "measure.md"
BEGIN, END = "<!-- first calls: written by benchmarks/first_call.py --page -->", "<!-- end of first calls -->"


def seconds(by_processor: bool) -> float:
    """Wall clock, or processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4]) if by_processor else time.perf_counter()


def first_call(lib: str, name: str, by_processor: bool) -> float:
    """Seconds of the first compiled step beyond those of an eager one, which makes the optimizer's state as well."""
    library = importlib.import_module(lib)
    library.set_num_threads(1)
    stepping(library, name, "eager")()
    eager = stepping(library, name, "eager")
    start = seconds(by_processor)
    eager()
    once = seconds(by_processor) - start
    del eager  # so that the compiled step finds as much memory at hand as the eager one did
    step = stepping(library, name, "compiled")
    start = seconds(by_processor)
    step()
    return seconds(by_processor) - start - once


def measured(python: str, lib: str, name: str, cache: str, by_processor: bool) -> float:
    """The same in a process of its own, with this folder for caches."""
    # processes of PyTorch's that compile for it would not be waited for, so their time would not be seen
    alone = {"TORCHINDUCTOR_COMPILE_THREADS": "1"} if by_processor else {}
    places = {"PULLBACK_CACHE": f"{cache}/ours", "TORCHINDUCTOR_CACHE_DIR": f"{cache}/theirs", **alone}
    places |= as_installed() if lib == "pullback" else {}
    command = [python, __file__, "--one", lib, "--only", name, *(["--cpu"] if by_processor else [])]
    out = subprocess.run(command, env=os.environ | places, check=True, capture_output=True, text=True).stdout
    return float(out.splitlines()[-1])


@functools.cache
def as_installed() -> dict[str, str]:
    """What makes Python find our modules as bytecode, which it may not have been allowed to write beside a checkout."""
    places = {"PYTHONPYCACHEPREFIX": tempfile.mkdtemp(prefix="first-call-bytecode-"), "PYTHONDONTWRITEBYTECODE": ""}
    atexit.register(shutil.rmtree, places["PYTHONPYCACHEPREFIX"])
    source = Path(importlib.import_module("pullback").__file__).parent
    subprocess.run([sys.executable, "-m", "compileall", "-q", source], env=os.environ | places, check=True)
    return places


def measure(name: str, pythons: dict[str, str], options: argparse.Namespace) -> dict[str, float]:
    found: dict[str, float] = {}
    for lib, python in pythons.items():
        with tempfile.TemporaryDirectory(prefix="first-call-") as cache:
            found[f"{lib}, cold"] = measured(python, lib, name, cache, options.cpu)
            warm = [measured(python, lib, name, cache, options.cpu) for _ in range(options.rounds)]
            found[f"{lib}, warm"] = min(warm)
    return found


def table(figures: dict[str, dict[str, float]]) -> str:
    """Cold and warm seconds of each library, and the ratio of the cold ones, in Markdown."""
    columns = list(next(iter(figures.values())))
    ratio = ["cold, ratio"] if "torch, cold" in columns else []
    lines = [f"| {' | '.join(['', *columns, *ratio])} |", "| - " * (1 + len(columns) + len(ratio)) + "|"]
    for name, row in figures.items():
        cells = [name, *[f"{row[c]:.2f}" for c in columns]]
        cells += [f"{row['pullback, cold'] / row['torch, cold']:.3f}" for _ in ratio]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that can import PyTorch")
    parser.add_argument("--rounds", type=int, default=2, help="of warm calls")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--one", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.simplefilter("ignore")
        return print(first_call(options.one, options.only, options.cpu))
    pythons = {"pullback": sys.executable} | ({"torch": options.torch} if options.torch else {})
    figures = {}
    for name in WORKLOADS:
        if any(part in name for part in options.only.split(",")):
            figures[name] = measure(name, pythons, options)
            print(name, {k: round(v, 3) for k, v in figures[name].items()}, file=sys.stderr, flush=True)
    print(table(figures))
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.page:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n{table(figures)}\n{END}{page.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
