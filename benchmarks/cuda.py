"""What operators and a training step cost on a CUDA device, side by side with PyTorch in one process.

In: nothing but options. Out: a line of times for each case as soon as it is measured, with the ratio (below 1 is ahead) and what the
first call took. Both libraries get the same calls on tensors of the same sizes; every figure is the time until the device has
finished. PyTorch's default precision is kept: no TF32, unless the name of a case says so.

Workloads are run in several ways: eager; the loss compiled; the loss compiled with `mode="reduce-overhead"`; the whole step compiled
(ours alone); the eager step captured as one CUDA graph and replayed.

    python benchmarks/cuda.py                              everything
    python benchmarks/cuda.py --only gpt lstm              cases whose name contains a word
    python benchmarks/cuda.py --only gpt --ways compiled   in one way
    python benchmarks/cuda.py --ours                       without PyTorch
    python benchmarks/cuda.py --memory                     peaks of memory of the workloads instead of times, in MiB: what a step takes at
                                                           most beyond what was there before, without workspaces of cuBLAS
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from models import residual_network
from stopwatch import Case, Figure, libraries, measure, row

sys.path = [
    p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent
]  # CuPy imports a package `cuda`

SMALL, LARGE = 4 << 20, 64 << 20
ONCE = "work(); wait()"
REPEATS = 100  # calls of small work between two waits for the device


def _elements(size: int, call: Callable) -> Callable[[ModuleType], dict[str, Any]]:
    def setup(lib: ModuleType) -> dict[str, Any]:
        x, y = lib.randn(size, device="cuda"), lib.rand(size, device="cuda")
        return {"work": lambda: call(lib, x, y), "wait": lib.cuda.synchronize}

    return setup


def _products(size: int, dtype: str) -> Callable[[ModuleType], dict[str, Any]]:
    def setup(lib: ModuleType) -> dict[str, Any]:
        a, b = (lib.randn(size, size, device="cuda").to(getattr(lib, dtype)) for _ in range(2))
        return {"work": lambda: a @ b, "wait": lib.cuda.synchronize}

    return setup


def _many_small(lib: ModuleType) -> dict[str, Any]:
    x = lib.ones(8, device="cuda")

    def work() -> None:
        y = x
        for _ in range(REPEATS):
            y = y * x

    return {"work": work, "wait": lib.cuda.synchronize}


def _model(lib: ModuleType, width: int, heads: int, depth: int, symbols: int, context: int):
    """A language model of GPT-2's shape, written once for both libraries."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.mix(seen.transpose(1, 2).reshape(b, t, width))
            return x + self.network(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

        def forward(self, text):
            x = self.symbol(text) + self.place(lib.arange(text.shape[1], device=text.device))
            return self.head(self.norm(self.blocks(x)))

    return Model()


WAYS = ("eager", "compiled", "reduce-overhead", "whole step", "replayed")


def _trained(lib: ModuleType, loss_of: Callable, parameters: list, way: str) -> dict[str, Any]:
    """A step of training: loss, gradients, AdamW. See the module's docstring for the ways."""
    optimizer = lib.optim.AdamW(parameters, lr=1e-4, **({"capturable": True} if way == "replayed" else {}))
    if way in ("compiled", "reduce-overhead"):
        loss_of = lib.compile(loss_of, mode="default" if way == "compiled" else way)

    def work() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    if way == "whole step":
        work = lib.compile(work)
    if way == "replayed":
        work = _captured(lib, work)
    return {"work": work, "wait": lib.cuda.synchronize}


def _captured(lib: ModuleType, work: Callable) -> Callable:
    """The work of a function, again and again, as one CUDA graph."""
    side = lib.cuda.Stream()
    side.wait_stream(lib.cuda.current_stream())  # which may still be making the arguments
    with lib.cuda.stream(side):
        for _ in range(3):
            work()
    side.synchronize()
    graph = lib.cuda.CUDAGraph()
    with lib.cuda.graph(graph):
        work()
    return graph.replay


Setup = Callable[[ModuleType, str], dict[str, Any]]  # of a workload: what is timed, by library and way


def _step(
    width: int, heads: int, depth: int, symbols: int, batch: int, context: int, lower: str | None = None,
    precision: str = "highest",
) -> Setup:  # fmt: skip
    def setup(lib: ModuleType, way: str) -> dict[str, Any]:
        lib.manual_seed(0)
        lib.set_float32_matmul_precision(precision)
        model = _model(lib, width, heads, depth, symbols, context).to("cuda")
        text = lib.randint(0, symbols, (batch, context + 1), device="cuda")

        def loss_of():
            with lib.autocast("cuda", dtype=getattr(lib, lower or "bfloat16"), enabled=lower is not None):
                scores = model(text[:, :-1])
                return lib.nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())

        return _trained(lib, loss_of, list(model.parameters()), way)

    return setup


