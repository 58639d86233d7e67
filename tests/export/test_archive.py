"""Programs in files."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from pathlib import Path

import pytest

import pullback as torch
from pullback import nn
from pullback.export import Dim, export, load, save
from pullback.export.encoding import read_target

from .models import Add, Net


def program():
    batch = Dim("batch", max=16)
    shapes = {"x": {0: batch}, "y": {0: batch}, "k": None}
    return export(Net(), (torch.randn(5, 4), torch.randn(5, 1)), {"k": 3}, dynamic_shapes=shapes)


@pytest.mark.parametrize("functional", [False, True])
def test_round_trip(tmp_path: Path, functional: bool) -> None:
    ep = program()
    ep = ep.run_decompositions() if functional else ep
    save(ep, tmp_path / "net.pt2", extra_files={"about.txt": "a net"})
    extra = {"about.txt": ""}
    again = load(tmp_path / "net.pt2", extra_files=extra)
    assert str(again) == str(ep) and extra == {"about.txt": "a net"} and again.dialect == ep.dialect
    x, y = torch.randn(7, 4), torch.randn(7, 1)
    for key, value in copy.deepcopy(ep).module()(x, y, k=3)[0].items():
        torch.testing.assert_close(again.module()(x, y, k=3)[0][key], value)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 16"):
        again.module()(torch.randn(17, 4), torch.randn(17, 1), k=3)
    assert str(again.run_decompositions()) == str(ep.run_decompositions())
    assert [type(p) for p in again.parameters()] == [nn.Parameter] * 4
    assert torch.equal(again.example_inputs[0][0], ep.example_inputs[0][0])


def test_derived_sizes_and_arguments_of_all_kinds(tmp_path: Path) -> None:
    class Kinds(nn.Module):
        def forward(self, x, y):
            z = torch.cat([x, y])[1::2].to(torch.float64).sum(0, keepdim=True)
            return [z, x.max(0), torch.zeros(x.shape[0] * 2, device="cpu", dtype=torch.complex64) + 2j]

    b = Dim("b", min=2)
    ep = export(Kinds(), (torch.ones(3, 2), torch.ones(6, 2)), dynamic_shapes=({0: b}, {0: 2 * b}))
    file = io.BytesIO()
    save(ep, file)
    result, wanted = (p.module()(torch.ones(4, 2), torch.ones(8, 2)) for p in (load(file), ep))
    assert (
        torch.equal(result[0], wanted[0])
        and torch.equal(result[1].indices, wanted[1].indices)
        and torch.equal(result[2], wanted[2])
    )
    with pytest.raises(AssertionError, match=r"2\*x.size"):
        load(file).module()(torch.ones(4, 2), torch.ones(7, 2))


def test_other_files_are_refused(tmp_path: Path) -> None:
    text, tensors = tmp_path / "text.pt2", tmp_path / "tensors.pt"
    text.write_text("no archive")
    torch.save(torch.ones(2), tensors)
    with pytest.raises(RuntimeError, match="no exported program of pullback: it is not a zip archive"):
        load(text)
    with pytest.raises(RuntimeError, match="programs that PyTorch saved are not read"):
        load(tensors)
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        save(Add(), tmp_path / "x.pt2")


def test_files_name_only_what_is_known(tmp_path: Path) -> None:
    file = tmp_path / "add.pt2"
    save(export(Add(), (torch.ones(2), torch.ones(2))), file)

    def changed(name: str, value) -> None:
        with zipfile.ZipFile(file) as archive:
            data, state = json.loads(archive.read("program.json")), archive.read("state.pt")
        if name == "target":
            data["nodes"][2]["target"] = value
        else:
            data[name] = value
        with zipfile.ZipFile(tmp_path / "changed.pt2", "w") as archive:
            archive.writestr("program.json", json.dumps(data))
            archive.writestr("state.pt", state)

    changed("target", "os.system")
    with pytest.raises(KeyError):
        load(tmp_path / "changed.pt2")
    changed("target", "op:mine.absent.default")
    with pytest.raises(RuntimeError, match="the operator mine.absent.default is not registered"):
        load(tmp_path / "changed.pt2")
    changed("version", 99)
    with pytest.raises(RuntimeError, match="its format is pullback.export 99"):
        load(tmp_path / "changed.pt2")


class Chooses(nn.Module):
    """Branches with parameters, a constant, a size, and a choice inside."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        shift = torch.tensor([1.0, 2.0, 3.0])

        def inner(x):
            return torch.cond(x.sum() > 10, lambda x: x * x.shape[0], lambda x: x - torch.tensor(0.5), (x,))

        return torch.cond(x.sum() > 0, lambda x: self.layer(x) + shift, inner, (x,))


class Loops(nn.Module):
    def forward(self, x):
        return torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x))[1]


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("model", [Chooses, Loops])
def test_graphs_that_operators_take_are_saved(model, decomposed: bool) -> None:
    module = model()
    x = torch.ones(2, 3)
    program = export(module, (x,), dynamic_shapes={"x": {0: Dim("rows", max=64)}})
    program = program.run_decompositions() if decomposed else program
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    for value in (torch.ones(2, 3), -torch.ones(4, 3), torch.zeros(3, 3)):
        torch.testing.assert_close(loaded.module()(value), module(value))
        torch.testing.assert_close(loaded.run_decompositions().module()(value), module(value))
    again = io.BytesIO()
    torch.export.save(loaded, again)
    again.seek(0)
    torch.testing.assert_close(torch.export.load(again).module()(x), module(x))


def test_an_operator_that_takes_functions_is_looked_up_among_them() -> None:
    with pytest.raises(RuntimeError, match="there is no operator nothing that takes functions"):
        read_target({"op": "call_function", "target": "higher_order:nothing"})
