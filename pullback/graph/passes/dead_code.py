"""Dead code, removed.

In: a graph module. Out: the same module without nodes whose results nothing uses, its code generated again. What always
holds: inputs, outputs, and calls that do more than give a result stay.
"""

from __future__ import annotations

from collections.abc import Callable

from ..module import GraphModule
from ..node import Node
from .pass_manager import PassBase, PassResult


def eliminate_dead_code(module: GraphModule, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
    """Remove dead code from a module; whether there was any."""
    changed = module.graph.eliminate_dead_code(is_impure_node)
    if changed:
        module.recompile()
    return changed


class DeadCodePass(PassBase):
    """Dead code elimination as a pass."""

    def call(self, graph_module: GraphModule) -> PassResult:
        return PassResult(graph_module, eliminate_dead_code(graph_module))
