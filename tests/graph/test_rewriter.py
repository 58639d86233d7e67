"""Source that is changed before it is traced."""

import pytest

import pullback as torch
from pullback.graph import GraphModule
from pullback.graph.rewriter import RewritingTracer, rewritten


class Checked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x, n: int):
        assert n == 3, "three"
        y: int = self.linear(x)
        return y


class Around(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Checked()

    def forward(self, x, n):
        return self.inner(x, n) + 1


def traced(root):
    tracer = RewritingTracer()
    graph = tracer.trace(root)
    graph.lint()
    return GraphModule(tracer.root, graph)


def test_asserts_are_recorded_also_in_modules_inside():
    module = Around()
    made, x = traced(module), torch.ones(1, 2)
    torch.testing.assert_close(made(x, 3), module(x, 3))
    with pytest.raises(AssertionError, match="three"):
        made(x, 4)
    assert type(module.inner) is Checked  # the module that was given is as it was
    assert made.inner.linear.weight is module.inner.linear.weight


def test_annotated_assignments_give_nodes_their_types():
    kinds = {node.name: node.type for node in traced(Checked()).graph.nodes}
    assert kinds["linear"] is int and kinds["n"] is int


def test_functions_keep_what_they_close_over_and_their_defaults():
    scale = 2

    def f(x, n=5, *, k=1):
        assert x != 0
        return x * scale + n + k

    changed = rewritten(f)
    assert changed(3) == f(3) == 12 and changed(3, k=2) == 13
    with pytest.raises(AssertionError):
        changed(0)
    scale = 10
    assert changed(3) == 36 and changed.__globals__ is f.__globals__


class Spoken(torch.nn.Module):
    def forward(self, x):
        assert x != 0, """
of several lines
"""
        return x


def test_strings_of_several_lines_are_not_moved():
    made = traced(Spoken())
    words = next(n.args[1] for n in made.graph.nodes if n.target is torch._assert)
    assert words == "\nof several lines\n"
