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
