"""Operators that compute in a wider dtype than their arguments have."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.higher_order.out_dtype import out_dtype
from pullback.capture.trace.make_fx import make_fx

mm = torch.ops.aten.mm.default


def test_nothing_overflows_on_the_way():
    x = torch.full((2, 200), 100, dtype=torch.int8)
    found = out_dtype(mm, torch.int32, x, x.t())
    assert found.dtype is torch.int32 and found.tolist() == [[2_000_000] * 2] * 2


def test_it_is_one_node():
    x = torch.ones(2, 2, dtype=torch.int8)
    graph = make_fx(lambda x: out_dtype(mm, torch.int32, x, x))(x)
    (node,) = [n for n in graph.graph.nodes if n.op == "call_function"]
    assert node.target is torch.ops.higher_order.out_dtype and node.meta["val"].dtype is torch.int32
    assert torch.equal(graph(x), (x @ x).to(torch.int32))


def test_what_it_refuses():
    x = torch.ones(2, 2)
    with pytest.raises(ValueError, match="must be an OpOverload"):
        out_dtype(torch.mm, torch.int32, x, x)
    with pytest.raises(ValueError, match="functional operator"):
        out_dtype(torch.ops.aten.add_.Tensor, torch.int32, x, x)
    with pytest.raises(ValueError, match="single tensor"):
        out_dtype(torch.ops.aten.max.dim, torch.int32, x, 0)
