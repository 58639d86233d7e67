"""Trigonometric functions: values over the dtypes, aliases, degrees, and complex branches."""

import math

import numpy as np
import pytest

import pullback as torch

NAMES = {
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "atanh": "arctanh",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    x = np.array([-0.9, -0.2, 0.0, 0.7])
    want = getattr(np, NAMES[name])(x)
    np.testing.assert_allclose(getattr(torch, name)(torch.tensor(x)).numpy(), want, rtol=1e-14)
    z = x + 0.3j
    np.testing.assert_allclose(getattr(torch, name)(torch.tensor(z)).numpy(), getattr(np, NAMES[name])(z), rtol=1e-13)
    assert getattr(torch, name)(torch.tensor([0])).dtype is torch.float32
    assert getattr(torch, f"{name}_")(torch.tensor(x)).tolist() == pytest.approx(want)


def test_aliases_are_the_same_functions():
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2"):
        assert getattr(torch, f"arc{name[1:]}") is getattr(torch, name)


def test_atan2_knows_the_quadrant():
    y, x = torch.tensor([1.0, 1.0, -1.0, 0.0]), torch.tensor([1.0, -1.0, -1.0, -1.0])
    assert torch.atan2(y, x).tolist() == pytest.approx([math.pi / 4, 3 * math.pi / 4, -3 * math.pi / 4, math.pi])
    assert torch.atan2(torch.tensor([1]), torch.tensor([0])).item() == pytest.approx(math.pi / 2)
    with pytest.raises(NotImplementedError, match="atan2_cpu"):
        torch.atan2(torch.ones(1, dtype=torch.cfloat), torch.ones(1))


def test_degrees():
    assert torch.deg2rad(torch.tensor([180])).item() == pytest.approx(math.pi)
    assert torch.rad2deg(torch.tensor([math.pi])).item() == pytest.approx(180)
    with pytest.raises(RuntimeError, match="deg2rad is not supported for complex tensors"):
        torch.deg2rad(torch.ones(1, dtype=torch.cfloat))
    x = torch.ones(1, requires_grad=True)
    assert x.deg2rad().grad_fn.name() == "Deg2RadBackward0"


def test_gradient_of_acosh_is_on_its_branch():
    z = torch.tensor([-0.5 - 0.4j, 2.0 + 1j], dtype=torch.complex128, requires_grad=True)
    (g,) = torch.autograd.grad(z.acosh().sum(), z, torch.tensor(1 + 0j, dtype=torch.complex128))
    eps = 1e-6
    want = (np.arccosh(z.detach().numpy() + eps) - np.arccosh(z.detach().numpy() - eps)) / (2 * eps)
    np.testing.assert_allclose(g.numpy().conj(), want, rtol=1e-8)
