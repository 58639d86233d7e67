"""Writes of few elements by the function in C of the functional operator: what is written, counted and refused is what the rules say."""

import pytest

import pullback as torch

WRITES = {
    "tril_": lambda x: x.tril_(),
    "scatter_": lambda x: x.scatter_(1, torch.tensor([[0, 2], [1, 1]]), torch.ones(2, 2)),
    "put_": lambda x: x.put_(torch.tensor([0, 5]), torch.tensor([7.0, 8.0])),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([1]), 3.0),
    "masked_scatter_": lambda x: x.masked_scatter_(x > 4, torch.arange(9.0)),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_that_of_the_functional_operator(name):
    x = torch.arange(9.0).reshape(3, 3).clone()
    expected = WRITES[name](torch.arange(9.0).reshape(3, 3)[:])  # a view goes by the rules
    version = x._version
    assert WRITES[name](x) is x
    assert x._version == version + 1
    assert torch.equal(x, expected)


@pytest.mark.parametrize("name", WRITES)
def test_a_view_writes_into_its_base(name):
    base = torch.arange(12.0).reshape(3, 4).clone()
    part = base[:, :3]
    expected = WRITES[name](part.clone())
    WRITES[name](part)
    assert torch.equal(base[:, :3], expected)
    assert base._version == 1


def test_what_rules_refuse_is_refused():
    x = torch.zeros(3, 3)
    with pytest.raises(RuntimeError, match="out of bounds|index 7"):
        x.scatter_(1, torch.tensor([[7]]), 1.0)
    with pytest.raises((RuntimeError, IndexError)):
        x.put_(torch.tensor([99]), torch.tensor([1.0]))
    leaf = torch.zeros(3, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.tril_()
    assert torch.equal(x, torch.zeros(3, 3)) and x._version == 0
