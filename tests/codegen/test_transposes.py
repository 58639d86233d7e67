"""Transposes that undo each other are left out where operators run one by one; results stay tensors of their own."""

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen.transposes import untransposed


def trimmed(function, *args):
    module = make_fx(function, tracing_mode="fake")(*args)
    found = untransposed(module.graph)
    module.graph.lint()
    module.recompile()
    return module, found, sum(n.target is torch.ops.aten.t.default for n in module.graph.nodes)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x.t().t().exp(), 0),
        (lambda x: x.exp().t().t(), 0),
        (lambda x: x.t().t().t().exp(), 1),
        (lambda x: x.exp().t().t().t().t(), 0),
        (lambda x: (x.t().t().exp(), x.t().sin()), 1),
        (lambda x: x.t().exp().t(), 2),
        (lambda x: x.t().t(), 2),  # it would give its argument itself
        (lambda x: (lambda y: (y, y.t().t()))(x.exp()), 2),  # it would give one result twice
        (lambda x: (lambda y: (y.t().t(), y.t().t()))(x.exp()), 2),
    ],
)
def test_pairs_are_left_out_but_where_a_result_would_be_another_tensor(function, left) -> None:
    x = torch.arange(6.0).view(2, 3)
    module, found, count = trimmed(function, x)
    assert count == left and found == (left < sum(n.name.startswith("t") for n in make_fx(function)(x).graph.nodes))
    given, wanted = module(x), function(x)
    torch.testing.assert_close(given, wanted)
    results = [given] if isinstance(given, torch.Tensor) else list(given)
    assert len({id(t) for t in (x, *results)}) == 1 + len(results)
    assert [t.stride() for t in results] == [t.stride() for t in ([wanted] if results[0] is given else wanted)]


def test_layers_of_many_sizes_have_the_gradients_of_the_program() -> None:
    first, second = torch.nn.Linear(3, 5), torch.nn.Linear(5, 4)
    parameters = [*first.parameters(), *second.parameters()]

    def f(x):
        return second(first(x).tanh()).square().sum()

    run = torch.compile(f, dynamic=True)
    for n in range(2, 14):  # more than get native code of their own
        x = torch.randn(n, 3, requires_grad=True)
        ours, theirs = (torch.autograd.grad(call(x), [x, *parameters]) for call in (run, f))
        torch.testing.assert_close(ours, theirs)
