"""Lazy modules in programs that must be one graph: they are initialized before it is made."""

import pytest

import pullback as torch
from pullback.capture.trace.program import Unsupported
from pullback.nn.lazy import LazyModuleMixin

pytestmark = pytest.mark.filterwarnings("ignore:Lazy modules")


def model():
    return torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(2))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_they_become_what_an_uncompiled_call_makes_of_them(backend):
    ours, plain, x = model(), model(), torch.randn(3, 5)
    torch.manual_seed(0)
    first = torch.compile(ours, backend=backend, fullgraph=True)(x)
    torch.manual_seed(0)
    torch.testing.assert_close(first, plain(x))
    assert type(ours[0]) is torch.nn.Linear and ours[0].weight.shape == (4, 5)
    first.sum().backward()
    assert ours[0].weight.grad.shape == (4, 5)


def test_arguments_are_those_of_the_call():
    class Layer(LazyModuleMixin, torch.nn.Module):
        def initialize_parameters(self, xs, *, k):
            self.weight = torch.nn.Parameter(xs["a"][0].detach() * k)

        def forward(self, xs, *, k):
            return xs["a"][0] * self.weight

    layer, x = Layer(), torch.tensor([1.0, 2.0])
    out = torch.compile(lambda x: layer({"a": [x + 1]}, k=3), backend="eager", fullgraph=True)(x)
    assert out.tolist() == [12.0, 27.0] and layer.weight.tolist() == [6.0, 9.0]


def test_random_numbers_keep_their_order():
    m = model()
    with pytest.raises(Unsupported, match="random numbers were drawn"):
        torch.compile(lambda x: m(torch.rand(3, 5) + x), backend="eager", fullgraph=True)(torch.ones(3, 5))
    assert m[0].has_uninitialized_params()


def test_an_error_of_theirs_is_the_programs():
    class Bad(LazyModuleMixin, torch.nn.Module):
        def initialize_parameters(self, x):
            raise ValueError("no shape here")

        def forward(self, x):
            return x

    with pytest.raises(ValueError, match="no shape here"):
        torch.compile(Bad(), backend="eager", fullgraph=True)(torch.ones(2))


def test_where_a_graph_may_end_plain_python_initializes_them():
    m, seen = model(), []

    def f(x):
        y = m(torch.rand(3, 5) + x)
        seen.append(1)
        return y

    plain, x = model(), torch.ones(3, 5)
    torch.manual_seed(0)
    out = torch.compile(f, backend="eager")(x)
    torch.manual_seed(0)
    torch.testing.assert_close(out, plain(torch.rand(3, 5) + x))
    assert seen == [1]
