"""How modules take converted and loaded parameters over."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.fixture
def flags():
    yield torch.__future__
    torch.__future__.set_overwrite_module_params_on_conversion(False)
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_parameters_keep_their_identity(flags):
    net = torch.nn.Linear(2, 2)
    weight = net.weight
    net.double()
    assert net.weight is weight and weight.dtype is torch.float64


def test_overwriting_leaves_the_old_parameters_alone(flags):
    flags.set_overwrite_module_params_on_conversion(True)
    net = torch.nn.Linear(2, 2)
    weight = net.weight
    net(torch.ones(1, 2)).sum().backward()
    net.double()
    assert net.weight is not weight and weight.dtype is torch.float32 and weight.grad.dtype is torch.float32
    assert net.weight.dtype is net.weight.grad.dtype is torch.float64


def test_swapping_keeps_identity_and_gradients(flags):
    flags.set_swap_module_params_on_conversion(True)
    net = torch.nn.Linear(2, 2)
    net(torch.ones(1, 2)).sum().backward()
    weight = net.weight
    net.double()
    assert net.weight is weight and weight.dtype is weight.grad.dtype is torch.float64
    net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    assert weight.grad.tolist() == [[2, 2], [2, 2]]
    other = torch.nn.Linear(2, 2).double()
    net.load_state_dict(other.state_dict())
    assert net.weight is weight and torch.equal(weight, other.weight) and weight is not other.weight
