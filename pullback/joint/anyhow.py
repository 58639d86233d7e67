"""A joint graph for values that lie in memory otherwise than when it was traced.

In: a joint graph, whose views by sizes were views for the layouts of the trace. Out: one that copies where a value cannot be
viewed so, as where a transform gives a batch of gradients, each of which lies as the batch does. What always holds: it gives
the same numbers, since nothing in a joint graph is written through a view.
"""

from __future__ import annotations

import copy

from ..graph import GraphModule
from ..ops.system.operator import find


def laid_anyhow(module: GraphModule) -> GraphModule:
    """The module with `reshape` in the place of `view`."""
    graph = copy.deepcopy(module.graph)
    view, reshape = find("view.default"), find("reshape.default")
    for node in graph.nodes:
        if node.op == "call_function" and node.target == view:
            node.target = reshape
    result = GraphModule(module, graph)
    result.shape_env = getattr(module, "shape_env", None)
    return result
