"""`torch.fx` and its modules are the ones here."""

import importlib

import pytest

import pullback
from pullback.compat.torch import install

HOMES = {
    "torch.fx": "pullback.graph",
    "torch.fx.node": "pullback.graph.node",
    "torch.fx.graph": "pullback.graph.graph",
    "torch.fx.graph_module": "pullback.graph.module",
    "torch.fx.proxy": "pullback.graph.proxy",
    "torch.fx.interpreter": "pullback.graph.interpreter",
    "torch.fx.traceback": "pullback.graph.traceback",
    "torch.fx.immutable_collections": "pullback.graph.immutable",
    "torch.fx.operator_schemas": "pullback.graph.operator_schemas",
    "torch.fx.subgraph_rewriter": "pullback.graph.passes.replace_pattern",
    "torch.fx._symbolic_trace": "pullback.graph.tracer",
    "torch.fx.passes.shape_prop": "pullback.graph.passes.shape_prop",
    "torch.fx.passes.split_module": "pullback.graph.passes.split_module",
    "torch.fx.passes.infra.partitioner": "pullback.graph.passes.partitioner",
    "torch.fx.passes.utils.matcher_utils": "pullback.graph.passes.matcher",
}


@pytest.mark.parametrize("name", HOMES)
def test_modules_reach_their_homes(name):
    install()
    assert importlib.import_module(name) is importlib.import_module(HOMES[name])


def test_names_without_imports():
    assert pullback.fx is pullback.graph and pullback.fx.graph_module.GraphModule is pullback.fx.GraphModule
    assert callable(pullback.fx.passes.split_module.split_module) and callable(pullback.fx.replace_pattern)
    with pytest.raises(AttributeError):
        pullback.fx.nonsense
