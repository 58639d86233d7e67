"""Casts in C give what the array library's do, in every order of memory, and leave to it what they do not know."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core.extension import extension
from pullback.ops.system.inplace import cast_array

if extension("_casts") is None:
    pytest.skip("the extension is not built", allow_module_level=True)

KINDS = [
    torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.bfloat16, torch.float16,
]  # fmt: skip
LAYOUTS = {
    "rows": lambda x: x,
    "turned": lambda x: x.t(),
    "apart": lambda x: x[:, 1::2],
    "backwards": lambda x: torch.as_strided(x, (3, 4), (1, 0)),
    "one": lambda x: x[2, 3],
    "last": lambda x: x[None, :, :, None].to(memory_format=torch.channels_last),
    "alone": lambda x: x[:1, 1:].t(),
    "none": lambda x: x[:0],
}


def numbers(d, shape=(7, 9)):
    drawn = torch.from_numpy(np.random.default_rng(0).standard_normal(shape, np.float32) * 50)
    return drawn.abs().to(d) if d in (torch.uint8, torch.bool) else drawn.to(d)


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    nan = np.isnan(expected.astype(np.float64))
    return np.array_equal(np.isnan(found.astype(np.float64)), nan) and np.array_equal(found[~nan], expected[~nan])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("target", KINDS, ids=str)
@pytest.mark.parametrize("source", KINDS, ids=str)
def test_every_pair_in_every_order(source, target, layout: str):
    x = LAYOUTS[layout](numbers(source))
    found = x.to(target, copy=True)
    assert found.dtype is target and same(found._array, np.asarray(cast_array(x._array, source, target)))
    assert found.stride() == torch.empty_like(x, dtype=target).stride()
    into = torch.empty_like(x, dtype=target)
    before = into._version
    into.copy_(x)
    assert same(into._array, found._array) and into._version == before + 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "pair",
    [
        ("float32", "float64"),
        ("float64", "float32"),
        ("float16", "float32"),
        ("float32", "bfloat16"),
        ("int64", "float32"),
    ],
)
def test_many_elements(pair: tuple[str, str], threads: int):
    source, target = (getattr(torch, name) for name in pair)
    x = numbers(source, (517, 613))
    torch.set_num_threads(threads)
    for t in (x, x.t(), x[:, 3:], x[::2]):
        assert same(t.to(target)._array, cast_array(t._array, source, target))
        assert same(torch.empty(t.shape, dtype=target).copy_(t)._array, cast_array(t._array, source, target))
    assert same(
        torch.zeros(4, 613, dtype=target).copy_(x[1])._array, cast_array(x[1:2].expand(4, 613)._array, source, target)
    )


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("target", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_numbers_that_integers_lack(target):
    x = torch.tensor([float("nan"), float("inf"), -3e9, 1e30, 1.5, -0.0])
    with np.errstate(all="ignore"):
        assert same(x.to(target)._array, np.asarray(cast_array(x._array, x.dtype, target)))


def test_what_is_written_may_not_be_what_is_read():
    memory = torch.arange(12.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        memory[:6].copy_(memory.view(torch.int32)[3:9])
    with pytest.raises(RuntimeError):
        torch.zeros(3, 1).expand(3, 4).copy_(torch.ones(3, 4, dtype=torch.float64))


def test_history_goes_through_casts():
    x = torch.randn(3, 4, requires_grad=True)
    y = torch.zeros(4, 3, dtype=torch.float64)
    y.copy_(x.t())
    (y * 2 + x.t().to(torch.bfloat16)).sum().backward()
    assert torch.equal(x.grad, torch.full((3, 4), 3.0))
