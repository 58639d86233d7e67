"""Random programs and inputs for the laws: compositions of steps, and tensors in every layout.

A program is a list of names from `STEPS`, called one after the other; it is smooth almost everywhere, takes any shape and
gives a tensor. A layout says how the numbers of an input lie in memory, never which they are.
"""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.func import grad, jvp, vmap
from pullback.utils.checkpoint import checkpoint

EXAMPLES = int(os.environ.get("LAWS_EXAMPLES", "20"))
# The same examples each time, as elsewhere (see conftest.py), unless new ones are looked for.
bounded = settings(max_examples=EXAMPLES, deadline=None, derandomize=not os.environ.get("PULLBACK_SEARCH"))

WEIGHT = torch.linspace(-1.0, 1.0, 16, dtype=torch.float64).reshape(4, 4)


def _written(x):
    y = x.clone()
    y.mul_(x).add_(0.5)
    return y


def _part_written(x):
    y = x.sin().contiguous()
    y.view(-1)[:1].mul_(3)
    return y * x


def _constant(x):
    with torch.no_grad():
        c = x.cos()
    return x * c


def _inner_grad(x):
    return grad(lambda y: (y.sin() * y * x).sum())(x)


def _inner_constant_grad(x):
    with torch.no_grad():
        g = grad(lambda y: (y**3).sum())(x)
    return x * g


def _inner_jvp(x):
    return jvp(lambda y: y.sin() * x, (x,), (x.cos(),))[1]


def _inner_vmap(x):
    return vmap(lambda row: row.softmax(0) * row.sum())(x.reshape(1, -1)).reshape(x.shape)


class Cubed(torch.autograd.Function):
    """A custom function with every method that transforms ask for."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx, t):
        return 3 * t * ctx.saved_tensors[0] ** 2


STEPS = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "square": torch.square,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "gelu": F.gelu,
    "scale": lambda x: x * 1.5 - 0.25,
    "quotient": lambda x: x / (1 + x * x),
    "flat": lambda x: x.reshape(-1).cumsum(0).reshape(x.shape),
    "softmax": lambda x: x.reshape(-1).softmax(0).reshape(x.shape),
    "outer_sum": lambda x: x + x.sum(),
    "flip": lambda x: x.reshape(-1).flip(0).reshape(x.shape) * x,
    "join": lambda x: torch.cat([x.reshape(-1), x.sin().reshape(-1)])[: x.numel()].reshape(x.shape),
    "gather": lambda x: (
        x.reshape(-1)[torch.zeros(x.numel(), dtype=torch.int64)].reshape(x.shape) * x if x.numel() else x
    ),
    "product": lambda x: (x.reshape(-1, 1) * x.reshape(1, -1)).sum(1).reshape(x.shape),
    "norm": lambda x: x / (1 + torch.linalg.vector_norm(x) ** 2),
    "where": lambda x: torch.where(x > 0.1, x.sin(), x * x),
    "written": _written,
    "part_written": lambda x: _part_written(x) if x.numel() else x,
    "constant": _constant,
    "inner_grad": _inner_grad,
    "inner_constant_grad": _inner_constant_grad,
    "inner_jvp": _inner_jvp,
    "inner_vmap": lambda x: _inner_vmap(x) if x.numel() else x,
    "custom": lambda x: Cubed.apply(x),
}
RECOMPUTED = {"checkpoint": lambda x: checkpoint(lambda y: y.sin() * y, x, use_reentrant=False)}

LAYOUTS = {
    "contiguous": lambda x: x.clone(),
    "transposed": lambda x: x.t().contiguous().t() if x.ndim == 2 else x.clone(),
    "sliced": lambda x: x.new_zeros((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2].copy_(x) if x.ndim else x.clone(),
    "offset": lambda x: x.new_zeros(x.numel() + 3)[3:].copy_(x.reshape(-1)).view(x.shape),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x.clone(),
}
SHAPES = [(), (3,), (2, 3), (1, 4), (0,), (2, 0), (1, 2, 2, 2)]


def program(names: list[str]):
    """The function that calls these steps."""

    def run(x):
        for name in names:
            x = STEPS[name](x)
        return x

    return run


def numbers(shape: tuple, seed: int, layout: str = "contiguous"):
    generator = torch.Generator().manual_seed(seed)
    return LAYOUTS[layout](torch.randn(shape, dtype=torch.float64, generator=generator))


CONSTANTS = ("constant", "inner_constant_grad")  # `no_grad` is for reverse mode: tangents pass it
differentiable = st.lists(st.sampled_from(sorted(set(STEPS) - set(CONSTANTS))), min_size=1, max_size=4)
programs = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4)
inputs = st.tuples(st.sampled_from(SHAPES), st.integers(0, 5), st.sampled_from(sorted(LAYOUTS)))
