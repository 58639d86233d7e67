"""Log-softmax of a CUDA device, as what it is made of.

In: a joint graph. It is changed where a backward reads the result of a log-softmax in single or double precision: the result becomes the
differences from the greatest element and the logarithm of the sum, each a node. These two numbers of a row can be saved with what the rows
were made of (the result of a product in half precision, say), so that the result itself need be written by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core import dtype as dtypes
from ..core.checkpointing import CheckpointPolicy
from ..core.modes import no_grad
from ..graph import GraphModule, Node
from ..ops.system.operator import find

DEVICE = "cuda"  # on which all of it is part of kernels
DTYPES = (dtypes.float32, dtypes.float64)  # in which differences are not rounded more often than the whole


def unfold_rows(module: GraphModule) -> None:
    """See the module's docstring."""
    forward, backward = find("_log_softmax.default"), find("_log_softmax_backward_data.default")
    calls = [n for n in module.graph.nodes if n.op == "call_function"]
    pairs = [(n.args[1], n) for n in calls if n.target is backward and isinstance(n.args[1], Node)]
    pairs = [(whole, n) for whole, n in pairs if whole.target is forward and _is_meant(whole) and _is_meant(n)]
    for whole in dict.fromkeys(whole for whole, _ in pairs):
        _unfold(module, whole)
    for _, node in pairs:
        _unfold_backward(module, node)
    if pairs:
        module.recompile()


def _is_meant(node: Node) -> bool:
    value = node.args[0].meta["val"]
    if value.device.type != DEVICE or value.dtype is not node.meta["val"].dtype or value.dtype not in DTYPES:
        return False
    return value.ndim > 0 and all(isinstance(n, int) and n > 0 for n in value.shape)


def _unfold(module: GraphModule, node: Node) -> None:
    x, dim = node.args[0], node.args[1]
    with _calls(module, node) as call:
        apart = call("sub.Tensor", x, call("amax.default", x, [dim], True))
        total = call("sum.dim_IntList", call("exp.default", apart), [dim], True)
        result = call("sub.Tensor", apart, call("log.default", total))
        result.meta["recompute"] = (
            CheckpointPolicy.PREFER_RECOMPUTE
        )  # what it is made of is saved, and has been written anyway
        for user in [u for u in node.users if u.target is find("nll_loss_backward.default") and u.args[1] is node]:
            _shape_alone(module, user)
        _replace(module, node, result)


def _shape_alone(module: GraphModule, node: Node) -> None:
    """Give the gradient of picked elements, which looks at nothing but the shape of what they were picked from, a shape without memory."""
    value = node.args[1].meta["val"]
    with _calls(module, node) as call:
        place = call("new_zeros.default", node.args[0], [])
        whole = call("expand.default", place, list(value.shape))
        node.args = (node.args[0], whole, *node.args[2:])


def _unfold_backward(module: GraphModule, node: Node) -> None:
    g, result, dim = node.args[:3]
    with _calls(module, node) as call:
        total = call("sum.dim_IntList", g, [dim], True)
        _replace(module, node, call("sub.Tensor", g, call("mul.Tensor", call("exp.default", result), total)))


@contextmanager
def _calls(module: GraphModule, node: Node) -> Iterator[Callable[..., Node]]:
    """What puts a call before a node, which takes its place among what is known of it."""

    def call(name: str, *args) -> Node:
        result = module.graph.call_function(find(name), args)
        values = [a.meta["val"] if isinstance(a, Node) else a for a in args]
        result.meta = {**node.meta, "val": find(name)(*values)}
        return result

    with module.graph.inserting_before(node), no_grad():
        yield call


def _replace(module: GraphModule, node: Node, result: Node) -> None:
    node.replace_all_uses_with(result)
    module.graph.erase_node(node)
