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
    assert first.layer.weight is not net.blocks[0].layer.weight
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
    assert (three, nothing) == (3, None) and (net.calls.item(), result.calls.item()) == (1, 1)
    with pytest.raises(RuntimeError, match=r"input at \*args\[0\].shape\[0\] to be equal to 5, but got 3"):
        result(torch.ones(3, 4), torch.ones(3, 1))


def test_adapter() -> None:
    class Packed(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[:2]

    result = unflatten(export(Add(), (torch.ones(2), torch.ones(2))), Packed())
    assert result([torch.ones(2), torch.ones(2), torch.ones(2)]).tolist() == [2, 2]
    with pytest.raises(TypeError, match="expected an ExportedProgram"):
        unflatten(Add())


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1), persistent=False)

    def forward(self, pair, *, twice: bool):
        self.calls.add_(1)
        x, y = pair["x"], pair["y"]
        return {"out": x * 2 + self.calls if twice else x - y, "y": y}


class Scales(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale()

    def forward(self, x, y):
        first = self.scale({"x": x, "y": y}, twice=True)["out"] + self.scale.calls
        return self.scale({"x": first, "y": y}, twice=False)["out"] * self.scale.calls


@pytest.mark.parametrize("functional", [False, True])
def test_a_preserved_signature_lets_a_module_be_exchanged(functional: bool) -> None:
    args = (torch.ones(3), torch.full((3,), 5.0))
    program = export(Scales(), args, preserve_module_call_signature=("scale",))
    program = program.run_decompositions({}) if functional else program
    assert [e.fqn for e in program.module_call_graph] == ["", "scale", "scale@1"]
    result = unflatten(program)
    wanted = Scales()(*args)
    torch.testing.assert_close(result(*args), wanted)
    torch.testing.assert_close(unflatten(program).scale({"x": args[0], "y": args[1]}, twice=True)["out"], args[0] * 3)
    if not functional:
        result.set_submodule("scale", Scale())
        torch.testing.assert_close(result(*args), wanted)


def test_calls_with_one_graph_share_a_module_and_others_are_numbered() -> None:
    class Branch(nn.Module):
        def forward(self, x, way: bool):
            return x + 1 if way else x * 3

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = Branch()
            self.p = self.n

        def forward(self, x):
            return self.p(self.n(self.n(self.n(x, True), False), True), False)

    x = torch.ones(2)
    result = unflatten(export(Tied(), (x,)))
    torch.testing.assert_close(result(x), Tied()(x))
    assert [n for n, _ in result.named_modules(remove_duplicate=False)] == ["", "n", "n@1", "p"]
    assert result.p is getattr(result, "n@1")


def test_modules_that_call_others_than_their_children() -> None:
    class Leaf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x):
            return x * self.weight

    class Middle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.leaf = Leaf()

        def forward(self, x):
            return self.leaf(x) + 1

    class Top(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.middle = Middle()

        def forward(self, x):
            return self.middle.leaf(self.middle(x)) + self.middle.leaf.weight

    x = torch.ones(2)
    result = unflatten(export(Top(), (x,)))
    torch.testing.assert_close(result(x), Top()(x))
    result.middle.leaf.weight.data.fill_(1.0)
    torch.testing.assert_close(result(x), torch.full((2,), 3.0))
