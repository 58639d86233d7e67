"""Memory of tensors: copies with gradients, new memory under deterministic algorithms, tensors from other tensors."""

import copy
import pickle

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.core.storage import Storage
from pullback.utils import deterministic


def test_a_deep_copy_has_a_gradient_without_requiring_one():
    x = torch.ones(2)
    x.grad = torch.full((2,), 2.0)
    assert copy.deepcopy(x).grad.tolist() == [2.0, 2.0]


def test_the_private_name_of_a_gradient_is_the_gradient():
    p = torch.ones(2, requires_grad=True)
    p._grad = torch.full((2,), 3.0)
    assert p.grad is p._grad and p.grad.tolist() == [3.0, 3.0]


@pytest.fixture
def deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    deterministic.fill_uninitialized_memory = True


def test_new_memory_stands_out_where_results_must_not_depend_on_it(deterministic_algorithms):
    like = torch.ones(2)
    result = torch.empty(3), torch.empty_like(like), like.new_empty(2), torch.empty_strided((2, 2), (1, 4))
    assert all(t.isnan().all() for t in result)
    assert torch.empty(2, dtype=torch.int16).tolist() == [2**15 - 1] * 2
    assert torch.empty(2, dtype=torch.bool).all() and torch.empty(1, dtype=torch.complex64).real.isnan().all()
    assert torch.ones(1).resize_(3).isnan().tolist() == [False, True, True]
    deterministic.fill_uninitialized_memory = False
    with pytest.raises(RuntimeError, match="must be a bool, but got int"):
        deterministic.fill_uninitialized_memory = 1
    assert not torch.zeros(3).isnan().any()


def test_asarray_keeps_a_tensor_that_requires_grad():
    x = torch.ones(2, requires_grad=True)
    assert torch.asarray(x) is x


@pytest.mark.parametrize("function", [F.gelu, F.relu, F.linear, F.softmax, torch.sin, torch.max, torch.Tensor.add])
def test_functions_are_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function


def test_resizing_in_a_memory_format():
    like = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert torch.empty(0).resize_(2, 3, 4, 5, memory_format=torch.channels_last).stride() == like.stride()
    assert torch.empty(0).resize_as_(like, memory_format=torch.preserve_format).stride() == like.stride()
    assert torch.empty(0).resize_as_(like).is_contiguous()


def test_memory_of_a_conjugate_view_is_not_what_it_means():
    x = torch.tensor([1 + 2j])
    assert x.view(torch.float32).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        x.conj().view(torch.float32)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set"):
        x.conj().imag.view(torch.int32)


def test_resizing_to_the_same_shape_keeps_strides():
    x = torch.empty(2, 3).t()
    assert x.resize_as_(x).stride() == (1, 3) and x.resize_(3, 2).stride() == (1, 3)


@pytest.mark.parametrize("value", [3, 2.5, True])
def test_a_number_is_copied_into_every_element(value):
    x = torch.zeros(2, 3)
    assert x.copy_(value) is x
    assert x.tolist() == [[float(value)] * 3] * 2
    assert torch.ops.aten.copy_(torch.zeros(2, dtype=torch.int64), value).tolist() == [int(value)] * 2
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        x.copy_("3")


def test_set_gives_a_new_shape_the_memory_it_needs():
    t = torch.randn(1)
    t.set_(t.untyped_storage(), 100, (2, 3))
    assert t.shape == (2, 3) and t.storage_offset() == 100 and t.untyped_storage().nbytes() == 424
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 424"):
        t.set_(t.untyped_storage(), 1000, t.size())
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
        t.set_(torch.randn(2).untyped_storage(), 0, (4,), (1,))
    with pytest.raises(
        RuntimeError, match="Expected a Storage of type float or an UntypedStorage, but got type Double"
    ):
        t.set_(torch.randn(2, dtype=torch.float64).storage())


def test_sparse_tensors_have_no_order_of_dimensions_and_are_made_of_no_storage():
    sparse = torch.eye(2).to_sparse()
    with pytest.raises(AttributeError, match="Can't get dim order on sparse type"):
        sparse.dim_order()
    with pytest.raises(TypeError, match="got .UntypedStorage."):
        sparse.new(torch.ones(3).untyped_storage())


def test_growing_memory_that_one_tensor_has_looks_for_no_others(monkeypatch):
    looked = []
    monkeypatch.setattr(Storage, "tensors", lambda self, look=Storage.tensors: looked.append(1) or look(self))
    x = torch.ones(2)
    assert x.resize_(3)[:2].tolist() == [1, 1] and not looked
    out = torch.empty(0)
    assert torch.add(x[:2], 1, out=out).tolist() == [2, 2] and not looked
    y = torch.ones(2)
    view, alias = y[1:], y.detach()
    y.resize_(4).fill_(5)
    assert looked and view.tolist() == [5] and alias.tolist() == [5, 5]


def test_a_tensor_fills_no_memory_that_elements_share():
    expanded = torch.zeros(1).expand(3)
    assert expanded.fill_(2).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        expanded.fill_(torch.tensor(3.0))


def test_a_tensor_with_history_that_gets_other_memory_has_no_gradient_any_more():
    """What was recorded is of the numbers that it had."""
    for pair in (
        lambda z: (z * 2, torch.ones(4)),
        lambda z: (torch.zeros(4), z),
        lambda z: (torch.zeros(4), z * 2),
    ):
        z = torch.ones(4, requires_grad=True)
        target, source = pair(z)
        target.set_(source)
        assert target.requires_grad and target.grad_fn.name() == "NotImplemented"
        with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
            target.sum().backward()
    base = torch.ones(4, requires_grad=True) * 2
    base[:2].set_(torch.ones(2))
    assert base.grad_fn.name() == "CopySlices"
    plain = torch.zeros(4)
    assert not plain.set_(torch.ones(3).requires_grad_().detach()).requires_grad and plain.shape == (3,)
    with torch.no_grad():
        assert plain.set_(torch.ones(2, requires_grad=True)).grad_fn is None


def test_leaves_and_their_views_get_no_other_memory():
    leaf = torch.ones(4, requires_grad=True)
    for view in (lambda: leaf, lambda: leaf[:2], lambda: leaf.t()):
        for source in (torch.ones(2), torch.ones(2).untyped_storage(), None):
            with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
                view().set_(source)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        (leaf * 2).unbind()[0].set_(torch.ones(2))
    with torch.no_grad():
        assert leaf.set_(torch.ones(2)).shape == (2,) and leaf.is_leaf


def test_tangents_do_not_get_lost_with_memory():
    x = torch.ones(4)
    for f in (lambda v: torch.zeros(4).set_(v) * 2, lambda v: (v * 2).set_(torch.ones(4)) * 2):
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with set_"):
            torch.func.jvp(f, (x,), (x,))
    with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
        torch.func.jvp(lambda v: (v * 2).resize_(2), (x,), (x,))
