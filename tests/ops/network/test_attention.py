"""Attention: the blocked operator against the computation written out, masks, gradients of both orders."""

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.autograd import gradcheck, gradgradcheck
from pullback.ops.network import attention_kernels


def _inputs(*lead, queries=5, keys=7, size=4, dtype=torch.float64, grad=False):
    shapes = ((*lead, queries, size), (*lead, keys, size), (*lead, keys, size))
    return [torch.randn(s, dtype=dtype, requires_grad=grad) for s in shapes]


def _masks(queries=5, keys=7):
    allowed = torch.rand(queries, keys) > 0.4
    allowed[1] = False  # a row that sees nothing
    return [
        None,
        allowed,
        torch.randn(queries, keys, dtype=torch.float64),
        torch.randn(2, 1, queries, keys, dtype=torch.float64),
    ]


def _written_out(q, k, v, **kwargs):
    return torch.ops.aten._scaled_dot_product_attention_math.default(q, k, v, **kwargs)[0]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("scale", [None, 0.3])
def test_blocked_is_written_out(which, scale):
    q, k, v = _inputs(2, 3)
    mask = _masks()[which]
    got = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    assert torch.allclose(got, _written_out(q, k, v, attn_mask=mask, scale=scale))


def test_blocks_make_no_difference(monkeypatch):
    q, k, v = _inputs(1, 2, queries=70, keys=50, grad=True)
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    wanted = torch.autograd.grad(whole.square().sum(), (q, k, v))
    monkeypatch.setattr(attention_kernels, "BLOCK", 1)
    parts = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(parts, whole)
    for got, want in zip(torch.autograd.grad(parts.square().sum(), (q, k, v)), wanted, strict=True):
        assert torch.allclose(got, want)


@pytest.mark.parametrize("which", range(4))
def test_gradients(which):
    q, k, v = _inputs(2, 1, queries=3, keys=4, size=2, grad=True)
    mask = _masks(3, 4)[which]
    call = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert gradcheck(call, (q, k, v))
    assert gradgradcheck(call, (q, k, v))


def test_a_mask_may_want_a_gradient():
    q, k, v = _inputs(1, 1, queries=2, keys=3, size=2, grad=True)
    mask = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), (q, k, v, mask))


def test_other_ranks_sizes_and_heads():
    q, k, v = _inputs(2)
    assert F.scaled_dot_product_attention(q, k, torch.randn(2, 7, 6, dtype=torch.float64)).shape == (2, 5, 6)
    q, k, v = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    grouped = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert torch.allclose(grouped[:, 1], F.scaled_dot_product_attention(q[:, 1:2], k[:, :1], v[:, :1])[:, 0], atol=1e-6)


def test_half_precision_stays():
    q, k, v = (t.to(torch.bfloat16) for t in _inputs(1, 2))
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.dtype is torch.bfloat16
    want = F.scaled_dot_product_attention(q.float(), k.float(), v.float())
    assert torch.allclose(out.float(), want, atol=2e-2)


def test_vmap_joins_the_batch():
    q, k, v = _inputs(3, 2, 2)
    mask = _masks()[1]
    got = torch.vmap(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, attn_mask=mask))(q, k, v)
    assert torch.allclose(got[1], F.scaled_dot_product_attention(q[1], k[1], v[1], attn_mask=mask))


@pytest.mark.parametrize(
    "kwargs, words",
    [
        (
            {"attn_mask": torch.ones(5, 7), "is_causal": True},
            "Explicit attn_mask should not be set when is_causal=True",
        ),
        ({"attn_mask": torch.ones(5, 7, dtype=torch.int64)}, "Expected attn_mask dtype to be bool or float"),
        ({"dropout_p": 1.5}, "dropout probability has to be between 0 and 1, but got 1.5"),
    ],
)
def test_errors(kwargs, words):
    with pytest.raises(RuntimeError, match=words):
        F.scaled_dot_product_attention(*_inputs(2, 2, dtype=torch.float32), **kwargs)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention_masks(need_weights):
    layer = torch.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True).double()
    x = torch.randn(5, 3, 8, dtype=torch.float64)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    out, weights = layer(x, x, x, key_padding_mask=padding, attn_mask=causal, need_weights=need_weights)
    if need_weights:
        assert weights.shape == (3, 5, 7)
        assert torch.allclose(weights.sum(-1), torch.ones(3, 5, dtype=torch.float64))
        assert weights[1, :, 3:5].abs().max() == 0 and weights[0, 0, 1:5].abs().max() == 0
    other, _ = layer(x, x, x, key_padding_mask=padding, attn_mask=causal, need_weights=not need_weights)
    assert torch.allclose(out, other)


@pytest.mark.parametrize(
    "q, k, v", [((2, 3, 0), (2, 4, 0), (2, 4, 5)), ((2, 0, 3), (2, 4, 3), (2, 4, 5)), ((2, 3, 3), (2, 0, 3), (2, 0, 5))]
)
def test_sizes_of_zero(q, k, v):
    out = F.scaled_dot_product_attention(torch.ones(q), torch.ones(k), torch.ones(v))
    assert tuple(out.shape) == (2, q[1], 5)
    assert out.numel() == 0 or out.unique().tolist() == [float(k[1] > 0)]


@pytest.mark.parametrize("size", [1, 3, 16, 20, 32, 40])
@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_any_size(size, causal):
    rng = np.random.default_rng(size)
    q, k, v = (torch.from_numpy(rng.standard_normal((2, 2, n, size))) for n in (70, 70, 70))
    seen = torch.ones(70, 70, dtype=torch.bool).tril() if causal else torch.ones(70, 70, dtype=torch.bool)
    weights = (q @ k.mT / size**0.5).masked_fill(~seen, -float("inf")).softmax(-1)
    for d, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        given = [t.to(d).requires_grad_() for t in (q, k, v)]
        found = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)
        torch.testing.assert_close(found.double(), weights @ v, rtol=tolerance, atol=tolerance)
        of_v = torch.autograd.grad(found.sum(), given[2])[0]
        torch.testing.assert_close(
            of_v.double(), weights.mT @ torch.ones_like(v), rtol=10 * tolerance, atol=10 * tolerance
        )


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("recorded", [False, True])
def test_heads_within_words_and_shared_heads(heads, recorded):
    words = [torch.randn(2, 5, n, 8, requires_grad=recorded) for n in (4, heads, heads)]
    q, k, v = (t.transpose(1, 2) for t in words)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert out.stride() == q.stride()  # heads within words again, as the queries lie
    whole = [t.repeat_interleave(4 // t.shape[1], 1).detach().contiguous().requires_grad_(recorded) for t in (q, k, v)]
    want = F.scaled_dot_product_attention(*whole, is_causal=True)
    torch.testing.assert_close(out, want)
    if recorded:
        out.square().sum().backward()
        want.square().sum().backward()
        for t, w in zip(words, whole, strict=True):
            shared = w.grad.unflatten(1, (t.shape[2], -1)).sum(2).transpose(1, 2)
            torch.testing.assert_close(t.grad, shared)
