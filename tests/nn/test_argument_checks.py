"""What modules refuse: states of another size, names that are taken, forms of `to` that there are not."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn


@pytest.mark.parametrize("bad", [torch.ones(1, 20), torch.ones(3, 1)])
@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_cells_broadcast_no_state(kind, bad):
    x, good = torch.ones(3, 10), torch.ones(3, 20)
    states = [(bad, good), (good, bad)] if kind is nn.LSTMCell else [bad]
    for state in states:
        with pytest.raises(RuntimeError, match="hidden[01]"):
            kind(10, 20)(x, state)


def test_a_buffer_takes_no_name_of_a_plain_attribute():
    module = nn.Module()
    module.taken = 5
    with pytest.raises(KeyError, match="attribute 'taken' already exists"):
        module.taken = nn.Buffer(torch.ones(1))
    assert module.taken == 5
    module.own = nn.Buffer(torch.ones(1))
    module.own = nn.Buffer(torch.zeros(1))
    assert module.own.item() == 0 and "own" in module.state_dict()


def test_buffers_may_be_like_tensors_and_modules_may_be_old():
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError

    module, first, second = nn.Module(), Like(), Like()
    module.register_buffer("like", first)
    assert module.like is first
    module.like = second
    assert module.get_buffer("like") is second
    with pytest.raises(TypeError, match="cannot assign"):
        module.register_buffer("other", object())

    class Old(nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value, True)

    old = Old()
    old.mean = nn.Buffer(torch.ones(2))
    assert "mean" in old.state_dict()


def test_forms_of_to():
    net, cpu = nn.Linear(2, 2), torch.device("cpu")
    for args in [(cpu, True), (None, True), ([],), (cpu, torch.float64, torch.float32)]:
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            net.to(*args)
    with pytest.raises(RuntimeError, match="does not accept copy"):
        net.to("cpu", copy=True)
    assert net.to(cpu, None, True) is net and net.to(cpu, torch.float64).weight.dtype is torch.float64


def test_rrelu_in_place_is_differentiable_and_checks_its_bounds():
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    nn.functional.rrelu_(x.clone(), 0.1, 0.3).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.2, 1.0])
    with pytest.raises(RuntimeError, match="upper bound must be finite, got inf"):
        nn.functional.rrelu(x, 0.1, float("inf"))
