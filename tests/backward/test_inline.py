"""The graph of a backward shows the operators of functions that were compiled ahead of time."""

import pullback as torch
from pullback.backward.compiled import enable, reset
from pullback.ops.system.operator import Operator


def test_operators_of_the_inner_graph_are_seen():
    reset()
    modules = []

    def compiler(gm):
        modules.append(gm)
        return torch.compile(gm, backend="aot_eager", fullgraph=True, dynamic=True)

    model = torch.compile(lambda x: x.sin() * x, backend="aot_eager")
    x = torch.randn(4, requires_grad=True)
    with enable(compiler):
        model(x).sum().backward()
    names = {n.target.name for n in modules[0].graph.nodes if isinstance(n.target, Operator)}
    assert {"cos", "mul"} <= names
    assert not any("CompiledFunctionBackward" in str(n.target) for n in modules[0].graph.nodes)
    torch.testing.assert_close(x.grad, (x.cos() * x + x.sin()).detach())


def test_graphs_run_as_they_are_give_the_same():
    reset()
    model = torch.compile(lambda x: x.sin() * x, backend="aot_eager")
    x = torch.randn(4, requires_grad=True)
    with enable(lambda gm: gm):
        model(x).sum().backward()
    torch.testing.assert_close(x.grad, (x.cos() * x + x.sin()).detach())
