"""Patterns found and replaced."""

import pytest

import pullback as torch
from pullback import nn
from pullback.graph import replace_pattern, symbolic_trace
from pullback.graph.passes.matcher import SubgraphMatcher
from pullback.graph.passes.replace_pattern import replace_pattern_with_filters

X = torch.tensor([-1.0, 2.0])


def test_replacing():
    def f(x, w1, w2):
        return x + torch.max(torch.cat([w1, w2]).sum()) + torch.max(torch.cat([w1, w2]).sum())

    def pattern(w1, w2):
        return torch.cat([w1, w2]).sum()

    def replacement(w1, w2):
        return torch.stack([w1, w2])

    gm = symbolic_trace(f)
    matches = replace_pattern(gm, pattern, replacement)
    gm.graph.lint()
    assert len(matches) == 2 and "cat" not in gm.code and gm.code.count("torch.stack([w1, w2])") == 2
    assert torch.equal(gm(X, X, X), X + torch.max(torch.stack([X, X])) * 2)


def test_matches_in_a_row_feed_each_other():
    def f(x):
        return torch.relu(torch.neg(torch.relu(torch.neg(x))))

    gm = symbolic_trace(f)
    assert len(replace_pattern(gm, negative_part, torch_sigmoid)) == 2
    gm.graph.lint()
    assert torch.equal(gm(X), X.sigmoid().sigmoid())


def negative_part(x):
    return torch.relu(torch.neg(x))


def torch_sigmoid(x):
    return torch.sigmoid(x)


def test_values_used_outside_are_not_matched():
    def f(x):
        a = torch.neg(x)
        return torch.relu(a), a

    gm = symbolic_trace(f)
    assert replace_pattern(gm, negative_part, torch_sigmoid) == []


def test_several_results():
    def f(x, y):
        return torch.add(x, y) * torch.mul(x, y)

    def pattern(x, y):
        return torch.add(x, y), torch.mul(x, y)

    def replacement(x, y):
        return torch.sub(x, y), torch.div(x, y)

    gm = symbolic_trace(f)
    assert len(replace_pattern(gm, pattern, replacement)) == 1
    assert torch.equal(gm(X, X + 3), (X - (X + 3)) * (X / (X + 3)))


def test_filters_and_literals():
    def f(x):
        return torch.add(x, 1) + torch.add(x, 2)

    def pattern(x):
        return torch.add(x, 5)

    gm = symbolic_trace(f)
    assert replace_pattern(gm, pattern, torch_sigmoid) == []
    only_two = lambda match, graph, wanted: match.returning_nodes[0].args[1] == 2
    (done,) = replace_pattern_with_filters(gm, pattern, torch_sigmoid, [only_two], ignore_literals=True)
    assert [n.name for n in done.replacements] == ["sigmoid"] and torch.equal(gm(X), X + 1 + X.sigmoid())
    with pytest.raises(AssertionError, match="Must provide either a replacement"):
        replace_pattern_with_filters(gm, pattern)


def test_replacements_bring_their_modules():
    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x):
            return self.lin(x)

    def f(x):
        return torch.neg(x) + 1

    gm = symbolic_trace(f)
    result = symbolic_trace(Replacement())
    replace_pattern(gm, symbolic_trace(torch_neg), result)
    assert torch.equal(gm(X), result(X) + 1) and gm.lin is not result.lin


def torch_neg(x):
    return torch.neg(x)


def test_operators_match_with_their_defaults():
    aten = torch.ops.aten
    graph = symbolic_trace(sum_twice).graph
    pattern = symbolic_trace(sum_default).graph
    assert len(SubgraphMatcher(pattern).match(graph)) == 1
    assert aten.sum.dim_IntList is list(pattern.nodes)[1].target


def sum_twice(x):
    return torch.ops.aten.sum.dim_IntList(x, [0], False), torch.ops.aten.sum.dim_IntList(x, [0], True)


def sum_default(x):
    return torch.ops.aten.sum.dim_IntList(x, [0])


def test_patterns_with_dead_code_are_refused():
    def pattern(x):
        torch.neg(x)
        return torch.relu(x)

    with pytest.raises(AssertionError, match="pattern with dead code"):
        SubgraphMatcher(symbolic_trace(pattern).graph)
