"""Choosing implementations of attention, and attention with functions for scores and masks."""

import math

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.nn.attention import SDPBackend, sdpa_kernel
from pullback.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)  # fmt: skip


def _inputs(heads=2, keys=5):
    return [torch.randn(2, h, n, 4, dtype=torch.float64) for h, n in ((2, 5), (heads, keys), (heads, keys))]


def causal(b, h, q, kv):
    return q >= kv


def test_sdpa_kernel_restricts_the_choice():
    q, k, v = (t.requires_grad_() for t in _inputs())
    with sdpa_kernel(SDPBackend.MATH):
        assert F.scaled_dot_product_attention(q, k, v).grad_fn.name() == "UnsafeViewBackward0"
    name = F.scaled_dot_product_attention(q, k, v).grad_fn.name()
    assert name == "ScaledDotProductFlashAttentionForCpuBackward0"
    with pytest.raises(RuntimeError, match="No viable backend"), sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION]):
        F.scaled_dot_product_attention(q, k, v)


def test_flex_attention_is_attention():
    q, k, v = _inputs()
    assert torch.allclose(flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    mask = create_block_mask(causal, None, None, 5, 5)
    got = flex_attention(q, k, v, block_mask=mask, scale=0.3)
    assert torch.allclose(got, F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3))


def test_scores_are_changed_by_a_function_of_the_indices():
    q, k, v = _inputs()
    slopes = torch.tensor([0.5, 0.25], dtype=torch.float64)
    got = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + slopes[h] * (j - i))
    distance = (torch.arange(5)[None, :] - torch.arange(5)[:, None]).double()
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=(slopes[:, None, None] * distance).unsqueeze(0))
    assert torch.allclose(got, want)


def test_groups_and_log_sums():
    q, k, v = _inputs(heads=1)
    out, aux = flex_attention(q, k, v, enable_gqa=True, return_aux=AuxRequest(lse=True))
    scores = q @ k.transpose(-2, -1) / math.sqrt(4)
    assert torch.allclose(aux.lse, scores.logsumexp(-1)) and torch.allclose(out, scores.softmax(-1) @ v)
    with pytest.raises(ValueError, match="same number of heads but got Hq=2 and Hkv=1"):
        flex_attention(q, k, v)


def test_a_block_mask_knows_its_blocks():
    mask = create_block_mask(causal, 1, 1, 300, 260)
    assert mask.shape == (1, 1, 300, 260) and mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]] and mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2, 1]]] and f"{mask.sparsity():.2f}" == "-26.03"


def test_masks_are_combined():
    near = lambda b, h, q, kv: q - kv <= 1
    both, either = (
        create_mask(and_masks(causal, near), None, None, 3, 3),
        create_mask(or_masks(causal, near), None, None, 3, 3),
    )
    assert both[0, 0].tolist() == [[True, False, False], [True, True, False], [False, True, True]] and either.all()
    assert create_mask(noop_mask, 2, 1, 2, 2).shape == (2, 1, 2, 2)


def test_a_batch_of_none():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    assert layer(torch.zeros(0, 3, 4)).shape == (0, 3, 4)


def test_components_of_different_lengths_attend_to_themselves():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    parts = [torch.randn(3, 4), torch.randn(2, 4)]
    nested = torch.nested.nested_tensor(parts)
    with torch.no_grad():
        out, weights = attention(nested, nested, nested)
        for part, whole in zip(parts, out.unbind(), strict=True):
            torch.testing.assert_close(whole, attention(part[None], part[None], part[None])[0][0])
        assert out.is_nested and weights.shape == (2, 3, 3) and not weights[1, 2].any() and not weights[1, :, 2].any()
        assert attention(nested, nested, nested, need_weights=False)[1] is None
        assert torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()(nested).is_nested


def test_nested_tensors_that_attention_does_not_take():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    nested = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)])
    with pytest.raises(AssertionError, match="grad is enabled and .* or biases requires_grad"):
        attention(nested, nested, nested)
    with torch.no_grad():
        with pytest.raises(AssertionError, match="non-self attention was used"):
            attention(nested, nested.clone(), nested)
        with pytest.raises(AssertionError, match="masks are not supported with NestedTensor"):
            attention(nested, nested, nested, attn_mask=torch.zeros(3, 3, dtype=torch.bool))
        with pytest.raises(AssertionError, match="training is enabled"):
            attention.train()(nested, nested, nested)


def test_attention_in_one_call_takes_three_kinds_of_masks():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    x, padding = torch.randn(2, 3, 4), torch.tensor([[False, False, True], [False, True, True]])
    pairs = torch.ones(3, 3).triu(1).bool()
    weights = (attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias)

    def call(*mask):
        return torch._native_multi_head_attention(x, x, x, 4, 2, *weights, *mask)

    torch.testing.assert_close(call(), attention(x, x, x))
    torch.testing.assert_close(call(padding, True, True, 1), attention(x, x, x, padding))
    torch.testing.assert_close(call(pairs, True, True, 0), attention(x, x, x, attn_mask=pairs))
    each = pairs.expand(2, 2, 3, 3)
    torch.testing.assert_close(call(each, True, True, 2), attention(x, x, x, attn_mask=each.flatten(0, 1)))
    assert call(None, False)[1] is None
    with pytest.raises(RuntimeError, match="Mask Type should be defined"):
        call(pairs)


def test_nested_tensors_without_elements():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    with torch.no_grad():
        out = layer(torch.nested.nested_tensor([torch.rand(0, 4), torch.rand(0, 4)]))
        assert out.is_nested and [t.shape for t in out.unbind()] == [(0, 4), (0, 4)]
        nested = torch.nested.nested_tensor([torch.rand(0, 4)])
        assert layer.self_attn(nested, nested, nested)[1].shape == (1, 0, 0)
        with pytest.raises(AssertionError, match="MultiheadAttention does not support NestedTensor outside"):
            layer(torch.nested.nested_tensor([]))
