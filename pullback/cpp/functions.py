"""`torch::autograd::Function<T>` of the C++ headers, as Python functions.

In: the name of T, its forward and backward as callables, whether it may be traced. Out: a `Function` class; `apply_function`
runs it. Its node is the C++ context: `saved_data` is a plain dict on it, so that what C++ keeps for a backward is lifted
by compiled autograd like what a Python function keeps. A backward that is not traceable stays a call.
"""

from __future__ import annotations

from collections.abc import Callable

from ..autograd.function import Function, FunctionMeta
from ..core import modes
from ..core.modes import ambient
from ..core.tensor import Tensor


class CppFunction(Function):
    """Base of functions whose forward and backward are C++. `entry`, `exit`: those, as they take arguments."""

    computes_only = False
    entry: Callable  # (node, tensors and other arguments, lengths of the lists among them) -> outputs
    exit: Callable  # (node, gradients) -> gradients


class CppNode:
    """What the node of a C++ function has besides a Python function's: lists instead of arguments, and `saved_data`."""

    saved_data: dict = {}

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"

    def save_tensors(self, tensors: list) -> None:
        self.save_for_backward(*tensors)

    def mark_dirty_tensors(self, tensors: list[Tensor]) -> None:
        self.mark_dirty(*tensors)

    def mark_fixed_tensors(self, tensors: list[Tensor]) -> None:
        self.mark_non_differentiable(*tensors)

    def keep_data(self, data: dict) -> None:
        """Keep what C++ put into the context's map, by name: the map itself has no order."""
        if data:
            self.saved_data = dict(sorted(data.items()))
        else:
            self.__dict__.pop("saved_data", None)

    def needs_gradient(self, number: int) -> bool:
        """Whether the gradient of a tensor among the inputs, counted without the rest, is wanted: by the backward that runs,
        if one does."""
        edge, needed = self.edges[number], ambient.tasks[-1].needed if ambient.tasks else None
        if edge is None or edge is True:  # in the graph of a backward, an edge says only that it is wanted
            return edge is True
        return needed is None or edge[0] in needed


def declare_function(name: str, entry: Callable, exit: Callable, traceable: bool) -> type[CppFunction]:
    """The Python class of a C++ function."""

    def forward(ctx, *args, lengths=()):
        return entry(ctx, args, lengths)

    def backward(ctx, *grads):
        return tuple(exit(ctx, grads))

    body = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward),
        "computes_only": traceable,
        "__module__": __name__,
    }
    result = FunctionMeta(name, (CppFunction,), body)
    node = result._backward_cls
    node.__name__ = node.__qualname__ = f"CppNode<{name}>"
    for attribute in (
        "name",
        "save_tensors",
        "mark_dirty_tensors",
        "mark_fixed_tensors",
        "keep_data",
        "needs_gradient",
    ):
        setattr(node, attribute, getattr(CppNode, attribute))
    node.saved_data, node.varying = {}, ("saved_data",)
    return result


def apply_function(function: type[CppFunction], args: tuple, lengths: list[int]):
    """Run a C++ function on arguments with the tensors of lists one by one."""
    if ambient.mode & modes.CAPTURE and not function.computes_only:
        ambient.captures[-1].refuse(f"it calls the C++ function {function.__name__}, which is not traceable")
    return function.apply(*args, lengths=tuple(lengths)) if lengths else function.apply(*args)
