"""backward() and optimizers inside compiled functions: one graph, and everything outside as the engine leaves it."""

import functools
import weakref

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.capture.front.backends import lookup_backend
from pullback.capture.front.config import config

BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition"]


class Counting:
    def __init__(self, backend: str) -> None:
        self.backend, self.graphs = lookup_backend(backend), []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        return self.backend(graph, inputs)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()


def train(optimizer, schedule: bool, compile) -> tuple[list, list]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 3))
    opt = optimizer(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20) if schedule else None

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    step = compile(step)
    losses = []
    for _ in range(6):
        x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
        losses.append(step(x, y).item())
        if scheduler is not None:
            scheduler.step()
    return losses, [t.tolist() for t in (*model.parameters(), *model.buffers())]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("name", "options", "graphs"),
    [
        ("SGD", {"momentum": 0.9}, 2),
        ("Adam", {}, 1),
        ("AdamW", {"amsgrad": True}, 1),
        ("RMSprop", {}, 1),
        ("Adagrad", {}, 1),
    ],
)
def test_a_whole_step_is_one_graph(backend: str, name: str, options: dict, graphs: int) -> None:
    def optimizer(params):
        return getattr(torch.optim, name)(params, lr=0.05, **options)

    count = Counting(backend)
    ours = train(optimizer, False, lambda f: torch.compile(f, backend=count, fullgraph=True))
    assert ours == train(optimizer, False, lambda f: f)
    assert len(count.graphs) == graphs  # state made of gradients is made by a graph of its own


def test_a_learning_rate_that_changes_is_an_input() -> None:
    def optimizer(params):
        return torch.optim.SGD(params, lr=0.1)

    count = Counting("aot_eager")
    ours = train(optimizer, True, lambda f: torch.compile(f, backend=count, fullgraph=True))
    assert ours == train(optimizer, True, lambda f: f)
    assert len(count.graphs) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_accumulate(backend: str) -> None:
    w, v = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)

    def f(x):
        (w * x).sum().backward()
        loss = (w + v).sin().sum()
        loss.backward()
        return loss

    run = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3)
        run(x)
        ours = w.grad.clone(), v.grad.clone()
        w.grad -= x + (w + v).detach().cos()
        v.grad -= (w + v).detach().cos()
        torch.testing.assert_close(ours[0] - w.grad, x + (w + v).detach().cos())
    torch.testing.assert_close(v.grad, torch.zeros(3), atol=1e-6, rtol=0)


def test_two_leaves_do_not_share_a_gradient() -> None:
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    torch.compile(lambda: (a + b).sum().backward(), backend="aot_eager", fullgraph=True)()
    a.grad.add_(1)
    assert b.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert a.grad.is_contiguous() and b.grad.is_contiguous()


def test_a_result_whose_history_was_walked() -> None:
    w = torch.randn(3, requires_grad=True)

    def f(keep):
        loss = w.sin().sum()
        loss.backward(retain_graph=keep)
        return loss

    loss = torch.compile(f, backend="aot_eager", fullgraph=True)(False)
    assert loss.requires_grad and type(loss.grad_fn).__name__ == "SumBackward0"
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    torch.compile(f, backend="aot_eager", fullgraph=True)(True).backward()
    torch.testing.assert_close(w.grad, 3 * w.detach().cos())


def test_some_leaves_only() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.compile(lambda: (a * b).sum().backward(inputs=[a]), backend="eager", fullgraph=True)()
    assert a.grad is not None and b.grad is None


@pytest.mark.parametrize("kind", ["hook", "post accumulate", "non-leaf", "create_graph", "retain_grad", "off"])
def test_what_only_the_engine_can_do_ends_the_graph(kind: str) -> None:
    w = torch.randn(3, requires_grad=True)
    seen = []
    x = w * 2 if kind == "non-leaf" else w
    if kind == "hook":
        w.register_hook(lambda g: seen.append(g.clone()))
    if kind == "post accumulate":
        w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))

    def f(x):
        y = x.sin()
        if kind == "retain_grad":
            y.retain_grad()
        y.sum().backward(create_graph=kind == "create_graph")
        return y

    with config.patch(trace_autograd_ops=kind != "off"):
        out = torch.compile(f, backend="eager")(x)
    scale = 2 if kind == "non-leaf" else 1
    torch.testing.assert_close(w.grad.detach(), scale * x.detach().cos())
    assert len(seen) == (kind in ("hook", "post accumulate"))
    if kind == "retain_grad":
        torch.testing.assert_close(out.grad, torch.ones(3))
    if kind == "create_graph":
        assert w.grad.requires_grad


