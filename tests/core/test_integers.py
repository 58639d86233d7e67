"""Limits, quotients and remainders of integers in C are those of the operators' rules."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core import small
from pullback.core.extension import extension

if extension("_integers") is None:
    pytest.skip("the extension is not built", allow_module_level=True)

KINDS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
PAIRS = {
    "floor_divide": (np.floor_divide, "floor_divide.default"),
    "remainder": (np.remainder, "remainder.Tensor"),
    "fmod": (np.fmod, "fmod.Tensor"),
}


def drawn(d, shape, seed: int = 0):
    info = np.iinfo(d.numpy)
    rng = np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, shape, d.numpy, endpoint=True)
    x.reshape(-1)[:3] = (info.min, info.max, 0)
    return x


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("d", KINDS, ids=str)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 4, 5), (700, 300)], ids=str)
def test_quotients_and_remainders(name: str, d, shape, threads: int):
    reference, key = PAIRS[name]
    x, y = drawn(d, shape), drawn(d, shape, 1)
    y[y == 0] = 3
    y.reshape(-1)[0] = -1 if d.is_signed else 1
    with np.errstate(all="ignore"):
        expected, of_seven = reference(x, y), reference(x, d.numpy.type(7))
    t, u = torch.from_numpy(x), torch.from_numpy(y)
    np.testing.assert_array_equal(small.table[key]((t, u)).numpy(), expected)
    np.testing.assert_array_equal(getattr(torch, name)(t, u).numpy(), expected)
    np.testing.assert_array_equal(getattr(torch, name)(t, 7).numpy(), of_seven)
    turned = getattr(torch, name)(t.transpose(0, 1), u.transpose(0, 1))
    np.testing.assert_array_equal(turned.transpose(0, 1).numpy(), expected)
    assert turned.stride() == t.transpose(0, 1).stride()
    np.testing.assert_array_equal(getattr(torch, name)(t[..., ::2], u[..., ::2]).numpy(), expected[..., ::2])


@pytest.mark.parametrize("d", KINDS, ids=str)
def test_quotients_rounded_to_zero(d):
    x, y = drawn(d, (40,)), drawn(d, (40,), 1)
    y[y == 0] = 3
    with np.errstate(all="ignore"):
        floor, rest = np.floor_divide(x, y), np.remainder(x, y)
    expected = floor + ((rest != 0) & ((x < 0) != (y < 0)))
    found = torch.div(torch.from_numpy(x), torch.from_numpy(y), rounding_mode="trunc")
    np.testing.assert_array_equal(found.numpy(), expected.astype(d.numpy))


@pytest.mark.parametrize("d", KINDS, ids=str)
def test_limits(d, threads: int):
    for shape in ((5, 7), (3, 1, 4, 1), (600, 301)):
        x = drawn(d, shape)
        t = torch.from_numpy(x)
        for low, high in ((2, 50), (50, 2), (None, 9), (9, None)):
            found, limited = t.clamp(low, high), x
            limited = limited if low is None else np.maximum(limited, d.numpy.type(low))
            limited = limited if high is None else np.minimum(limited, d.numpy.type(high))
            np.testing.assert_array_equal(found.numpy(), limited)
            np.testing.assert_array_equal(t.transpose(0, 1).clamp(low, high).numpy(), limited.swapaxes(0, 1))
            assert found.dtype is d and found.stride() == t.stride()
        np.testing.assert_array_equal(t.clamp_min(3).clamp_max(8).numpy(), np.minimum(np.maximum(x, 3), 8))


def test_what_is_left_to_the_rules():
    x = torch.arange(1, 7)
    for name in ("floor_divide", "remainder", "fmod"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(torch, name)(x, torch.tensor([1, 2, 0, 3, 4, 5]))
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(torch, name)(x, 0)
    assert (x % 2.5).dtype is torch.float32 and x.clamp(0.5).dtype is torch.float32
    assert (
        small.table["clamp.default"]((x, 1 << 70, None)) is None
        and small.table["clamp.default"]((x, True, None)) is None
    )
    assert (x[:0] // 2).shape == (0,) and (x // x[:1]).tolist() == x.tolist()
    assert torch.tensor(7).remainder(torch.tensor(4)).item() == 3
