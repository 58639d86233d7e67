"""Whether an exported program is what one must be.

In: a program. Out: nothing, or a `SpecViolationError` that names what is wrong. What always holds of a program that passes:
graphs call operators alone, those of a functional program write nothing, and the signature fits graph and state.
"""

from __future__ import annotations

from typing import Any

from ..capture.higher_order.base import HigherOrderOperator
from ..graph import GraphModule
from ..nn.parameter import Parameter
from ..ops.system.operator import Operator
from .graph_signature import InputKind

KINDS = ("placeholder", "call_function", "get_attr", "output")


class SpecViolationError(Exception):
    """A program that breaks the rules of exported programs."""


class Verifier:
    """Checks programs."""

    dialect = "ATEN"

    def check(self, ep: Any) -> None:
        """Raise for a program that breaks a rule."""
        self._check_graph_module(ep.graph_module, functional=not ep._is_training)
        check_signature(ep)

    def _check_graph_module(self, gm: GraphModule, functional: bool = False) -> None:
        gm.graph.lint()
        for node in gm.graph.nodes:
            if node.op not in KINDS:
                raise SpecViolationError(
                    f"Node of kind {node.op!r} ({node.name}) is not allowed in an exported program"
                )
            if node.op == "get_attr" and isinstance(inner := getattr(gm, node.target, None), GraphModule):
                self._check_graph_module(inner, functional)
            if node.op != "call_function":
                continue
            if not callable(node.target) or isinstance(node.target, str):
                raise SpecViolationError(f"{node.target!r}, which {node.name} calls, is no operator and no function")
            written = isinstance(node.target, Operator) and node.target.schema.is_mutable
            if functional and written and not isinstance(node.target, HigherOrderOperator):
                raise SpecViolationError(f"operator '{node.target}' is not functional")


def check_signature(ep: Any) -> None:
    """Raise where the signature does not fit the graph or the state."""
    inputs, outputs = ep.graph_signature.input_specs, ep.graph_signature.output_specs
    names, said = [n.name for n in ep.graph.find_nodes(op="placeholder")], [s.arg.name for s in inputs]
    if names != said:
        raise SpecViolationError(f"the graph's inputs are {names}, the signature says {said}")
    for spec in inputs:
        _check_state(ep, spec)
    results = ep.graph.output_node().args[0]
    if len(results) != len(outputs):
        raise SpecViolationError(
            f"Number of output nodes {len(results)} is different from the number of outputs in the signature, {len(outputs)}"
        )


def _check_state(ep: Any, spec: Any) -> None:
    stored = spec.kind is InputKind.PARAMETER or spec.kind is InputKind.BUFFER and spec.persistent
    if stored and spec.target not in ep.state_dict:
        raise SpecViolationError(f"{spec.kind.name.title()} {spec.target} is not in the state dict.")
    if spec.kind is InputKind.PARAMETER and not isinstance(ep.state_dict[spec.target], Parameter):
        raise SpecViolationError(
            f"State dict entry for parameter {spec.target} is not an instance of torch.nn.Parameter."
        )
    kept = spec.kind is InputKind.BUFFER and not spec.persistent or spec.kind is InputKind.CONSTANT_TENSOR
    if kept and spec.target not in ep.constants:
        raise SpecViolationError(f"{spec.kind.name.title()} {spec.target} is not in the constants dictionary.")


__all__ = ["SpecViolationError", "Verifier", "check_signature"]