def test_a_hook_that_comes_later_is_called() -> None:
    w, seen = torch.randn(3, requires_grad=True), []
    run = torch.compile(lambda: w.sin().sum().backward(), backend="eager")
    run()
    w.register_hook(lambda g: seen.append(g))
    run()
    assert len(seen) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_factory_that_is_asked_for_a_leaf(backend):
    def f(g):
        leaf = torch.full((3,), 2.0, requires_grad=True)
        return torch.autograd.grad(leaf**3, leaf, grad_outputs=g)[0]

    assert torch.compile(f, backend=backend)(torch.ones(3)).tolist() == [12.0] * 3


def test_gradients_that_a_step_lets_go_of_are_gone_while_it_runs():
    """Where it does so first: their memory is free for what it computes. One that somebody else has stays."""
    layer, alive = torch.nn.Linear(3, 2), []

    def watching(module, inputs):
        def run(*args):
            alive.append([r() is not None for r in refs])
            return module(*args)

        return run

    @functools.partial(torch.compile, backend=watching)
    def step(x):
        layer.zero_grad()
        layer(x).square().sum().backward()

    refs = []
    for _ in range(3):
        step(torch.randn(4, 3))
        refs = [weakref.ref(p.grad) for p in layer.parameters()]
        kept = layer.bias.grad
    assert alive == [[], [False, True], [False, True]] and kept is layer.bias.grad


def test_gradients_that_are_added_to_stay():
    w = torch.ones(3, requires_grad=True)
    run = torch.compile(lambda: (w * 2).sum().backward())
    for _ in range(3):
        run()
    assert w.grad.tolist() == [6.0] * 3


def test_inputs_that_are_given_twice_get_their_gradients_once():
    def step(w, x):
        (w * x).sum().backward(inputs=[w, w])
        return w.grad

    w, x = torch.ones(2, requires_grad=True), torch.tensor([2.0, 3.0])
    assert torch.compile(step, backend="eager", fullgraph=True)(w, x).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_leaves_that_a_program_makes_get_gradients(backend):
    def step(x):
        y, p = (x * 2).requires_grad_(), torch.nn.Parameter(x + 1)
        (y * 3 + p * p).sum().backward()
        (y * y).sum().backward()
        return y.grad, p.grad, y.is_leaf

    y, p, is_leaf = torch.compile(step, backend=backend, fullgraph=True)(torch.ones(2))
    assert (y.tolist(), p.tolist(), is_leaf) == ([7.0, 7.0], [4.0, 4.0], True)


def test_a_program_gives_a_tensor_that_it_made_a_gradient():
    def f(x):
        y = x + 1
        y.grad = x
        return y, y.grad is x

    x = torch.ones(2)
    y, same = torch.compile(f, backend="eager", fullgraph=True)(x)
    assert same and y.grad is x


def test_a_parameter_is_made():
    def f(x):
        p = torch.nn.Parameter(x * 2, requires_grad=False)
        return p, isinstance(p, torch.nn.Parameter), torch.nn.Linear(2, 1)(x).detach().shape

    p, known, shape = torch.compile(f, backend="aot_eager", fullgraph=True)(torch.ones(2))
    assert type(p) is torch.nn.Parameter and p.tolist() == [2.0, 2.0] and known and shape == (1,)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_leaves_outlive_the_graph_that_made_them(backend):
    def f(x):
        w, p = (x * 2).requires_grad_(), torch.nn.Parameter(x)
        p.data.add_(1)
        return w, p, x

    w, p, x = torch.compile(f, backend=backend, fullgraph=True)(torch.ones(2))
    assert w.is_leaf and p.is_leaf and type(p) is torch.nn.Parameter and not x.requires_grad
    (w * p).sum().backward()
    assert (w.grad.tolist(), p.grad.tolist(), x.tolist()) == ([2.0, 2.0], [2.0, 2.0], [2.0, 2.0])
    p.data.add_(1)
    assert x.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_of_leaves_that_a_program_made_stay(backend):
    def f(x):
        w = (x * 2).requires_grad_()
        w.register_hook(lambda g: g * 3)
        return w

    w = torch.compile(f, backend=backend)(torch.ones(2))
    w.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]
