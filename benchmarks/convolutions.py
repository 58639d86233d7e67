"""Layers of convolution beside PyTorch's, which are oneDNN's on a CPU: results, gradients of inputs and of weights.

In: nothing but options. Out: for each layer and form the milliseconds of both and their ratio (below 1 is ahead), and the geometric mean of
all. The two libraries take turns, round by round; each figure is the best round.

    python benchmarks/convolutions.py                    every layer
    python benchmarks/convolutions.py --only depthwise   those whose name contains it
    python benchmarks/convolutions.py --threads 1 --cpu  one thread, by processor time: for a machine that others use too
    python benchmarks/convolutions.py --page             the table into docs/measure.md as well
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from operators import geometric_mean
from stopwatch import Case, Figure, libraries, measure

FORMS = {
    "forward": "convolution(x, w, None, *rest)",
    "input": "backward(g, x, w, None, *rest, [True, False, False])",
    "weight": "backward(g, x, w, None, *rest, [False, True, False])",
}
PAGE = Path(__file__).parents[1] / "docs" / "measure.md"
BEGIN, END = "<!-- convolutions: written by benchmarks/convolutions.py --page -->", "<!-- end of convolutions -->"


class Layer(NamedTuple):
    """A square convolution of square images."""

    images: int
    inputs: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    transposed: bool = False
    channels_last: bool = False


LAYERS = {
    "first of ResNet, 7x7, 3 to 64, 64²": Layer(8, 3, 64, 64, 7, 2, 3),
    "3x3, 64 to 64, 56²": Layer(4, 64, 64, 56, 3, 1, 1),
    "3x3, 64 to 64, 16²": Layer(8, 64, 64, 16, 3, 1, 1),
    "3x3, 128 to 128, 8²": Layer(8, 128, 128, 8, 3, 1, 1),
    "3x3, 256 to 256, 4²": Layer(8, 256, 256, 4, 3, 1, 1),
    "3x3, 512 to 512, 2²": Layer(8, 512, 512, 2, 3, 1, 1),
    "3x3, stride 2, 64 to 128, 16²": Layer(8, 64, 128, 16, 3, 2, 1),
    "3x3, 64 to 64, 16², channels last": Layer(8, 64, 64, 16, 3, 1, 1, channels_last=True),
    "1x1, 64 to 256, 28²": Layer(8, 64, 256, 28, 1),
    "1x1, stride 2, 64 to 128, 16²": Layer(8, 64, 128, 16, 1, 2),
    "depthwise 3x3, 64, 28²": Layer(8, 64, 64, 28, 3, 1, 1, 64),
    "depthwise 7x7, 96, 14²": Layer(8, 96, 96, 14, 7, 1, 3, 96),
    "32 groups of 4, 3x3, 14²": Layer(8, 128, 128, 14, 3, 1, 1, 32),
    "transposed 4x4, stride 2, 128 to 64, 4²": Layer(32, 128, 64, 4, 4, 2, 1, transposed=True),
    "transposed 4x4, stride 2, 64 to 3, 16²": Layer(32, 64, 3, 16, 4, 2, 1, transposed=True),
    "patches 16x16, 3 to 192, 64²": Layer(8, 3, 192, 64, 16, 16),
}


def arguments(lib: ModuleType, layer: Layer) -> dict[str, Any]:
    lib.manual_seed(0)
    ends = (layer.inputs, layer.outputs) if layer.transposed else (layer.outputs, layer.inputs)
    x = lib.randn(layer.images, layer.inputs, layer.size, layer.size)
    w = lib.randn(ends[0], ends[1] // layer.groups, layer.kernel, layer.kernel) * 0.1
    if layer.channels_last:
        x, w = (t.contiguous(memory_format=lib.channels_last) for t in (x, w))
    two = [[n, n] for n in (layer.stride, layer.padding, 1)]
    rest = (*two, layer.transposed, [0, 0], layer.groups)
    forward, backward = lib.ops.aten.convolution.default, lib.ops.aten.convolution_backward.default
    g = lib.randn_like(forward(x, w, None, *rest))
    return {"x": x, "w": w, "g": g, "rest": rest, "convolution": forward, "backward": backward}


def _given(given: dict[str, dict], lib: ModuleType) -> dict[str, Any]:
    return given[lib.__name__]


def measured(libs: list[ModuleType], words: list[str], rounds: int, clock) -> dict[str, list[Figure]]:
    found = {}
    for name, layer in LAYERS.items():
        if not any(word in name for word in words):
            continue
        given = {lib.__name__: arguments(lib, layer) for lib in libs}
        cases = [Case(f"{name}: {form}", call, partial(_given, given)) for form, call in FORMS.items()]
        figures = [measure(case, libs, rounds, 0.005, clock) for case in cases]
        found[name] = [f for f in figures if f is not None]
        print(row(name, found[name]), flush=True)
    return found


def row(name: str, figures: list[Figure]) -> str:
    cells = [f"{f.ours * 1e3:.2f} / {(f.theirs or 0) * 1e3:.2f} = {f.ratio or 0:.2f}" for f in figures]
    return f"| {name} | {' | '.join(cells)} |"


def table(found: dict[str, list[Figure]]) -> str:
    columns = list(zip(*found.values(), strict=True))
    means = " | ".join(f"{geometric_mean(list(column)):.2f}" for column in columns)
    head = [f"| layer | {' | '.join(FORMS)} |", "| - |" + " - |" * len(FORMS)]
    return "\n".join([*head, *[row(*pair) for pair in found.items()], f"| geometric mean | {means} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    libs = libraries()
    for lib in libs if options.threads else ():
        lib.set_num_threads(options.threads)
    clock = time.process_time if options.cpu else time.perf_counter
    found = measured(libs, options.only.split(","), options.rounds, clock)
    text = table(found)
    print(text.splitlines()[-1])
    if options.page:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
