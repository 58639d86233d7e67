"""Schemas of calls of operators that take functions."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.higher_order.schema import CallSchema, HopSchemaGenerator, ValueType, hop_schema_from_fx_node
from pullback.capture.trace.make_fx import make_fx

hops = torch.ops.higher_order


def test_operands_are_arguments_of_their_own():
    x, y = torch.ones(2), torch.ones(3, 2)
    text = "cond(Tensor pred, Any true_fn, Any false_fn, Tensor operand0) -> ((Tensor))"
    assert str(hops.cond.gen_schema(torch.tensor(True), torch.sin, torch.cos, (x,))) == text
    found = hops.scan.gen_schema(lambda c, y, z: (c + y * z, c), (x,), (y,), (x,))
    assert str(found) == "scan(Any combine_fn, Tensor init0, Tensor xs0, Tensor additional_input0) -> (Tensor, Tensor)"
    found = hops.associative_scan.gen_schema(torch.add, (y,), ())
    assert str(found) == "associative_scan(Any combine_fn, Tensor xs0) -> ((Tensor))"
    assert [a.name for a in found.arguments] == ["combine_fn", "xs0"]


def test_numbers_and_written_operands():
    found = hops.while_loop.gen_schema(lambda i, x: i < 3, lambda i, x: (i + 1, x.add_(1)), (0, torch.ones(2)), ())
    assert str(found) == (
        "while_loop(Any cond_fn, Any body_fn, int carried_input0, Tensor(a3!) carried_input1) -> (int, Tensor)"
    )
    assert found.is_mutable and not found.arguments[2].writes and found.arguments[3].writes


def test_node_of_a_graph():
    def f(x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    graph = make_fx(f)(torch.ones(2)).graph
    node = next(n for n in graph.nodes if n.target is hops.cond)
    text = "cond(Tensor pred, GraphModule true_fn, GraphModule false_fn, Tensor[1] operands) -> Tensor[1]"
    assert str(hop_schema_from_fx_node(node)) == text


def test_generator_takes_flat_values_only():
    generator = HopSchemaGenerator(hops.cond)
    with pytest.raises(RuntimeError, match="only add flattened inputs"):
        generator.add_arg("pair", (torch.ones(1), 2))
    generator.add_arg("x", torch.ones(1), is_mutated=True)
    generator.add_arg("n", 2, default_value=2, kw_only=True)
    assert str(generator.gen_schema()) == "cond(Tensor(a0!) x, *, int n=2) -> ()"


def test_texts_can_be_read_again():
    schema = CallSchema.from_example("f", [("x", torch.ones(1)), ("n", [1, 2])], [torch.ones(1), 2.0])
    assert str(schema) == "f(Tensor x, int[2] n) -> (Tensor, float)" and CallSchema.parse(str(schema)) == schema
    kind = ValueType.from_example([torch.ones(1)])
    assert ValueType.parse(str(kind)) == kind and str(kind) == "Tensor[1]"
    with pytest.raises(RuntimeError, match="elements of one type"):
        ValueType.from_example([1, torch.ones(1)])


def test_associative_scan_operator():
    x, scale = torch.arange(1.0, 6.0), torch.tensor(2.0)
    (found,) = hops.associative_scan(lambda a, b: a * b, (x,))
    assert torch.equal(found, x.cumprod(0))
    (found,) = hops.associative_scan(lambda a, b, s: a + b * s / s, (x,), (scale,))
    assert torch.equal(found, x.cumsum(0))
