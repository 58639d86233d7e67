"""What ahead-of-time autograd costs, side by side with PyTorch in one process: a GPT's joint graph traced,
functionalized and cut in two.

In: nothing but options. Out: a table of times and ratios (ours to theirs: below 1 is ahead) and the sizes of the graphs.
The compilers that the stage is given hand the graphs back as they are, so that only the stage itself is measured. The two
libraries take turns, round by round; each figure is the best round.

    python benchmarks/trace.py                   everything
    python benchmarks/trace.py --layers 2        a smaller model
    python benchmarks/trace.py --profile         where our time goes
    python benchmarks/trace.py --json times.json the figures, for a record
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType
from typing import Any

from stopwatch import Figure, libraries, show

# Read by the BLAS library when it is loaded, so before anything is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

WIDTH, HEADS, LENGTH, VOCABULARY, BATCH = 256, 4, 64, 1000, 2
# Where each library keeps its ahead-of-time stage and its partitioners.
HOMES = {
    "pullback": ("pullback.joint.aot", "pullback.joint.partition"),
    "torch": ("torch._functorch.aot_autograd", "torch._functorch.partitioners"),
}


# ------------------------------------------------------------------------------------------------------------ the model
def gpt(lib: ModuleType, layers: int) -> Any:
    """A language model with its loss: `model(tokens, targets)`."""
    nn, functional = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(WIDTH, dim=-1)
            q, k, v = (a.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for a in (q, k, v))
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens, targets):
            x = self.tokens(tokens) + self.places(lib.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))

    return GPT()


def data(lib: ModuleType) -> list:
    """The same tokens and targets for both libraries."""
    import numpy as np

    numbers = np.random.default_rng(0).integers(0, VOCABULARY, (2, BATCH, LENGTH))
    return [lib.from_numpy(n) for n in numbers]


# ------------------------------------------------------------------------------------------------------------ the stage
class Stage:
    """Ahead-of-time autograd of one library on the model; `run` goes through it once and gives the seconds it took."""

    def __init__(self, lib: ModuleType, layers: int, partition: str):
        self.name = lib.__name__
        aot, partitioners = (importlib.import_module(home) for home in HOMES[self.name])
        self.aot_function: Callable = aot.aot_function
        self.partition: Callable = getattr(partitioners, partition)
        self.functional_call: Callable = lib.func.functional_call
        lib.manual_seed(0)  # both libraries draw the same numbers, so both models are one model
        self.model = gpt(lib, layers)
        self.parameters, self.data = dict(self.model.named_parameters()), data(lib)
        self.sizes: dict[str, int] = {}
        self.loss = 0.0
        self.ended: Callable = lambda: None  # called when the backward graph is handed over

    def run(self) -> float:
        """Seconds until the graph is traced and cut; running the graphs is not counted."""
        ends: list[float] = []
        compiled = self.aot_function(
            lambda parameters, *data: self.functional_call(self.model, parameters, data),
            fw_compiler=lambda module, _: self._keep("forward", module, ends),
            bw_compiler=lambda module, _: self._keep("backward", module, ends),
            partition_fn=self.partition,
        )
        began = time.perf_counter()
        loss = compiled(self.parameters, *self.data)
        seconds = ends[-1] - began  # PyTorch cuts the graph here too, but hands the backward over when it first runs
        loss.backward()
        self.loss = float(loss.detach())
        if not {"forward", "backward"} <= set(self.sizes):
            raise RuntimeError(f"{self.name} compiled only {sorted(self.sizes)}")
        return seconds

    def _keep(self, name: str, module: Any, ends: list[float]) -> Any:
        module.forward  # noqa: B018 - ours compiles its source when first asked for it, PyTorch when it makes the module
        ends.append(time.perf_counter())
        self.sizes[name] = len(module.graph.nodes)
        if name == "backward":
            self.ended()
            inputs = [n for n in module.graph.nodes if n.op == "placeholder" and not n.name.startswith("tangents")]
            values = [n.meta["val"] for n in inputs if hasattr(n.meta["val"], "numel")]
            self.sizes["saved values"] = len(values)
            self.sizes["saved KiB"] = sum(v.numel() * v.dtype.itemsize for v in values) >> 10
        return module


def measure(name: str, partition: str, layers: int, rounds: int) -> tuple[Figure, list[Stage]]:
    """The best round of each library, in turns; the first round only warms up."""
    stages = [Stage(lib, layers, partition) for lib in libraries()]
    best = [float("inf")] * len(stages)
    for turn in range(rounds + 1):
        for i, stage in enumerate(stages):
            seconds = stage.run()
            if turn:
                best[i] = min(best[i], seconds)
    losses = [stage.loss for stage in stages]
    if max(losses) - min(losses) > 1e-4 * abs(losses[0]):
        raise RuntimeError(f"the compiled models disagree: their losses are {losses}")
    return Figure(name, best[0], best[1] if len(best) > 1 else None), stages


def profile(layers: int, partition: str) -> None:
    """Print where our time goes."""
    import cProfile
    import pstats

    stage = Stage(libraries()[0], layers, partition)
    stage.run()
    profiler = cProfile.Profile()
    stage.ended = profiler.disable  # running the graphs is not shown
    profiler.enable()
    stage.run()
    for order in ("tottime", "cumulative"):
        pstats.Stats(profiler).sort_stats(order).print_stats(30)


PARTITIONS = {"default": "default_partition", "min-cut": "min_cut_rematerialization_partition"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="show where our time goes, and nothing else")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if args.profile:
        profile(args.layers, PARTITIONS["min-cut"])
        return 0
    warnings.filterwarnings("ignore", message="Your compiler for AOTAutograd")  # compilers that return the graph itself
    figures, rows = [], []
    for name, partition in PARTITIONS.items():
        figure, stages = measure(f"GPT, {args.layers} layers, {name} partition", partition, args.layers, args.rounds)
        figures.append(figure)
        sizes = {stage.name: stage.sizes for stage in stages}
        rows.append({**asdict(figure), "sizes": sizes})
        for library, found in sizes.items():
            print(f"{name} partition, {library}: " + ", ".join(f"{what} {count}" for what, count in found.items()))
    show("ahead-of-time autograd: trace, functionalize, partition", figures)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
