"""Casts and moves in exported programs are calls of `aten.to`, checked and decided when the program runs."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.export import export


class Converts(nn.Module):
    def __init__(self, convert) -> None:
        super().__init__()
        self.convert = convert

    def forward(self, x):
        return self.convert(x)


def targets(program) -> list:
    return [n.target for n in program.graph.nodes if n.op == "call_function"]


CHECK = torch.ops.aten._assert_tensor_metadata.default


@pytest.mark.parametrize(
    ("convert", "operator"),
    [
        (lambda x: x.float(), torch.ops.aten.to.dtype),
        (lambda x: x.to(torch.float32), torch.ops.aten.to.dtype),
        (lambda x: x.cpu(), torch.ops.aten.to.dtype_layout),
        (lambda x: x.to("cpu"), torch.ops.aten.to.dtype_layout),
        (lambda x: x.to("cpu", torch.float64), torch.ops.aten.to.device),
        (lambda x: x.to(x), torch.ops.aten.to.device),
    ],
)
def test_operators(convert, operator) -> None:
    x = torch.tensor([1.5, 2])
    program = export(Converts(convert), (x,))
    assert targets(program) == [CHECK, operator]
    out, expected = program.module()(x), convert(x)
    assert out.dtype is expected.dtype and out.tolist() == expected.tolist()
    assert (out is x) == (expected is x)


def test_a_conversion_that_changes_nothing_is_the_argument() -> None:
    def change(x):
        y = x.to("cpu")
        y.add_(1)
        return y, x

    program = export(Converts(change), (torch.tensor(1),))
    assert targets(program) == [CHECK, torch.ops.aten.to.dtype_layout, torch.ops.aten.add_.Tensor]
    for run in (program.module(), program.run_decompositions({}).module()):
        x = torch.tensor(2)
        y, _ = run(x)
        assert y is x and x.item() == 3


def test_decompositions() -> None:
    assert targets(export(Converts(lambda x: x.float()), (torch.ones(2),)).run_decompositions({})) == [CHECK]
    program = export(Converts(lambda x: x.float()), (torch.ones(2, dtype=torch.int32),)).run_decompositions({})
    assert targets(program) == [CHECK, torch.ops.aten._to_copy.default]


def test_another_dtype_is_refused() -> None:
    run = export(Converts(lambda x: x.float()), (torch.ones(2, dtype=torch.int32),)).module()
    with pytest.raises(RuntimeError, match="Tensor dtype mismatch!"):
        run(torch.ones(2))
    with pytest.raises(AssertionError, match=r"Guard failed: x.dtype == torch.int32 \(it is torch.float32\)"):
        run(torch.ones(2))
