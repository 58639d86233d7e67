"""The cache of fake results: it answers calls like earlier ones, and only those."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.fake import cache
from pullback.capture.fake.cache import CacheKeyState, extract_tensor_metadata
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.shapes.environment import ShapeEnv


@pytest.fixture(autouse=True)
def empty_cache():
    FakeTensorMode.cache_clear()
    yield
    FakeTensorMode.cache_clear()


def counted() -> tuple[int, int]:
    info = FakeTensorMode.cache_info()
    return info.hits, info.misses


def test_a_call_like_an_earlier_one_is_a_hit_in_any_mode():
    first, second = FakeTensorMode(), FakeTensorMode()
    a, b = (m.from_tensor(torch.ones(4, 3)) for m in (first, second))
    one = a + a
    assert counted() == (0, 1)
    other = b + b
    assert counted() == (1, 1)
    assert extract_tensor_metadata(one) == extract_tensor_metadata(other)
    assert other.fake_mode is second and FakeTensorMode.cache_info().size == 1


CALLS = {
    "promotion": lambda x: x + 1.5,
    "reduction": lambda x: x.sum(0),
    "several": lambda x: torch.max(x, 0),
    "split": lambda x: x.split(2),
    "view": lambda x: x.view(2, 6),
    "transposed": lambda x: x.t(),
    "product": lambda x: x @ x.t(),
    "joined": lambda x: torch.cat([x, x], 1),
    "new": lambda x: x.new_zeros(3),
    "factory": lambda x: torch.ones(2, 2),
    "in place": lambda x: x.mul_(2),
    "resized": lambda x: x.clone().unsqueeze_(0),
    "norm": lambda x: torch.nn.functional.layer_norm(x, (3,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_hit_gives_what_a_miss_gives(name):
    call = CALLS[name]
    with FakeTensorMode() as mode:
        real = mode.from_tensor(torch.ones(4, 3))
        missed = call(real)
        before = FakeTensorMode.cache_info().misses
        found = call(real)
        assert FakeTensorMode.cache_info().misses == before
    pairs = zip(missed, found, strict=True) if isinstance(missed, tuple) else [(missed, found)]
    for a, b in pairs:
        assert extract_tensor_metadata(a) == extract_tensor_metadata(b) and b.fake_mode is mode
    if name in ("split", "view", "transposed"):
        first = found[0] if isinstance(found, tuple) else found
        assert first._base is real and first.untyped_storage()._cdata == real.untyped_storage()._cdata
    if isinstance(missed, tuple):
        assert type(missed) is type(found)


def test_numbers_of_different_types_and_default_dtypes_have_different_keys():
    with FakeTensorMode() as mode:
        x = torch.ones(2, dtype=torch.int32)
        add = torch.ops.aten.add.Tensor
        keys = {mode._cache_key(CacheKeyState(), add, [x, v], {}) for v in (1, 1.0, True, 2)}
        assert len(keys) == 4
        assert (x + 1.0).dtype is torch.float32
        torch.set_default_dtype(torch.float64)
        try:
            assert (x + 1.0).dtype is torch.float64
        finally:
            torch.set_default_dtype(torch.float32)


def test_metadata_is_part_of_the_key():
    with FakeTensorMode() as mode:
        add = torch.ops.aten.add.Tensor
        x = torch.ones(4, 4)
        others = [x.t()[:, :], x[:2], x.double(), torch.ones(4, 4, requires_grad=True), x.as_strided((4, 4), (1, 4))]
        keys = {mode._cache_key(CacheKeyState(), add, [t], {}) for t in (x, torch.ones(4, 4), *others)}
        assert len(keys) == 5  # x like the other ones, and the transposed like the strided one


def test_inference_mode_is_part_of_the_key():
    with FakeTensorMode():
        x = torch.ones(3)
        plain = x + x
        with torch.inference_mode():
            inference = x + x
            assert inference.is_inference() and (x + x).is_inference()
        assert not plain.is_inference() and not (x + x).is_inference()


def test_meta_tensors_made_in_inference_mode_are_inference_tensors():
    with torch.inference_mode():
        x = torch.ones(2, device="meta")
        assert x.is_inference() and (x + x).is_inference()


def test_symbols_go_past_the_cache():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(5, 4))
    for _ in range(2):
        y = x.sum(1)
    assert counted() == (0, 0) and FakeTensorMode.cache_info().bypasses["symbolic shape"] == 2
    assert y.shape[0] == x.shape[0] and not isinstance(y.shape[0], int)


def test_calls_that_have_no_recipe_are_counted_by_reason():
    with FakeTensorMode():
        torch.ones(1, 2).unsqueeze_(0)
    assert FakeTensorMode.cache_info().bypasses["inplace view"] == 1


def test_the_cache_does_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 3)
    with FakeTensorMode():
        for n in range(10):
            torch.ones(n).exp()
    assert FakeTensorMode.cache_info().size <= 3
