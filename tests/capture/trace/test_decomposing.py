"""Graphs written anew with some operators taken apart."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.decomposing import DecompositionInterpreter
from pullback.capture.trace.make_fx import make_fx
from pullback.export.decompositions import decomposition_table, get_decompositions
from pullback.graph import Graph, GraphModule


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_operator_is_taken_apart(dtype):
    x = torch.randn(4, 4).to(dtype)
    graph = make_fx(lambda x: torch.nn.functional.silu(x) + 1)(x)
    new = Graph()
    out = DecompositionInterpreter(graph, new, get_decompositions([torch.ops.aten.silu])).run(x)
    module = GraphModule(graph, new)
    targets = {n.target for n in module.graph.nodes}
    assert torch.ops.aten.silu.default not in targets and torch.ops.aten.sigmoid.default in targets
    assert torch.allclose(out, graph(x)) and torch.equal(module(x), out)


def test_constants_stay_attributes():
    w = torch.randn(2)
    graph = make_fx(lambda x: x.t() @ w)(torch.randn(2, 3))
    new = Graph()
    DecompositionInterpreter(graph, new, {torch.ops.aten.t.default: decomposition_table[torch.ops.aten.t.default]}).run(
        torch.randn(2, 3)
    )
    module, x = GraphModule(graph, new), torch.randn(2, 3)
    assert torch.equal(module(x), graph(x)) and torch.ops.aten.permute.default in {n.target for n in new.nodes}
