"""Modules in captured programs: few conditions, none missing."""

import pytest

import pullback as torch
from pullback import nn
from pullback.nn.module_hooks import register_module_forward_hook


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.register_forward_hook(lambda mod, args, out: out + 1),
        lambda m: m[0].register_forward_hook(lambda mod, args, out: out * 2),
        lambda m: m[2].register_forward_pre_hook(lambda mod, args: (args[0] + 1,)),
        lambda m: setattr(m[0], "forward", lambda x: x - 1),
        lambda m: m.__setitem__(1, nn.Tanh()),
        lambda m: m.append(nn.Tanh()),
        lambda m: setattr(m[0], "weight", nn.Parameter(torch.ones(3, 3))),
        lambda m: m[0].register_parameter("bias", None),
        lambda m: m[0].weight.data.mul_(2),
        lambda m: register_module_forward_hook(lambda mod, args, out: out * 3),
    ],
)
def test_a_changed_module_is_called_as_it_is(model, change) -> None:
    run, x = torch.compile(model, backend="eager"), torch.randn(2, 3)
    torch.testing.assert_close(run(x), model(x))
    handle = change(model)
    try:
        torch.testing.assert_close(run(x), model(x))
    finally:
        if hasattr(handle, "remove"):
            handle.remove()
    torch.testing.assert_close(run(x), model(x))


def test_parameters_swapped_for_others_need_no_new_graph(model) -> None:
    graphs = []
    run = torch.compile(model, backend=lambda graph, inputs: graphs.append(graph) or graph)
    x = torch.randn(2, 3)
    run(x)
    model[0].weight = nn.Parameter(torch.ones(3, 3))
    torch.testing.assert_close(run(x), model(x))
    assert len(graphs) == 1


class StaticForward(torch.nn.Module):
    @staticmethod
    def forward(x):
        return x * 2


def test_a_module_with_a_static_forward_is_called_without_itself():
    m = StaticForward()
    assert torch.compile(lambda x: m(x) + 1, backend="eager", fullgraph=True)(torch.ones(2)).tolist() == [3, 3]


class Branching(nn.Module):
    """Breaks in the middle of its `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3))

    def forward(self, x):
        x = (x @ self.weight).relu()
        if x.sum() > 1e9:
            x = x * 2
        return x @ self.weight


class Calling:
    def __call__(self, x):
        x = x.relu()
        if x.sum() > 1e9:
            x = x * 2
        return x.sin()


@pytest.mark.parametrize(
    ("inner", "hook"),
    [
        (Branching, None),
        (Calling, None),
        (Branching, lambda m: m.register_forward_hook(lambda mod, args, out: out * 2)),
        (Branching, lambda m: m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))),
        (Branching, lambda m: m.register_full_backward_hook(lambda mod, grads, outs: (grads[0] * 3,))),
    ],
)
def test_a_module_that_breaks_is_captured_on_its_own(inner, hook) -> None:
    graphs, called = [], inner()
    if hook is not None:
        hook(called)
    plain = lambda x: called(x.sin()).cos()
    run = torch.compile(plain, backend=lambda graph, inputs: graphs.append(graph) or graph)
    x, y = (torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_() for _ in range(2))
    torch.testing.assert_close(run(x), plain(y))
    plain(y).sum().backward()
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    called_nodes = [node for graph in graphs for node in graph.graph.nodes if node.op.startswith("call")]
    assert len(graphs) >= 4 and len(called_nodes) >= 6


def test_nodes_know_in_which_modules_they_were_made():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.source = nn.Linear(2, 2), "a name that sources have too"

        def forward(self, x):
            return self.layer(x).relu()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            return self.block(x) + 1

    graphs = []
    torch.compile(Model(), backend=lambda gm, _: graphs.append(gm) or gm, fullgraph=True)(torch.ones(2))
    stacks = {n.name: n.meta["nn_module_stack"] for n in graphs[0].graph.nodes if n.op == "call_function"}
    assert {name: [cls for _, cls in stack.values()] for name, stack in stacks.items()} == {
        "linear": [Model, Block, nn.Linear], "relu": [Model, Block], "add": [Model],
    }  # fmt: skip
    assert [place.rpartition(".")[2] for place, _ in stacks["linear"].values()][1:] == ["block", "layer"]
