"""Convolutions of a graph on a CUDA device in channels-last order: what libraries convolve in without turning every operand around.

In: a captured graph. Out: the same graph, with the inputs of its convolutions turned once, where the first of them is met; results
of operators follow their inputs, so what lies between stays turned. Outputs that were row-major are turned back.

What always holds: a turned graph runs, on tensors without data, or it is left as it was (a view may need row-major memory). Graphs
that name memory by strides are not touched.
"""

from __future__ import annotations

from ...autograd.calls import grad
from ...core.device import channels_last, contiguous_format
from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...graph import GraphModule
from ...graph.node import Node
from ...ops.system.operator import Operator, find
from ..trace.program import WholeCall

FEWEST = 2  # convolutions of a graph that is worth it
CONVOLUTIONS = ("conv2d", "convolution")


class Turned:
    """The nodes that were put into a graph."""

    def __init__(self, module: GraphModule):
        self.module = module
        self.nodes: list[Node] = []

    def turn(self, node: Node, before: Node, memory_format) -> Node:
        with self.module.graph.inserting_before(before):
            self.nodes.append(
                self.module.graph.call_function(find("contiguous.default"), (node,), {"memory_format": memory_format})
            )
        return self.nodes[-1]

    def undo(self) -> None:
        for node in reversed(self.nodes):
            node.replace_all_uses_with(node.args[0])
            self.module.graph.erase_node(node)
        self.module.recompile()


def turned(module: GraphModule, device: str = "cuda") -> Turned | None:
    """The graph with its convolutions in channels-last order; None where nothing was done."""
    nodes = list(module.graph.nodes)
    found = [n for n in nodes if _convolves(n, device)]
    if len(found) < FEWEST or any(_names_memory(n) for n in nodes):
        return None
    result = Turned(module)
    for node in found:
        source = node.args[0]
        assert isinstance(source, Node), "asked of every convolution"
        node.replace_input_with(source, result.turn(source, node, channels_last))
    output = module.graph.output_node()
    for node in output.all_input_nodes:
        value = node.meta.get("val")
        if node.op == "call_function" and isinstance(value, Tensor) and value.ndim == 4 and value.is_contiguous():
            output.replace_input_with(node, result.turn(node, output, contiguous_format))
    module.recompile()
    if _runs(module):
        return result
    result.undo()
    return None


def _runs(module: GraphModule) -> bool:
    """Whether the graph runs on copies of the tensors without data that it was captured with."""
    given = [n for n in module.graph.nodes if n.op == "placeholder"]
    values, asked = [n.meta.get("val") for n in given], _asked(module)
    try:
        module.forward(
            *[_copy(v, n in asked) if isinstance(v, Tensor) else v for n, v in zip(given, values, strict=True)]
        )
    except Exception:  # whatever is wrong with it, and not with the graph as it was, is a reason not to turn it
        return False
    return True


def _asked(module: GraphModule) -> set[Node]:
    """The inputs that the graph itself asks gradients of."""
    calls = [n for n in module.graph.nodes if isinstance(n.target, WholeCall) and n.target.function is grad]
    return {i for n in calls for i in n.all_input_nodes if i.op == "placeholder"}


def _copy(t: Tensor, asked: bool) -> Tensor:
    """Another tensor without data; `asked`: gradients of it are asked for."""
    with no_grad():
        result = t.clone()
    return result.requires_grad_() if asked else result


def _convolves(node: Node, device: str) -> bool:
    """Whether a node is a convolution of images, of all channels together, on a device."""
    op, value = node.target, node.meta.get("val")
    if node.op != "call_function" or not isinstance(op, Operator) or op.name not in CONVOLUTIONS:
        return False
    if (
        not isinstance(value, Tensor)
        or value.ndim != 4
        or value.device.type != device
        or not isinstance(node.args[0], Node)
    ):
        return False
    args = dict(zip([a.name for a in op.schema.arguments], op.bind(node.args, dict(node.kwargs)), strict=True))
    return args["groups"] == 1 and not args.get("transposed", False)


def _names_memory(node: Node) -> bool:
    op = node.target
    return isinstance(op, Operator) and bool(getattr(op.declared, "names_memory", False))
