"""`map`: values against a loop, gradients through graphs, batches, refusals."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.higher_order.map import map as mapped
from pullback.capture.trace.make_fx import make_fx
from pullback.capture.trace.program import UncapturedHigherOrderOpError

DOUBLE = {"dtype": torch.float64}


def f(xs, w):
    return mapped(lambda x, k: x.sin() * w * k, xs, w.exp())


def inputs():
    return torch.randn(4, 3, **DOUBLE), torch.randn(3, **DOUBLE)


def test_values_of_nested_inputs():
    xs = {"a": torch.randn(4, 3), "b": torch.randn(4)}
    out = mapped(lambda x: (x["a"] * x["b"], {"sum": x["a"].sum()}), xs)
    assert torch.equal(out[0], xs["a"] * xs["b"][:, None])
    assert torch.allclose(out[1]["sum"], xs["a"].sum(1))


def test_gradients():
    args = tuple(t.requires_grad_() for t in inputs())
    assert gradcheck(f, args) and gradgradcheck(f, args)


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("order", [1, 2])
def test_graphs(mode, order):
    def run(*args):
        args = [t.detach().requires_grad_() for t in args]
        out = (f(*args),)
        for n in range(order):
            out = torch.autograd.grad(sum((o * o).sum() for o in out), args, create_graph=n + 1 < order)
        return out

    graph = make_fx(run, tracing_mode=mode)(*inputs())
    others = inputs()
    for got, want in zip(graph(*others), run(*others), strict=True):
        assert torch.allclose(got, want)
    assert sum(n.target is torch.ops.higher_order.map_impl for n in graph.graph.nodes) == order * (order + 1) // 2 + 1


@pytest.mark.parametrize("traced", [False, True])
def test_batches(traced):
    xs, w = torch.randn(5, 4, 3, **DOUBLE), torch.randn(3, **DOUBLE)
    batched = torch.vmap(lambda xs, w: mapped(lambda x, w: x * w, xs, w), (0, None))
    got = make_fx(batched)(xs, w)(xs, w) if traced else batched(xs, w)
    assert torch.allclose(got, xs * w)


def test_fakes():
    xs = FakeTensorMode().from_tensor(torch.randn(4, 3, requires_grad=True))
    out = mapped(lambda x: x.sum().exp(), xs)
    assert out.shape == (4,) and torch.autograd.grad(out.sum(), xs)[0].shape == (4, 3)


def test_refusals():
    with pytest.raises(RuntimeError, match="can only consist of tensors"):
        mapped(lambda x: x, [1])
    with pytest.raises(RuntimeError, match="cannot be 0"):
        mapped(lambda x: x, torch.empty(0, 2))
    with pytest.raises(RuntimeError, match="must be consistent"):
        mapped(lambda x: x[0], [torch.ones(2), torch.ones(3)])
    for f in (lambda x: x.sum().item(), lambda x: x.size()):
        with pytest.raises(
            UncapturedHigherOrderOpError, match=r"Higher Order Operator: torch.ops.higher_order.map_impl"
        ):
            mapped(f, torch.ones(2, 2))


@pytest.mark.parametrize(
    "f, words", [(lambda x: x.add_(1) * 2, "map might be modifying the input!"), (lambda x: x, "map might be aliasing")]
)
def test_a_functional_program_refuses_what_writes_or_gives_back_its_operands(f, words):
    with pytest.raises(RuntimeError, match=words):
        torch.func.functionalize(lambda xs: mapped(f, xs))(torch.ones(3, 2))
