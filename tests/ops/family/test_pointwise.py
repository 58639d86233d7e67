"""Element-wise operators, past the quick ways to them."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.mark.parametrize("name", ["i0", "sigmoid", "lgamma", "erf"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_without_dimensions_gives_a_tensor_that_can_be_written(name, dtype):
    x = torch.tensor(0.5, dtype=dtype)
    result = getattr(torch.ops.aten, name)(x)
    before = result.item()
    assert result.mul_(2).item() == 2 * before
