"""`_dynamo.export` with dynamic sizes, and of functions whose results are assumed to be constant."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.export import Dim
from pullback.export.functions import export
from pullback.surface.compiler import assume_constant_result


def program(x, y):
    return x.sin() + y


def test_dynamic_sizes() -> None:
    graph, guards = export(program, dynamic_shapes={"x": {0: Dim("n")}, "y": {0: Dim("n")}})(
        torch.ones(3), torch.ones(3)
    )
    torch.testing.assert_close(graph(torch.ones(5), torch.zeros(5)), torch.ones(5).sin())
    with pytest.raises(RuntimeError, match="must always be equal"):
        export(program, dynamic_shapes=({0: Dim("n")}, {0: Dim("m")}))(torch.ones(3), torch.ones(3))
    graph = export(program)(torch.ones(3), torch.ones(3)).graph_module
    torch.testing.assert_close(graph(torch.ones(5), torch.zeros(5)), torch.ones(5).sin())
    graph = export(lambda x: x * 2 if x.shape[0] > 4 else x)(torch.ones(3)).graph_module
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(5))


def test_options_that_belong_together() -> None:
    with pytest.raises(AssertionError, match="aten_graph=True"):
        export(program, decomposition_table={})
    with pytest.raises(AssertionError, match="aten_graph=True"):
        export(program, pre_dispatch=True)
    table = {torch.ops.aten.sin.default: lambda x: (x * 2).cos()}
    graph, _ = export(program, aten_graph=True, decomposition_table=table)(torch.ones(3), torch.ones(3))
    torch.testing.assert_close(graph(torch.ones(3), torch.zeros(3)), torch.full((3,), 2.0).cos())


def test_results_that_are_assumed_to_be_constant_are_computed_of_this_call() -> None:
    @assume_constant_result
    def places(x):
        return x.nonzero()

    def picked(x):
        return places(x * 2) + x.shape[0]

    x = torch.tensor([0.0, 1.0, 0.0, 2.0])
    graph, _ = export(picked)(x)
    assert graph(torch.zeros(4)).tolist() == [[5], [7]]
