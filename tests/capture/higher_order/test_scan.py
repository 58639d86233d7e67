"""`scan`: values against a loop, gradients through graphs, batches, fakes, refusals."""

from __future__ import annotations

import functools

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.higher_order.scan import generic_scan, scan, wrap_combine_fn_flat
from pullback.capture.trace.make_fx import make_fx
from pullback.capture.trace.program import UncapturedHigherOrderOpError
from pullback.core.tree import tree_flatten

DOUBLE = {"dtype": torch.float64}


def step(w):
    return lambda c, x: (c * x + w.sin(), (c * w, x * x))


def flat(xs, w):
    carry, (a, b) = scan(step(w), torch.ones(3, **DOUBLE), xs)
    return carry, a, b


def gradient(f, order: int):
    def run(*args):
        args = [t.detach().requires_grad_() for t in args]
        out = f(*args)
        for n in range(order):
            out = torch.autograd.grad(sum((o * o).sum() for o in out), args, create_graph=n + 1 < order)
        return out

    return run


def inputs():
    return torch.randn(4, 3, **DOUBLE), torch.randn(3, **DOUBLE)


def close(left, right) -> bool:
    return len(left) == len(right) and all(torch.allclose(a, b) for a, b in zip(left, right, strict=True))


def test_cumulative_sum():
    xs = torch.arange(5.0)
    last, out = scan(lambda c, x: (c + x, (c + x).clone()), torch.zeros(()), xs)
    assert last == 10 and torch.equal(out, xs.cumsum(0))


def test_reverse_and_dim():
    xs = torch.randn(2, 5)
    last, out = scan(lambda c, x: (c + x, (c + x).clone()), torch.zeros(2), xs, dim=1, reverse=True)
    assert torch.allclose(out, xs.flip([1]).cumsum(1).flip([1])) and torch.allclose(last, xs.sum(1))


def test_gradients():
    args = tuple(t.requires_grad_() for t in inputs())
    assert gradcheck(flat, args) and gradgradcheck(flat, args)


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_graphs(mode, order):
    f = gradient(flat, order) if order else flat
    args, others = inputs(), inputs()
    graph = make_fx(f, tracing_mode=mode)(*args)
    assert close(graph(*others), f(*others))
    calls = [n for n in graph.graph.nodes if n.target is torch.ops.higher_order.scan]
    assert len(calls) == {0: 1, 1: 2}.get(order, len(calls)) and calls


def test_an_integer_carry_has_no_gradient():
    def f(xs):
        (count, total), _ = scan(lambda c, x: ((c[0] + 1, c[1] * x), x.clone()), (torch.tensor(0), torch.ones(3)), xs)
        return (total * count,)

    run = gradient(f, 1)
    xs = torch.randn(4, 3)
    assert close(make_fx(run)(xs)(xs), run(xs))


@pytest.mark.parametrize("traced", [False, True])
def test_batches(traced):
    def f(xs, w):
        return scan(lambda c, x: (c * x, c + x), w, xs)

    xs, w = torch.randn(5, 4, 3), torch.randn(3)
    batched = torch.vmap(f, (0, None))
    got = make_fx(batched)(xs, w)(xs, w) if traced else batched(xs, w)
    want = [f(x, w) for x in xs]
    assert torch.allclose(got[0], torch.stack([c for c, _ in want]))
    assert torch.allclose(got[1], torch.stack([y for _, y in want]))


def test_fakes():
    xs = FakeTensorMode().from_tensor(torch.randn(4, 3))
    last, out = scan(lambda c, x: (c + x, (c * x).sum()), xs[0], xs)
    assert last.shape == (3,) and out.shape == (4,)


def test_refusals():
    xs = torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="Combine_fn must be a callable, but got 1"):
        scan(1, xs[0], xs)
    with pytest.raises(RuntimeError, match="requires init leaves"):
        scan(lambda c, x: (c, x), [], xs)
    with pytest.raises(RuntimeError, match="All xs leaves must be a Tensor but got 3"):
        scan(lambda c, x: (c, x), xs[0], [xs, 3])
    with pytest.raises(RuntimeError, match="scan dimension > 0"):
        scan(lambda c, x: (c, x), xs[0], torch.empty(0, 3))
    with pytest.raises(RuntimeError, match="Expected init and carry to have same metadata"):
        scan(lambda c, x: (c.double(), x), xs[0], xs)
    with pytest.raises(RuntimeError, match="Reverse must be a bool"):
        scan(lambda c, x: (c, x), xs[0], xs, reverse=1)


@pytest.mark.parametrize(
    "step, words",
    [
        (lambda c, x: c + x, "combine_fn needs to produce two pytrees"),
        (lambda c, x: (0.0, c + x), "to have same metadata"),
        (lambda c, x: ((c, c), c + x), "to have same number of outputs but got lhs"),
        (lambda c, x: (c + x, 1.0), "tensors to stack, but gave 1.0"),
    ],
)
def test_what_a_step_gives_is_refused_alike_everywhere(step, words):
    c, xs = torch.zeros(1), torch.ones(3, 1)
    for f in (scan, torch.compile(scan, fullgraph=True, backend="eager")):
        with pytest.raises(UncapturedHigherOrderOpError, match=words) as info:
            f(step, c, xs)
        assert "Higher Order Operator: torch.ops.higher_order.scan" in str(info.value)


def test_slices_keep_their_strides_in_a_graph():
    xs = torch.randn(4, 2, 3, 2).transpose(1, 3)
    step = lambda c, x: (c + x.sum(), x.reshape(-1) * 2)  # noqa: E731
    f = lambda xs: scan(step, torch.zeros(()), xs)  # noqa: E731
    got, want = torch.compile(f, backend="aot_eager", fullgraph=True)(xs), f(xs)
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))


def test_flat_steps():
    init, xs = [torch.zeros(3)], [torch.ones(5, 3)]
    step = functools.partial(
        wrap_combine_fn_flat, combine_fn=lambda c, x: ([c[0] + x[0]], [c[0]]), spec_init=tree_flatten(init)[1],
        spec_xs=tree_flatten(xs)[1], num_init_leaves=1, num_inp_leaves=1,
    )  # fmt: skip
    last, rows = generic_scan(step, init, xs)
    assert last.tolist() == [5.0] * 3 and rows[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
