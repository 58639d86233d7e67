"""Programs as modules: arguments are checked, and recording is the caller's."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.export import Dim, export

from .models import Add, Net


@pytest.fixture
def run():
    batch = Dim("batch", min=1, max=16)
    shapes = {"x": {0: batch}, "y": {0: batch}, "k": None}
    return export(Net(), (torch.randn(5, 4), torch.randn(5, 1)), {"k": 3}, dynamic_shapes=shapes).module()


@pytest.mark.parametrize(
    ("x", "y", "k", "failed"),
    [
        ((17, 4), (17, 1), 3, r"x.size\(\)\[0\] <= 16"),
        ((0, 4), (0, 1), 3, r"x.size\(\)\[0\] >= 1"),
        ((5, 3), (5, 1), 3, r"x.size\(\)\[1\] == 4 \(it is 3\)"),
        ((5, 4), (6, 1), 3, r"y.size\(\)\[0\] == x.size\(\)\[0\]"),
        ((5, 4, 1), (5, 1), 3, r"x.dim\(\) == 2"),
        ((5, 4), (5, 1), 4, r"k == 3 \(it is 4\)"),
    ],
)
def test_arguments_are_compared_with_what_was_traced(run, x, y, k, failed: str) -> None:
    with pytest.raises(AssertionError, match=f"Guard failed: {failed}"):
        run(torch.ones(x), torch.ones(y), k=k)
    assert run.calls.item() == 0


def test_dtypes_and_kinds_are_compared(run) -> None:
    with pytest.raises(AssertionError, match="x.dtype == torch.float32"):
        run(torch.ones(5, 4, dtype=torch.float64), torch.ones(5, 1), k=3)
    with pytest.raises(AssertionError, match="Guard failed: x"):
        run(1.0, torch.ones(5, 1), k=3)


def test_structure_is_compared(run) -> None:
    with pytest.raises(ValueError, match="kwarg keyword mismatch: Got the following keywords .* but expected"):
        run(torch.ones(5, 4), torch.ones(5, 1))
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        run(torch.ones(5, 4), [torch.ones(5, 1)], k=3)
    assert run(torch.ones(5, 4), y=torch.ones(5, 1), k=3)[1] == 3


def test_without_checks() -> None:
    assert export(Add(), (torch.ones(2), torch.ones(2))).module(check_guards=False)(
        torch.ones(3), torch.ones(3)
    ).shape == (3,)


def test_recording_is_the_callers(run) -> None:
    x, y = torch.ones(5, 4), torch.ones(5, 1)
    with torch.no_grad():
        out = run(x, y, k=3)[0]
        assert not torch.is_grad_enabled()
    assert not out["a"].requires_grad and torch.is_grad_enabled()
    assert run(x, y, k=3)[0]["a"].requires_grad


def test_calls_and_modes_are_refused(run) -> None:
    program = export(Add(), (torch.ones(2), torch.ones(2)))
    with pytest.raises(
        RuntimeError, match="Unable to call ExportedProgram directly. You should use `exported_program.module"
    ):
        program(torch.ones(2), torch.ones(2))
    for change in (run.train, run.eval):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            change()
    with pytest.raises(RuntimeError, match="Unable to set"):
        program.state_dict = {}


def test_written_inputs_are_written() -> None:
    class Writes(nn.Module):
        def forward(self, x):
            return x[:, :2].mul_(2).sum()

    program = export(Writes(), (torch.ones(3, 4),))
    functional = program.run_decompositions()
    assert list(functional.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    for p in (program, functional):
        x = torch.ones(3, 4)
        assert p.module()(x).item() == 12
        assert x.sum().item() == 18


def test_compiled() -> None:
    run = export(Add(), (torch.ones(2), torch.ones(2))).module()
    assert torch.compile(run)(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("options", [{}, {"fullgraph": True}, {"fullgraph": True, "dynamic": True}])
def test_an_exported_module_is_compiled_as_one_graph(options) -> None:
    class Sums(torch.nn.Module):
        def forward(self, x, y):
            return [x + y], {"square": x * x}

    x, y = torch.ones(2, 3), torch.ones(2, 3)
    run = torch.compile(torch.export.export(Sums(), (x, y)).module(), backend="eager", **options)
    assert run(x, y)[1]["square"].tolist() == [[1.0] * 3] * 2
    with pytest.raises(AssertionError, match="Guard failed"):
        run(torch.ones(4, 3), torch.ones(4, 3))
