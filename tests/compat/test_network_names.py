"""`torch._C._nn`: operators where functions of the same name take or give something else."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.compat import network_names as names
from pullback.surface.overrides import resolve_name


def test_losses_take_the_number_of_a_reduction():
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 5.0])
    assert [names.mse_loss(x, y, n).tolist() for n in (0, 1, 2)] == [[0, 4, 4], pytest.approx(8 / 3), 8]
    assert names.huber_loss(x, y, 1, 2.0).item() == pytest.approx(4 / 3)
    assert names.nll_loss(x[None], torch.tensor([1]), None, 2).item() == -2


def test_pools_give_the_places_too():
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    values, places = names.adaptive_max_pool2d(image, (2, 2))
    assert values.flatten().tolist() == places.flatten().tolist() == [5, 7, 13, 15]


def test_functions_that_are_the_same_stay_themselves():
    assert names.linear is torch.nn.functional.linear
    assert resolve_name(names.mse_loss) == "torch._C._nn.mse_loss"
