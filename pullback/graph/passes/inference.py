"""Modules made cheaper to run in evaluation: batch norms folded into the convolutions before them, dropout taken out.

In: a module that is to be evaluated only. Out: a graph module that computes the same. What always holds: a batch norm that has no
running statistics stays, and so does one after a convolution whose result, or whose weights, something else uses too.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from ...nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.conv import Conv1d, Conv2d, Conv3d
from ...nn.dropout import Dropout, Dropout1d, Dropout2d, Dropout3d
from ...nn.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval
from ..module import GraphModule
from ..node import Node
from ..tracer import Tracer

_NORMS: dict[type, type] = {Conv1d: BatchNorm1d, Conv2d: BatchNorm2d, Conv3d: BatchNorm3d}
_DROPOUTS = (Dropout, Dropout1d, Dropout2d, Dropout3d)


def _traced(model: Module, no_trace: bool = False) -> GraphModule:
    if isinstance(model, GraphModule) and no_trace:
        return model
    tracer = Tracer()
    graph = tracer.trace(model)
    return GraphModule(tracer.root, graph)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """The module with batch norms folded into convolutions. `no_trace`: it is a graph module, taken as it is."""
    result = _traced(model if inplace else copy.deepcopy(model), no_trace)
    modules = dict(result.named_modules())
    calls = Counter(id(modules[n.target]) for n in result.graph.nodes if n.op == "call_module")
    for node in list(result.graph.nodes):
        before = _foldable(node, modules, calls)
        if before is not None:
            _put(result, before.target, fuse_conv_bn_eval(modules[before.target], modules[node.target]))
            node.replace_all_uses_with(before)
            result.graph.erase_node(node)
    result.delete_all_unused_submodules()
    result.recompile()
    return result


def _foldable(node: Node, modules: dict[str, Module], calls: Counter) -> Node | None:
    """The call of a convolution that a call of a batch norm may be folded into."""
    before = node.args[0] if node.op == "call_module" and len(node.args) == 1 else None
    if not isinstance(before, Node) or before.op != "call_module" or len(before.users) > 1:
        return None
    conv, norm = modules[before.target], modules[node.target]
    fits = type(norm) is _NORMS.get(type(conv)) and norm.track_running_stats
    return before if fits and calls[id(conv)] == 1 else None


def _put(root: Module, path: str, module: Any) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)


def remove_dropout(model: Module) -> GraphModule:
    """The module without dropout: what went in comes out, as in evaluation."""
    result = _traced(model)
    modules = dict(result.named_modules())
    for node in list(result.graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], _DROPOUTS):
            node.replace_all_uses_with(node.args[0])
            result.graph.erase_node(node)
    result.recompile()
    return result


__all__ = ["fuse", "remove_dropout"]
