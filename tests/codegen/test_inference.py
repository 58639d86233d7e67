"""Compiled functions run as native code in inference mode, and give its tensors."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen.program import Native
from pullback.ops.system.overrides import TorchDispatchMode


@pytest.fixture
def modules(monkeypatch):
    """How often graphs ran operator by operator."""
    seen: list = []
    run = torch.fx.GraphModule.__call__
    monkeypatch.setattr(torch.fx.GraphModule, "__call__", lambda self, *args: seen.append(self) or run(self, *args))
    return seen


def test_results_are_those_of_the_mode(modules):
    w = torch.randn(5, 4)
    f = torch.compile(lambda x, w: ((x @ w).sin(), x, w.t(), x[1:]))
    x = torch.randn(3, 5)
    with torch.inference_mode():
        y = x * 1
        f(x, w), f(y, w), modules.clear()  # compiled, for both
        for given in (x, y):
            new, same, turned, part = f(given, w)
            assert torch.allclose(new, (given @ w).sin(), atol=1e-5) and new.is_inference()
            assert same is given and not turned.is_inference() and torch.equal(turned, w.t())
            assert part.is_inference() is given.is_inference() and torch.equal(part, given[1:])
            assert part.data_ptr() == given[1:].data_ptr()
    assert not modules


def test_writes_reach_the_tensor_that_was_given(modules):
    f = torch.compile(lambda x: x.mul_(3).add_(1))
    with torch.inference_mode():
        f(torch.ones(4)), modules.clear()
        x = torch.ones(4)
        out = f(x)
        assert out is x and x.tolist() == [4.0] * 4 and x.is_inference()
    assert not modules


def test_gradients_are_not_asked_for(modules):
    w = torch.randn(4, requires_grad=True)
    f = torch.compile(lambda x, w: (x * w).exp())
    with torch.inference_mode():
        f(torch.ones(4), w), modules.clear()
        y = f(torch.ones(4), w)
    assert y.is_inference() and not y.requires_grad and not modules
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        y * w


def test_whoever_listens_sees_operators():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    run = Native(make_fx(lambda x: x.sin() + 1)(torch.ones(3)))
    run.build()
    with torch.inference_mode(), Mode():
        run(torch.ones(3))
    assert torch.ops.aten.sin.default in seen
