"""Peak memory of a training step of a language model (6 layers, 256 wide, batch 8 of 256 words), beside PyTorch.

In: nothing but options. Out: MiB that a step takes at most beyond what the process had after its imports: weights, gradients, the
optimizer's state, activations and whatever a way keeps. Each way runs in a process of its own; the peak is that of the steps after the
second, so what compiling took and gave back is not in it. Linux only: the peak is the kernel's (`VmHWM`), set back before it is measured.

    python benchmarks/memory.py                        ours eager, compiled and whole step; PyTorch where it can be imported
    python benchmarks/memory.py --torch PYTHON         PyTorch by another interpreter
    python benchmarks/memory.py --page                 writes the table into docs/measure.md
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

LAYERS, WIDTH, LENGTH, BATCH, WORDS = 6, 256, 256, 8, 512
OURS = ("eager", "compiled", "whole step")
PAGE = Path(__file__).parents[1] / "docs" / "measure.md"
BEGIN, END = "<!-- memory: written by benchmarks/memory.py --page -->", "<!-- end of memory -->"


def status(name: str) -> float:
    """MiB of a line of the kernel's account of this process."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {name} in /proc/self/status")


def peak(library: str, way: str) -> float:
    """MiB that steps of one way take at most, in this process."""
    lib = importlib.import_module(library)
    sys.path.insert(0, str(Path(__file__).parent))
    from models import language_model

    lib.set_num_threads(1)
    before = status("VmRSS")
    lib.manual_seed(0)
    model = language_model(lib, LAYERS, WIDTH, LENGTH, words=WORDS)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-4)
    words, targets = (lib.randint(0, WORDS, (BATCH, LENGTH)) for _ in range(2))
    forward = lib.compile(model) if way == "compiled" else model

    def step() -> None:
        forward(words, targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    step = lib.compile(step) if way == "whole step" else step
    step(), step()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
    step(), step()
    return status("VmHWM") - before


def measure(python: str, library: str, way: str) -> float:
    command = [python, __file__, "--of", library, way]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def table(torch: str | None) -> str:
    rows = {f"ours, {way}": measure(sys.executable, "pullback", way) for way in OURS}
    if torch:
        rows["PyTorch, eager"] = measure(torch, "torch", "eager")
    return "\n".join(["| step | peak, MiB |", "| - | - |", *(f"| {name} | {mib:.0f} |" for name, mib in rows.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that can import PyTorch")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--of", nargs=2, metavar=("LIBRARY", "WAY"), help="measure one way here")
    options = parser.parse_args()
    if options.of:
        print(peak(*options.of))
        return
    text = table(options.torch or (sys.executable if importlib.util.find_spec("torch") else None))
    print(text)
    if options.page:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n{text}\n{END}{page.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
