"""Bytes alive while a graph runs: operator by operator, and as native code.

In: a graph with values in its metadata, and the segments that it became. Out: `Alive`: after each node the bytes that its
operators would hold; what the native call reserves, and how much of it holds something while each kernel runs. Inputs, which live on anyway, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..graph import Graph, Node


@dataclass
class Alive:
    """`operators`: bytes after each node; `native`: outputs and arena of the native calls; `kernels`: what is in use of them."""

    operators: list[int]
    native: int
    kernels: list[int]

    @property
    def peak(self) -> int:
        return max(self.operators, default=0)


def size_of(node: Node) -> int:
    """The bytes of what a node gives; 0 where its sizes are not numbers."""
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else (value,)
    return sum(_bytes(v) for v in values)


def _bytes(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is None or not all(type(n) is int for n in shape):
        return 0
    count = 1
    for n in shape:
        count *= n
    return count * value.dtype.itemsize


def bytes_alive(graph: Graph, segments: list) -> Alive:
    nodes = [n for n in graph.nodes if n.op == "call_function"]
    results = set(graph.output_node().all_input_nodes)
    last: dict[Node, int] = {}
    for at, n in enumerate(nodes):
        for i in n.all_input_nodes:
            last[i] = at
    alive, line = 0, []
    ending: dict[int, list[Node]] = {}
    for n in nodes:
        if n not in results:
            ending.setdefault(last.get(n, -1), []).append(n)
    for at, n in enumerate(nodes):
        alive += 0 if _is_view(n) else size_of(n)
        line.append(alive)
        alive -= sum(0 if _is_view(d) else size_of(d) for d in ending.get(at, ()))
    native, before, kernels = 0, 0, []
    for s in segments:
        results_of_segment = sum(b.size * b.dtype.itemsize for b in s.source.outputs)
        native += s.source.arena + results_of_segment
        kernels += [before + n for n in s.source.in_use]
        before += results_of_segment  # which live on while later segments run
    return Alive(line, native, kernels)


def _is_view(node: Node) -> bool:
    return bool(getattr(node.target, "is_view", False))
