"""Programs with the modules they had."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.export import Dim, FlatArgsAdapter, export, unflatten

from .models import Add, Net


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.act = nn.Linear(3, 3), nn.Tanh()

    def forward(self, x):
        y = self.layer(x)
        return self.act(y), y


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.scale = nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x):
        for block in self.blocks:
            a, b = block(x)
            x = a + b * x.shape[0]
        return self.blocks[0](x * self.scale)[0] + self.blocks[1].layer.bias


def test_submodules_are_there_and_can_be_replaced() -> None:
    torch.manual_seed(0)
    net, x = Blocks(), torch.randn(5, 3)
    result = unflatten(export(net, (torch.randn(4, 3),), dynamic_shapes=({0: Dim("b")},)))
    torch.testing.assert_close(result(x), net(x))
    assert set(result.state_dict()) >= set(net.state_dict())
    first = getattr(result.blocks, "0")
    torch.testing.assert_close(first.layer(x), net.blocks[0].layer(x))
    assert getattr(result.blocks, "0@1").layer.weight is first.layer.weight is net.blocks[0].layer.weight
    net.blocks[1].act = nn.ReLU()
    getattr(result.blocks, "1").act = nn.ReLU()
    torch.testing.assert_close(result(x), net(x))


@pytest.mark.parametrize("functional", [False, True])
def test_buffers_and_checks(functional: bool) -> None:
    torch.manual_seed(0)
    net, args = Net(), (torch.randn(5, 4), torch.randn(5, 1))
    program = export(net, args)
    program = program.run_decompositions() if functional else program
    result = unflatten(program)
    wanted = program.module()(*args)[0]
    out, three, nothing = result(*args)
    for key in wanted:
        torch.testing.assert_close(out[key], wanted[key])
    assert (three, nothing) == (3, None) and net.calls.item() == result.calls.item() == 2
    with pytest.raises(AssertionError, match="Guard failed"):
        result(torch.ones(3, 4), torch.ones(3, 1))


def test_adapter() -> None:
    class Packed(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[:2]

    result = unflatten(export(Add(), (torch.ones(2), torch.ones(2))), Packed())
    assert result([torch.ones(2), torch.ones(2), torch.ones(2)]).tolist() == [2, 2]
    with pytest.raises(TypeError, match="expected an ExportedProgram"):
        unflatten(Add())
