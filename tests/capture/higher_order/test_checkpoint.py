"""Checkpointed graphs: which nodes are computed again."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.higher_order import tag_activation_checkpoint
from pullback.capture.trace.make_fx import make_fx
from pullback.core.checkpointing import CheckpointPolicy
from pullback.utils.checkpoint import CheckpointPolicy as PublicPolicy
from pullback.utils.checkpoint import create_selective_checkpoint_contexts


def test_nodes_of_a_checkpointed_graph_are_tagged():
    x = torch.randn(3)
    inner = make_fx(lambda x: x.sin().cos())(x)
    outer = make_fx(lambda x: tag_activation_checkpoint(inner, x * 2, use_reentrant=False) + 1)(x)
    tags = {n.name: n.meta.get("recompute") for n in outer.graph.nodes if n.op == "call_function"}
    assert tags == {
        "mul": None,
        "sin": PublicPolicy.PREFER_RECOMPUTE,
        "cos": CheckpointPolicy.PREFER_RECOMPUTE,
        "add": None,
    }
    assert torch.allclose(outer(x), (x * 2).sin().cos() + 1)


def test_checkpointed_graphs_outside_of_a_trace():
    x = torch.randn(3, requires_grad=True)
    inner = make_fx(lambda x: x.sin().cos())(x.detach())
    out = tag_activation_checkpoint(inner, x)
    assert torch.allclose(torch.autograd.grad(out.sum(), x)[0], -x.sin().sin() * x.cos())
    inner.meta["_checkpoint_context_fn"] = lambda: (None, None)
    with pytest.raises(NotImplementedError, match="has no policy"):
        tag_activation_checkpoint(inner, x)


def test_a_policy_decides_node_by_node():
    x = torch.randn(3)
    inner = make_fx(lambda x: x.sin().cos())(x)
    inner.meta["_checkpoint_context_fn"] = lambda: create_selective_checkpoint_contexts([torch.ops.aten.sin.default])
    graph = make_fx(lambda x: tag_activation_checkpoint(inner, x))(x)
    tags = [n.meta["recompute"].name for n in graph.graph.nodes if n.op == "call_function"]
    assert tags == ["MUST_SAVE", "PREFER_RECOMPUTE"]
