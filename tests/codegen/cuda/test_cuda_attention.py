"""Attention over tiles: kernels written by hand, on the emulator of a device, against the operators of the CPU in double precision."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F

CASES = {  # batch, heads, queries, keys, size of a head
    "tiles": (1, 2, 128, 128, 64),
    "one_tile": (2, 3, 16, 16, 16),
    "ends_within": (1, 2, 70, 70, 32),
    "more_keys": (1, 1, 40, 130, 16),
    "more_queries": (1, 1, 130, 40, 48),
    "wide": (1, 1, 48, 80, 128),
}
TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 3e-3}


def step(q, k, v, g, causal, scale):
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    return (out, *torch.autograd.grad(out, (q, k, v), g))


def check(emulated, shape, d, causal, scale=None, split=False):
    batch, heads, length, span, size = shape
    torch.manual_seed(0)
    q, g = (torch.randn(batch, heads, length, size) for _ in range(2))
    k, v = (torch.randn(batch, heads, span, size) for _ in range(2))
    rounded = [t.to(d) for t in (q, k, v, g)]
    if split:  # heads side by side in one row, as a linear layer gives them
        rounded[:3] = torch.stack([t.transpose(1, 2) for t in rounded[:3]], 2).permute(2, 0, 3, 1, 4).unbind(0)
    inputs = [t.requires_grad_() for t in rounded[:3]]
    compiled = emulated(lambda *args: step(*args, causal, scale), *inputs, rounded[3])
    text = "\n".join(f for s in compiled.segments for f in s.source.functions)
    assert text.count("attention_") == 3, "by tiles"
    got = compiled(*inputs, rounded[3])
    want = step(*[t.detach().double().requires_grad_() for t in inputs], rounded[3].double(), causal, scale)
    for a, b in zip(got, want, strict=True):
        assert a.dtype is d and a.shape == b.shape
        assert float((a.double() - b).abs().max()) <= TOLERANCE[d] * float(b.abs().max())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_sizes(emulated, name, causal):
    check(emulated, CASES[name], torch.bfloat16, causal)


def test_float16(emulated):
    check(emulated, CASES["ends_within"], torch.float16, True)


def test_scales(emulated):
    check(emulated, CASES["one_tile"], torch.bfloat16, False, -0.7)
    check(emulated, CASES["one_tile"], torch.bfloat16, True, 3)


def test_heads_of_one_matrix(emulated):
    check(emulated, (2, 3, 40, 40, 16), torch.bfloat16, True, split=True)


def test_rows_between_vectors_are_copied(emulated):
    whole = [torch.randn(1, 2, 20, 17).to(torch.bfloat16) for _ in range(3)]
    f = lambda q, k, v: (F.scaled_dot_product_attention(q[..., 1:], k[..., 1:], v[..., 1:]),)
    (got,) = emulated(f, *whole)(*whole)
    (want,) = f(*[t.double() for t in whole])
    assert float((got.double() - want).abs().max()) < 2e-2


@pytest.mark.parametrize("size", [20, 144])
def test_other_sizes_of_heads_are_products(emulated, size):
    xs = [torch.randn(1, 2, 20, size).to(torch.bfloat16) for _ in range(3)]
    compiled = emulated(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v),), *xs)
    assert "attention_" not in "\n".join(f for s in compiled.segments for f in s.source.functions)
    want = F.scaled_dot_product_attention(*[t.double() for t in xs])
    assert float((compiled(*xs)[0].double() - want).abs().max()) < 2e-2


def test_causal_attention_by_products_leaves_out_keys_that_are_not_seen(emulated):
    torch.manual_seed(0)
    q, k, v, g = (torch.randn(1, 2, 256, 8) for _ in range(4))
    whole = torch.stack([q, k, v]).permute(0, 1, 3, 2, 4).contiguous().permute(0, 1, 3, 2, 4).requires_grad_()

    def f(whole, g):
        out = F.scaled_dot_product_attention(*whole, is_causal=True)
        return (out, *torch.autograd.grad(out, whole, g))

    compiled = emulated(f, whole, g)
    products = [e for s in compiled.segments for e in s.source.plan.entries if e[0] == 1]
    assert len(products) == 2 * 2 + 2 * 5
    assert sum(e[3] * e[4] * e[5] for e in products) < 0.76 * 7 * 256 * 256 * 8
    want = f(whole.detach().double().requires_grad_(), g.double())
    for a, b in zip(compiled(whole, g), want, strict=True):
        assert float((a.double() - b).abs().max()) < 2e-5


def test_sequences_that_are_short_or_uneven_are_whole(emulated):
    for length in (64, 257):
        xs = [torch.randn(1, 1, length, 8) for _ in range(3)]
        compiled = emulated(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True),), *xs)
        assert sum(e[0] == 1 for s in compiled.segments for e in s.source.plan.entries) == 2
        want = F.scaled_dot_product_attention(*[x.double() for x in xs], is_causal=True)
        assert float((compiled(*xs)[0].double() - want).abs().max()) < 1e-5


SINGLE = {
    "tiles": (1, 2, 128, 128, 64),
    "one_tile": (2, 3, 16, 16, 16),
    "ends_within": (1, 2, 70, 70, 32),
    "more_keys": (1, 1, 40, 130, 16),
    "more_queries": (1, 1, 130, 40, 64),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", list(SINGLE))
def test_float32_is_computed_by_tiles_and_its_gradients_by_products(emulated, name, causal):
    batch, heads, length, span, size = SINGLE[name]
    torch.manual_seed(0)
    q, g = (torch.randn(batch, heads, length, size) for _ in range(2))
    k, v = (torch.randn(batch, span, heads, size).transpose(1, 2) for _ in range(2))
    inputs = [t.requires_grad_() for t in (q, k, v)]
    compiled = emulated(lambda *args: step(*args, causal, -0.3), *inputs, g)
    assert "\n".join(f for s in compiled.segments for f in s.source.functions).count("attention_single") == 1
    got = compiled(*inputs, g)
    want = step(*[t.detach().double().requires_grad_() for t in inputs], g.double(), causal, -0.3)
    for a, b in zip(got, want, strict=True):
        assert a.dtype is torch.float32 and a.shape == b.shape
        assert float((a.double() - b).detach().abs().max()) <= 3e-6 * max(float(b.detach().abs().max()), 1)


def test_float32_that_may_be_rounded_to_tf32_is_products(emulated, monkeypatch):
    from pullback.core.modes import process

    monkeypatch.setattr(process, "matmul_precision", "high")
    xs = [torch.randn(1, 1, 64, 32) for _ in range(3)]
    compiled = emulated(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v),), *xs)
    assert "attention_" not in "\n".join(f for s in compiled.segments for f in s.source.functions)
