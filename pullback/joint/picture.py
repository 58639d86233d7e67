"""Pictures of graphs, and of how a joint graph was cut.

In: a module, or the forward and backward that a partitioner made. Out: SVG. In the picture of a partition, forward
(blue) is above backward (red); saved values are green, and what backward computes again is orange.
"""

from __future__ import annotations

import os
from typing import Any

from ..graph import Graph, GraphModule, Node
from ..graph.draw import svg
from .halves import is_tangent

FORWARD, SAVED, AGAIN, BACKWARD, RESULT = "#cfe2f3", "#b6d7a8", "#f9cb9c", "#f4cccc", "#eeeeee"


def draw_graph(
    traced: GraphModule,
    fname: str,
    figname: str = "fx_graph",
    clear_meta: bool = True,
    prog: Any = None,
    parse_stack_trace: bool = False,
    dot_graph_shape: str | None = None,
) -> None:
    """Write the picture of a module's graph to a file, `.svg` if its name has no ending."""
    base, ending = os.path.splitext(fname)
    if ending not in ("", ".svg"):
        raise NotImplementedError(f"draw_graph writes SVG; a file that ends in {ending!r} is something else")
    traced.graph.draw(f"{base}.svg")


def draw_partition(fw: GraphModule, bw: GraphModule, path: str | None = None) -> str:
    """The picture of a partition: SVG text, written to `path` where one is given."""
    graph, colors = joined(fw.graph, bw.graph)
    text = svg(graph, lambda node: colors.get(node, RESULT))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return text


def joined(fw: Graph, bw: Graph) -> tuple[Graph, dict[Node, str]]:
    """Both halves in one graph, backward fed with what forward saves; and a color for each node."""
    graph = Graph()
    colors: dict[Node, str] = {}
    result: dict[Node, Node] = {}
    for node in fw.nodes:
        if node._op != "output":
            result[node] = graph.node_copy(node, result.__getitem__)
            colors[result[node]] = FORWARD
    inputs = bw.find_nodes(op="placeholder")
    kept = [n for n in inputs if not is_tangent(n)]
    results = list(fw.output_node()._args[0])
    count = len(results) - len(kept)
    for node, source in zip(kept, results[count:], strict=True):
        result[node] = result[source]
        colors[result[node]] = SAVED
    before = {n._name for n in fw.nodes}
    for node in bw.nodes:
        if node._op != "output" and node not in result:
            result[node] = graph.node_copy(node, result.__getitem__)
            colors[result[node]] = AGAIN if node._name in before else BACKWARD
    values = [*results[:count], *bw.output_node()._args[0]]
    graph.output(tuple([result[v] if isinstance(v, Node) else v for v in values]))
    return graph, colors
