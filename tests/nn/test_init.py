"""Initial values: bounds, fans, orthogonality, and what is refused."""

import math

import pytest

import pullback as torch
from pullback.nn import init


def test_fans_and_gains():
    assert init._calculate_fan_in_and_fan_out(torch.empty(3, 4, 5, 2)) == (40, 30)
    assert init.calculate_gain("relu") == math.sqrt(2) and init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    with pytest.raises(ValueError, match="Unsupported nonlinearity foo"):
        init.calculate_gain("foo")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.kaiming_uniform_(torch.empty(3))


def test_draws_stay_within_their_bounds():
    w = torch.empty(50, 40)
    assert init.xavier_uniform_(w).abs().max() <= math.sqrt(6 / 90)
    assert init.kaiming_uniform_(w, a=math.sqrt(5)).abs().max() <= 1 / math.sqrt(40)
    for mean in (0.0, 1.0):
        assert init.trunc_normal_(w, mean=mean, std=0.5, a=-0.1, b=0.1).abs().max() <= 0.1


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (4, 2, 3)])
def test_orthogonal(shape):
    w = init.orthogonal_(torch.empty(shape, dtype=torch.float64), gain=2).reshape(shape[0], -1)
    small = w @ w.t() if w.shape[0] < w.shape[1] else w.t() @ w
    assert torch.allclose(small, 4 * torch.eye(small.shape[0], dtype=torch.float64))


def test_dirac_passes_its_input_on():
    w = init.dirac_(torch.empty(4, 2, 3), 2)
    x = torch.randn(1, 4, 6)
    assert torch.allclose(torch.nn.functional.conv1d(x, w, padding=1, groups=2), x)


def test_sparse_zeroes_a_fraction_of_each_column():
    assert ((init.sparse_(torch.empty(10, 3), 0.3) == 0).sum(0) == 3).all()


def test_nothing_is_recorded():
    w = torch.empty(2, 2, requires_grad=True)
    init.ones_(w)
    init.eye_(w)
    assert w.is_leaf and torch.equal(w.detach(), torch.eye(2))


def test_old_names_warn():
    with pytest.warns(FutureWarning, match="`nn.init.normal` is now deprecated"):
        init.normal(torch.empty(2))
