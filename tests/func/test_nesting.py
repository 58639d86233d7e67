"""Function transforms that are opened and closed by calls."""

import pytest

import pullback as torch
from pullback.func import nesting


def test_transforms_are_closed_innermost_first():
    assert nesting.open_vmap(3, "error") == 1
    assert nesting.open_grad() == 2
    assert nesting.open_jvp() == 3 == nesting.depth()
    with pytest.raises(RuntimeError, match="the innermost function transform is no grad"):
        nesting.close_grad()
    nesting.close_to(2)
    assert nesting.depth() == 2
    assert nesting.close_grad() == 1
    assert nesting.close_vmap() == 0
    with pytest.raises(RuntimeError, match="is no vmap"):
        nesting.close_vmap()


def test_what_is_open_inside_another_transform_is_not_closed_for_it():
    def inside(x):
        with pytest.raises(RuntimeError, match="closes by itself"):
            nesting.close_to(0)
        return x * 2

    assert torch.func.vmap(inside)(torch.ones(2)).tolist() == [2, 2]


def test_recording_is_on_inside_grad_and_as_before_afterwards():
    with torch.no_grad():
        nesting.open_grad()
        assert torch.is_grad_enabled()
        nesting.close_grad()
        assert not torch.is_grad_enabled()
