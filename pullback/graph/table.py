"""A graph as a plain table.

In: a graph. Out: text, a row per node. What always holds: columns are as wide as their longest cell.
"""

from __future__ import annotations

from typing import Any

_HEAD = ("opcode", "name", "target", "args", "kwargs")


def table(graph: Any) -> str:
    """The nodes of a graph, a row each, in aligned columns."""
    rows = [[str(c) for c in (n.op, n.name, n.target, n.args, n.kwargs)] for n in graph.nodes]
    widths = [max(len(row[i]) for row in [_HEAD, *rows]) for i in range(len(_HEAD))]
    lines = [_HEAD, ["-" * w for w in widths], *rows]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)
