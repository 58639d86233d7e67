"""`_view_func`: the same view of another base, and which tensors nested views are views of."""

import pullback as torch


def test_a_view_of_another_base():
    x = torch.arange(12.0).reshape(4, 3).clone()
    other = x + 100
    assert torch.equal(x[1:].t()._view_func(other), other[1:].t())
    assert torch.equal(x.unbind(0)[2]._view_func(other), other[2])
    assert x[1:]._view_func(other)._base is other


def test_no_view_and_a_base_that_lies_otherwise_give_nothing():
    x = torch.ones(4, 3)
    assert x._view_func(x) is None
    assert x[1:]._view_func(torch.ones(2)) is None and x[1:]._view_func(torch.ones(3, 4).t()) is None


def test_jagged_tensors_are_views_of_the_values_they_are_made_on():
    values, offsets = torch.arange(10.0).reshape(5, 2).clone(), torch.tensor([0, 2, 5])
    nested = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert nested._is_view() and nested._base is values
    replayed = nested._view_func(values + 1)
    assert torch.equal(replayed.values(), values + 1) and replayed.shape == nested.shape
    base = torch.arange(12.0).reshape(6, 2).clone()
    assert torch.nested.nested_tensor_from_jagged(base[1:], offsets)._base is base
    dense = torch.ones(2, 3, 4)
    assert torch.nested.as_nested_tensor(dense, layout=torch.jagged)._base is dense
    assert not torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)._is_view()


def test_lists_know_their_longest_and_shortest():
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    assert nested._metadata_cache == {"min_seqlen": 2, "max_seqlen": 4}
