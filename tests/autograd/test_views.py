"""Views and in-place writes: history follows memory."""

import numpy as np
import pytest

import pullback as torch


@pytest.fixture
def leaf():
    return torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)


def test_a_write_to_a_view_is_a_write_to_the_base(leaf):
    base = leaf * 1
    base[1:3].mul_(10)
    base.sum().backward()
    assert base.grad_fn.name() == "CopySlices"
    assert leaf.grad.tolist() == [1.0, 10.0, 10.0, 1.0]


def test_views_made_before_a_write_to_the_base_see_it(leaf):
    base = leaf * 1
    view = base.view(2, 2)
    base.mul_(3)
    view[0].sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_writes_through_views_of_views_and_siblings(leaf):
    base = leaf * 1
    a, b = base.view(2, 2).t(), base[2:]
    a[0].mul_(5)
    b.add_(1)
    (base * base).sum().backward()
    values = np.array([5.0, 2.0, 16.0, 5.0])
    np.testing.assert_allclose(base.detach().numpy(), values)
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * values * np.array([5, 1, 5, 1]))


def test_a_base_without_gradient_gets_one_by_a_write():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    base = torch.ones(4)
    view, sibling = base[:2], base[1:3]
    view.mul_(w)
    assert base.requires_grad and sibling.requires_grad
    sibling.sum().backward()
    assert w.grad.tolist() == [0.0, 1.0]


def test_double_backward_through_a_written_view(leaf):
    base = leaf * 1
    base[:2].pow_(3)
    (g,) = torch.autograd.grad(base.sum(), leaf, create_graph=True)
    g.sum().backward()
    assert leaf.grad.tolist() == [6.0, 12.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "write, words",
    [
        (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        (
            lambda x: x[:2].add_(1),
            "a view of a leaf Variable that requires grad is being used in an in-place operation",
        ),
        (lambda x: (x * 1).unbind()[0].add_(1), "Output 0 of UnbindBackward0 is a view and is being modified inplace"),
    ],
)
def test_refused_writes_change_nothing(write, words, leaf):
    version = leaf._version
    with pytest.raises(RuntimeError, match=words):
        write(leaf)
    assert leaf._version == version and leaf.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_view_made_without_grad_may_not_be_written_with_grad(leaf):
    base = leaf * 1
    with torch.no_grad():
        view = base[:2]
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode enabled"
    ):
        view.mul_(2)
    assert base.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_retained_gradients_follow_a_write(leaf):
    y = leaf * 1
    y.retain_grad()
    y.mul_(2)
    y.sum().backward()
    assert y.grad.tolist() == [1.0] * 4


def test_a_view_made_without_recording_is_a_leaf_that_requires_grad(leaf):
    with torch.no_grad():
        view = leaf[:2]
    assert view.requires_grad and view.is_leaf and (view * 2).requires_grad and view[:1].grad_fn is not None
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3.0, 3.0] and leaf.grad is None
    with torch.no_grad():
        assert not (torch.ones(3)[:2] * 2).requires_grad


def test_a_view_of_a_base_that_was_detached_and_written(leaf):
    base = leaf * 1
    view = base[:2]
    base.detach_()
    (view * 3).sum().backward(retain_graph=True)
    assert leaf.grad.tolist() == [3.0, 3.0, 0.0, 0.0]
    base.mul_(2)
    assert view.requires_grad and view.grad_fn.name() == "AsStridedBackward0"
    (view * 5).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_other_bits_are_no_view_that_could_have_a_gradient():
    x = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    bits = x.view(torch.float32)
    assert not bits.requires_grad and not bits._is_view() and not (bits * 2).requires_grad
    assert bits.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
