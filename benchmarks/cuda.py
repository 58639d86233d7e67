"""What operators and a training step cost on a CUDA device, side by side with PyTorch in one process.

In: nothing but options. Out: a table of times and ratios (below 1 is ahead). Both libraries get the same calls on tensors
of the same sizes; every figure is the time until the device has finished. PyTorch's default precision is kept: no TF32, unless
the name of a case says so. Cases named "compiled" run by `compile`, ours by kernels of its own; "replayed" ones are whole steps in
one CUDA graph.

    python benchmarks/cuda.py               everything
    python benchmarks/cuda.py --only compiled
    python benchmarks/cuda.py --only gpt    cases whose name contains a word
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from stopwatch import Case, libraries, measure, show

sys.path = [
    p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent
]  # CuPy imports a package `cuda`

SMALL, LARGE = 4 << 20, 64 << 20
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


def _compiled(lib: ModuleType, function: Callable, how: str | None) -> Callable:
    """A function as it is run: eager (None), or by `compile` in a mode."""
    if how is None:
        return function
    if lib.__name__ == "pullback":
        from pullback.capture.front.config import native

        native.cuda.native = True
    return lib.compile(function, mode=how)


def _trained(lib: ModuleType, loss_of: Callable, parameters: list, how: str | None, replayed: bool) -> dict[str, Any]:
    """A step of training: loss, gradients, AdamW; with `replayed`, all of it in one CUDA graph."""
    optimizer = lib.optim.AdamW(parameters, lr=1e-4, **({"capturable": True} if replayed else {}))
    loss_of = _compiled(lib, loss_of, how)

    def work() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    if replayed:
        side = lib.cuda.Stream()
        with lib.cuda.stream(side):
            for _ in range(3):
                work()
        side.synchronize()
        graph = lib.cuda.CUDAGraph()
        with lib.cuda.graph(graph):
            work()
        return {"work": graph.replay, "wait": lib.cuda.synchronize}
    return {"work": work, "wait": lib.cuda.synchronize}


def _step(
    width: int, heads: int, depth: int, symbols: int, batch: int, context: int, lower: str | None = None,
    how: str | None = None, replayed: bool = False, precision: str = "highest",
):  # fmt: skip
    def setup(lib: ModuleType) -> dict[str, Any]:
        lib.manual_seed(0)
        lib.set_float32_matmul_precision(precision)
        model = _model(lib, width, heads, depth, symbols, context).to("cuda")
        text = lib.randint(0, symbols, (batch, context + 1), device="cuda")

        def loss_of():
            with lib.autocast("cuda", dtype=getattr(lib, lower or "bfloat16"), enabled=lower is not None):
                scores = model(text[:, :-1])
                return lib.nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())

        return _trained(lib, loss_of, list(model.parameters()), how, replayed)

    return setup


def _network(make: Callable, shape: tuple, how: str | None = None, replayed: bool = False):
    """A step of a network that tells ten classes apart."""

    def setup(lib: ModuleType) -> dict[str, Any]:
        lib.manual_seed(0)
        lib.set_float32_matmul_precision("highest")
        model = make(lib).to("cuda")
        x, y = lib.randn(*shape, device="cuda"), lib.randint(0, 10, (shape[0],), device="cuda")
        return _trained(
            lib, lambda: lib.nn.functional.cross_entropy(model(x), y), list(model.parameters()), how, replayed
        )

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


def _fused(size: int, call: Callable, how: str):
    def setup(lib: ModuleType) -> dict[str, Any]:
        x, y = lib.randn(size, device="cuda"), lib.rand(size, device="cuda")
        function = _compiled(lib, lambda x, y: call(lib, x, y), how)
        return {"work": lambda: function(x, y), "wait": lib.cuda.synchronize}

    return setup


def _cases() -> list[Case]:
    once = "work(); wait()"
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
    result.append(Case("gpt step, 12 x 768, 8 x 512, float32", once, _step(768, 12, 12, 50257, 8, 512)))
    result.append(Case("gpt step, 12 x 768, 8 x 512, autocast", once, _step(768, 12, 12, 50257, 8, 512, "bfloat16")))
    result.append(Case("gpt step, 2 x 64, 16 x 48, float32", once, _step(64, 4, 2, 64, 16, 48)))
    return result + _compiled_cases(once)


def _compiled_cases(once: str) -> list[Case]:
    large, small = (768, 12, 12, 50257, 8, 512), (128, 4, 4, 256, 16, 64)
    chain: Callable = lambda lib, x, y: lib.tanh(x * 2 + y) * lib.sigmoid(x) - x.exp() * 0.1  # noqa: E731
    rows: Callable = lambda lib, x, y: lib.nn.functional.layer_norm(x.view(-1, 1024), (1024,)).softmax(-1)  # noqa: E731
    result = []
    for how in ("default", "reduce-overhead"):
        mark = f"compiled, {how}"
        result += [
            Case(f"pointwise chain, 64M, {mark}", once, _fused(LARGE, chain, how)),
            Case(f"layer norm and softmax, 64M, {mark}", once, _fused(LARGE, rows, how)),
            Case(f"gpt step, 12 x 768, float32, {mark}", once, _step(*large, how=how)),
            Case(f"gpt step, 12 x 768, TF32, {mark}", once, _step(*large, how=how, precision="high")),
            Case(f"gpt step, 12 x 768, autocast, {mark}", once, _step(*large, "bfloat16", how=how)),
            Case(f"gpt step, 4 x 128, {mark}", once, _step(*small, how=how)),
            Case(f"mlp step, 64, {mark}", once, _network(_perceptron(64), (64, 64), how)),
            Case(f"mlp step, 2048, {mark}", once, _network(_perceptron(2048), (1024, 2048), how)),
            Case(f"lstm step, {mark}", once, _network(_recurrent, (32, 32, 64), how)),
        ]
    result += [
        Case("gpt step, 4 x 128, eager, replayed", once, _step(*small, replayed=True)),
        Case("mlp step, 64, eager, replayed", once, _network(_perceptron(64), (64, 64), replayed=True)),
    ]
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each round of a case")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = libraries()
    if not found[0].cuda.is_available():
        print("there is no CUDA device", file=sys.stderr)
        return 1
    cases = [c for c in _cases() if options.only in c.name]
    figures = [measure(c, found, options.rounds, options.seconds) for c in cases]
    show(f"on {found[0].cuda.get_device_name()}", [f for f in figures if f is not None])
    return 0


if __name__ == "__main__":
    sys.exit(main())
