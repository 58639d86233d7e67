"""Which overload a call means: found by its arguments once, then by their types."""

from __future__ import annotations

import pytest

import pullback as torch


def test_plans_of_calls_with_lists_of_integers():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for _ in range(3):  # the first call looks for the overload, others know it
        assert x.sum((0, 1)).tolist() == x.sum([0, 1]).tolist() == [60, 66, 72, 78]
        assert x.sum((-1,), True).shape == (2, 3, 1) and x.sum(1).shape == (2, 4)
        assert x.sum((0, 1), dtype=torch.float64).dtype is torch.float64
        assert x.sum(()).tolist() == 276
        assert (
            torch.linalg.vector_norm(x, 2, dim=[0, 1]).shape == torch.linalg.vector_norm(x, 2, dim=(0, 1)).shape == (4,)
        )
        for wrong in ((0, True), (0, 1.5), (0, "x")):
            with pytest.raises(TypeError):
                x.sum(wrong)
        with pytest.raises(IndexError):
            x.sum((0, 5))
