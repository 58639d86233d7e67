"""Modules become programs: what the graph takes, what it says, what is refused."""

from __future__ import annotations

import collections
import dataclasses
import io

import pytest

import pullback as torch
from pullback import nn
from pullback.export import Dim, ExportedProgram, export, load, register_dataclass, save, unflatten
from pullback.export.graph_signature import ConstantArgument, InputKind, OutputKind

from .models import Add, Net


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def program(net: Net) -> ExportedProgram:
    batch = Dim("batch", max=16)
    shapes = {"x": {0: batch}, "y": {0: batch}, "k": None}
    return export(net, (torch.randn(5, 4), torch.randn(5, 1)), {"k": 3}, dynamic_shapes=shapes)


def test_state_comes_before_the_users_inputs(program: ExportedProgram) -> None:
    s = program.graph_signature
    assert s.parameters == ("layer.weight", "layer.bias", "norm.weight", "norm.bias")
    assert s.buffers == ("calls", "shift", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    assert s.non_persistent_buffers == ("shift",)
    assert s.lifted_tensor_constants == ("scale",)
    assert s.user_inputs == ("x", "y", 3)
    assert s.inputs_to_parameters["p_layer_weight"] == "layer.weight"
    assert s.inputs_to_buffers["b_calls"] == "calls"
    assert s.user_outputs[-2:] == (3, None)
    assert [n.name for n in program.graph.find_nodes(op="placeholder")] == [i.arg.name for i in s.input_specs]
    assert list(program.constants) == ["shift", "scale"]
    assert "shift" not in program.state_dict
    assert [n for n, _ in program.named_buffers()] == list(s.buffers)
    assert [n for n, _ in program.named_parameters()] == list(s.parameters)


def test_the_graph_is_taken_above_autograd(program: ExportedProgram) -> None:
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert {"aten.linear.default", "aten.batch_norm.default", "aten.add_.Tensor"} <= set(targets)
    assert program.graph_signature.buffers_to_mutate == {}
    assert str(program.range_constraints) == "{s17: VR[0, 16]}"
    assert program.dialect == "TRAINING"
    program.validate()


def test_nodes_know_their_modules(program: ExportedProgram) -> None:
    linear = next(n for n in program.graph.nodes if str(n.target) == "aten.linear.default")
    assert [name for name, _ in linear.meta["nn_module_stack"].values()] == ["", "layer"]


def test_the_module_is_afterwards_as_it_was(net: Net) -> None:
    before = {k: v.clone() for k, v in net.state_dict().items()}
    export(net, (torch.randn(5, 4), torch.randn(5, 1)))
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert type(net.layer.weight) is nn.Parameter


def test_results_gradients_and_buffers_are_those_of_the_module(net: Net, program: ExportedProgram) -> None:
    import copy

    inplace = copy.deepcopy(net)
    run, x, y = program.module(), torch.randn(7, 4), torch.randn(7, 1)
    (result, three, nothing), (wanted, *_) = run(x, y, k=3), inplace(x, y, k=3)
    assert (three, nothing) == (3, None)
    for key in wanted:
        torch.testing.assert_close(result[key], wanted[key])
    assert result["a"].requires_grad and not result["z"].requires_grad
    result["a"].square().sum().backward()
    wanted["a"].square().sum().backward()
    torch.testing.assert_close(run.layer.weight.grad, inplace.layer.weight.grad)
    assert run.calls.item() == program.state_dict["calls"].item() == 1
    torch.testing.assert_close(run.norm.running_mean, inplace.norm.running_mean)


def test_an_assigned_buffer_is_written() -> None:
    class Assigns(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.zeros(2))

        def forward(self, x):
            self.b = self.b + x
            return x + self.b

    mod = Assigns()
    program = export(mod, (torch.ones(2),))
    assert mod.b.tolist() == [0, 0]
    run = program.module()
    run(torch.ones(2))
    assert run(torch.ones(2)).tolist() == [3, 3] and run.b.tolist() == [2, 2]
    assert list(program.run_decompositions().graph_signature.buffers_to_mutate.values()) == ["b"]


def test_assigned_attributes() -> None:
    class Assigns(nn.Module):
        def __init__(self):
            super().__init__()
            self.t, self.calls = torch.zeros(2), 0

        def forward(self, x, what):
            if what == "tensor":
                self.t = x
            else:
                self.calls += 1
            return x * 2

    mod = Assigns()
    with pytest.raises(ValueError, match="The tensor attribute self.t was assigned during export"):
        export(mod, (torch.ones(2), "tensor"))
    with pytest.warns(UserWarning, match="self.calls"):
        export(mod, (torch.ones(2), "number"))
    assert mod.calls == 0


def test_data_dependent_branches_name_the_line() -> None:
    class Branch(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x

    with pytest.raises(RuntimeError, match=r"Could not guard on data-dependent(.|\n)*if x.sum\(\) > 0"):
        export(Branch(), (torch.ones(2),))


def test_promises_about_data_are_checked_when_run() -> None:
    class Zeros(nn.Module):
        def forward(self, x):
            n = x.sum().item()
            torch._check(n >= 0)
            torch._check(n < 10)
            return torch.zeros(n)

    run = export(Zeros(), (torch.ones(3, dtype=torch.int64),)).module()
    assert run(torch.ones(3, dtype=torch.int64)).shape == (3,)
    with pytest.raises(RuntimeError, match="u0 < 10"):
        run(torch.full((3,), 5))


def test_the_same_tensor_twice_is_two_inputs() -> None:
    x = torch.ones(2)
    assert export(Add(), (x, x)).module()(torch.ones(2), torch.full((2,), 5.0)).tolist() == [6, 6]


def test_symbolic_numbers() -> None:
    class Times(nn.Module):
        def forward(self, x, n):
            return x * n

    run = export(Times(), (torch.ones(2), 5), dynamic_shapes=(None, Dim.DYNAMIC)).module()
    assert run(torch.ones(2), 7).tolist() == [7, 7]
    for hint in (Dim.DYNAMIC, Dim.AUTO):  # 0 and 1 are numbers as others
        assert export(Times(), (torch.ones(2), 1), dynamic_shapes=(None, hint)).module()(torch.ones(2), 2).tolist() == [
            2,
            2,
        ]
    with pytest.raises(AssertionError, match=r"Guard failed: isinstance\(n, int\)"):
        run(torch.ones(2), torch.ones(2))


def test_spread_arguments_and_keywords() -> None:
    class Spread(nn.Module):
        def forward(self, *xs, **kw):
            return xs[0] - xs[1] + kw["w"] * kw["a"]

    d = Dim("d")
    shapes = {"xs": ({0: d}, {0: d}), "w": {0: d}, "a": {0: d}}
    args, kwargs = (torch.ones(2), torch.ones(2)), {"w": torch.ones(2), "a": torch.ones(2)}
    program = export(Spread(), args, kwargs, dynamic_shapes=shapes)
    assert program.graph_signature.user_inputs == ("xs_0", "xs_1", "a", "w")
    result = program.module()(torch.ones(4), torch.zeros(4), w=torch.full((4,), 2.0), a=torch.full((4,), 3.0))
    assert result.tolist() == [7] * 4


def test_dataclasses() -> None:
    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor | None = None

    class Double(nn.Module):
        def forward(self, p):
            return Pair(p.a * 2)

    with pytest.raises(RuntimeError, match="Unsupported input type .*register_dataclass"):
        export(Double(), (Pair(torch.ones(2)),))
    register_dataclass(Pair)
    program = export(Double(), (Pair(torch.ones(2)),))
    assert program.module()(Pair(torch.ones(2))).a.tolist() == [2, 2]
    file = io.BytesIO()
    save(program, file)
    assert load(file).module()(Pair(torch.ones(2))).b is None
    with pytest.raises(AssertionError, match="Only dataclasses"):
        register_dataclass(int)


def test_graphs_inside() -> None:
    class Cond(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    program = export(Cond(), (torch.ones(2),))
    for p in (program, program.run_decompositions()):
        assert p.module()(torch.ones(2)).tolist() == [2, 2]
        assert p.module()(-torch.ones(2)).tolist() == [-2, -2]
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    assert load(file).module()(-torch.ones(2)).tolist() == [-2, -2]


def test_strict_refuses_what_is_not_one_graph(net: Net) -> None:
    class Prints(nn.Module):
        def forward(self, x):
            print("x")
            return x * 2

    export(Prints(), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="it prints"):
        export(Prints(), (torch.ones(2),), strict=True)
    strict = export(net, (torch.ones(2, 4), torch.ones(2, 1)), strict=True)
    assert str(strict) == str(export(net, (torch.ones(2, 4), torch.ones(2, 1)))) and net.calls.item() == 0


def test_what_is_refused(net: Net) -> None:
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(RuntimeError, match="Expecting `args` to be a tuple"):
        export(Add(), torch.ones(2))
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        export(Add(), (torch.ones(2),))
    with pytest.raises(AttributeError, match="nowhere"):
        export(Add(), (torch.ones(2), torch.ones(2)), preserve_module_call_signature=("nowhere",))


def test_constants_among_outputs_and_inputs_are_described(program: ExportedProgram) -> None:
    kinds = [s.kind for s in program.graph_signature.input_specs]
    assert kinds == sorted(
        kinds, key=[InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.USER_INPUT].index
    )
    last = program.graph_signature.output_specs[-1]
    assert last.kind is OutputKind.USER_OUTPUT and isinstance(last.arg, ConstantArgument)


def test_named_tuples_of_arguments_are_spread():
    Pair = collections.namedtuple("Pair", ["x", "y"])

    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    given = Pair(torch.ones(2), torch.ones(2))
    assert export(Add(), given).module()(*given).tolist() == [2.0, 2.0]


def test_constants_have_no_gradient_and_are_not_written():
    class Model(nn.Module):
        def __init__(self, writes):
            super().__init__()
            self.table, self.writes = torch.ones(2, requires_grad=not writes), writes

        def forward(self, x):
            return x + (self.table.add_(1) if self.writes else self.table)

    program = export(Model(False), (torch.ones(2),))
    assert not program.module().table.requires_grad and program.module()(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Constant table is mutated"):
        export(Model(True), (torch.ones(2),)).run_decompositions()


def test_state_that_hooks_rename_is_found():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

    model = Model()
    rename = lambda module, state, prefix, _: (
        [state.__setitem__("other." + k, state.pop(k)) for k in list(state)] and None
    )  # noqa: E731
    model._register_state_dict_hook(rename)
    x = torch.ones(2)
    assert torch.equal(export(model, (x,)).module()(x), model(x))


def test_what_is_said_while_a_module_is_exported() -> None:
    class Compiles(nn.Module):
        def forward(self, x):
            return torch.compile(lambda y: y + 1)(x)

    with pytest.warns(UserWarning, match="torch.compile is ignored when called inside torch.export region"):
        assert export(Compiles(), (torch.ones(2),)).module()(torch.ones(2)).tolist() == [2, 2]

    class Chooses(nn.Module):
        def forward(self, pred, x):
            return torch.cond(pred, torch.sin, torch.cos, (x,))

    with pytest.warns(UserWarning, match="Pred is a Python constant"):
        export(Chooses(), (True, torch.ones(2)))

    class Assigns(nn.Module):
        def forward(self, x):
            self.total = x.sum()
            return x + 2

    with pytest.warns(UserWarning, match="The tensor attribute self.total was assigned during export"):
        export(Assigns(), (torch.ones(2),))


def test_inputs_want_gradients_as_they_did() -> None:
    program = export(nn.Linear(2, 2), (torch.ones(2, 2, requires_grad=True),))
    assert [n.meta["val"].requires_grad for n in program.graph.find_nodes(op="placeholder")] == [True, True, True]
    program = export(nn.Linear(2, 2), (torch.ones(2, 2),)).run_decompositions({})
    assert program.module()(torch.ones(2, 2)).requires_grad


def test_a_constant_with_two_names() -> None:
    class Holds(nn.Module):
        def __init__(self, held, inner=None) -> None:
            super().__init__()
            self.held, self.inner = held, inner

        def forward(self, x):
            return x + self.held + (0 if self.inner is None else self.inner(x))

    held = torch.ones(2)
    program = export(Holds(held, Holds(held)), (torch.ones(2),))
    assert sorted(program.constants) == ["held", "inner.held"]
    assert program.module()(torch.ones(2)).tolist() == [4, 4]


def test_functions_for_which_compilation_is_disabled_are_exported() -> None:
    class Inner(nn.Module):
        def forward(self, x):
            return x + 2

    class Disabled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        @torch.compiler.disable
        def apart(self, x):
            torch.compiler.graph_break()
            return self.inner(x) * 3

        def forward(self, x):
            return self.apart(x) + self.inner(x)

    program = export(Disabled(), (torch.ones(2),))
    assert program.module()(torch.ones(2)).tolist() == [12, 12]
    calls = [n for n in unflatten(program).graph.nodes if n.op == "call_module"]
    assert [n.meta.get("custom", {}).get("_torchdynamo_disable_method") for n in calls] == ["apart", None]
    assert not any(n.meta.get("custom") for n in unflatten(program).inner.graph.nodes)


def test_is_nonzero_of_many() -> None:
    assert torch.ops.aten.is_nonzero(torch.tensor([2.0])) is True
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        torch.ops.aten.is_nonzero(torch.ones(2))
