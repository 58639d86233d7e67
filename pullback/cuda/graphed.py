"""`make_graphed_callables`: functions and modules whose forward and backward are replays of CUDA graphs.

In: callables and sample arguments. Out: callables of the same signature. Arguments are copied into the tensors that were captured
on, results are given out as they lie there: those of one call are overwritten by the next.

What always holds: forwards are captured in order and backwards in the reverse order, on one pool, so that graphs share memory only
where their replays cannot meet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..autograd.function import Function, once_differentiable
from ..core import tree
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import graphs


class Graphed:
    """One callable: its inputs, its parameters after them, and the two graphs."""

    def __init__(self, function: Any, sample_args: tuple):
        self.function, self.args = function, sample_args
        flat = tree.tree_leaves(sample_args)
        if not all(isinstance(a, Tensor) for a in flat):
            raise TypeError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )
        parameters = list(function.parameters()) if is_module(function) else []
        self.inputs: list[Tensor] = [*flat, *parameters]
        self.count = len(flat)
        self.results: list[Tensor] = []
        self.grads: list[Tensor | None] = []

    def warm_up(self, times: int, allow_unused: bool) -> None:
        for _ in range(times):
            outs = tree.tree_leaves(self.function(*self.args))
            self.backward(outs, [_ones(o) for o in outs if o.requires_grad], allow_unused)

    def backward(self, outs: list, gradients: list, allow_unused: bool) -> list[Tensor | None]:
        wanted = [i for i in self.inputs if i.requires_grad]
        sources = [o for o in outs if o.requires_grad]
        if not wanted or not sources:
            return []
        return list(grad(sources, wanted, gradients, allow_unused=allow_unused))

    def capture_forward(self, pool) -> None:
        out, self.forward = graphs.captured(lambda: self.function(*self.args), pool)
        self.results, self.shape = tree.tree_flatten(out)

    def capture_backward(self, pool, allow_unused: bool) -> None:
        self.gradients = [_ones(o) if o.requires_grad else None for o in self.results]
        used = [g for g in self.gradients if g is not None]
        found, self.replay_backward = graphs.captured(lambda: self.backward(self.results, used, allow_unused), pool)
        by_place = iter(found)
        self.grads = [next(by_place) if i.requires_grad and found else None for i in self.inputs]

    def __call__(self, *args: Any) -> Any:
        given = tree.tree_leaves(args)
        outs = _Replayed.apply(self, *given, *self.inputs[self.count :])
        return tree.tree_unflatten(list(outs), self.shape)


class _Replayed(Function):
    """A call of a graphed function; its backward is the other graph."""

    @staticmethod
    def forward(ctx, graphed: Graphed, *inputs):
        ctx.graphed = graphed
        for static, given in zip(graphed.inputs[: graphed.count], inputs, strict=False):
            if static.data_ptr() != given.data_ptr():
                static.detach().copy_(given)
        graphed.forward()
        return tuple(r.detach() for r in graphed.results)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        graphed = ctx.graphed
        for static, given in zip(graphed.gradients, gradients, strict=True):
            if static is not None and given is not None and static.data_ptr() != given.data_ptr():
                static.copy_(given)
        graphed.replay_backward()
        return (None, *[None if g is None else g.detach() for g in graphed.grads])


def is_module(function: Any) -> bool:
    """Whether a callable has parameters and a mode, as modules have."""
    return callable(getattr(function, "parameters", None)) and isinstance(getattr(function, "training", None), bool)


def _ones(t: Tensor) -> Tensor:
    return public("torch", "ones_like")(t, requires_grad=False)


def make_graphed_callables(
    callables: Callable | tuple,
    sample_args: tuple,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: graphs.Handle | None = None,
):
    """Callables as CUDA graphs; see the module's docstring. Modules keep their state and get another `forward`."""
    single = not isinstance(callables, tuple)
    functions: tuple = (callables,) if single else callables  # type: ignore[assignment]
    samples: Sequence[tuple] = (sample_args,) if single else sample_args
    for f in functions:
        if is_module(f) and (f._backward_hooks or f._forward_hooks or f._forward_pre_hooks):
            raise RuntimeError(
                "Modules must not have hooks registered at the time they are passed. However, registering hooks on modules "
                "after passing them through make_graphed_callables is allowed."
            )
    all_graphed = [Graphed(f, s) for f, s in zip(functions, samples, strict=True)]
    for g in all_graphed:
        graphs.side_stream(functools.partial(g.warm_up, num_warmup_iters, allow_unused_input))
    handle = pool or graphs.new_handle()
    for g in all_graphed:
        g.capture_forward(handle)
    for g in reversed(all_graphed):
        g.capture_backward(handle, allow_unused_input)
    result = tuple(_replaced(f, g) for f, g in zip(functions, all_graphed, strict=True))
    return result[0] if single else result


def _replaced(function: Any, graphed: Graphed) -> Callable:
    """The callable that is given out: a module with another `forward`, which falls back where its mode is not the captured one."""
    if not is_module(function):
        return graphed
    training, before = function.training, function.forward

    def forward(*args):
        return graphed(*args) if function.training is training else before(*args)

    graphed.function = before
    function.forward = forward
    return function
