"""The graph IR: `torch.fx`.

In: nodes, recorded by a tracer or made by hand. Out: graphs that can be changed, printed, run and turned into modules.
"""

from __future__ import annotations

import importlib

from .graph import CodeGen, Graph
from .interpreter import Interpreter, Transformer
from .module import GraphModule
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .root_arguments import PH
from .tracer import ProxyableClassMeta, Tracer, symbolic_trace, wrap

# Modules that programs name without importing them, where they are called otherwise than in PyTorch.
_RENAMED = {
    "graph_module": "module",
    "immutable_collections": "immutable",
    "subgraph_rewriter": "passes.replace_pattern",
    "_symbolic_trace": "tracer",
    "_lazy_graph_module": "lazy_module",
    "_pytree": "tree_calls",
}


def __getattr__(name: str):
    if name in ("passes", "traceback", "operator_schemas", "annotate", "replace_pattern", *_RENAMED):
        if name == "replace_pattern":
            return importlib.import_module(".passes.replace_pattern", __name__).replace_pattern
        return importlib.import_module(f".{_RENAMED.get(name, name)}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "symbolic_trace", "Tracer", "wrap", "Graph", "GraphModule", "Interpreter", "Transformer", "Node", "Proxy",
    "replace_pattern", "has_side_effect", "map_arg",
    "CodeGen", "PH", "ProxyableClassMeta",
]  # fmt: skip
