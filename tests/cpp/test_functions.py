"""torch::autograd::Function in C++: eager backward, double backward, and compiled autograd."""

from __future__ import annotations

import gc
import weakref

import pytest

import pullback as torch
from pullback.backward.compiled import enable
from pullback.capture.front.compile import counters


@pytest.fixture
def functions(build):
    return build("functions")


def test_gradients_of_all_orders(functions):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = functions.cube(x, scale=2.0)
    torch.testing.assert_close(y, x**3 * 2)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    torch.testing.assert_close((g, gg), ((6 * x * x).detach().requires_grad_(), (12 * x).detach()), check_stride=False)
    assert torch.autograd.gradcheck(lambda t: functions.cube(t, 0.5), (x,))


def test_the_node(functions):
    x = torch.ones(2, requires_grad=True)
    node = functions.cube(x).grad_fn
    assert node.name() == "torch::autograd::CppNode<Cube>"
    assert node.next_functions[0][0].variable is x
    assert node.saved_data == {"dims": [0, 1], "power": 3, "scale": 1.0}
    assert not functions.cube(x.detach()).requires_grad


def test_buffers_are_kept_or_freed(functions):
    x = torch.ones(2, requires_grad=True)
    y = functions.cube(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_saved_tensors_are_watched(functions):
    x = torch.ones(2, requires_grad=True)
    leaf = x.clone()
    y = functions.cube(leaf).sum()
    leaf.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_lists_options_and_outputs_without_gradient(functions):
    a, b = torch.tensor([1.0, 5.0], requires_grad=True), torch.tensor([3.0, 2.0], requires_grad=True)
    total, product, place = functions.sum_and_product([a, b], None)
    assert total.requires_grad and not place.requires_grad and place.item() == 1
    product.sum().backward()
    assert a.grad.tolist() == [3, 2] and b.grad.tolist() == [1, 5]
    total, _, _ = functions.sum_and_product([a, b.detach()], torch.ones(1))
    total.sum().backward()
    assert a.grad.tolist() == [4, 3] and b.grad.tolist() == [1, 5]


def test_writing_in_place(functions):
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    z = functions.double_in_place(y)
    assert z is y and y.tolist() == [2, 2] and y._version == 1 + 1
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        functions.double_in_place(x)


def test_a_wrong_number_of_gradients(functions):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"CppNode<Wrong> returned an incorrect number of gradients \(expected 2, got 1\)"
    ):
        functions.wrong(x, x).sum().backward()


def test_gradients_asked_for_in_cpp(functions):
    assert functions.gradient_of_square(torch.tensor([1.0, 3.0])).tolist() == [2, 6]


def test_nothing_is_leaked(functions):
    x = torch.ones(2, requires_grad=True)
    y = functions.cube(x)
    seen = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("name", ["cube", "sum"])
def test_compiled_backward(functions, name):
    def run():
        for scale in (1.0, 1.0, 2.0):
            x = torch.arange(4.0, requires_grad=True)
            out = functions.cube(x, scale) if name == "cube" else functions.sum_and_product([x, x.detach()], None)[1]
            (out * out).sum().backward()
            yield x.grad

    expected = list(run())
    counters["compiled_autograd"].clear()
    with enable(lambda graph: torch.compile(graph, fullgraph=name == "cube")):
        torch.testing.assert_close(list(run()), expected)
    assert counters["compiled_autograd"]["captures"] == 1


@pytest.mark.parametrize("traceable", [True, False])
def test_what_is_saved_in_compiled_backwards(functions, traceable):
    """Numbers are inputs of one graph, whatever they are; another set of names is another graph."""

    def run(names):
        for n, named in zip((0, 1, 2, 7, -1), names, strict=True):
            x = torch.ones(3, requires_grad=True)
            functions.shift(x * 2, n, traceable, named).sum().backward()
            yield x.grad.tolist()

    for names, captures in (([False] * 4 + [False], 2), ([False, True, False, True, False], 3)):
        graphs, expected = [], list(run(names))
        counters["compiled_autograd"].clear()

        def compile(graph, graphs=graphs):
            graphs.append(graph)
            return torch.compile(graph)

        with enable(compile):
            assert list(run(names)) == expected == [[2 * (1 + n)] * 3 for n in (0, 1, 2, 7, -1)]
        assert counters["compiled_autograd"]["captures"] == len(graphs) == captures  # negative numbers are constants


def test_inside_a_compiled_function(functions):
    @torch.compile
    def f(x):
        return functions.cube(x * 2).sum()

    x = torch.ones(3, requires_grad=True)
    f(x).backward()
    assert x.grad.tolist() == [24, 24, 24]
