"""`func.functionalize`: a function that writes to tensors, as one that does so only to its inputs, and only at the end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext

from ..autograd.versions import unsafe_preserve_version_counter
from ..batching.levels import rewrap, strip
from ..capture.higher_order.base import replaced
from ..capture.higher_order.subgraph import with_origins
from ..core import modes, tree
from ..core.modes import ambient
from ..core.node import UNTRACKED_VIEW, requires_grad
from ..core.tensor import INFERENCE_TENSOR, Tensor
from ..ops.system.dispatch import autograd_layer, dispatch
from ..ops.system.operator import Operator, find
from ..ops.system.overrides import TorchDispatchMode, call_dispatch
from .functionalize import Functionalization

REMOVE = ("mutations", "mutations_and_views")


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """See `func.functionalize`."""
    if remove not in REMOVE:
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their "
            "out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced with "
            "their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def pure(*args, **kwargs):
        given = [strip(t)[0] for t in tree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        versions = [t._counter[0] for t in given]
        mode, traced = Functionalization(), bool(ambient.dispatch_modes)
        with CopiedViews() if remove == "mutations_and_views" else nullcontext():
            with mode:
                out = func(*args, **kwargs)
            result = tree.tree_map_only(Tensor, lambda t: _settled(mode, t), out)
            written = [t for t in given if (state := mode.state(t)) is not None and state.writes]
            new = [current_value(mode, t) for t in written]
            recorded = any(requires_grad(t) for t in tree.tree_leaves(result) if isinstance(t, Tensor))
            others = _others(mode, given) if recorded or not traced else []
        for t, version in zip(given, versions, strict=True):  # all writes of the function are one in the end
            t._counter[0] = version
        for t, value in zip(written, new, strict=True):
            if mode.written(t):
                mode.forget(t)
            _put(t, value)
        for t, value in others:
            mode.forget(t)
            with unsafe_preserve_version_counter(t):
                _put(t, value)
        return result

    return pure


def _put(t: Tensor, value: Tensor) -> None:
    """Write a tensor without record, as the function did: one of inference mode in that mode."""
    with modes.masked(modes.GRAD, modes.INFERENCE if t._keys & INFERENCE_TENSOR else 0):
        t.copy_(value)


def _others(mode: Functionalization, given: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """What else was written, with its values: the function's own tensors, which gradients read when the function is over.

    A trace is told of them only if there are gradients, since all else reads values.
    """
    memories = [t._memory for t in given]
    states = [m.__dict__.get("written", {}).get(mode) for m in mode.memories if not any(m is g for g in memories)]
    return [(s.root, current_value(mode, s.root)) for s in states if s is not None and s.writes]


class CopiedViews(TorchDispatchMode):
    """Views become the operators that copy what they show."""

    def handle(self, op: Operator, args: tuple):
        if op.is_view and op.inplace_of is None:
            op = _copies(op)
            handled = call_dispatch(op, args) if ambient.mode & modes.DISPATCH else NotImplemented
            return handled if handled is not NotImplemented else dispatch(op, args)
        return autograd_layer(op, args)

    def higher_order(self, op, args: tuple, kwargs: dict):
        """An operator that takes functions, with views copied in these too."""
        functions = {p.index: _with_copied_views(args[p.index]) for p in op.parts(*args)}
        return op(*replaced(args, functions), **kwargs)


def _with_copied_views(f: Callable) -> Callable:
    f = with_origins(f)

    def run(*operands):
        with CopiedViews():
            return f(*operands)

    return run


@functools.cache
def _copies(view: Operator) -> Operator:
    return find(f"{view.name}_copy.{view.overload}")


def _settled(mode: Functionalization, t: Tensor) -> Tensor:
    """A result at the end. A vmap around the function stands above the mode, which knows the values underneath."""
    value, wraps = strip(t)
    current = current_value(mode, value)
    return t if current is value else rewrap(current, wraps)


def current_value(mode: Functionalization, t: Tensor) -> Tensor:
    """What a tensor of the function holds at the end, with the history that the function gave it."""
    with modes.masked(modes.GRAD, modes.BELOW_AUTOGRAD):
        value = mode.value(t)
    if value is t:
        return t
    return value.shallow(None if t._autograd is UNTRACKED_VIEW else t._autograd)  # it is a view of nothing
