"""Recurrent layers in native graphs stay one operator each, forward and backward, and give what they give uncompiled."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front import backends


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_layer_is_one_operator(kind, monkeypatch):
    graphs = []
    compile_native = backends.native_code

    def seen(module, inputs, options):
        graphs.append(
            [n.target.name for n in module.graph.nodes if n.op == "call_function" and hasattr(n.target, "name")]
        )
        return compile_native(module, inputs, options)

    monkeypatch.setattr(backends, "native_code", seen)
    torch.manual_seed(0)
    model = getattr(torch.nn, kind)(5, 4, num_layers=2, batch_first=True)
    x = torch.randn(3, 9, 5, requires_grad=True)

    def loss(x):
        out, state = model(x)
        return (out * out).sum() + sum(s.sum() for s in (state if isinstance(state, tuple) else (state,)))

    torch.compiler.reset()
    results = []
    for f in (loss, torch.compile(loss)):
        x.grad = None
        model.zero_grad()
        value = f(x)
        value.backward()
        results.append([value.detach(), x.grad, *[p.grad for p in model.parameters()]])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)
    names = [name for graph in graphs for name in graph]
    assert names.count("recurrent_layer") == names.count("recurrent_layer_backward") == 2 and len(names) < 60


def test_sizes_that_change():
    torch.compiler.reset()
    model = torch.nn.LSTM(5, 4)
    f = torch.compile(lambda x: model(x)[0], dynamic=True)
    for time in (3, 7, 8):
        x = torch.randn(time, 2, 5)
        torch.testing.assert_close(f(x), model(x)[0])
