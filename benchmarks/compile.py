"""What compiled code costs to make and to run, side by side with PyTorch in one process.

In: nothing but options. Out: a table of run times (ours compiled and eager, PyTorch's compiled and eager, and ours to theirs:
below 1 is ahead) and a table of compile times: the first call, forward and backward, with empty caches. The four take turns,
round by round; each figure is the best round.

    python benchmarks/compile.py                    everything
    python benchmarks/compile.py --only softmax     the cases whose name contains it
    python benchmarks/compile.py --threads 1        on one thread, both
    python benchmarks/compile.py --json times.json  the figures, for a record
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

# Fresh caches, so that the first call compiles. Read when the libraries are loaded.
_caches = tempfile.TemporaryDirectory(prefix="compile-")
os.environ["PULLBACK_CACHE"] = f"{_caches.name}/ours"
os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{_caches.name}/theirs"
os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"

from models import language_model  # noqa: E402
from stopwatch import libraries  # noqa: E402


@dataclass
class Times:
    """Seconds, per way of running."""

    name: str
    ours: float
    ours_eager: float
    theirs: float | None = None
    theirs_eager: float | None = None
    compiling: float = 0.0
    their_compiling: float | None = None


# ------------------------------------------------------------------------------------------------------------- the cases
def pointwise_chain(lib: ModuleType) -> tuple[Callable, list]:
    x, y = lib.randn(1024, 1024), lib.randn(1024)
    return (lambda x, y: lib.tanh(x * 2 + y) * lib.sigmoid(x) - x.exp() * 0.1), [x, y]


def softmax_rows(lib: ModuleType) -> tuple[Callable, list]:
    return (lambda x: lib.softmax(x * 0.125, -1) * 2), [lib.randn(2048, 512)]


def gelu_norm(lib: ModuleType) -> tuple[Callable, list]:
    f = lib.nn.functional
    return (
        lambda x, w, b: f.layer_norm(f.gelu(x), (512,), w, b) + x,
        [lib.randn(2048, 512), lib.randn(512), lib.randn(512)],
    )


def adam_update(lib: ModuleType) -> tuple[Callable, list]:
    def update(p, g, m, v):
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        return p - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v

    return update, [lib.randn(1 << 20) for _ in range(3)] + [lib.rand(1 << 20)]


def small_call(lib: ModuleType) -> tuple[Callable, list]:
    return (lambda *xs: sum(x * 2 for x in xs)), [lib.randn(32) for _ in range(8)]


def column_sums(lib: ModuleType) -> tuple[Callable, list]:
    return (lambda x: (x * x).sum(0) + x.mean(0)), [lib.randn(4096, 256)]


def _step(lib: ModuleType, model: Any, inputs: list) -> tuple[Callable, list]:
    """Forward and backward of a model that gives its loss."""
    parameters = list(model.parameters())

    def run(step: Callable) -> Callable:
        def once(*args):
            step(*args).backward()
            for p in parameters:
                p.grad = None

        return once

    return model, [run, *inputs]


def mlp_step(lib: ModuleType) -> tuple[Callable, list]:
    nn, f = lib.nn, lib.nn.functional

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
            )

        def forward(self, x, y):
            return f.cross_entropy(self.layers(x), y)

    return _step(lib, Model(), [lib.randn(128, 256), lib.randint(0, 10, (128,))])


def cnn_step(lib: ModuleType) -> tuple[Callable, list]:
    nn, f = lib.nn, lib.nn.functional

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(3, 16, 3, padding=1),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 3, padding=1),
                nn.ReLU(),
                nn.AvgPool2d(2),
                nn.Flatten(),
                nn.Linear(32 * 64, 10),
            )

        def forward(self, x, y):
            return f.cross_entropy(self.layers(x), y)

    return _step(lib, Model(), [lib.randn(16, 3, 32, 32), lib.randint(0, 10, (16,))])


def gpt(layers: int, width: int, length: int, batch: int) -> Callable:
    def case(lib: ModuleType) -> tuple[Callable, list]:
        tokens, targets = (lib.randint(0, 512, (batch, length)) for _ in range(2))
        return _step(lib, language_model(lib, layers, width, length), [tokens, targets])

    return case


def whole(case: Callable) -> Callable:
    """A step with its optimizer, compiled as one function: forward, backward, AdamW."""

    def with_optimizer(lib: ModuleType) -> tuple[Callable, list]:
        model, (_, *inputs) = case(lib)
        optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4)

        def step(*args):
            loss = model(*args)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step, inputs

    return with_optimizer


CASES: dict[str, Callable] = {
    "call of 8 small tensors": small_call,
    "pointwise chain": pointwise_chain,
    "scaled softmax": softmax_rows,
    "gelu, layer norm": gelu_norm,
    "column sums": column_sums,
    "Adam update": adam_update,
    "MLP training step": mlp_step,
    "CNN training step": cnn_step,
    "GPT training step, small": gpt(2, 64, 32, 4),
    "GPT training step": gpt(4, 256, 64, 4),
    "MLP step with AdamW": whole(mlp_step),
    "GPT step with AdamW, small": whole(gpt(2, 64, 32, 4)),
    "GPT step with AdamW": whole(gpt(4, 256, 64, 4)),
}


# ---------------------------------------------------------------------------------------------------------- the measuring
def prepared(lib: ModuleType, case: Callable) -> tuple[Callable, Callable, float]:
    """(compiled call, eager call, seconds of the first compiled call)."""
    lib.manual_seed(0)
    f, args = case(lib)
    around = args.pop(0) if callable(args[0]) and not hasattr(args[0], "shape") else lambda g: g
    getattr(lib, "_dynamo", lib.compiler).reset()
    compiled, eager = around(lib.compile(f, backend="inductor")), around(f)
    eager(*args)
    start = time.perf_counter()
    compiled(*args)
    return (lambda: compiled(*args)), (lambda: eager(*args)), time.perf_counter() - start


def best_times(calls: list[Callable], rounds: int, seconds: float) -> list[float]:
    counts = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        counts.append(max(1, int(seconds / max(time.perf_counter() - start, 1e-7))))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, (call, n) in enumerate(zip(calls, counts)):
            start = time.perf_counter()
            for _ in range(n):
                call()
            best[k] = min(best[k], (time.perf_counter() - start) / n)
    return best


def measure(name: str, libs: list[ModuleType], rounds: int, seconds: float) -> Times:
    result = [prepared(lib, CASES[name]) for lib in libs]
    best = best_times([call for compiled, eager, _ in result for call in (compiled, eager)], rounds, seconds)
    theirs = best[2:] or [None, None]
    return Times(name, best[0], best[1], *theirs, result[0][2], result[1][2] if len(result) > 1 else None)


def show(times: list[Times]) -> None:
    from rich.console import Console
    from rich.table import Table

    def ms(s: float | None) -> str:
        return "-" if s is None else f"{s * 1e3:.3f}" if s < 0.1 else f"{s * 1e3:.0f}"

    def ratio(a: float, b: float | None) -> str:
        return "-" if b is None else f"{a / b:.2f}"

    table = Table(title="milliseconds", title_justify="left", box=None, pad_edge=False)
    for heading in (
        "",
        "compiled",
        "eager",
        "PyTorch compiled",
        "PyTorch eager",
        "ratio",
        "compiling",
        "PyTorch",
        "ratio",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    for t in times:
        table.add_row(
            t.name, ms(t.ours), ms(t.ours_eager), ms(t.theirs), ms(t.theirs_eager), ratio(t.ours, t.theirs), ms(t.compiling),
            ms(t.their_compiling), ratio(t.compiling, t.their_compiling),
        )  # fmt: skip
    Console(highlight=False, width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    libs = libraries()
    if options.threads:
        for lib in libs:
            lib.set_num_threads(options.threads)
    times = [measure(name, libs, options.rounds, options.seconds) for name in CASES if options.only in name]
    show(times)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump([asdict(t) for t in times], out, indent=1)


if __name__ == "__main__":
    main()
