"""Schemas of calls of operators that take functions: such an operator has no schema of its own, only its calls do.

In: the arguments of a call (values, or a node of a graph). Out: a `CallSchema`, which prints as schemas do. The lists
among the arguments of `op.gen_schema(...)` are flattened, an argument for each element; those of a node stay lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...core import tree
from ...core.tensor import Tensor
from ...graph import GraphModule, Node
from ...ops.system.schema import Schema
from .subgraph import Example, fake_mode_for

KINDS = ("SymInt", "SymFloat", "SymBool", "bool", "int", "float", "str")


class ValueType:
    """The type of a value, as schemas write it: `Tensor`, `SymInt`, `GraphModule`, `Tensor[2]`."""

    def __init__(self, text: str):
        self.text = text

    @staticmethod
    def from_example(value: Any) -> ValueType:
        """The type of a value."""
        if isinstance(value, (list, tuple)):
            kinds = {str(ValueType.from_example(v)) for v in value}
            if len(kinds) != 1:
                raise RuntimeError(f"a list in a schema has elements of one type, got {sorted(kinds)}")
            return ValueType(f"{kinds.pop()}[{len(value)}]")
        if isinstance(value, Tensor):
            return ValueType("Tensor")
        if isinstance(value, GraphModule):
            return ValueType("GraphModule")
        kind = next((c.__name__ for c in type(value).__mro__ if c.__name__ in KINDS), None)
        if kind is None and not callable(value):
            raise RuntimeError(f"unsupported type of a schema: {type(value)}")
        return ValueType(kind or "Any")

    @staticmethod
    def parse(text: str) -> ValueType:
        """The type that a text says."""
        if not re.fullmatch(r"[\w.]+(\[\d*\])?\??", text):
            raise RuntimeError(f"unrecognized type {text!r}")
        return ValueType(text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ValueType({self.text!r})"

    def __eq__(self, other) -> bool:
        return isinstance(other, ValueType) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class CallSchema(Schema):
    """The schema of one call. `tree_spec`: how the flat arguments were nested, where somebody said."""

    def __init__(self, text: str, tree_spec: Any = None):
        super().__init__(text, "")
        self.tree_spec = tree_spec

    @staticmethod
    def parse(text: str) -> CallSchema:
        """The schema that a text says."""
        return CallSchema(text)

    @staticmethod
    def from_example(name: str, inputs: Sequence[tuple[str, Any]], outputs: Any) -> CallSchema:
        """The schema of a call with these named arguments that gives these results."""
        given = ", ".join(f"{ValueType.from_example(value)} {argument}" for argument, value in inputs)
        found = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        kinds = [str(ValueType.from_example(v)) for v in found]
        results = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
        return CallSchema(f"{name}({given}) -> {results}")

    def __eq__(self, other) -> bool:
        return isinstance(other, Schema) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))


class HopSchemaGenerator:
    """Collects the arguments and results of a call, flat, and writes its schema."""

    def __init__(self, hop):
        self.hop, self.spec = hop, None
        self.arguments: list[str] = []
        self.outputs: list[str] = []

    def add_arg(
        self, name: str, example_value: Any, default_value: Any = None, is_mutated: bool = False, kw_only: bool = False
    ) -> None:
        """One argument; an `is_mutated` one is written by the call."""
        _check_flat(example_value)
        kind = "Any" if callable(example_value) else str(ValueType.from_example(example_value))
        alias = f"(a{len(self.arguments)}!)" if is_mutated else ""
        default = "" if default_value is None else f"={default_value!r}"
        star = "*, " if kw_only and not any(a.startswith("*") for a in self.arguments) else ""
        self.arguments.append(f"{star}{kind}{alias} {name}{default}")

    def add_output(self, example_value: Any) -> None:
        """One result."""
        _check_flat(example_value)
        self.outputs.append(str(ValueType.from_example(example_value)))

    def add_schema_tree_spec(self, spec: Any) -> None:
        """How the arguments are nested in a call."""
        self.spec = spec

    def gen_schema(self) -> CallSchema:
        """The schema of what was added."""
        outputs = f"({', '.join(self.outputs)})"
        if len(self.outputs) == 1:
            outputs = f"({outputs})"
        return CallSchema(f"{self.hop}({', '.join(self.arguments)}) -> {outputs}", self.spec)


def _check_flat(value: Any) -> None:
    if isinstance(value, (tuple, list, dict)):
        raise RuntimeError(f"Please only add flattened inputs to the hop schema, got a {type(value).__name__}")


def schema_of_call(op, names: Sequence[str], args: tuple, calls: list[tuple[Callable, list[Example]]]) -> CallSchema:
    """The schema of a call. `names`: of its arguments, a list's name being that of each element, before its number;
    `calls`: the functions, with what they are called with; the last one's results are the call's."""
    generator = HopSchemaGenerator(op)
    outputs, written = _run(calls, args)
    operands = sum(len(a) for a in args if isinstance(a, (tuple, list)))
    before = len(tree.tree_leaves(list(args))) - operands
    for name, value in zip(names, args, strict=True):
        for k, element in enumerate(value) if isinstance(value, (tuple, list)) else [(None, value)]:
            at = len(generator.arguments) - before
            generator.add_arg(name if k is None else f"{name}{k}", element, is_mutated=at in written)
    for value in outputs:
        generator.add_output(value)
    return generator.gen_schema()


def _run(calls: list[tuple[Callable, list[Example]]], args: tuple) -> tuple[list, set[int]]:
    """(the results of the last function, which operands any of them writes), on tensors without data."""
    mode, outputs, written = fake_mode_for(args), [], set()
    for function, examples in calls:
        fakes = [e.fake(mode) for e in examples]
        before = [t._version if isinstance(t, Tensor) else 0 for t in fakes]
        with mode:
            outputs = tree.tree_leaves(function(*fakes))
        written |= {i for i, t in enumerate(fakes) if isinstance(t, Tensor) and t._version != before[i]}
    return outputs, written


def hop_schema_from_fx_node(node: Node) -> CallSchema:
    """The schema of the call that a node of a graph makes."""
    op, module = node.target, node.graph.owning_module
    if not hasattr(op, "schema_names"):
        raise RuntimeError("fx_node's target must be a hop.")
    names = [
        n if n[-1] == "s" or not isinstance(a, (tuple, list)) else f"{n}s"
        for n, a in zip(op.schema_names, node.args, strict=True)
    ]

    def value(n: Node):
        return getattr(module, n.target) if n.op == "get_attr" else n.meta.get("val", n.meta.get("example_value"))

    args = [tree.tree_map_only(Node, value, list(a) if isinstance(a, (tuple, list)) else a) for a in node.args]
    outputs = node.meta.get("val", node.meta.get("example_value"))
    several = isinstance(outputs, (tuple, list))
    given = ", ".join(f"{ValueType.from_example(a)} {n}" for n, a in zip(names, args, strict=True) if a != [])
    return CallSchema(f"{op}({given}) -> {ValueType.from_example(list(outputs) if several else outputs)}")
