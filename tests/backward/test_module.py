"""How a backward is compiled: one graph, or pieces around what must not be traced; sinks last."""

import pytest

import pullback as torch
from pullback.backward.compiled import enable, reset
from pullback.capture.front.backends import lookup_backend
from pullback.capture.front.compile import Unsupported, counters
from pullback.capture.front.config import config
from pullback.capture.front.dynamic import mark_dynamic


@pytest.fixture(autouse=True)
def fresh():
    reset()
    torch.compiler.reset()
    counters.clear()
    yield
    reset()


class Recorder:
    """A compiler of backwards that keeps the graphs it was given to compile."""

    def __init__(self, fullgraph=True, dynamic=True):
        self.fullgraph, self.dynamic, self.modules, self.graphs = fullgraph, dynamic, [], []

    def backend(self, module, inputs):
        self.graphs.append(module)
        return module

    def __call__(self, module):
        self.modules.append(module)
        return torch.compile(module, backend=self.backend, fullgraph=self.fullgraph, dynamic=self.dynamic)


def loss(x):
    return (x.exp() * x).sum()


def test_gradients_are_added_to_grad_after_one_graph():
    compiler = Recorder()
    x = torch.ones(3, requires_grad=True)
    first = torch.ones(3)
    x.grad = first
    for _ in range(3):
        with enable(compiler):
            loss(x).backward()
    assert len(compiler.graphs) == 1 and x.grad is first
    torch.testing.assert_close(x.grad, torch.full((3,), 1 + 6 * torch.e))


def test_a_grad_that_is_absent_is_another_graph():
    compiler = Recorder()
    x = torch.ones(3, requires_grad=True)
    for _ in range(4):
        with enable(compiler):
            loss(x).backward()
    assert counters["compiled_autograd"]["captures"] == 2


def test_a_hook_that_only_computes_is_in_the_graph():
    compiler = Recorder()
    for size in (2, 5):
        x = torch.ones(size, requires_grad=True)
        x.register_hook(double)
        with enable(compiler):
            x.sum().backward()
        assert x.grad.tolist() == [2.0] * size
    assert len(compiler.graphs) == 1
    assert any("mul" in n.name for n in compiler.graphs[0].graph.nodes)


def double(g):
    return g * 2


def test_a_hook_with_effects_runs_each_time():
    seen = []
    compiler = Recorder()
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.tolist()))
    for _ in range(3):
        with enable(compiler):
            loss(x).backward()
    assert len(seen) == 3


def test_what_a_hook_closes_over_may_change():
    factor = torch.ones(1)
    x = torch.ones(2, requires_grad=True)
    scale = 2.0
    x.register_hook(lambda g: g * scale * factor)
    grads = []
    for scale in (2.0, 7.0):  # noqa: B007 - the hook reads it
        x.grad = None
        with enable(Recorder()):
            x.sum().backward()
        grads.append(x.grad.tolist())
    assert grads == [[2.0, 2.0], [7.0, 7.0]]


def test_one_graph_that_prints_is_refused():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(shows)
    with enable(Recorder()), pytest.raises(Unsupported, match="print"):
        x.sum().backward()


def shows(g):
    print(g)


def test_retained_gradients_are_real():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    with enable(Recorder()):
        y.exp().sum().backward()
    torch.testing.assert_close(y.grad, y.detach().exp())


def test_sizes_that_change_are_symbols_without_asking():
    compiler = Recorder(dynamic=None)
    for size in (3, 4, 5, 6):
        x = torch.ones(size, 2, requires_grad=True)
        with enable(compiler):
            x.sum().backward()
        assert x.grad.shape == (size, 2)
    assert len(compiler.graphs) <= 2


def test_mark_dynamic_does_not_bind_the_backward():
    compiler = Recorder(dynamic=None)
    x = torch.randn(4, 3, requires_grad=True)
    mark_dynamic(x, 0)
    w = torch.randn(4, 3)
    with enable(compiler):
        (x * w).sum().backward()  # the sizes are those of a constant: they are no symbols
    assert torch.equal(x.grad, w)


@pytest.mark.parametrize("compiled_forward", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_that_are_differentiated_again_are_compiled(backend, compiled_forward):
    def f(x, w):
        return ((x @ w).tanh() * x).sum()

    def penalty(f, x, w):
        (g,) = torch.autograd.grad(f(x, w), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sin().sum(), x, create_graph=True)
        return torch.autograd.grad(h.pow(2).sum() + g.sum(), (x, w))

    count, graphs = lookup_backend(backend), []

    def recording(gm, examples):
        graphs.append(gm)
        return count(gm, examples)

    run = torch.compile(f, backend=backend) if compiled_forward else f
    for size in (3, 4):
        x, w = torch.randn(size, size, requires_grad=True), torch.randn(size, size, requires_grad=True)
        with (
            config.patch(compiled_autograd_create_graph=True),
            enable(lambda gm: torch.compile(gm, backend=recording, dynamic=True)),
        ):
            result = penalty(run, x, w)
        for ours, want in zip(result, penalty(f, x, w), strict=True):
            torch.testing.assert_close(ours, want, atol=1e-4, rtol=1e-4)
    assert len(graphs) >= 3  # the gradient, the gradient of that, and the last one


def test_gradients_that_are_differentiated_again_have_the_history_of_their_operators():
    x = torch.ones(3, requires_grad=True)
    with enable(lambda gm: torch.compile(gm, backend="aot_eager")):
        (g,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    assert g.grad_fn.name() == "AddBackward0"
