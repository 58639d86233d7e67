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
    with pytest.raises(
        RuntimeError, match=r"size \[2\] for L\['ys'\]\[1\]\['a'\], not a torch.float32 tensor of size \[1\]"
    ):
        graph(ARGS[0], [ARGS[1][0], {"a": torch.ones(1)}], k=3)


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
        graph(torch.ones(2), torch.ones(4))
