"""`func.functionalize`: the same function, and traced, one without writes."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.func import functionalize, grad, vmap

from .compare import is_impure


def writes(x):
    y = x.clone()
    y[0].mul_(2)
    y.t().add_(1)
    return y


def reads_views(x):
    y = x * 2
    return y.t()[0].unsqueeze(0)


def called(graph) -> list[str]:
    return [n.target.name for n in graph.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("f", [writes, reads_views])
def test_values_and_graphs(f, remove):
    x = torch.randn(3, 3)
    pure = functionalize(f, remove=remove)
    assert torch.equal(pure(x), f(x))
    graph = make_fx(pure)(x)
    assert torch.equal(graph(x), f(x)) and not any(is_impure(n) for n in graph.graph.nodes)
    if remove == "mutations_and_views":
        assert not {"t", "select", "unsqueeze", "view", "transpose"} & set(called(graph))


def test_views_stay_unless_asked():
    assert "t" in called(make_fx(functionalize(reads_views))(torch.ones(2, 2)))
    copies = called(make_fx(functionalize(reads_views, remove="mutations_and_views"))(torch.ones(2, 2)))
    assert "t_copy" in copies and "unsqueeze_copy" in copies


def test_inputs_are_written_at_the_end():
    def f(x):
        x.add_(1)
        return x * 2

    x, y = torch.zeros(2), torch.zeros(2)
    assert torch.equal(functionalize(f)(x), f(y)) and torch.equal(x, y)
    graph = make_fx(functionalize(f))(torch.zeros(2))
    names = called(graph)
    assert names.count("copy_") == 1 and "add_" not in names
    z = torch.zeros(2)
    assert graph(z).tolist() == [2, 2] and z.tolist() == [1, 1]


def test_with_other_transforms():
    x = torch.randn(3)

    def f(x):
        y = x.sin()
        y.mul_(2)
        return y.sum()

    assert torch.allclose(grad(functionalize(f))(x), 2 * x.cos())
    assert torch.allclose(vmap(functionalize(f))(torch.stack([x, x])), torch.stack([f(x), f(x)]))


def test_other_words_for_remove():
    with pytest.raises(RuntimeError, match="received invalid argument for remove=views"):
        functionalize(writes, remove="views")


def test_views_in_functions_of_operators_are_copied_too():
    f = lambda x: torch.cond(x.sum() > 0, lambda x: x.t() + 1, lambda x: x * 2, (x,))  # noqa: E731
    x = torch.randn(2, 2)
    graph = make_fx(functionalize(f, remove="mutations_and_views"))(x)
    assert torch.equal(graph(x), f(x)) and called(graph.true_graph_0) == ["t_copy", "add"]


def test_writes_through_views_under_vmap():
    def f(x):
        x.view(4, 2).add_(1)
        return x

    x = torch.zeros(1, 4, 2)
    assert vmap(functionalize(f))(x).sum() == 8 and x.sum() == 8
    for given in (
        lambda: functionalize(f)(torch.zeros(1, 4, 2)[0]),
        lambda: vmap(functionalize(f))(torch.zeros(4, 2)[None])[0],
    ):
        assert given()[1].tolist() == [1, 1]  # of a view, too

    def g(x):
        y = x + 1
        z = y.view(-1)
        y.add_(1)
        return z

    assert vmap(functionalize(g))(torch.zeros(3, 2)).tolist() == [[2, 2]] * 3
    out, tangent = vmap(functionalize(lambda x, t: torch.func.jvp(g, (x,), (t,))))(torch.zeros(1, 2), torch.ones(1, 2))
    assert out.tolist() == [[2, 2]] and tangent.tolist() == [[1, 1]]


def test_gradients_after_the_function_read_what_it_wrote():
    """The product's gradient is the other factor, which the function wrote after it was made, in part through a view."""

    def f(v):
        weight = torch.zeros(2)
        weight[0] = 2
        weight[1:].add_(3.0)
        return v * weight

    x = torch.tensor([0.5, -1.0], requires_grad=True)
    for g in (functionalize(f), functionalize(f, remove="mutations_and_views"), torch.compile(functionalize(f))):
        assert torch.autograd.grad(g(x).sum(), x)[0].tolist() == [2.0, 3.0]
    assert torch.func.jacrev(functionalize(f))(x.detach()).diagonal().tolist() == [2.0, 3.0]
    columns = functionalize(torch.func.jacfwd(torch.square))(x)
    assert torch.autograd.grad(columns.sum(), x)[0].tolist() == [2.0, 2.0]


def test_functions_that_write_tensors_of_inference_mode():
    def f(x):
        with torch.inference_mode():
            y = x * 2
            y[0] = 7.0
            return y.view(-1)

    result = functionalize(f)(torch.ones(2, requires_grad=True))
    assert result.tolist() == [7, 2] and result.is_inference()
    with torch.inference_mode():
        x = torch.ones(2)

    def g(x):
        with torch.inference_mode():
            x.add_(1)

    functionalize(g)(x)
    assert x.tolist() == [2, 2]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_all_writes_of_a_function_are_one(remove):
    def f(x, y):
        x.floor_()
        x[:2].sin_()
        return x + y

    x, y = torch.ones(4), torch.ones(4)
    functionalize(f, remove=remove)(x, y)
    assert (x._version, y._version) == (1, 0)
