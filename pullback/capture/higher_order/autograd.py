"""Gradients of an operator that takes functions, where something traces: one operator forward, one backward.

`recorded(forward, backward, operands)` runs `forward(operands)` below autograd and hangs one node on its results, whose
backward is `backward(operands, gradients)`. Both are calls of higher-order operators, so graphs show one node each, and
gradients of gradients are a call's gradients again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...autograd.function import Function
from ...core import tree
from ...core.node import requires_grad
from ...core.tensor import Tensor


class HigherOrderFunction(Function):
    """The node of a call."""

    @staticmethod
    def forward(ctx, forward: Callable, backward: Callable, kept: list, *operands):
        out, spec = tree.tree_flatten(forward(operands))
        kept.append(spec)
        ctx.pull = backward
        ctx.numbers = [None if isinstance(v, Tensor) else v for v in operands]
        ctx.save_for_backward(*[v for v in operands if isinstance(v, Tensor)])
        ctx.floating = [is_floating(t) for t in out]
        ctx.mark_non_differentiable(*[t for t in out if isinstance(t, Tensor) and not is_floating(t)])
        return tuple(out)

    @staticmethod
    def backward(ctx, *gs):
        saved = iter(ctx.saved_tensors)
        operands = [next(saved) if v is None else v for v in ctx.numbers]
        gs = [g for g, floating in zip(gs, ctx.floating, strict=True) if floating]
        wanted = ctx.needs_input_grad[3:]
        result = iter(ctx.pull(operands, gs))
        return (None, None, None, *[next(result) if want else None for want in wanted])


def recorded(forward: Callable, backward: Callable, operands: Sequence):
    """See the module's docstring. `backward` gives the gradients of those operands that want one, in order."""
    kept: list = []
    out = HigherOrderFunction.apply(forward, backward, kept, *operands)
    return tree.tree_unflatten(list(out), kept[0])


def is_floating(t) -> bool:
    return isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)


def wanted_of(operands: Sequence) -> list[bool]:
    """Which operands want a gradient."""
    return [isinstance(t, Tensor) and requires_grad(t) for t in operands]
