"""Hooks of a backward: each sees `__torch_function__` as it was outside, and what it returns is checked."""

from __future__ import annotations

from ..core import modes
from ..core.modes import ambient
from ..core.node import Node
from ..core.tensor import Tensor


class users_code:
    """Inside a backward, code of the user's (hooks, custom functions) sees `__torch_function__` as it was outside."""

    def __enter__(self) -> None:
        self.inside = ambient.function_disabled, ambient.mode & modes.FUNCTION
        if ambient.tasks:
            ambient.function_disabled, listening = ambient.tasks[-1].overrides
            ambient.change(0, listening)

    def __exit__(self, *exc) -> None:
        ambient.function_disabled, listening = self.inside
        ambient.change(modes.FUNCTION, listening)


def run_tensor_hooks(node: Node, gs: list) -> list:
    """Hooks of a node's output tensors, each on its gradient; then gradients that are to be retained."""
    by_number = node.tensor_pre_hooks
    retained = node.retain_grad_hooks
    if not by_number and not retained:
        return gs
    gs = list(gs)
    for number, hooks in list((by_number or {}).items()):
        if gs[number] is None and node.of_many_calls:
            continue
        for hook in list(hooks.values()):
            with users_code():
                result = hook(gs[number])
            gs[number] = checked(result, gs[number], hook)
    for number, keep in list((retained or {}).items()):
        if gs[number] is not None:
            gs[number] = keep(gs[number])
    return gs


def checked(result, g, hook):
    """What a tensor hook returned, if it may stand for the gradient."""
    if result is None:
        return g
    if not isinstance(result, Tensor):
        raise TypeError(
            f"expected Variable, but hook returned '{type(result).__name__}'"
            if g is not None
            else "expected hook to return a Tensor or None"
        )
    if g is not None and (result.shape != g.shape or result.dtype is not g.dtype or result.device is not g.device):
        what = "type" if result.dtype is not g.dtype else "size" if result.shape != g.shape else "device"
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the {what} of value")
    return result


def run_pre_hooks(node: Node, gs: list) -> list:
    """Node pre-hooks: they see and may replace all gradients that arrived."""
    for hook in list((node.pre_hooks or {}).values()):
        with users_code():
            result = hook(tuple(gs))
        if result is not None:
            gs = list(result) if isinstance(result, (tuple, list)) else [result]
    return gs


def run_post_hooks(node: Node, results, gs: list):
    """Node post-hooks: they see gradients of inputs and outputs, and may replace the former."""
    for hook in list(node.post_hooks.values()):
        with users_code():
            result = hook(tuple(results), tuple(gs))
        if result is not None:
            result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
            if len(result) != len(results):
                raise RuntimeError(
                    f"hook has returned an incorrect number of values (got {len(result)}, but expected {len(results)})"
                )
            results = result
    return results


def run_late_hooks(node: Node, results):
    """Node post-hooks that came while the node ran: they see no gradients of its outputs."""
    return run_post_hooks(node, results, [None] * len(node.outputs)) if node.post_hooks else results
