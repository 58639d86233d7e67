"""Tensors as Python objects: attributes, protocols, conversions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import pullback as torch


def test_facts() -> None:
    t = torch.zeros(2, 3, dtype=torch.float64)
    assert (t.shape, t.ndim, t.numel(), t.stride(), t.dtype) == ((2, 3), 2, 6, (3, 1), torch.float64)
    assert t.size(-1) == 3 and t.is_contiguous() and not t.t().is_contiguous() and t.nbytes == 48
    assert t.is_leaf and t.grad is None and t.grad_fn is None and t._version == 0


def test_protocols() -> None:
    t = torch.arange(3)
    assert list(t) == [0, 1, 2] and len(t) == 3 and 2 in t and float(t[1]) == 1.0 and [5, 6, 7][t[2]] == 7
    assert np.asarray(t).tolist() == [0, 1, 2] and np.add(t, 1).tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(t[0])
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(t[0])
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(t)


def test_copies() -> None:
    t = torch.arange(3.0, requires_grad=True)
    for result in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert result.tolist() == [0, 1, 2] and result.requires_grad and result.is_leaf and result is not t
    pair = copy.deepcopy([base := torch.zeros(3), base[1:]])
    pair[0][1] = 4
    assert pair[1][0] == 4
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(t * 2)


def test_versions_count_writes_of_all_views() -> None:
    t = torch.zeros(3)
    view = t[1:]
    view.add_(1)
    t.mul_(2)
    assert t._version == view._version == 2 and t.detach()._version == 2 and t.clone()._version == 0


def test_a_saved_tensor_that_is_written_is_noticed() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    out = y.sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_numpy_ufuncs_give_tensors():
    x = torch.tensor([1.0, 4.0])
    assert isinstance(np.sqrt(x), torch.Tensor) and np.sqrt(x).tolist() == [1, 2]
    assert np.add(np.ones(2), x).dtype is torch.float64
    assert np.greater(x, 2).dtype is torch.uint8


def test_a_number_of_a_tensor_that_wants_gradients_warns():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
            float(torch.tensor(2.0, requires_grad=True))
    finally:
        torch.set_warn_always(False)


def test_sizes_leave_other_types_their_sum():
    class Other:
        def __radd__(self, left):
            return len(left)

    assert torch.Size([1, 2]) + Other() == 2
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        torch.Size([1]) + [2]


def test_subclasses_of_no_tensor_are_refused():
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        torch.ones(1).as_subclass(int)
    with pytest.raises(TypeError, match="is not an acceptable base type"):
        type("Mine", (torch.FloatTensor,), {})


def test_dir_lists_what_the_tensor_has():
    x = torch.ones(2)
    assert "_offsets" not in dir(x)
    assert "_offsets" in dir(torch.nested.nested_tensor([x, torch.ones(3)], layout=torch.jagged))
    x.mine = 1
    assert {"mine", "shape"} <= set(dir(x))


def test_questions_about_devices_are_descriptors():
    """Subclasses wrap them by `Tensor.is_mps.__get__`, and functions of `__torch_function__` are compared with it."""
    x = torch.ones(2)
    for name in ("is_quantized", "is_mps", "is_xpu", "is_ipu", "is_xla", "is_vulkan", "is_maia", "is_mtia", "is_cuda"):
        assert getattr(torch.Tensor, name).__get__(x) is getattr(x, name) is False
