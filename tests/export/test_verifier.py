"""Rules that exported programs keep."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.export import export
from pullback.export.verifier import SpecViolationError, Verifier


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (self.layer(x),))


def test_programs_pass_and_broken_ones_do_not() -> None:
    program = export(Affine(), (torch.ones(3, 2),))
    program.validate()
    functional = program.run_decompositions({})
    functional.validate()
    for node in functional.graph_module.true_graph_0.graph.nodes:
        if node.target is torch.ops.aten.add.Tensor:
            node.target = torch.ops.aten.add_.Tensor
    with pytest.raises(SpecViolationError, match="is not functional"):
        functional.validate()
    del program.state_dict["layer.weight"]
    with pytest.raises(SpecViolationError, match="layer.weight is not in the state dict"):
        program.validate()
    program.state_dict["layer.weight"] = torch.ones(2, 2)
    with pytest.raises(SpecViolationError, match="not an instance of torch.nn.Parameter"):
        program.validate()


def test_results_are_counted_and_modules_refused() -> None:
    program = export(Affine(), (torch.ones(3, 2),))
    out = program.graph.output_node()
    out.args = ((*out.args[0], next(iter(program.graph.nodes))),)
    with pytest.raises(SpecViolationError, match="Number of output nodes 2"):
        program.validate()
    with pytest.raises(SpecViolationError, match="call_module"):
        Verifier()._check_graph_module(torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2))))
