"""L-BFGS with the strong Wolfe conditions, and how parameters are grouped for fused updates."""

import pytest

import pullback as torch
from pullback.optim import grouping
from pullback.optim.line_search import cubic_minimum


def minimised(function, start, **options):
    x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=60, **options)

    def closure():
        optimizer.zero_grad()
        value = function(x)
        value.backward()
        return value

    optimizer.step(closure)
    return x.detach()


@pytest.mark.parametrize("rate", [0.5, 1.0, 5.0])
def test_the_valley_of_rosenbrock(rate):
    def rosenbrock(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    assert torch.allclose(minimised(rosenbrock, [-1.2, 1.0], lr=rate), torch.ones(2, dtype=torch.float64), atol=1e-4)


@pytest.mark.parametrize("start", [3.0, -7.0, 40.0])
def test_one_variable_with_a_flat_side(start):
    x = minimised(lambda x: (x - 2).cosh().log().sum() + 0.1 * (x**4).sum(), [start], lr=1.0)
    slope = (x - 2).tanh() + 0.4 * x**3
    assert slope.abs().item() < 1e-5


def test_the_minimum_of_a_cubic():
    class Point:
        def __init__(self, t):
            self.t, self.value, self.slope = t, t**3 - 3 * t, 3 * t**2 - 3

    assert abs(cubic_minimum(Point(0.0), Point(2.0)) - 1.0) < 1e-12
    assert abs(cubic_minimum(Point(2.0), Point(0.0)) - 1.0) < 1e-12
    assert cubic_minimum(Point(0.0), Point(2.0), (1.5, 3.0)) == 1.5  # kept inside


def test_groups_by_device_and_dtype():
    a, b, c = torch.ones(2), torch.ones(2, dtype=torch.float64), torch.zeros(2)
    groups = grouping.group_by_device_and_dtype([[a, b, c], [None, b, c]], True)
    (lists, places) = groups[(a.device, torch.float32)]
    assert lists == [[a, c], [None, c]] and places == [0, 2] and len(groups) == 2
    with pytest.raises(RuntimeError, match="has no tensor at place 0"):
        grouping.group_by_device_and_dtype([[None]])


def test_which_kernels_an_optimizer_uses():
    cpu, odd = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2, device="meta"))
    assert grouping.default_kernels([cpu], differentiable=True) == (False, False)
    assert grouping.default_kernels([cpu], differentiable=False, use_fused=True) == (True, False)
    assert grouping.default_kernels([odd], differentiable=False, use_fused=True) == (False, False)
    assert grouping.has_list_support([cpu, None], cpu.device) and not grouping.has_list_support([odd], odd.device)
    assert "xla" in grouping.capturable_devices() and "xla" not in grouping.capturable_devices(False)


def test_numbers_that_may_be_tensors():
    assert grouping.value_of(torch.tensor(4.0)) == grouping.value_of(4.0) == 4.0
    assert grouping.square_root(9.0) == grouping.square_root(torch.tensor(9.0)).item() == 3.0
    params, state = [torch.ones(2, dtype=torch.complex64), torch.ones(2)], [torch.zeros(2, dtype=torch.complex64), None]
    grouping.view_as_real_(params, state)
    assert params[0].shape == state[0].shape == (2, 2) and params[1].shape == (2,)
