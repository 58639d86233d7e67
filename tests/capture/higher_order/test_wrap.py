"""Functions that stand as one call."""

from __future__ import annotations

import pullback as torch
from pullback.capture.higher_order import wrap
from pullback.capture.higher_order.wrap import wrap_with_autocast, wrap_with_set_grad_enabled


def test_calls_under_a_setting():
    x = torch.randn(3, requires_grad=True)
    assert wrap(torch.sin, x).requires_grad
    assert not wrap_with_set_grad_enabled(False, torch.sin, x).requires_grad and torch.is_grad_enabled()
    y = torch.randn(3, 3)
    assert wrap_with_autocast("cpu", torch.bfloat16, True, None, torch.mm, y, y).dtype == torch.bfloat16
