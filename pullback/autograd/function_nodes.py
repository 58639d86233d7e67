"""Nodes that stand for nothing computed: one that raises when it is reached, one that stops gradients."""

from __future__ import annotations

from ..core.node import Autograd, Node, edge_of, next_sequence
from ..core.tensor import Tensor


class Error(Node):
    """Raises its message when a gradient reaches it."""

    message = ""

    def run(self, grads: list) -> tuple:
        raise RuntimeError(self.message)


class _Undefined(Node):
    """Sends no gradient on."""

    def run(self, grads: list) -> tuple:
        return (None,) * len(self.edges)


def _behind(node: Node, tensors: tuple, results: list) -> None:
    """Put a node between tensors and results."""
    node.edges = tuple(edge_of(t) if t is not None else None for t in tensors)
    node.outputs = tuple((r.array.shape, r.dtype, r.device) if r is not None else None for r in results)
    node.saved, node.sequence = [], next_sequence()
    for i, r in enumerate(results):
        if r is not None:
            r.autograd = Autograd(True, (node, i))


def delayed_error(message: str, tensors: tuple):
    """Aliases of tensors that raise `message` when they are differentiated; a single one for a single tensor."""
    leaves = tuple(t.detach().requires_grad_() if t is not None and t.dtype.category >= 2 else None for t in tensors)
    results = [t if leaf is None else leaf.shallow() for t, leaf in zip(tensors, leaves, strict=True)]
    node = Error()
    node.message = message
    _behind(node, leaves, [r if leaf is not None else None for r, leaf in zip(results, leaves, strict=True)])
    return tuple(results) if len(results) > 1 else results[0]


class DelayedError:
    """`DelayedError(message, count)(*tensors)`: see `delayed_error`."""

    def __init__(self, message: bytes | str, count: int) -> None:
        self.message = message.decode() if isinstance(message, bytes) else message

    def __call__(self, *tensors: Tensor | None):
        return delayed_error(self.message, tensors)


class UndefinedGrad:
    """`UndefinedGrad()(tensor)`: an alias that no gradient passes."""

    def __call__(self, *tensors: Tensor):
        results = [t.shallow() for t in tensors]
        _behind(_Undefined(), tensors, results)
        return tuple(results) if len(results) > 1 else results[0]
