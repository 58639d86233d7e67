"""Functional programs: the same results without writes."""

from __future__ import annotations

import copy

import pullback as torch
from pullback import nn
from pullback.export import CustomDecompTable, Dim, default_decompositions, export

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
