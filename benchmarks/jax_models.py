"""The workloads of `models.py` in plain JAX, each a whole training step with Adam under `jit`; run by an interpreter that has JAX.

`train.py --jax PYTHON` starts this file as a process of its own and asks it for one round after the other: a line with a name comes in, a line with the
seconds of the best of three steps goes out. Sizes are those of `models.py`; images have their channels last, as JAX's own layers lay them.

    python benchmarks/jax_models.py --threads 1 --cpu      then type names of workloads
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

jax: Any = None  # imported when the threads that it may use are known
jnp: Any = None
lax: Any = None
random = np.random.default_rng(0)


# ---- layers: parameters are made by one function and used by another
def weights(*shape: int, inputs: int | None = None) -> Any:
    bound = 1 / np.sqrt(inputs or shape[0])
    return jnp.asarray(random.uniform(-bound, bound, shape), jnp.float32)


def normal(*shape: int) -> Any:
    return jnp.asarray(random.standard_normal(shape), jnp.float32)


def labels(classes: int, *shape: int) -> Any:
    return jnp.asarray(random.integers(0, classes, shape))


def dense_of(inner: int, outer: int, bias: bool = True) -> dict:
    return {"w": weights(inner, outer)} | ({"b": weights(outer, inputs=inner)} if bias else {})


def dense(p: dict, x: Any) -> Any:
    return x @ p["w"] + p["b"] if "b" in p else x @ p["w"]


def norm_of(width: int) -> dict:
    return {"w": jnp.ones(width), "b": jnp.zeros(width)}


def layer_norm(p: dict, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["w"] + p["b"]


def conv_of(inner: int, outer: int, size: int, bias: bool = True) -> dict:
    inputs = inner * size * size
    return {"w": weights(size, size, inner, outer, inputs=inputs)} | (
        {"b": weights(outer, inputs=inputs)} if bias else {}
    )


LAYOUT = ("NHWC", "HWIO", "NHWC")


def conv(p: dict, x: Any, stride: int = 1, padding: int = 0) -> Any:
    y = lax.conv_general_dilated(x, p["w"], (stride, stride), ((padding, padding),) * 2, dimension_numbers=LAYOUT)
    return y + p["b"] if "b" in p else y


def deconv(p: dict, x: Any, stride: int, padding: int) -> Any:
    around = p["w"].shape[0] - 1 - padding
    y = lax.conv_transpose(x, p["w"], (stride, stride), ((around, around),) * 2, dimension_numbers=LAYOUT)
    return y + p["b"]


class Statistics:
    """Running means and variances: read in the order in which batch norms come, and moved."""

    def __init__(self, old: list):
        self.old, self.new = list(old), []

    def batch_norm(self, p: dict, x: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        before, count = self.old[len(self.new)], x.size // x.shape[-1]
        moved = variance * (count / (count - 1))
        self.new.append((before[0] * 0.9 + mean * 0.1, before[1] * 0.9 + moved * 0.1))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * p["w"] + p["b"]


def statistics_of(*widths: int) -> list:
    return [(jnp.zeros(n), jnp.ones(n)) for n in widths]


def max_pool(x: Any, size: int, stride: int, padding: int = 0) -> Any:
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), around)


def cross_entropy(logits: Any, wanted: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), wanted[:, None], 1).mean()


def logits_loss(x: Any, y: Any) -> Any:
    return jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x)))


def gelu(x: Any) -> Any:
    return jax.nn.gelu(x, approximate=False)


def attention(x: Any, heads: int, causal: bool) -> Any:
    b, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
    q, k, v = (a.reshape(b, t, heads, width // heads).transpose(0, 2, 1, 3) for a in jnp.split(x, 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width // heads)
    if causal:
        scores = jnp.where(np.tril(np.ones((t, t), bool)), scores, -jnp.inf)
    return (jax.nn.softmax(scores, -1) @ v).transpose(0, 2, 1, 3).reshape(b, t, width)


def block_of(width: int, inner: int) -> dict:
    return {
        "norm1": norm_of(width), "norm2": norm_of(width), "qkv": dense_of(width, 3 * width), "out": dense_of(width, width),
        "up": dense_of(width, inner), "down": dense_of(inner, width),
    }  # fmt: skip


def block(p: dict, x: Any, heads: int, causal: bool) -> Any:
    x = x + dense(p["out"], attention(dense(p["qkv"], layer_norm(p["norm1"], x)), heads, causal))
    return x + dense(p["down"], gelu(dense(p["up"], layer_norm(p["norm2"], x))))


# ---- workloads: (parameters, statistics, loss(parameters, statistics) -> (value, new statistics))
def pure(loss: Callable) -> Callable:
    """A loss that moves no statistics."""
    return lambda p, s: (loss(p), s)


def scalar_chain() -> tuple:
    def loss(w: Any) -> Any:
        for _ in range(50):
            w = jnp.sin(w * 1.01 + 0.1)
        return w

    return jnp.float32(0.3), [], pure(loss)


def pointwise() -> tuple:
    x = normal(1 << 22)
    return normal(1 << 22), [], pure(lambda w: (jnp.tanh(w * x) * jax.nn.sigmoid(x) + w).mean())


def norm_softmax() -> tuple:
    x = normal(1024, 512)
    return norm_of(512), [], pure(lambda p: (jax.nn.softmax(layer_norm(p, x), -1) * x).sum())


def mlp(width: int, batch: int, classes: int) -> tuple:
    p = [dense_of(width // 2, width), norm_of(width), dense_of(width, width), dense_of(width, classes)]
    x, y = normal(batch, width // 2), labels(classes, batch)

    def loss(p: list) -> Any:
        h = layer_norm(p[1], gelu(dense(p[0], x)))
        return cross_entropy(dense(p[3], jax.nn.relu(dense(p[2], h))), y)

    return p, [], pure(loss)


def transformer(
    layers: int, width: int, length: int, batch: int, causal: bool, words: int = 512, heads: int = 4
) -> tuple:
    p = {
        "tokens": normal(words, width), "places": normal(length, width), "blocks": [block_of(width, 4 * width) for _ in range(layers)],
        "norm": norm_of(width), "head": dense_of(width, words, False),
    }  # fmt: skip
    x, y = labels(words, batch, length), labels(words, batch, length)

    def loss(p: dict) -> Any:
        h = p["tokens"][x] + p["places"]
        for q in p["blocks"]:
            h = block(q, h, heads, causal)
        return cross_entropy(dense(p["head"], layer_norm(p["norm"], h)).reshape(-1, words), y.reshape(-1))

    return p, [], pure(loss)


def lstm_cell(p: dict, carry: tuple, x: Any) -> tuple:
    h, c = carry
    i, f, g, o = jnp.split(x + h @ p["w"] + p["b"], 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def gru_cell(p: dict, carry: tuple, x: Any) -> tuple:
    (h,) = carry
    (r, z, n), (sr, sz, sn) = jnp.split(x, 3, -1), jnp.split(h @ p["w"] + p["b"], 3, -1)
    r, z = jax.nn.sigmoid(r + sr), jax.nn.sigmoid(z + sz)
    n = jnp.tanh(n + r * sn)
    h = n + z * (h - n)
    return (h,), h


def recurrent(kind: str, inner: int, layers: int, batch: int, length: int) -> tuple:
    gates, cell, states = (4, lstm_cell, 2) if kind == "LSTM" else (3, gru_cell, 1)
    sizes = [64, *[inner] * (layers - 1)]
    p = {
        "layers": [
            {"x": {"w": weights(n, gates * inner, inputs=inner), "b": weights(gates * inner, inputs=inner)},
             "w": weights(inner, gates * inner), "b": weights(gates * inner, inputs=inner)} for n in sizes
        ],
        "out": dense_of(inner, 10),
    }  # fmt: skip
    x, y = normal(length, batch, 64), labels(10, batch)

    def loss(p: dict) -> Any:
        h = x
        for q in p["layers"]:
            start = tuple(jnp.zeros((batch, inner)) for _ in range(states))
            _, h = lax.scan(partial(cell, q), start, dense(q["x"], h))
        return cross_entropy(dense(p["out"], h[-1]), y)

    return p, [], pure(loss)


def convnet() -> tuple:
    p = [conv_of(3, 32, 3), norm_of(32), conv_of(32, 64, 3), norm_of(64), dense_of(64 * 64, 10)]
    x, y = normal(32, 32, 32, 3), labels(10, 32)

    def loss(p: list, old: list) -> tuple:
        s = Statistics(old)
        h = max_pool(jax.nn.relu(s.batch_norm(p[1], conv(p[0], x, 1, 1))), 2, 2)
        h = max_pool(jax.nn.relu(s.batch_norm(p[3], conv(p[2], h, 1, 1))), 2, 2)
        return cross_entropy(dense(p[4], h.reshape(32, -1)), y), s.new

    return p, statistics_of(32, 64), loss


STAGES = [
    (64, 64, 1),
    (64, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    (512, 512, 1),
]


def resnet18() -> tuple:
    def pair(inner: int, outer: int, size: int) -> tuple:
        return conv_of(inner, outer, size, False), norm_of(outer)

    blocks = [(pair(a, b, 3), pair(b, b, 3), *([pair(a, b, 1)] if s > 1 else [])) for a, b, s in STAGES]
    p = {"first": pair(3, 64, 7), "blocks": blocks, "head": dense_of(512, 10)}
    widths = [64, *[b for a, b, s in STAGES for _ in range(3 if s > 1 else 2)]]
    x, y = normal(8, 64, 64, 3), labels(10, 8)

    def loss(p: dict, old: list) -> tuple:
        s = Statistics(old)
        h = jax.nn.relu(s.batch_norm(p["first"][1], conv(p["first"][0], x, 2, 3)))
        h = max_pool(h, 3, 2, 1)
        for (_, _, stride), (first, second, *side) in zip(STAGES, p["blocks"], strict=True):
            inner = jax.nn.relu(s.batch_norm(first[1], conv(first[0], h, stride, 1)))
            inner = s.batch_norm(second[1], conv(second[0], inner, 1, 1))
            for q in side:
                h = s.batch_norm(q[1], conv(q[0], h, stride, 0))
            h = jax.nn.relu(inner + h)
        return cross_entropy(dense(p["head"], h.mean((1, 2))), y), s.new

    return p, statistics_of(*widths), loss


def vit_tiny() -> tuple:
    p = {
        "patches": conv_of(3, 192, 8), "places": normal(1, 64, 192) * 0.02, "blocks": [block_of(192, 768) for _ in range(4)],
        "head": dense_of(192, 10),
    }  # fmt: skip
    x, y = normal(8, 64, 64, 3), labels(10, 8)

    def loss(p: dict) -> Any:
        h = conv(p["patches"], x, 8).reshape(8, 64, 192) + p["places"]
        for q in p["blocks"]:
            h = block(q, h, 3, False)
        return cross_entropy(dense(p["head"], h.mean(1)), y)

    return p, [], pure(loss)


def vae() -> tuple:
    p = [dense_of(784, 400), dense_of(400, 40), dense_of(20, 400), dense_of(400, 784)]
    x, noise = jnp.asarray(random.random((128, 784)), jnp.float32), normal(128, 20)

    def loss(p: list) -> Any:
        mean, spread = jnp.split(dense(p[1], jax.nn.relu(dense(p[0], x))), 2, -1)
        seen = dense(p[3], jax.nn.relu(dense(p[2], mean + noise * jnp.exp(spread * 0.5))))
        return logits_loss(seen, x).sum() - 0.5 * (1 + spread - jnp.square(mean) - jnp.exp(spread)).sum()

    return p, [], pure(loss)


def dcgan() -> tuple:
    makes, judges = (
        [(64, 128, 1, 0), (128, 64, 2, 1), (64, 32, 2, 1), (32, 3, 2, 1)],
        [(3, 32), (32, 64), (64, 128), (128, 1)],
    )
    p = {
        "make": [(conv_of(a, b, 4), norm_of(b)) for a, b, _, _ in makes[:-1]], "last": conv_of(32, 3, 4),
        "judge": [(conv_of(a, b, 4), norm_of(b)) for a, b in judges[1:-1]], "first": conv_of(3, 32, 4), "end": conv_of(128, 1, 4),
    }  # fmt: skip
    noise, ones = normal(16, 1, 1, 64), jnp.ones((16, 1))

    def loss(p: dict, old: list) -> tuple:
        s, h = Statistics(old), noise
        for (c, n), (_, _, stride, padding) in zip(p["make"], makes, strict=False):
            h = jax.nn.relu(s.batch_norm(n, deconv(c, h, stride, padding)))
        h = jax.nn.leaky_relu(conv(p["first"], jnp.tanh(deconv(p["last"], h, 2, 1)), 2, 1), 0.2)
        for c, n in p["judge"]:
            h = jax.nn.leaky_relu(s.batch_norm(n, conv(c, h, 2, 1)), 0.2)
        return logits_loss(conv(p["end"], h).reshape(16, 1), ones).mean(), s.new

    return p, statistics_of(128, 64, 32, 64, 128), loss


WORKLOADS: dict[str, Callable[[], tuple]] = {
    "scalar chain": scalar_chain,
    "pointwise 4M": pointwise,
    "norm, softmax": norm_softmax,
    "small MLP": lambda: mlp(128, 32, 10),
    "large MLP": lambda: mlp(2048, 128, 1000),
    "GPT 4x128": lambda: transformer(4, 128, 64, 8, True),
    "LSTM": lambda: recurrent("LSTM", 64, 1, 32, 32),
    "convnet": convnet,
    "ResNet-18": resnet18,
    "ViT-tiny": vit_tiny,
    "BERT-small": lambda: transformer(4, 256, 64, 8, False),
    "VAE": vae,
    "GRU of 2 layers": lambda: recurrent("GRU", 128, 2, 16, 32),
    "DCGAN": dcgan,
}


# ---- steps
def adam(p: Any, g: Any, m: Any, v: Any, t: Any) -> tuple:
    size = 1e-4 / (1 - 0.9**t)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - size * m / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v


def stepping(name: str) -> Callable[[], None]:
    """One training step of a workload: parameters and their state are given away to it, and come back new."""
    parameters, statistics, loss = WORKLOADS[name]()

    def step(p: Any, m: Any, v: Any, s: Any, t: Any) -> tuple:
        (value, s), g = jax.value_and_grad(loss, has_aux=True)(p, s)
        leaves, spec = jax.tree.flatten(p)
        moved = [adam(*row, t) for row in zip(leaves, *map(jax.tree.leaves, (g, m, v)), strict=True)]
        p, m, v = (jax.tree.unflatten(spec, [row[k] for row in moved]) for k in range(3))
        return value, (p, m, v, s, t + 1)

    run = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    zeros = partial(jax.tree.map, jnp.zeros_like)
    state = [(parameters, zeros(parameters), zeros(parameters), statistics, jnp.float32(1))]

    def once() -> None:
        value, state[0] = run(*state[0])
        jax.block_until_ready((value, state[0]))

    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.threads and hasattr(os, "sched_setaffinity"):  # XLA has as many threads as it may use processors
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    global jax, jnp, lax
    import jax
    import jax.lax as lax
    import jax.numpy as jnp

    clock = time.process_time if options.cpu else time.perf_counter
    made: dict[str, Callable[[], None]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made.clear()  # one workload at a time
            made[name] = stepping(name)
            made[name](), made[name]()
        best = float("inf")
        for _ in range(3):
            begun = clock()
            made[name]()
            best = min(best, clock() - begun)
        print(best, flush=True)


if __name__ == "__main__":
    main()
