"""The names of `torch.cuda` that ask and steer the device; random numbers on it."""

from __future__ import annotations

import math

import pytest

import pullback as torch


def test_the_device(cuda):
    assert torch.cuda.device_count() >= 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_name() and torch.cuda.get_device_capability()[0] >= 3
    facts = torch.cuda.get_device_properties(0)
    assert facts.total_memory > 1 << 28 and facts.name == torch.cuda.get_device_name(cuda)
    torch.cuda.set_device(0)
    with torch.cuda.device(0), torch.cuda.device_of(torch.ones(1, device=cuda)):
        torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
        torch.ones(1, device=f"cuda:{torch.cuda.device_count()}")
    assert torch.accelerator.current_accelerator().type == "cuda"


def test_memory(cuda):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    t = torch.empty(1 << 20, device=cuda)
    assert torch.cuda.memory_allocated() - before == 4 << 20
    del t
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() >= before + (4 << 20)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total and torch.cuda.memory_reserved() >= before


def test_streams_and_events(cuda):
    side, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x = torch.ones(1 << 20, device=cuda)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        start.record()
        y = x * 2
        end.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.current_stream().wait_event(end)
    end.synchronize()
    assert start.elapsed_time(end) > 0 and end.query() and y.sum().item() == 2 << 20


def test_random_numbers(cuda):
    def draws():
        return [
            torch.rand(1000, device=cuda),
            torch.randn(1001, device=cuda, dtype=torch.float64),
            torch.randint(-3, 9, (1000,), device=cuda),
            torch.randperm(50, device=cuda),
            torch.bernoulli(torch.full((1000,), 0.3, device=cuda)),
            torch.empty(1000, device=cuda).exponential_(2.0),
            torch.nn.functional.dropout(torch.ones(1000, device=cuda), 0.25),
            torch.multinomial(torch.tensor([0.0, 3.0, 1.0], device=cuda), 5, replacement=True),
            torch.poisson(torch.full((1000,), 4.0, device=cuda)),
            torch.normal(torch.zeros(1000, device=cuda), 2.0),
            torch.randn(8, device=cuda, dtype=torch.bfloat16),
        ]

    torch.manual_seed(3)
    first, more = draws(), draws()
    torch.cuda.manual_seed(3)
    again = draws()
    assert all(t.is_cuda for t in first)
    assert all(a.equal(b) for a, b in zip(first, again, strict=True)) and not first[0].equal(more[0])
    uniform, normal, whole, order, coins, waits, kept, *_ = first
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean().item() - 0.5) < 0.05
    assert abs(normal.mean().item()) < 0.1 and abs(normal.std().item() - 1) < 0.1
    assert whole.min() == -3 and whole.max() == 8 and order.sort()[0].tolist() == list(range(50))
    assert abs(coins.mean().item() - 0.3) < 0.06 and abs(waits.mean().item() - 0.5) < 0.08
    assert abs(kept.mean().item() - 1) < 0.08 and kept.unique().cpu().allclose(torch.tensor([0, 1 / 0.75]))


def test_words_are_philox(cuda):
    g = torch.Generator("cuda").manual_seed(0)
    words = [int(w) for w in g.words(4)]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8] and g.get_offset() == 4


def test_draws_are_those_of_the_stream_however_they_are_asked_for(cuda):
    torch.manual_seed(3)
    a = torch.randn(1001, device="cuda")
    b = torch.rand(7, device="cuda")
    torch.manual_seed(3)
    assert torch.randn((1001,), dtype=torch.float32, device=cuda).equal(a)
    assert torch.empty(7, device=cuda).uniform_().equal(b)
    assert abs(a.mean().item()) < 0.15 and abs(a.std().item() - 1) < 0.1 and a.shape == (1001,)
    torch.manual_seed(3)
    words = torch.cuda.default_generators[0].words(4)
    u = [int(w) / 2**32 for w in words]
    want = math.sqrt(-2 * math.log(1 - int(words[0] >> 8) / 2**24)) * math.cos(2 * math.pi * u[1])
    assert abs(a[0].item() - want) < 1e-4 and 0 <= b.min().item() < b.max().item() < 1


def test_generators(cuda):
    g = torch.Generator("cuda").manual_seed(5)
    state = g.get_state()
    a = torch.rand(5, device=cuda, generator=g)
    g.set_state(state)
    assert torch.rand(5, device=cuda, generator=g).equal(a) and state.shape == (16,) and g.device is cuda
    kept = torch.cuda.get_rng_state()
    b = torch.rand(3, device=cuda)
    torch.cuda.set_rng_state(kept)
    assert torch.rand(3, device=cuda).equal(b)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.rand(3, device=cuda, generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.rand(3, generator=g)


def test_randomised_leaks(cuda):
    x = -torch.ones(500, device=cuda)
    torch.manual_seed(1)
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    torch.manual_seed(1)
    assert y.is_cuda and y.equal(torch.nn.functional.rrelu(x, 0.1, 0.3, training=True))
    assert -0.3 <= y.min() and y.max() <= -0.1 and y.std() > 0.03


def test_the_precision_of_products_is_told_to_the_library(monkeypatch):
    from types import SimpleNamespace

    from pullback.core import cupy_library

    told = []
    library = SimpleNamespace(use_tf32=told.append)

    def loaded():
        return library

    loaded.cache_info = lambda: SimpleNamespace(currsize=1)
    monkeypatch.setattr(cupy_library, "loaded", loaded)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        assert torch.get_float32_matmul_precision() == "highest" and told == [True, False]
    finally:
        torch.set_float32_matmul_precision(before)
