"""One node for a call on a list of tensors: the nodes of its elements, side by side.

In: the results of an operator of `foreach`, each recorded by the element-wise operator that made it. Out: the same
results as outputs of one node, named as PyTorch names it. What always holds: a gradient goes through the element's own
node, so it is that of the loop; `_saved_NAME` is the number or list given, or what the elements' nodes keep.
"""

from __future__ import annotations

from functools import cache

from ...core import modes
from ...core.modes import ambient
from ...core.node import Node, next_sequence

# Overloads whose derivative PyTorch writes out; the names of all others end in that of the overload.
_WRITTEN = {
    ("maximum", "Scalar"): "0", ("maximum", "ScalarList"): "1", ("minimum", "Scalar"): "0",
    ("minimum", "ScalarList"): "1", ("div", "List"): "0", ("pow", "List"): "0", ("pow", "ScalarList"): "1",
    ("pow", "ScalarAndTensor"): "2", ("norm", "Scalar"): "0",
}  # fmt: skip
_NUMBERED = {"Scalar": ("add", "sub", "mul", "div"), "List": ("clamp_min", "clamp_max", "lerp")}


class ForeachNode(Node):
    """The nodes of the elements as one: outputs in order, edges one after the other."""

    __slots__ = ("elements", "given")

    def run(self, grads: list) -> list:
        result: list = []
        for node, g in zip(self.elements, grads, strict=True):
            if node is not None:
                result += node.run([g])
        return result

    def run_for(self, grads: list, edges: tuple) -> list:
        result: list = []
        for node, g in zip(self.elements, grads, strict=True):
            if node is not None:
                result += node.run_for([g], edges[len(result) : len(result) + len(node.edges)])
        return result

    def saved_state(self, differentiable: bool = False) -> dict:
        return {"elements": self.elements}

    def release(self) -> None:
        for node in self.elements:
            if node is not None:
                node.release()

    def __getattr__(self, name: str):
        if not name.startswith("_saved_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        short = name.removeprefix("_saved_")
        return self.given[short] if short in self.given else [n and getattr(n, name) for n in self.elements]


@cache
def node_class(name: str, overload: str) -> type:
    """The class of one overload's nodes: `ForeachMaximumBackward1`."""
    camel = "".join(part.title() for part in name.split("_"))
    number = _WRITTEN.get((name, overload))
    if number is None:
        group = "Scalar" if overload.startswith("Scalar") else overload
        number = f"{int(name in _NUMBERED.get(group, ()))}{overload}"
    return type(Node)(f"Foreach{camel}Backward{number}", (ForeachNode,), {"__slots__": ()})


def join(name: str, overload: str, results: tuple, given: dict) -> tuple:
    """Hang results that were recorded one by one on one node; `given`: the arguments that are no tensors, by name."""
    if not ambient.mode & modes.GRAD or ambient.mode & (modes.TRANSFORM | modes.FORWARD):
        return results
    edges = [None if r._autograd is None else r._autograd.edge for r in results]
    if not any(edges):
        return results
    node = object.__new__(node_class(name, overload))
    node.elements = [None if e is None else e[0] for e in edges]
    node.given = given
    node.edges = tuple([e for n in node.elements if n is not None for e in n.edges])
    node.outputs = tuple([(r._array.shape, r.dtype, r.device) for r in results])
    node.saved, node.sequence = [], next_sequence()
    node.creation_stack = next((n.creation_stack for n in node.elements if n is not None), None)
    for i, (r, e) in enumerate(zip(results, edges, strict=True)):
        if e is not None:
            r._autograd.edge = (node, i)
    return results