def _network(make: Callable, shape: tuple) -> Setup:
    """A step of a network that tells ten classes apart."""

    def setup(lib: ModuleType, way: str) -> dict[str, Any]:
        lib.manual_seed(0)
        lib.set_float32_matmul_precision("highest")
        model = make(lib).to("cuda")
        x, y = lib.randn(*shape, device="cuda"), lib.randint(0, 10, (shape[0],), device="cuda")
        loss_of = lambda: lib.nn.functional.cross_entropy(model(x), y)
        return _trained(lib, loss_of, list(model.parameters()), way)

    return setup


def _perceptron(width: int):
    def make(lib: ModuleType):
        nn = lib.nn
        return nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.GELU(), nn.Linear(width, 10)
        )

    return make


def _recurrent(lib: ModuleType):
    nn = lib.nn

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.head = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.cells(x)[0][:, -1])

    return Last()


def _fused(size: int, call: Callable) -> Setup:
    """A function of two vectors, without gradients."""

    def setup(lib: ModuleType, way: str) -> dict[str, Any]:
        x, y = lib.randn(size, device="cuda"), lib.rand(size, device="cuda")
        function = lambda x, y: call(lib, x, y)
        if way in ("compiled", "reduce-overhead"):
            function = lib.compile(function, mode="default" if way == "compiled" else way)
        return {"work": lambda: function(x, y), "wait": lib.cuda.synchronize}

    return setup


def _operators() -> list[Case]:
    once = ONCE
    result = [Case(f"{REPEATS} x mul, 8 elements", once, _many_small)]
    calls: dict[str, Callable] = {
        "add": lambda lib, x, y: x + y,
        "mul by a number": lambda lib, x, y: x * 2.0,
        "exp": lambda lib, x, y: x.exp(),
        "gelu": lambda lib, x, y: lib.nn.functional.gelu(x),
        "sum": lambda lib, x, y: x.sum(),
        "softmax, rows of 1024": lambda lib, x, y: x.view(-1, 1024).softmax(-1),
        "layer norm, rows of 1024": lambda lib, x, y: lib.nn.functional.layer_norm(x.view(-1, 1024), (1024,)),
        "sort": lambda lib, x, y: x.sort(),
        "randn": lambda lib, x, y: lib.randn(x.shape, device="cuda"),
        "copy to the CPU": lambda lib, x, y: x.cpu(),
    }
    for size, label in ((SMALL, "4M"), (LARGE, "64M")):
        result += [Case(f"{name}, {label}", once, _elements(size, call)) for name, call in calls.items()]
    result += [Case(f"matmul 4096, {d}", once, _products(4096, d)) for d in ("float32", "bfloat16", "float16")]
    return result


def _workloads() -> dict[str, tuple[Setup, tuple[str, ...]]]:
    """Of each, the ways in which it is run."""
    large, small = (768, 12, 12, 50257, 8, 512), (128, 4, 4, 256, 16, 64)
    chain: Callable = lambda lib, x, y: lib.tanh(x * 2 + y) * lib.sigmoid(x) - x.exp() * 0.1
    rows: Callable = lambda lib, x, y: lib.nn.functional.layer_norm(x.view(-1, 1024), (1024,)).softmax(-1)
    called = WAYS[:3]
    return {
        "pointwise chain, 64M": (_fused(LARGE, chain), called),
        "layer norm and softmax, 64M": (_fused(LARGE, rows), called),
        "mlp step, 64": (_network(_perceptron(64), (64, 64)), WAYS),
        "mlp step, 2048": (_network(_perceptron(2048), (1024, 2048)), WAYS),
        "gpt step, 4 x 128": (_step(*small), WAYS),
        "gpt step, 12 x 768, float32": (_step(*large), WAYS),
        "gpt step, 12 x 768, TF32": (_step(*large, precision="high"), WAYS),
        "gpt step, 12 x 768, autocast": (_step(*large, "bfloat16"), WAYS),
        "lstm step": (_network(_recurrent, (32, 32, 64)), WAYS),
        "resnet18 step, 64 x 3 x 224 x 224": (_network(residual_network, (64, 3, 224, 224)), WAYS),
    }


