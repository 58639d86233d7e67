"""Graphs to loops to source to machine code.

`compile_graph(module)` takes a functional graph (nodes with fake tensors in `meta["val"]`) and gives a callable that computes
the same by native code, one call for each run of nodes that have loops. `lower_graph(module)` stops before the code.
"""

from __future__ import annotations

from .program import Native, compile_graph, lower_graph

__all__ = ["Native", "compile_graph", "lower_graph"]
