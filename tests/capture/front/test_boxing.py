"""Graphs that take their tensors in a list and empty it."""

import weakref

import pytest

import pullback as torch
from pullback.capture.front.boxing import set_locals_to_steal
from pullback.graph import symbolic_trace


def forward(inputs, scale):
    total = inputs[0] + 1
    return total * inputs[1] * scale, inputs[1]


@pytest.fixture
def module():
    result = symbolic_trace(forward)
    set_locals_to_steal(result, ["inputs"])
    return result


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_stolen_list_is_emptied(module, backend):
    f = torch.compile(module, backend=backend)
    for size in (3, 3, 4):
        inputs = [torch.ones(size), torch.full((size,), 2.0)]
        product, second = f(inputs, torch.tensor(3.0))
        assert inputs == [] and product.tolist() == [12.0] * size and second.tolist() == [2.0] * size


def test_the_backend_gets_one_list(module):
    seen = []

    def backend(gm, examples):
        seen.append((gm, examples))
        return gm

    torch.compile(module, backend=backend)([torch.ones(3), torch.ones(3)], torch.tensor(3.0))
    ((gm, examples),) = seen
    first = next(iter(gm.graph.nodes))
    assert isinstance(examples[0], list) and isinstance(first.meta["example_value"], list)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_tensor_dies_at_its_last_use(backend):
    alive = []

    @torch.library.custom_op("boxing::look", mutates_args=())
    def look(t: torch.Tensor) -> torch.Tensor:
        alive.append(known() is not None)
        return t.clone()

    look.register_fake(lambda t: torch.empty_like(t))
    result = symbolic_trace(lambda inputs: torch.ops.boxing.look(torch.ops.boxing.look(inputs[0]) + 1))
    set_locals_to_steal(result, ["inputs"])
    f = torch.compile(result, backend=backend)
    for _ in range(2):
        inputs = [torch.ones(3)]
        known = weakref.ref(inputs[0])
        alive.clear()
        f(inputs)
    assert alive == [True, False]


def stealing(body):
    """A compiled graph that takes a list of its own."""
    result = symbolic_trace(body)
    set_locals_to_steal(result, ["inputs"])
    return torch.compile(result)


@pytest.fixture
def watching():
    """(operator that ends a graph, tensors watched, for each call of it which of them were alive)"""
    known, alive = [], []

    def impl(t):
        alive.append([ref() is not None for ref in known])
        return t.clone()

    with torch.library._scoped_library("boxing_breaks", "FRAGMENT") as lib:
        lib.define("look(Tensor x) -> Tensor")
        lib.impl("look", impl, "CPU")
        yield torch.ops.boxing_breaks.look, known, alive


def jagged():
    return torch.nested.nested_tensor([torch.ones(1, 3), torch.ones(2, 3)], layout=torch.jagged)


def test_a_stolen_list_is_emptied_where_the_graph_ends_early(watching):
    look, known, alive = watching
    f = stealing(lambda inputs: look(inputs[0].cos().sum() + inputs[1].sum()))
    for _ in range(2):
        inputs = [torch.zeros(3), torch.ones(3)]
        known[:] = map(weakref.ref, inputs)
        assert f(inputs) == 6
        assert inputs == []
    assert alive == [[False, False]] * 2


@pytest.mark.filterwarnings("ignore:compile. body runs uncompiled")
def test_a_list_with_a_jagged_tensor_is_emptied(watching):
    look, known, alive = watching

    def body(inputs):
        first, second = inputs[0], inputs[1]
        return look(second * 2), first

    f = stealing(body)
    nested = torch.nested.nested_tensor([torch.ones(1, 3), torch.ones(2, 3)], layout=torch.jagged)
    for _ in range(2):
        inputs = [nested, torch.ones(3)]
        known[:] = map(weakref.ref, inputs)
        doubled, same = f(inputs)
        assert doubled.tolist() == [2.0] * 3 and same is nested
        assert inputs == []
    assert alive == [[True, False]] * 2


def test_what_is_read_after_a_break_lives_on(watching):
    look, known, alive = watching

    def body(inputs):
        first, second = inputs[0] + 1, inputs[1] * 1
        return look(look(first) + second) * inputs[2]

    f = stealing(body)
    for _ in range(2):
        inputs = [torch.ones(3), torch.full((3,), 2.0), torch.full((3,), 3.0)]
        known[:] = map(weakref.ref, inputs)
        assert f(inputs).tolist() == [12.0] * 3
        assert inputs == []
    assert [seen[2] for seen in alive] == [True] * 4


def test_a_list_that_is_read_after_a_break_is_emptied_by_the_graph_after_it(watching):
    look, known, alive = watching

    def body(inputs, start):
        before = look(start * 2)
        return look(before + inputs[0] + inputs[1])

    f = stealing(body)
    for _ in range(2):
        inputs = [torch.ones(3), torch.ones(3)]
        known[:] = map(weakref.ref, inputs)
        assert f(inputs, torch.ones(3)).tolist() == [4.0] * 3
        assert inputs == []
    assert alive == [[True, True], [False, False]] * 2
