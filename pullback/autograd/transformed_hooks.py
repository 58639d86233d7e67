"""Hooks that are registered inside function transforms.

A hook on a tensor that a reverse-mode transform made runs in the backward of that transform alone: an outer backward that
comes through the same place in the graph is about another gradient. Inside `vmap` a hook sees the gradient of one
example, as the function saw the tensor, and not that of the batch underneath.
"""

from __future__ import annotations

import functools

from ..batching.levels import lower, raise_, strip
from ..core import modes
from ..core.modes import ambient
from ..core.node import AccumulateGrad, Node
from ..core.tensor import Tensor


def hook_of_tensor(hook, tensor: Tensor, node: Node):
    """A tensor hook as it is to be kept on a node (or leaf) of the graph."""
    wraps, levels = strip(tensor)[1], ambient.transforms
    return hook_of_node(_per_example(hook, wraps, levels) if wraps else hook, node)


def hook_of_node(hook, node: Node):
    """A node's hook as it is to be kept: bound to the innermost open transform that the node belongs to."""
    level = next((level for level in reversed(ambient.reverse_levels) if _belongs(node, level)), None)
    if level is None:
        return hook

    @functools.wraps(hook)
    def within_level(*grads):
        levels = ambient.reverse_levels
        return hook(*grads) if levels and levels[-1] is level else None

    return within_level


def _belongs(node: Node, level) -> bool:
    if isinstance(node, AccumulateGrad):
        return any(node.variable is t for t in level.tracked)
    return node.sequence >= level.start


class inside(modes.other_stack):
    """Some levels are the innermost ones for a block."""

    name, bit = "transforms", modes.TRANSFORM

    def __init__(self, levels: list):
        self.levels = levels

    def __enter__(self) -> None:
        self.replace([*self.levels, *(t for t in ambient.transforms if t not in self.levels)])


def _per_example(hook, wraps: list, levels: list):
    @functools.wraps(hook)
    def of_example(grad):
        with inside(levels):
            result = hook(raise_(grad, wraps, levels))
            return None if result is None else lower(result, wraps, levels)

    return of_example
