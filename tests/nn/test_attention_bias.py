"""Causal biases: the same attention as with the mask they stand for."""

import pytest

import pullback as torch
from pullback.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left

attend = torch.nn.functional.scaled_dot_product_attention


def sample():
    torch.manual_seed(0)
    return [torch.randn(2, 2, n, 4, dtype=torch.float64) for n in (3, 5, 5)]


@pytest.mark.parametrize("make, shift", [(causal_upper_left, 0), (causal_lower_right, 2)])
def test_same_as_mask(make, shift):
    q, k, v = sample()
    bias = make(3, 5)
    mask = torch.ones(3, 5, dtype=torch.bool).tril(shift)
    assert torch.equal(bias._materialize(), mask) and repr(bias) == str(bias) == repr(mask)
    assert torch.allclose(attend(q, k, v, attn_mask=bias), attend(q, k, v, attn_mask=mask))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(q, k, v, attn_mask=bias, is_causal=True)


def test_bad_arguments():
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        causal_upper_left(2)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(5, 3)
    assert isinstance(CausalBias(CausalVariant.UPPER_LEFT, 2, 2), torch.Tensor)
