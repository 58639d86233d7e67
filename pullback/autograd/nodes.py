"""Nodes by hand: what a node tells of itself, calling one, and small functions that put special nodes in a graph."""

from __future__ import annotations

from ..core.layers import extend
from ..core.node import Autograd, Node, as_leaf, edge_of, next_sequence
from ..core.tensor import Tensor


class InputMetadata:
    """What a node expects of one incoming gradient."""

    is_nested_tensor = is_cpp_nested_tensor = False

    def __init__(self, shape, dtype, device):
        self.shape, self.dtype, self.device = shape, dtype, device
        self.is_nested_tensor = any(getattr(s, "is_ragged", False) for s in shape)


def input_metadata(self: Node) -> list:
    """Metadata of the gradients that this node takes, in order."""
    return [InputMetadata(*spec) for spec in self.outputs]


def call_node(self: Node, *grads):
    """Run a node by hand on gradients of its outputs."""
    expected = len(self.outputs)
    if len(grads) != expected:
        raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
    for i, g in enumerate(grads):
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"expected Variable argument at position {i}, got {type(g).__name__}")
    results = self.run(list(grads))
    return results[0] if len(results) == 1 else tuple(results)


extend(Node, __name__, _input_metadata=property(input_metadata), __call__=call_node)


def insert(node: Node, tensors: tuple):
    """Aliases of tensors whose gradients pass through `node`; a single one for a single tensor. None stays None."""
    live = [t is not None and t.dtype.category >= 2 for t in tensors]
    node.edges = tuple(edge_of(t) if takes else None for t, takes in zip(tensors, live, strict=True))
    node.outputs = tuple(
        (t._array.shape, t.dtype, t.device) if takes else None for t, takes in zip(tensors, live, strict=True)
    )
    node.saved, node.sequence = [], next_sequence()
    recorded = any(node.edges)
    result = tuple(
        t.shallow(Autograd(True, (node, i)) if recorded else None) if takes else t
        for i, (t, takes) in enumerate(zip(tensors, live, strict=True))
    )
    return result[0] if len(result) == 1 else result


class UndefinedGrad(Node):
    """`UndefinedGrad()(x)`: x, whose gradient is undefined from here on."""

    def __call__(self, *tensors: Tensor):
        return insert(self, tensors)

    def run(self, grads: list) -> tuple:
        return (None,) * len(grads)

    def saved_state(self, differentiable: bool = False) -> dict:
        return {}


class Error(Node):
    """Raises its message when a gradient reaches it."""

    message = ""

    def run(self, grads: list) -> tuple:
        raise RuntimeError(self.message)

    def saved_state(self, differentiable: bool = False) -> dict:
        return {"message": self.message}


class DelayedError(Error):
    """`DelayedError(message, n)(x)`: x, whose backward raises."""

    def __init__(self, message: bytes | str, count: int = 1):
        self.message = message.decode() if isinstance(message, bytes) else message

    def __call__(self, *tensors: Tensor | None):
        return insert(self, tensors)


def delayed_error(message: str, tensors: tuple):
    """Results without history that raise `message` when they are differentiated."""
    node = Error()
    node.message = message
    return insert(node, tuple(_leaf(t) for t in tensors))


def _leaf(t: Tensor | None) -> Tensor | None:
    return as_leaf(t.detach()) if t is not None and t.dtype.category >= 2 else t