def _peak(lib: ModuleType, setup: Setup, way: str) -> float:
    """MiB that calls take at most, from the fourth on."""
    before = lib.cuda.memory_allocated()
    names = setup(lib, way)
    for k in range(6):
        if k == 3:
            names["wait"]()
            lib.cuda.reset_peak_memory_stats()
        names["work"]()
    names["wait"]()
    return (lib.cuda.max_memory_allocated() - before) / (1 << 20)


def _peaks(name: str, setup: Setup, ways: tuple[str, ...], found: list[ModuleType]) -> None:
    """A line of peaks of each way; `-` where a library has no such way, or fails."""
    for way in ways:
        shown = []
        for lib in found:
            try:
                peak = f"{_peak(lib, setup, way):.1f}" if way != "whole step" or lib is found[0] else "-"
            except Exception as error:
                print(f"{lib.__name__}, {name}, {way}: {type(error).__name__}: {error}"[:400], file=sys.stderr)
                peak = "-"
            shown.append(peak)
            _forget(found)
        print(f"{name + ', ' + way:<60}{''.join(f'{s:>12}' for s in shown)}", flush=True)


def _best_of(ways: list[Figure], name: str) -> str:
    """The best way of ours against the best of PyTorch's."""
    ours = min(f.ours for f in ways)
    theirs = min((f.theirs for f in ways if f.theirs is not None), default=None)
    return row(Figure(f"{name}: best of each", ours, theirs, (min(f.first[0] for f in ways), None)))


def _run_workload(name: str, setup: Setup, ways: tuple[str, ...], found: list[ModuleType], options) -> None:
    figures = []
    for way in ways:
        # PyTorch's compiler leaves backward and optimizer as they are in a compiled step: that is its way "compiled"
        libs = found[:1] if way == "whole step" else found
        case = Case(f"{name}, {way}", ONCE, lambda lib, way=way: setup(lib, way))
        figure = measure(case, libs, options.rounds, options.seconds)
        if figure is not None:
            figures.append(figure)
            print(row(figure), flush=True)
        _forget(found)
    if len(figures) > 1:
        print(_best_of(figures, name), flush=True)


def _forget(found: list[ModuleType]) -> None:
    """Give back what a case has taken of the device."""
    gc.collect()
    for lib in found:
        lib.compiler.reset()
        lib.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose name contains one of these")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    parser.add_argument("--ours", action="store_true", help="without PyTorch")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each round of a case")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="peaks of memory instead of times")
    options = parser.parse_args()
    if options.memory:
        os.environ.update(CUBLAS_WORKSPACE_CONFIG=":0:0", CUBLASLT_WORKSPACE_SIZE="0")
    found = libraries()[: 1 if options.ours else 2]
    if not found[0].cuda.is_available():
        print("there is no CUDA device", file=sys.stderr)
        return 1
    wanted = lambda name: any(word in name for word in options.only)
    print(f"on {found[0].cuda.get_device_name()}: pullback, PyTorch, ratio; first calls", flush=True)
    if options.memory:
        for name, (setup, ways) in _workloads().items():
            if wanted(name):
                _peaks(name, setup, tuple(w for w in ways if w in options.ways), found)
        return 0
    for case in filter(lambda c: wanted(c.name), _operators()):
        figure = measure(case, found, options.rounds, options.seconds)
        if figure is not None:
            print(row(figure), flush=True)
    for name, (setup, ways) in _workloads().items():
        if wanted(name):
            _run_workload(name, setup, tuple(w for w in ways if w in options.ways), found, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
