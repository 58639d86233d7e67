"""Tensors that are kept for later: known by identity, weakly, and never taken over as a gradient."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.autograd import accumulation
from pullback.autograd import cached_tensors as cached


@pytest.fixture(autouse=True)
def enabled():
    cached.set_enabled(True)
    yield
    cached.set_enabled(False)


def test_adding_twice_is_adding_once():
    x = torch.ones(2)
    assert not cached.is_cached(x)
    cached.add(x)
    cached.add(x)
    assert cached.is_cached(x) and not cached.is_cached(x.detach())
    cached.remove(x)
    cached.remove(x)
    assert not cached.is_cached(x)


def test_a_tensor_that_is_gone_leaves_no_trace():
    x = torch.ones(2)
    cached.add(x)
    key = id(x)
    del x
    assert key not in cached._known


def test_switched_off_nothing_is_cached():
    x = torch.ones(2)
    cached.add(x)
    cached.set_enabled(False)
    assert not cached.is_cached(x)
    with pytest.raises(RuntimeError, match="not enabled"):
        cached.add(x)
    cached.set_enabled(True)
    assert cached.is_cached(x)


@pytest.mark.parametrize("cache", [False, True])
def test_a_cached_gradient_is_not_taken_over(cache, monkeypatch):
    copied = []
    monkeypatch.setattr(accumulation, "copy_of", lambda g, leaf: copied.append(1) or g.clone())

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            result = g * 2
            if cache:
                cached.add(result)
            return result

    x = torch.ones(3, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0] and not cached.is_cached(x.grad)
    assert bool(copied) is cache
