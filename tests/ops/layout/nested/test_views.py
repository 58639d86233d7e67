"""Views of nested tensors: they are their base's memory, and writes to them are in the gradients of the base."""

import pytest

import pullback as torch

VIEWS = {
    "transpose": lambda y: y.transpose(1, 2),
    "select": lambda y: y.select(0, 1),
    "values": lambda y: y.values(),
    "unsqueeze": lambda y: y.unsqueeze(-1),
    "slice": lambda y: y[:, :, 1:2],
    "last slice": lambda y: y.narrow(2, 1, 2),
    "view": lambda y: y.reshape(2, -1, 3, 1),
}
STRIDED = {"narrow": lambda y: y.narrow(0, 0, 1), "chunk": lambda y: y.chunk(3, -1)[0]}


def nested(layout):
    parts = [torch.arange(6.0).reshape(2, 3) + 1, torch.arange(9.0).reshape(3, 3) + 1]
    return torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("name", [*VIEWS, *STRIDED])
def test_writes_to_views_reach_base_and_gradients(layout, name):
    if layout == "jagged" and name in STRIDED:
        pytest.skip("jagged tensors are not narrowed along the batch, and pieces of several are not written")
    x = nested(getattr(torch, layout))
    y = x * 2
    v = {**VIEWS, **STRIDED}[name](y)
    assert v._is_view() and v._base is y
    before = [p.clone() for p in y.detach().unbind()]
    v.mul_(3)
    factors = [b / a for a, b in zip(before, y.detach().unbind(), strict=True)]
    assert {f for p in factors for f in p.reshape(-1).tolist()} <= {1.0, 3.0} and any((f == 3).any() for f in factors)
    sum(p.sum() for p in y.unbind()).backward()
    for factor, g in zip(factors, x.grad.unbind(), strict=True):
        assert torch.equal(g, 2 * factor)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_history_of_a_view_follows_writes_to_its_base(layout):
    x = nested(getattr(torch, layout))
    y = x * 2
    v = y.transpose(1, 2)
    version = y._version
    y.mul_(5)
    assert y._version == version + 1 == v._version
    sum(p.sum() for p in v.unbind()).backward()
    assert all(torch.equal(g, torch.full_like(g, 10.0)) for g in x.grad.unbind())


def test_values_written_after_a_tensor_was_made_on_them():
    values = torch.ones(5, 3, requires_grad=True)
    y = values * 1
    nt = torch.nested.nested_tensor_from_jagged(y, torch.tensor([0, 2, 5]))
    y.mul_(4)
    assert nt._base is y
    nt.values().sum().backward()
    assert torch.equal(values.grad, torch.full((5, 3), 4.0))


def test_a_dense_tensor_is_the_base_of_its_rows():
    for layout in (torch.strided, torch.jagged):
        t = torch.arange(12.0).reshape(2, 3, 2).clone()
        nt = torch.nested.as_nested_tensor(t, layout=layout)
        assert nt._base is t and torch.equal(nt.unbind()[1], t[1])
        assert torch.nested.as_nested_tensor(t.transpose(0, 1), layout=layout)._base is None


def test_elements_that_are_no_components_take_no_part():
    x = torch.nested.nested_tensor([torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0]])], requires_grad=True)
    x.chunk(2, -1)[0].log().unbind()[1].sum().backward()
    assert [g.tolist() for g in x.grad.unbind()] == [[[0.0, 0.0]], [[0.5, 0.0]]]


def test_a_leaf_is_written_without_gradients_alone():
    x = nested(torch.jagged)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.mul_(2)
    with torch.no_grad():
        x.mul_(2)
    assert x.unbind()[0][0].tolist() == [2.0, 4.0, 6.0] and x.is_leaf
