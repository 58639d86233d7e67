"""`_dynamo.export`: a graph that stands by itself."""

import pytest

import pullback as torch
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
    assert [n.name for n in graph.graph.nodes if n.op == "get_attr"][2] == "g_shift_"


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
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(3), torch.ones(4))


def test_other_arguments_run_where_the_program_is_the_same_graph_for_them():
    graph, _ = export(lambda x, n: x.sin() * 2 if n > 1 else x.cos())(torch.ones(2, 2), 5)
    x = torch.randn(3, dtype=torch.float64)
    assert torch.equal(graph(x, 7), x.sin() * 2) and torch.equal(graph(x, 7), x.sin() * 2)
    with pytest.raises(RuntimeError, match=r"takes 5 for L\['n'\], not 1"):
        graph(torch.ones(2, 2), 1)


def test_a_graph_that_holds_a_size_refuses_others():
    graph, _ = export(lambda x: x.sum() / x.shape[0])(torch.ones(2))
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(3))


def test_a_graph_whose_program_holds_other_tensors_since_refuses_other_sizes():
    held = [torch.ones(1)]
    graph, _ = export(lambda x: x * held[0])(torch.ones(2))
    assert graph(torch.ones(3)).tolist() == [1, 1, 1]
    held[0] = torch.zeros(1)
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(4))


def test_branches_are_compared_too():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x * x.shape[0], lambda x: x - 1, (x,))

    graph, _ = export(f)(torch.ones(2))
    with pytest.raises(RuntimeError, match="export the program again"):
        graph(torch.ones(3))
