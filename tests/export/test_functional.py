"""Functional programs: the same results without writes."""

from __future__ import annotations

import copy

import pullback as torch
from pullback import nn
from pullback.export import CustomDecompTable, Dim, decompositions, default_decompositions, export

from .models import Net


def test_results_and_mutations() -> None:
    torch.manual_seed(0)
    net = Net()
    batch = Dim("batch")
    args = (torch.randn(5, 4), torch.randn(5, 1))
    program = export(net, args, dynamic_shapes=({0: batch}, {0: batch}))
    result = program.run_decompositions()
    targets = {str(n.target) for n in result.graph.nodes if n.op == "call_function"}
    assert "aten.addmm.default" in targets and not any(
        t.split(".")[-2].endswith("_") for t in targets if t.startswith("aten")
    )
    assert result.dialect == "ATEN" and result.range_constraints == program.range_constraints
    written = ["calls", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert list(result.graph_signature.buffers_to_mutate.values()) == written
    inplace, x, y = copy.deepcopy(net), torch.randn(6, 4), torch.randn(6, 1)
    run = result.module()
    out, wanted = run(x, y)[0], inplace(x, y)[0]
    for key in wanted:
        torch.testing.assert_close(out[key], wanted[key])
    for name, b in inplace.named_buffers():
        torch.testing.assert_close(run.get_buffer(name), b)


def test_sizes_have_values() -> None:
    program = export(Net(), (torch.randn(5, 4), torch.randn(5, 1)), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))
    result = program.run_decompositions()
    assert all("val" in n.meta for n in result.graph.nodes if n.op == "call_function")


def test_a_table_takes_operators_apart() -> None:
    table = default_decompositions()
    assert isinstance(table, CustomDecompTable) and table.copy() == table.materialize()
    table[torch.ops.aten.relu.default] = lambda x: torch.clamp(x, min=0)
    result = export(nn.ReLU(), (torch.randn(3),)).run_decompositions(table)
    assert [str(n.target) for n in result.graph.nodes if n.op == "call_function"] == ["aten.clamp.default"]
    x = torch.randn(3)
    torch.testing.assert_close(result.module()(x), x.relu())


def test_programs_that_differentiate_or_take_nothing() -> None:
    class Slope(nn.Module):
        def forward(self, x):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                (g,) = torch.autograd.grad((x**3).sum(), x)
            return g

    class Ones(nn.Module):
        def forward(self):
            return torch.ones(2) * 2

    program = export(Slope(), (torch.ones(2),))
    for p in (program, program.run_decompositions()):
        assert p.module()(torch.tensor([1.0, 2.0])).tolist() == [3, 12]
    assert export(Ones(), ()).run_decompositions().module()().tolist() == [2, 2]


def test_a_program_can_be_taken_apart_twice() -> None:
    program = export(Net(), (torch.randn(5, 4), torch.randn(5, 1))).run_decompositions()
    assert str(program.run_decompositions()) == str(program)
    assert str(copy.deepcopy(program)) == str(program)


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x).reshape(-1).relu()


def targets(program) -> list[str]:
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function"]


def test_a_table_says_which_compositions_are_taken_apart() -> None:
    net, x = Affine(), torch.randn(4, 3)
    program = export(net, (x,))
    linear = torch.ops.aten.linear.default
    table = torch.export.default_decompositions()
    assert linear in table
    assert "aten.linear.default" not in targets(program.run_decompositions())
    del table[linear]
    kept = program.run_decompositions(table)
    assert targets(kept)[0] == "aten.linear.default" and "aten.view.default" in targets(kept)
    own = program.run_decompositions({linear: lambda x, w, b: x @ w.mT + b})
    assert "aten.linear.default" not in targets(own) and "aten.add.Tensor" in targets(own)
    for each in (kept, own, program.run_decompositions({})):
        torch.testing.assert_close(each.module()(x), net(x))


def test_a_composition_that_gives_a_view_is_taken_apart_where_it_is_written() -> None:
    class Written(nn.Module):
        def forward(self, x):
            y = x.clone()
            y.flatten().add_(1)
            return y

    x = torch.zeros(2, 3)
    assert export(Written(), (x,)).run_decompositions({}).module()(x).tolist() == [[1.0] * 3] * 2


def test_operators_that_are_written_with_others():
    found = decompositions.composite_operators(torch.ops.aten)
    assert torch.ops.aten.linear.default in found and torch.ops.aten.add.Tensor not in found
