"""How generated code takes its arguments apart."""

import pytest

import pullback as torch
from pullback.graph import PH, symbolic_trace
from pullback.graph.tree_calls import SUPPORTED_NODES, SUPPORTED_NODES_EXACT_MATCH, register_pytree_flatten_spec
from pullback.utils import pytree


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


@pytest.fixture
def known():
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    register_pytree_flatten_spec(Pair, lambda p, spec: [p.a, p.b], lambda p, spec: True)
    yield
    pytree._deregister_pytree_node(Pair)
    del SUPPORTED_NODES[Pair], SUPPORTED_NODES_EXACT_MATCH[Pair]


def choose(b, a):
    return a["a"] if b else a["z"][1]


@pytest.mark.parametrize("b", [True, False])
def test_a_traced_function_of_nested_arguments_is_traced_again(b):
    once = symbolic_trace(choose, concrete_args={"a": {"a": PH, "z": (PH, PH)}, "b": b})
    again = symbolic_trace(once)
    values = {"a": torch.tensor(1.0), "z": (torch.tensor(2.0), torch.tensor(3.0))}
    assert once(b, values) == again(b, values) == (1.0 if b else 3.0)


def test_another_structure_is_refused():
    made = symbolic_trace(choose, concrete_args={"a": {"a": PH, "z": (PH, PH)}, "b": True})
    for wrong in ({"a": 1, "z": (2, 3, 4)}, {"a": 1}, {"a": 1, "z": [2, 3]}, {"a": 1, "z": (2, 3), "y": 1}):
        with pytest.raises(TypeError, match="does not match the one traced"):
            made(True, wrong)


def test_classes_say_what_their_parts_are(known):
    once = symbolic_trace(lambda x: x.a - x.b, concrete_args={"x": Pair(PH, PH)})
    again = symbolic_trace(once)
    assert once(Pair(5, 2)) == again(Pair(5, 2)) == 3
    assert [n.target for n in again.graph.nodes if n.op == "call_function"][:2] == [getattr, getattr]
