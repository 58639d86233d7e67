"""Arithmetic on plain numbers: what the symbolic functions say of what is not symbolic."""

from __future__ import annotations

import math

import pytest

import pullback as torch
from pullback.core import symbolic


def test_plain_numbers_give_pythons_answers():
    assert torch.sym_int(2.7) == 2 and torch.sym_float(2) == 2.0 and torch.sym_not(False) is True
    assert torch.sym_max(2, 3) == 3 and torch.sym_min(2, 3.5) == 2.0 and type(torch.sym_min(2, 3.5)) is float
    assert torch.sym_sum([1, 2, 3]) == 6 and torch.sym_ite(True, 1, 2) == 1 and torch.sym_sqrt(4) == 2.0
    assert torch._sym_log2(8) == 3.0 and symbolic.sym_tanh(0.5) == math.tanh(0.5)
    with pytest.raises(TypeError, match="both values must be of one type"):
        torch.sym_ite(True, 1, 2.0)


def test_checks():
    torch._check(True)
    torch._check_is_size(3)
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        torch._check(False)
    with pytest.raises(ValueError, match="no"):
        torch._check_value(False, lambda: "no")
    for name, error in (("index", IndexError), ("type", TypeError), ("not_implemented", NotImplementedError)):
        with pytest.raises(error):
            getattr(torch, f"_check_{name}")(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(1)
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    with pytest.raises(KeyError):
        torch._check_with(KeyError, False, lambda: "no")
