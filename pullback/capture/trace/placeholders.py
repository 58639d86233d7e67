"""Questions about the inputs of a traced graph, and about new arguments for it.

In: a graph that was traced with symbolic sizes. Out: its inputs by name or value, whether arguments fit what was traced, and the
value of each symbol in them.
"""

from __future__ import annotations

from typing import Any

from ...graph import GraphModule


def fx_placeholder_vals(gm: GraphModule) -> list:
    """The values that the inputs were traced with."""
    return [n.meta["val"] for n in gm.graph.find_nodes(op="placeholder")]


def fx_placeholder_targets(gm: GraphModule) -> list[str]:
    """The names of the inputs."""
    return [n.target for n in gm.graph.find_nodes(op="placeholder")]


def eval_guards(gm: GraphModule, *args: Any, ignore_static: bool = True) -> bool:
    """Whether the graph is right for these arguments."""
    return gm.shape_env.evaluate_guards_for_args(fx_placeholder_vals(gm), args, ignore_static=ignore_static)


def bind_symbols(gm: GraphModule, *args: Any) -> dict:
    """The value of each symbol in these arguments."""
    return gm.shape_env.bind_symbols(fx_placeholder_vals(gm), args)
