"""Arguments that factories and conversions refuse, or warn of, as PyTorch does."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch


def test_a_number_with_a_gradient_is_no_number():
    x, weight = torch.ones(2), torch.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match="'value'"):
        x.addcmul(x, x, value=weight)
    with pytest.raises(TypeError):
        torch.isclose(x, x, torch.tensor(1.0, requires_grad=True))
    assert x.addcmul(x, x, value=weight.detach()).tolist() == [3, 3]


def test_start_of_narrow():
    x = torch.arange(3)
    assert x.narrow(0, torch.tensor(1), 2).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="start must be an 0-dim integral Tensor"):
        x.narrow(0, torch.tensor(0.0), 1)


def test_out_of_another_layout():
    with pytest.raises(RuntimeError, match="does not match layout of out parameter"):
        torch.zeros(2, 2, layout=torch.sparse_coo, out=torch.zeros(2, 2))


def test_warnings():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="required to pass the indexing argument"):
            torch.meshgrid(torch.ones(2))
        with pytest.warns(UserWarning, match="list of numpy.ndarrays is extremely slow"):
            torch.tensor([np.ones(2), np.ones(2)])
        with pytest.warns(UserWarning, match="torch.range is deprecated"):
            torch.range(0, 2)
    finally:
        torch.set_warn_always(False)


def test_devices_by_strings_that_are_none():
    with pytest.raises(RuntimeError, match="Invalid device string: 'not a device'"):
        torch.device("not a device")
    with pytest.raises(TypeError, match="requires a callable"):
        torch.autocast("cpu")(3)


def test_a_bool_is_no_size():
    for make in (torch.zeros, torch.ones, torch.empty, torch.randn, torch.rand):
        with pytest.raises(TypeError, match="must be tuple of ints"):
            make(True)
        with pytest.raises(TypeError, match="element of type bool at pos 0"):
            make((True, 2))
    with pytest.raises(TypeError, match=r"size\(\): argument 'dim' .* must be int, not bool"):
        torch.ones(2, 3).size(True)
    with pytest.raises(TypeError, match=r"stride\(\): argument 'dim' .* must be int, not bool"):
        torch.ones(2, 3).stride(True)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.LongTensor((6, 0), 1, 1)
