"""`flex_attention`: against attention with a mask, and block masks against the masks they stand for."""

import pytest

import pullback as torch
from pullback.nn.attention import flex_attention as flex
from pullback.nn.functional import scaled_dot_product_attention

causal = lambda b, h, q, kv: q >= kv
near = lambda b, h, q, kv: (q - kv).abs() <= 2


def heads(n=2, length=8, size=4):
    torch.manual_seed(0)
    return [torch.randn(1, n, length, size) for _ in range(3)]


def test_masks_and_scores():
    q, k, v = heads()
    block = flex.create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=4)
    expected = scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(flex.flex_attention(q, k, v, block_mask=block), expected, atol=1e-6)
    hide = lambda score, b, h, q, kv: torch.where(q >= kv, score, -float("inf"))
    assert torch.allclose(flex.flex_attention(q, k, v, hide), expected, atol=1e-6)
    assert torch.equal(flex.create_mask(hide, 1, 1, 8, 8), flex.create_mask(causal, 1, 1, 8, 8))
    few = [t[:, :1] for t in (k, v)]
    grouped = flex.flex_attention(q, *few, block_mask=block, enable_gqa=True)
    whole = scaled_dot_product_attention(q, *[t.expand(1, 2, 8, 4) for t in few], is_causal=True)
    assert torch.allclose(grouped, whole, atol=1e-6)


def test_rows_that_see_nothing_are_zero():
    out = flex.flex_attention(*heads(), block_mask=flex.create_block_mask(lambda b, h, q, kv: q + kv < 0, 1, 1, 8, 8))
    assert out.abs().sum() == 0


def test_what_comes_with_the_result():
    q, k, v = heads()
    scores = q @ k.transpose(-2, -1) / 2
    out, aux = flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True, max_scores=True))
    assert torch.allclose(aux.lse, scores.logsumexp(-1), atol=1e-5)
    assert torch.allclose(aux.max_scores, scores.amax(-1), atol=1e-5)
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        assert torch.allclose(flex.flex_attention(q, k, v, return_lse=True)[1], aux.lse)
    assert flex.flex_attention(q, k, v, return_aux=flex.AuxRequest())[1] == flex.AuxOutput(None, None)


def test_masks_are_combined():
    mask = lambda mod: flex.create_mask(mod, 1, 1, 6, 6)
    assert torch.equal(mask(flex.and_masks(causal, near)), mask(causal) & mask(near))
    assert torch.equal(mask(flex.or_masks(causal, near)), mask(causal) | mask(near))
    assert mask(flex.noop_mask).all()
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        flex.and_masks(causal, 3)


def test_blocks():
    block = flex.create_block_mask(causal, 2, 1, 8, 8, BLOCK_SIZE=4)
    assert block.shape == (2, 1, 8, 8) and block.numel() == 128 and block.sparsity() == 25
    assert block.to_dense()[0, 0].tolist() == [[1, 0], [1, 1]]
    assert block.to_string(limit=1) == "(0, 0)\n██  \n████"
    assert str(block).startswith("BlockMask(shape=(2, 1, 8, 8), sparsity=25.00%")
    assert "BLOCK_SIZE=(4, 4)" in repr(block) and "mask_mod=<lambda>" in repr(block)
    assert block[1].shape == (1, 1, 8, 8) and block[1].to_dense()[0, 0].tolist() == [[1, 0], [1, 1]]
    moved = block.to("cpu")
    assert moved.mask_mod is causal and torch.equal(moved.kv_indices, block.kv_indices)
    assert len(block.as_tuple()) == 13 and block.as_tuple(flatten=False)[0] == (8, 8)
    joined = flex.create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=4, separate_full_blocks=False)
    assert joined.full_kv_indices is None and joined.to_dense()[0, 0].tolist() == [[1, 0], [1, 1]]
    by_query = flex.BlockMask.from_kv_blocks(block.kv_num_blocks, block.kv_indices, compute_q_blocks=False)
    assert by_query.q_indices is None and by_query.shape == (2, 1, 256, 256)


def test_what_does_not_fit():
    q, k, v = heads()
    small = flex.create_block_mask(causal, 1, 1, 4, 4)
    counts = torch.ones(1, dtype=torch.int32)
    for call, error, words in (
        (lambda: flex.flex_attention(q[0], k[0], v[0]), NotImplementedError, "must be 4D tensors"),
        (lambda: flex.flex_attention(q, k[..., :2], v), ValueError, "E=4 and E=2"),
        (lambda: flex.flex_attention(q, k[:, :1], v[:, :1]), ValueError, "Try setting enable_gqa=True"),
        (lambda: flex.flex_attention(*[heads(n)[0] for n in (3, 2, 2)], enable_gqa=True), ValueError, "a multiple of kv heads"),
        (lambda: flex.flex_attention(q, k, v, block_mask=small), ValueError, "created for a smaller length"),
        (lambda: flex.flex_attention(q, k, v, return_lse=True, return_aux=flex.AuxRequest()), ValueError, "both return_lse"),
        (lambda: flex.create_block_mask(3, 1, 1, 4, 4), TypeError, "3 is not a callable object"),
        (lambda: flex.BlockMask.from_kv_blocks(counts, counts, counts), AssertionError, "both provided or omitted"),
        (lambda: flex.BlockMask((4, 4), counts, counts, *[None] * 6), RuntimeError, "must have at least 2 dimensions"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call()
