"""`_dynamo.export`: a graph that stands by itself."""

import copy
import dataclasses

import pytest

import pullback as torch
from pullback.capture.front.compile import UserError
from pullback.capture.front.exporting import export
from pullback.capture.trace.program import Unsupported
from pullback.surface.compiler import assume_constant_result

layer, shift, seen = torch.nn.Linear(3, 2), torch.ones(2), []


def program(x, ys, *, k=2):
    z = layer(x) + ys[0] * ys[1]["a"] + shift
    return {"out": z * k, "rest": [z, x, 5]}


ARGS = (torch.ones(4, 3), [torch.ones(2), {"a": torch.ones(2)}])


def test_it_is_called_as_the_function_and_holds_what_that_reached():
    graph, guards = export(program)(*ARGS, k=3)
    other = (torch.randn(4, 3), [torch.randn(2), {"a": torch.randn(2)}])
    got, want = graph(*other, k=3), program(*other, k=3)
    assert torch.equal(got["out"], want["out"]) and got["rest"][1] is other[0] and got["rest"][2] == 5
    assert len(list(graph.parameters())) == 2 and "L['k'] == 3" in guards
    assert [n.name for n in graph.graph.nodes if n.op == "get_attr"][2] == "g__shift__"


def test_its_older_form_takes_the_arguments_at_once():
    graph, _ = export(program, *ARGS)
    assert torch.equal(graph(*ARGS)["out"], program(*ARGS)["out"])


def test_it_refuses_other_arguments():
    graph, _ = export(program)(*ARGS, k=3)
    with pytest.raises(RuntimeError, match=r"takes 3 for L\['k'\], not 4"):
        graph(*ARGS, k=4)
    graph, _ = export(lambda x, ys: x * ys["a"].shape[0])(torch.ones(2), {"a": torch.ones(2)})
    with pytest.raises(RuntimeError, match=r"size \[2\] for L\['x'\], not a torch.float32 tensor of size \[1\]"):
        graph(torch.ones(1), {"a": torch.ones(1)})


@pytest.mark.parametrize("f", [lambda x: print(x), lambda x: x.sum().item() + 1, lambda x: seen.append(1) or x * 2])
def test_what_is_no_graph_is_refused(f):
    with pytest.raises(Unsupported):
        export(f)(torch.ones(2))
    assert not seen


def test_tensors_that_it_does_not_read_are_anything():
    @assume_constant_result
    def size(x):
        return x.shape[0]

    graph, _ = export(lambda x, y: y * size(x))(torch.ones(2), torch.ones(3))
    assert graph(torch.ones(5, dtype=torch.float64), torch.ones(3)).tolist() == [2, 2, 2]
    assert graph(torch.ones(3), torch.ones(4)).tolist() == [2, 2, 2, 2]


def test_other_arguments_run_where_the_program_is_the_same_graph_for_them():
    graph, _ = export(lambda x, n: x.sin() * 2 if n > 1 else x.cos())(torch.ones(2, 2), 5)
    x = torch.randn(3, dtype=torch.float64)
    assert torch.equal(graph(x, 7), x.sin() * 2) and torch.equal(graph(x, 7), x.sin() * 2)
    with pytest.raises(RuntimeError, match=r"takes 5 for L\['n'\], not 1"):
        graph(torch.ones(2, 2), 1)


def slicing(x):
    return x[: x.shape[0] - 2, x.shape[1] - 1 :: 2].sum() / x.shape[0]


def test_sizes_are_symbols():
    graph, _ = export(slicing)(torch.ones(4, 5))
    for size in ((4, 5), (6, 7), (3, 3), (2, 8)):
        x = torch.randn(*size)
        torch.testing.assert_close(graph(x), slicing(x))
    with pytest.raises(RuntimeError, match="export the program again"):  # a symbol stands for 2 and more
        graph(torch.ones(1, 4))


@pytest.mark.parametrize("size", [(3, 5), (4,), (0, 5)])
def test_sizes_that_the_program_decides_by_are_refused(size):
    graph, _ = export(lambda x: x * 2 if x.shape[0] > 3 else x * 3)(torch.ones(4, 5))
    assert graph(torch.ones(5, 6)).sum() == 60
    if len(size) == 1:  # what is decided is the same, and so is the graph
        assert graph(torch.ones(*size)).tolist() == [2] * 4
        return
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(*size))


def test_sizes_that_are_one_symbol_are_equal():
    graph, _ = export(lambda x, y: x @ y)(torch.ones(3, 4), torch.ones(4, 2))
    assert graph(torch.ones(5, 6), torch.ones(6, 7)).shape == (5, 7)
    with pytest.raises(RuntimeError):
        graph(torch.ones(5, 6), torch.ones(5, 7))


def test_a_module_keeps_the_sizes_of_its_parameters():
    graph, _ = export(torch.nn.Linear(3, 2))(torch.ones(4, 3))
    assert graph(torch.ones(7, 3)).shape == (7, 2)
    assert graph(input=torch.ones(4, 3)).shape == (4, 2)  # as `forward` names it
    with pytest.raises(RuntimeError):
        graph(torch.ones(4, 5))


def test_branches_are_compared_too():
    def f(x):
        k = 2 if x.dtype is torch.float32 else 3
        return torch.cond(x.sum() > 0, lambda x: x * k, lambda x: x - 1, (x,))

    graph, _ = export(f)(torch.ones(2))
    assert graph(torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(2, dtype=torch.float64))


def test_a_copy_takes_other_sizes_too():
    graph = copy.deepcopy(export(lambda x: x / x.shape[0])(torch.ones(2))[0])
    assert graph(torch.ones(4)).tolist() == [0.25] * 4


@assume_constant_result
def itself(x):
    return x if x.sum().item() > 0 else None


def test_what_is_assumed_to_be_constant_is_no_argument():
    def f(x):
        y = itself(x)
        return torch.full((2,), 0.5) * (1 if y is None else y)

    graph, _ = export(f)(torch.tensor([2.0, 2.0]))
    assert graph(torch.tensor([-7])).tolist() == [1, 1]


def test_assignments_to_attributes_are_told():
    class Counts(torch.nn.Module):
        def forward(self, x):
            self.count = 2
            return x * self.count

    with pytest.warns(UserWarning, match="assigns to an attribute"):
        graph, _ = export(Counts())(torch.ones(2))
    assert graph(torch.ones(2)).tolist() == [2, 2]

    def writes(xs):
        xs[0] = xs[1]
        return xs[0] + 1

    with pytest.raises(Unsupported, match="it changes Python state: item"):
        export(writes)([torch.ones(2), torch.zeros(2)])


def test_a_graph_that_computes_nothing():
    with pytest.raises(AssertionError, match="Failed to produce a graph"):
        export(lambda x: x, same_signature=False)(torch.ones(2))
    assert export(lambda x: x)(torch.ones(2))[0](torch.ones(2)).tolist() == [1, 1]


@dataclasses.dataclass
class Pair:
    x: torch.Tensor
    y: torch.Tensor


def test_dataclasses_that_nobody_registered():
    with pytest.raises(UserError, match="one of the inputs with type .*Pair.* is not supported or pytree-flattenable"):
        export(lambda pair: pair.x + pair.y)(Pair(torch.ones(2), torch.ones(2)))
    with pytest.raises(UserError, match="one of the outputs with type .*Pair.* is not supported or pytree-flattenable"):
        export(lambda x: Pair(x + 1, x))(torch.ones(2))
