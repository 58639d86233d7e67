"""Nodes by hand: what a node tells of itself, calling one, and small functions that put special nodes in a graph."""

from __future__ import annotations

from ..core.node import Autograd, Node, edge_of, next_sequence
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


Node._input_metadata = property(input_metadata)
Node.__call__ = call_node


class _PassThrough(Node):
    """Gradients go on as they came."""

    __slots__ = ()

    def run(self, grads: list) -> tuple:
        return tuple(grads)

    def release(self) -> None:
        """Nothing is saved here."""


class UndefinedGradBackward(_PassThrough):
    """Every gradient that passes becomes undefined."""

    __slots__ = ()

    def run(self, grads: list) -> tuple:
        return (None,) * len(grads)


class Error(_PassThrough):
    """A gradient that passes raises."""

    __slots__ = ("message",)

    def run(self, grads: list) -> tuple:
        raise RuntimeError(self.message)


def insert(node: Node, tensors: tuple) -> tuple:
    """Aliases of tensors whose gradients pass through `node`."""
    node.edges = tuple(edge_of(t) for t in tensors)
    node.outputs = tuple((t.array.shape, t.dtype, t.device) for t in tensors)
    node.saved, node.sequence = [], next_sequence()
    return tuple(t.shallow(Autograd(True, (node, i)) if any(node.edges) else None) for i, t in enumerate(tensors))


class UndefinedGrad:
    """`UndefinedGrad()(x)`: x, whose gradient is undefined."""

    def __call__(self, *tensors):
        made = insert(UndefinedGradBackward(), tensors)
        return made[0] if len(made) == 1 else made


class DelayedError:
    """`DelayedError(message, n)(x)`: x, whose backward raises."""

    def __init__(self, message: str, count: int = 1):
        self.message, self.count = message, count

    def __call__(self, *tensors):
        node = Error()
        node.message = self.message
        made = insert(node, tensors)
        return made[0] if len(made) == 1 else made
