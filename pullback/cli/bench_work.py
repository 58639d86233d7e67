"""What `pullback bench` times, written once for pullback and PyTorch and again for JAX; and the process that times it.

In: lines of JSON, `{"case": …, "way": …, "seconds": …}`, on stdin. Out: a line of JSON for each, `{"seconds": per step}` or
`{"error": words}`, the time of the first call with the first. Each library runs in a process of its own, which the command
asks in turns: `python bench_work.py LIBRARY THREADS`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Step = Callable[[], Any]
CASES = (
    "chain of small operators",
    "pointwise, 1M",
    "norm and softmax, 1M",
    "small MLP",
    "GPT 2×64",
    "LSTM",
    "convnet",
)
JAX_CASES = CASES[:4]


# ---- pullback and PyTorch
def _trained(lib: ModuleType, model: Any, loss_of: Callable[[], Any], way: str) -> Step:
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    if way == "eager":
        return step
    if way == "whole step":
        return lib.compile(step)
    loss_of = lib.compile(loss_of)
    return step


def _function(lib: ModuleType, function: Callable, x: Any, way: str) -> Step:
    """A function of one tensor and its gradient."""
    x.requires_grad_()
    call = function if way == "eager" else lib.compile(function)

    def step() -> None:
        x.grad = None
        call(x).backward()

    return lib.compile(step) if way == "whole step" else step


def _classifier(lib: ModuleType, model: Any, shape: tuple[int, ...], way: str) -> Step:
    x, y = lib.randn(*shape), lib.randint(0, 10, (shape[0],))
    return _trained(lib, model, lambda: lib.nn.functional.cross_entropy(model(x), y), way)


def _language_model(lib: ModuleType, way: str) -> Step:
    nn: Any = lib.nn
    block = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.symbol = nn.Embedding(64, 64)
            self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
            self.head = nn.Linear(64, 64)

        def forward(self, text: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
            return self.head(self.blocks(self.symbol(text), mask=mask, is_causal=True))

    model, text = Model(), lib.randint(0, 64, (16, 49))

    def loss_of() -> Any:
        return lib.nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())

    return _trained(lib, model, loss_of, way)


def _recurrent(lib: ModuleType, way: str) -> Step:
    nn: Any = lib.nn

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.cells(x)[0][:, -1])

    return _classifier(lib, Last(), (16, 24, 32), way)


def _chain(x: Any) -> Any:
    for _ in range(20):
        x = x * 1.01 + 0.1
    return x.sum()


def torch_step(lib: ModuleType, case: str, way: str) -> Step:
    """One step of a case, by a library with PyTorch's interface."""
    nn, F = lib.nn, lib.nn.functional
    lib.manual_seed(0)
    if case == "chain of small operators":
        return _function(lib, _chain, lib.randn(8), way)
    if case == "pointwise, 1M":
        return _function(
            lib, lambda x: (lib.tanh(x * 2) * lib.sigmoid(x) - x.exp() * 0.1).sum(), lib.randn(1 << 20), way
        )
    if case == "norm and softmax, 1M":
        return _function(
            lib, lambda x: (F.layer_norm(x, (1024,)).softmax(-1) * x).sum(), lib.randn(1024, 1024), way
        )  # fmt: skip
    if case == "small MLP":
        return _classifier(lib, nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)), (64, 64), way)
    if case == "GPT 2×64":
        return _language_model(lib, way)
    if case == "LSTM":
        return _recurrent(lib, way)
    layers = (
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
    )
    return _classifier(lib, nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(8192, 10)), (16, 3, 32, 32), way)


# ---- JAX
def jax_step(jax: ModuleType, case: str) -> Step:
    """One step of a case as JAX's users write it: the whole of it under `jit`."""
    import jax.numpy as jnp

    key = jax.random.PRNGKey(0)
    if case == "small MLP":
        return _jax_classifier(jax, key)
    shape = {"chain of small operators": (8,), "pointwise, 1M": (1 << 20,), "norm and softmax, 1M": (1024, 1024)}[case]
    x = jax.random.normal(key, shape)

    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    functions = {
        "chain of small operators": _chain,
        "pointwise, 1M": lambda x: (jnp.tanh(x * 2) * jax.nn.sigmoid(x) - jnp.exp(x) * 0.1).sum(),
        "norm and softmax, 1M": lambda x: (jax.nn.softmax(norm(x), -1) * x).sum(),
    }
    gradient = jax.jit(jax.value_and_grad(functions[case]))
    return lambda: jax.block_until_ready(gradient(x))


def _jax_classifier(jax: ModuleType, key: Any) -> Step:
    import jax.numpy as jnp

    w1, w2 = jax.random.normal(key, (64, 256)) * 0.1, jax.random.normal(key, (256, 10)) * 0.1
    parameters = [w1, jnp.zeros(256), w2, jnp.zeros(10)]
    x, y = jax.random.normal(key, (64, 64)), jax.random.randint(key, (64,), 0, 10)

    def loss(p: list, x: Any, y: Any) -> Any:
        scores = jax.nn.relu(x @ p[0] + p[1]) @ p[2] + p[3]
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean()

    @jax.jit
    def update(p: list, velocity: list) -> tuple[list, list]:
        velocity = [0.9 * v + g for v, g in zip(velocity, jax.grad(loss)(p, x, y))]
        return [a - 0.01 * v for a, v in zip(p, velocity)], velocity

    state = [(parameters, [jnp.zeros_like(p) for p in parameters])]

    def step() -> None:
        state[0] = jax.block_until_ready(update(*state[0]))

    return step


# ---- the process
def _timed(step: Step, seconds: float) -> float:
    """Seconds a step, over about so many seconds."""
    count, spent = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(count):
            step()
        spent = time.perf_counter() - start
        if spent >= 0.5 * seconds:
            return spent / count
        count = max(count + 1, int(count * min(10.0, seconds / max(spent, 1e-9))))


def _library(name: str, threads: int) -> ModuleType:
    """The library, with so many threads."""
    import importlib

    if name == "pullback":
        sys.path.insert(0, str(Path(__file__).parents[2]))  # the one that asks
    lib = importlib.import_module(name)
    if name != "jax":
        lib.set_num_threads(threads)
    return lib


def _version(name: str) -> str:
    """Of the library; the one that asks may run from its sources, which have none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def answer(steps: dict, lib: ModuleType, request: dict) -> dict:
    """What a request measured; the step of a case is made by its first request."""
    case, way = request["case"], request["way"]
    found: dict[str, float] = {}
    if (case, way) not in steps:
        start = time.perf_counter()
        step = jax_step(lib, case) if lib.__name__ == "jax" else torch_step(lib, case, way)
        step()
        found["first"] = time.perf_counter() - start
        step()  # what is built at the second call (backwards, other sizes) is not timed either
        steps[case, way] = step
    return {**found, "seconds": _timed(steps[case, way], request["seconds"])}


def main(name: str, threads: int) -> int:
    os.environ.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    if name == "jax":
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    lib = _library(name, threads)
    out = os.fdopen(os.dup(1), "w")  # what a library prints must not come between the answers
    os.dup2(2, 1)
    print(json.dumps({"version": _version(name)}), file=out, flush=True)
    steps: dict = {}
    for line in sys.stdin:
        try:
            found: dict = answer(steps, lib, json.loads(line))
        except Exception as error:  # noqa: BLE001 - the other cases and libraries go on
            found = {
                "error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            }
        print(json.dumps(found), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
