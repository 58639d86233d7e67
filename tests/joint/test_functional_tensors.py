"""Functionalization that is switched on and off: what is written in between, and what functional tensors hold."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.func import functionalize
from pullback.joint.functional_tensors import (
    CppFunctionalizeAPI,
    FunctionalTensor,
    FunctionalTensorMode,
    disable_functionalization,
    dispatch_functionalize,
    enable_functionalization,
    freeze,
    from_functional,
    is_functional,
    mirror_autograd,
    to_functional,
)

from .compare import is_impure


@pytest.fixture(autouse=True)
def switched_off():
    yield
    disable_functionalization()


def test_a_functional_tensor_has_memory_of_its_own():
    x = torch.ones(3)
    f = to_functional(x)
    assert is_functional(f) and not is_functional(x)
    f.add_(1)
    assert x.tolist() == [1, 1, 1] and from_functional(f).tolist() == [2, 2, 2]
    with pytest.raises(AssertionError, match="already"):
        to_functional(f)
    with pytest.raises(AssertionError, match="not functional"):
        from_functional(x)


def test_writes_in_between_are_there_afterwards():
    x, f = torch.zeros(2, 2), to_functional(torch.zeros(2, 2))
    enable_functionalization(reapply_views=True)
    x[0].add_(1)
    f.t()[0].add_(2)
    y = x + 1
    y[1] = 5
    assert is_functional(y) and from_functional(y).tolist() == [[2, 2], [5, 5]]
    disable_functionalization()
    assert x.tolist() == [[1, 1], [0, 0]] and f.tolist() == [[2, 0], [2, 0]] and y.tolist() == [[2, 2], [5, 5]]


def test_one_layer_only():
    enable_functionalization(reapply_views=False)
    with pytest.raises(RuntimeError, match="multiple layers"):
        enable_functionalization(reapply_views=False)


def switched(f):
    def run(*args):
        enable_functionalization(reapply_views=False)
        try:
            return from_functional(f(*[to_functional(a) for a in args]))
        finally:
            disable_functionalization()

    return run


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sin().add_(1).view(-1),
        lambda x: torch.cond(x.sum() > 0, lambda x: x.cos().mul_(2).t(), lambda x: x.sin(), (x,)),
        lambda x: torch.while_loop(lambda x: x.sum() < 3, lambda x: ((x + 1).add_(1),), (x,))[0],
    ],
)
def test_graphs_without_writes_and_views(f):
    x = torch.ones(2, 2)
    graph = make_fx(switched(f))(x)
    assert torch.equal(graph(x), f(x)) and torch.equal(graph(-x), f(-x))
    modules = [m for m in graph.modules() if hasattr(m, "graph")]
    assert not any(is_impure(n) for m in modules for n in m.graph.nodes)


def test_what_wants_a_gradient():
    x = torch.ones(2, requires_grad=True)
    f = to_functional(x)
    assert not f.requires_grad
    mirror_autograd(x, f)
    assert f.requires_grad


def test_values_at_the_borders():
    api = CppFunctionalizeAPI()
    inside = api.wrap_tensors((torch.ones(2), 3))
    assert is_functional(inside[0]) and inside[1] == 3
    assert not is_functional(api.unwrap_tensors(inside)[0])
    assert torch.equal(api.functionalize(lambda x: x.clone().add_(1))(torch.ones(2)), torch.full((2,), 2.0))


def test_a_block():
    x = torch.ones(2, requires_grad=True)
    with FunctionalTensorMode():
        f = FunctionalTensor.to_functional(x)
        assert isinstance(f, FunctionalTensor) and f.requires_grad and not isinstance(x, FunctionalTensor)
        y = f * 2
        y.add_(1)
        assert isinstance(y, FunctionalTensor) and from_functional(y).tolist() == [3, 3]
    assert y.tolist() == [3, 3] and x.tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="above autograd"):
        FunctionalTensorMode(pre_dispatch=True)


def test_a_trace_keeps_the_writes_of_what_was_switched_off():
    def f(x):
        given = to_functional(x)
        enable_functionalization(reapply_views=True)
        y = given.view(-1)
        y.add_(1)
        z = given * 2
        disable_functionalization()
        x.copy_(from_functional(given))
        return from_functional(y), from_functional(z)

    gm = make_fx(f)(torch.zeros(2, 2))
    x = torch.ones(2, 2)
    y, z = gm(x)
    assert y.tolist() == [2] * 4 and z.tolist() == [[4, 4], [4, 4]] and x.tolist() == [[2, 2], [2, 2]]


def test_a_value_lies_as_its_tensor_does():
    enable_functionalization(reapply_views=True)
    y = torch.empty_strided((2, 2), (5, 1))
    y.copy_(torch.ones(2, 2))
    disable_functionalization()
    assert from_functional(y).stride() == (5, 1) and from_functional(y).tolist() == [[1, 1], [1, 1]]


def test_a_function_on_functional_copies_writes_nothing():
    x = torch.ones(3)
    assert dispatch_functionalize(lambda t: (t.mul_(2), t + 1))(x)[1].tolist() == [3, 3, 3]
    assert x.tolist() == [1, 1, 1]
    c = torch.zeros(1)
    with FunctionalTensorMode():
        lifted = torch.ops.aten.lift_fresh.default(c)
        lifted.add_(1)
    assert c.item() == 0


def test_frozen_memory_takes_no_writes():
    x = to_functional(torch.ones(2, 2))
    enable_functionalization(reapply_views=True)
    y = x.clone()
    row = y[0]
    freeze(y)
    x.add_(1)
    for t in (y, row):
        with pytest.raises(RuntimeError, match="frozen"):
            t.add_(1)


@pytest.mark.parametrize(
    "shape, options", [((3,), {}), ((2, 2), {}), ((1, 2, 1, 2), {"memory_format": torch.channels_last})]
)
def test_a_resized_tensor_shows_the_memory_that_it_showed(shape, options):
    def f(x):
        y = x + 1
        row = y.view(-1)
        part = y.view(4, 2)[:3]
        part.resize_(*shape, **options)
        part.mul_(2)
        y.resize_(2)
        y.add_(1)
        return row + 0, part + 0, y + 0

    x = torch.arange(8.0)
    for mine, expected in zip(functionalize(f)(x), f(x), strict=True):
        assert mine.tolist() == expected.tolist()


def test_views_of_what_grows_show_what_they_did():
    def f(x):
        y = x + 1
        row = y.view(-1)
        y.resize_(3, 2)
        y.fill_(2)
        row.add_(1)
        return row + 0, y[:2] + 0

    for mine, expected in zip(functionalize(f)(torch.ones(2, 2)), f(torch.ones(2, 2)), strict=True):
        assert mine.tolist() == expected.tolist()


def test_no_view_grows():
    x = to_functional(torch.ones(4))
    enable_functionalization(reapply_views=True)
    with pytest.raises(RuntimeError, match="resize a view tensor to a larger size"):
        x.view(2, 2).resize_(3, 3)
