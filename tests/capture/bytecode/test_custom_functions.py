"""Custom functions in captured programs: what they print is printed once per call, and their Python is compiled around it."""

import gc
import weakref

import pytest

import pullback as torch


class Counting:
    def __init__(self):
        self.graphs = []

    def __call__(self, gm, examples):
        self.graphs.append(gm)
        return gm


class Prints(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward")
        ctx.save_for_backward(x)
        ctx.note = "kept"
        return x.sin() + 1

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert ctx.note == "kept"
        return g * x.cos()


class PrintsInSetup(torch.autograd.Function):
    @staticmethod
    def forward(x, factor=2.0):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        print("forward")
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()


@pytest.mark.parametrize("function", [Prints, PrintsInSetup])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_printing_happens_once_per_call(function, backend, capsys):
    f = torch.compile(lambda x: function.apply(x * 2) * 3, backend=backend)
    for _ in range(3):
        x = torch.linspace(0, 1, 4).requires_grad_()
        y = x.detach().clone().requires_grad_()
        out = f(x)
        assert capsys.readouterr().out == "forward\n"
        want = function.apply(y * 2) * 3
        torch.testing.assert_close(out, want)
        torch.testing.assert_close(*(torch.autograd.grad(o.sum(), t) for o, t in ((out, x), (want, y))))
        capsys.readouterr()


def test_the_forward_is_compiled_after_what_it_prints():
    count = Counting()
    f = torch.compile(Prints.apply, backend=count)
    f(torch.ones(3, requires_grad=True))
    assert any(n.target is torch.ops.aten.sin.default for g in count.graphs for n in g.graph.nodes)


def test_sizes_that_changed_are_symbols_when_the_same_code_is_compiled_again():
    def f(x):
        return x * 2

    for graphs in (2, 1):
        count = Counting()
        run = torch.compile(f, backend=count)
        for size in (3, 4, 5):
            run(torch.ones(size))
        assert len(count.graphs) == graphs


def test_a_capture_keeps_no_tensor_of_its_call():
    f = torch.compile(lambda x: x.sin() + 1, backend="eager")
    x = torch.randn(3)
    known = weakref.ref(x)
    f(x)
    del x
    gc.collect()
    assert known() is None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_leaf_that_a_program_makes_is_made_between_graphs(backend):
    def f(scale):
        x = torch.full((3,), 2.0, requires_grad=True)
        y = (x * x * scale).sum()
        y.backward()
        return x.grad

    assert torch.compile(f, backend=backend)(3.0).tolist() == [12.0] * 3


class OfList(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, others):
        ctx.save_for_backward(*others)
        return x * (others[0] + others[1])

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * (a + b), None


class Filling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, others):
        others.append(x * 2)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g, None


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_list_of_tensors_is_given_to_a_custom_function(backend):
    f = torch.compile(lambda x, others: OfList.apply(x, others), backend=backend, fullgraph=True)
    for scale in (1.0, 2.0):
        x, others = torch.ones(2, requires_grad=True), [torch.full((2,), scale, requires_grad=True), torch.ones(2)]
        f(x, others).sum().backward()
        assert x.grad.tolist() == [scale + 1] * 2 and others[0].grad is None
    fill, seen = torch.compile(lambda x, others: Filling.apply(x, others), backend=backend), []
    for _ in range(3):
        fill(torch.ones(1), seen)
    assert [t.item() for t in seen] == [2.0] * 3
