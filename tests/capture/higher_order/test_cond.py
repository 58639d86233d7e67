"""`cond`: values, gradients, batches, fakes, graphs and functional programs, closed-over tensors included."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.higher_order.cond import merge_output
from pullback.capture.shapes import ShapeEnv
from pullback.capture.trace.make_fx import make_fx
from pullback.capture.trace.program import UncapturedHigherOrderOpError
from pullback.core.tree import tree_map_only
from pullback.joint.functionalize import Functionalization
from pullback.ops.system.overrides import TorchDispatchMode

DOUBLE = {"dtype": torch.float64}


def pick(x, w):
    y = w.exp()

    def first(x):
        with torch.no_grad():
            k = x * 3
        return (k * x + y * w, x.sin())

    return torch.cond(x.sum() > 0, first, lambda x: (x.cos() * y, x * torch.tensor([1.0, 2.0, 3.0], **DOUBLE)), (x,))


def gradients(f, order: int):
    """A function that gives gradients of `f` of some order."""

    def run(*args):
        args = [t.detach().requires_grad_() for t in args]
        out = f(*args)
        for n in range(order):
            total = sum((o * o).sum() for o in out)
            out = torch.autograd.grad(total, args, create_graph=n + 1 < order)
        return out

    return run


def functional(f):
    def run(*args):
        with Functionalization() as mode:
            out = f(*args)
        return tree_map_only(torch.Tensor, mode.value, out)

    return run


def close(left, right) -> bool:
    return len(left) == len(right) and all(torch.allclose(a, b) for a, b in zip(left, right, strict=True))


def inputs():
    return torch.tensor([0.3, -0.2, 0.5], **DOUBLE), torch.tensor([0.7, 0.1, -0.4], **DOUBLE)


def test_eager_is_the_chosen_function():
    x, w = inputs()
    assert torch.equal(torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,)), x * 2)
    assert torch.equal(torch.cond(x.sum() < 0, lambda x: x * 2, lambda x: x * 3, (x,)), x * 3)
    assert torch.equal(torch.cond(True, lambda x: x["a"], lambda x: x["a"] * 3, ({"a": x},)), x)


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_also_of_what_is_closed_over(sign):
    def without_switch(x, w):
        return torch.cond(x.sum() > 0, lambda x: x.sin() * w, lambda x: x.cos() + w**3, (x,))

    x, w = inputs()
    args = ((sign * x).requires_grad_(), w.requires_grad_())
    assert gradcheck(without_switch, args) and gradgradcheck(without_switch, args)


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("order", [0, 1])
def test_a_graph_holds_both_functions(mode, order):
    f = gradients(pick, order) if order else pick
    x, w = inputs()
    graph = make_fx(f, tracing_mode=mode)(x, w)
    for a in (x, -x):
        assert close(graph(a, w), f(a, w))
    calls = [n for n in graph.graph.nodes if n.target is torch.ops.higher_order.cond]
    assert len(calls) == order + 1


def test_gradients_of_gradients_in_a_graph():
    def f(x, w):
        return (torch.cond(x.sum() > 0, lambda x: x.sin() * w, lambda x: x.cos() + w**3, (x,)),)

    x, w = inputs()
    run = gradients(f, 2)
    graph = make_fx(run)(x, w)
    assert close(graph(x, w), run(x, w)) and close(graph(-x, w), run(-x, w))


def test_gradients_stop_at_each_closed_over_tensor():
    """One closed-over tensor is computed from another: the way between them counts once."""

    def f(x):
        y = x * 2
        z = y.exp()
        return (torch.cond(x.sum() > 0, lambda x: x * z * y, lambda x: x - z, (x,)),)

    x, _ = inputs()
    run = gradients(f, 1)
    assert close(make_fx(run)(x)(x), run(x)) and close(make_fx(run)(x)(-x), run(-x))


def test_the_graph_reads_as_expected():
    w = torch.ones(3)

    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + w, lambda x: x.cos(), (x,))

    lines = [line.strip() for line in make_fx(f)(torch.ones(3)).print_readable(False).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    assert lines[4:8] == [
        "true_graph_0 = self.true_graph_0",
        "false_graph_0 = self.false_graph_0",
        '_tensor_constant0: "f32[3]" = self._tensor_constant0',
        "cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1, _tensor_constant0));  "
        "gt = true_graph_0 = false_graph_0 = x_1 = _tensor_constant0 = None",
    ]
    assert 'def forward(self, arg0_1: "f32[3]", arg1_1: "f32[3]"):' in lines


def test_nested():
    w = torch.full((3,), 2.0)

    def inner(x):
        return torch.cond(x.sum() > 1, lambda x: x.sin(), lambda x: x * w, (x,))

    def f(x):
        return torch.cond(x.sum() > 0, inner, lambda x: x.cos(), (x,))

    graph = make_fx(f)(torch.ones(3))
    for value in (1.0, 0.1, -1.0):
        x = torch.full((3,), value)
        assert torch.allclose(graph(x), f(x))


def test_each_example_of_a_batch_chooses():
    def f(p, x):
        return torch.cond(p, lambda x: x.sin(), lambda x: x.cos(), (x,))

    p, xs = torch.tensor([True, False, True]), torch.randn(3, 2)
    want = torch.where(p[:, None], xs.sin(), xs.cos())
    assert torch.equal(torch.vmap(f)(p, xs), want)
    assert torch.equal(make_fx(torch.vmap(f))(~p, xs)(p, xs), want)
    one = make_fx(torch.vmap(f, (None, 0)))(torch.tensor(True), xs)
    assert torch.equal(one(torch.tensor(False), xs), xs.cos())
    assert any(n.target is torch.ops.higher_order.cond for n in one.graph.nodes)


def test_functional_programs():
    def f(x):
        y = x.clone()
        y.add_(1)
        return torch.cond(x.sum() > 0, lambda x: (x * 2).sin_() + y, lambda x: x.cos(), (x,))

    x = torch.ones(3)
    graph = make_fx(functional(f))(x)
    assert torch.allclose(graph(x), f(x)) and torch.allclose(graph(-x), f(-x))
    assert "sin_" not in graph.true_graph_0.code and "sin" in graph.true_graph_0.code


@pytest.mark.parametrize(
    "branch, words",
    [
        (lambda x: x.sin_(), "cond_true might be modifying the input!"),
        (lambda x: x.view(3), "cond_true might be aliasing the input or the output!"),
        (lambda x: x, "cond_true might be aliasing the input or the output!"),
    ],
)
def test_functional_programs_refuse_writes_and_aliases(branch, words):
    def f(x):
        return torch.cond(x.sum() > 0, branch, lambda x: x.cos(), (x,))

    with pytest.raises(RuntimeError, match=words):
        make_fx(functional(f))(torch.ones(3))


def test_fakes():
    x = FakeTensorMode().from_tensor(torch.ones(3, requires_grad=True))
    out = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    assert out.shape == (3,) and out.requires_grad
    assert torch.autograd.grad(out.sum(), x)[0].shape == (3,)
    with pytest.raises(RuntimeError, match="expected same dtype but got torch.float32 and torch.float64"):
        torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.double(), (x,))


def test_refusals():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="Expected pred to be bool or tensor, but got yes"):
        torch.cond("yes", torch.sin, torch.cos, (x,))
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        torch.cond(x, torch.sin, torch.cos, (x,))
    with pytest.raises(RuntimeError, match="Expect both branches to be callable"):
        torch.cond(x.sum() > 0, 1, torch.cos, (x,))
    with pytest.raises(RuntimeError, match="consists of tensor leaves"):
        torch.cond(x.sum() > 0, torch.sin, torch.cos, (1,))
    with pytest.raises(RuntimeError, match="true branch returns 2 item"):
        make_fx(lambda x: torch.cond(x.sum() > 0, lambda x: (x, x), lambda x: (x,), (x,)))(x)


def test_compiled():
    x, w = inputs()
    for backend in ("eager", "aot_eager"):
        a, b = ([t.clone().requires_grad_() for t in (x, w)] for _ in range(2))
        got, want = torch.compile(pick, backend=backend)(*a), pick(*b)
        assert close(got, want)
        sum(t.sum() for t in got).backward()
        sum(t.sum() for t in want).backward()
        assert close([t.grad for t in a], [t.grad for t in b])


def test_a_mode_may_answer():
    class Mode(TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return torch.ones(3, 3) if func is torch.ops.higher_order.cond else NotImplemented

    with Mode():
        assert torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.ones(1),)).shape == (3, 3)


def test_branches_that_differ_are_refused_by_name():
    x = torch.randn(3)
    for false in (lambda x: (x, x), lambda x: {"a": x + 1}):
        with pytest.raises(UncapturedHigherOrderOpError, match=r"Higher Order Operator: torch\.cond"):
            make_fx(lambda x: torch.cond(x.sum() > 0, torch.sin, false, (x,)))(x)  # noqa: B023
    with pytest.raises(RuntimeError, match="When merging two branches' output in torch.cond,  expected same dim"):
        make_fx(lambda x: torch.cond(x.sum() > 0, torch.sin, lambda x: torch.zeros(2, 2), (x,)))(x)


@pytest.mark.parametrize("f", [lambda x: x, lambda x: x.t(), lambda x: x.add_(1).sin()])
def test_compiled_branches_write_and_give_back_no_operand(f):
    with pytest.raises(UncapturedHigherOrderOpError, match=r"Higher Order Operator: torch\.cond"):
        torch.compile(lambda x: torch.cond(x.sum() > 0, f, f, (x,)), backend="aot_eager")(torch.randn(2, 2))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_branches_of_different_sizes_in_one_graph(backend, dynamic):
    f = lambda x: torch.cond(x.sum() > 0, lambda x: (x + 1)[2:].clone(), lambda x: x[:2].clone(), (x,)) * 2  # noqa: E731
    run = torch.compile(f, backend=backend, dynamic=dynamic, fullgraph=True)
    for x in (torch.ones(5, 4), -torch.ones(5, 4)):
        assert torch.equal(run(x), f(x))


@pytest.mark.parametrize(
    "a, b, want",
    [
        (((3,), (1,)), ((4,), (1,)), ("[u0]", "(1,)")),
        (((5, 5), (1, 5)), ((4, 5), (1, 4)), ("[u0, 5]", "(1, u0)")),
        (((2, 1), (1, 1)), ((7, 3), (3, 1)), ("[u0, u1]", "(u1, 1)")),
        (((2, 3), (0, 1)), ((2, 4), (0, 1)), ("[2, u0]", "(0, 1)")),
        (((3, 0), (1, 1)), ((3, 2), (2, 1)), ("[3, u0]", "(u0, 1)")),
        (((1, 3), (1, 1)), ((5, 6), (6, 1)), None),
        (((5, 4), (4, 1)), ((5, 5), (1, 5)), None),
        (((2, 3), (3, 1)), ((2, 3), (6, 1)), None),
        (((1,), (1,)), ((1,), (0,)), None),
    ],
)
def test_strides_of_what_either_branch_gives(a, b, want):
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        tensors = [torch.empty_strided(*t) for t in (a, b)]
    if want is None:
        with pytest.raises(RuntimeError, match="sorted order of strides"):
            merge_output(*tensors, mode)
    else:
        out = merge_output(*tensors, mode)
        assert (str(list(out.shape)), str(tuple(out.stride()))) == want
