"""Sums in C of blocks of memory in any order, and of complex numbers; elements put in places, of any size."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core import small

if "sum.default" not in small.table:
    pytest.skip("the extension is not built", allow_module_level=True)

ORDERS = [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2), (0, 1, 3, 2)]
DIMS = [None, 0, 1, -1, (2, 3), (0, 2, 3), (0, 1), (0, 3), (1, 2, 3)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(
    "d", [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64, torch.bool], ids=str
)
def test_sums_in_every_order_of_memory(order: tuple, d):
    back = tuple(np.argsort(order).tolist())
    for shape in ((2, 5, 6, 7), (3, 1, 4, 1), (2, 70, 9, 1)):
        drawn = torch.from_numpy(np.random.default_rng(0).standard_normal((*shape, 2)) * 9)
        x = torch.view_as_complex(drawn).to(d) if d.is_complex else drawn[..., 0].to(d)
        turned = x.permute(order).contiguous().permute(back)
        for dim in DIMS:
            for keep in (False, True):
                expected = x.numpy().sum(axis=dim, keepdims=keep) if dim is not None else x.numpy().sum()
                found = turned.sum() if dim is None else turned.sum(dim, keepdim=keep)
                np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
                assert found.is_contiguous()
                if d.is_floating_point and dim is not None:
                    np.testing.assert_allclose(
                        turned.mean(dim, keepdim=keep).numpy(),
                        x.numpy().mean(axis=dim, keepdims=keep),
                        rtol=1e-4,
                        atol=1e-4,
                    )


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 1000, 70_001])
@pytest.mark.parametrize("d", [torch.complex64, torch.complex128], ids=str)
def test_sums_of_complex_numbers(n: int, d):
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))).astype(d.numpy)
    t = torch.from_numpy(x)
    tolerance = 1e-4 if d is torch.complex64 else 1e-11
    for found, expected in ((t.sum(), x.sum()), (t.sum(1), x.sum(1)), (t.sum(0), x.sum(0)), (t.mean(1), x.mean(1))):
        np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance * n**0.5)
    x[1, n // 2] = complex(np.nan, 1)
    assert np.isnan(torch.from_numpy(x).sum(1).numpy()).tolist() == [False, True, False]


def test_all_of_a_block_of_memory():
    x = torch.randn(4, 64, 66, 130).to(memory_format=torch.channels_last)
    assert abs(x.sum().item() - x.double().sum().item()) < 0.1 and x.amax() == x.contiguous().amax()


@pytest.mark.parametrize(
    "d", [torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.bool, torch.int16], ids=str
)
@pytest.mark.parametrize("dim", [0, 1])
def test_elements_put_in_places(d, dim: int):
    rng = np.random.default_rng(dim)
    x, y = (torch.from_numpy(rng.standard_normal((40, 50)).astype(np.float32) * 5).abs().to(d) for _ in range(2))
    index = torch.from_numpy(rng.integers(0, 40, (40, 50)))
    expected = x.float().scatter(dim, index, y.float()).to(d)
    assert torch.equal(x.scatter(dim, index, y), expected)
    assert torch.equal(x.clone().scatter_(dim, index, y), expected)
    with pytest.raises((IndexError, RuntimeError)):
        x.scatter(dim, index + 40, y)
