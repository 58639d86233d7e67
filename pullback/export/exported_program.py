"""`ExportedProgram`: a graph without state of its own, what its inputs and outputs are, and the state.

In: the parts, from `trace`. Out: a module to run (`module()`), a functional program (`run_decompositions()`), text. What
always holds: the graph takes parameters, buffers and constants before the user's inputs, as the signature says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core import tree
from ..core.tensor import Tensor
from ..graph import Graph, GraphModule
from ..nn.parameter import Parameter
from .decompositions import CustomDecompTable, default_decompositions
from .graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    ModuleCallEntry,
    ModuleCallSignature,
    OutputKind,
    OutputSpec,
    TensorArgument,
)


class CallSpec(NamedTuple):
    """The structures of a program's arguments and results."""

    in_spec: Any
    out_spec: Any


class ExportedProgram:
    """See the module's docstring."""

    def __init__(
        self,
        root: GraphModule,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict,
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple, dict] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        guards: list[str] | None = None,
    ):
        self._graph_module, self._graph_signature = root, graph_signature
        self._state_dict, self._range_constraints = dict(state_dict), dict(range_constraints)
        self._module_call_graph, self._example_inputs = module_call_graph, example_inputs
        self._constants = constants or {}
        self._guards_code = list(guards or ())  # what must hold of the user's inputs, as Python over their names

    # ---- parts
    @property
    def graph_module(self) -> GraphModule:
        """The graph, as a function of everything it reads."""
        return self._graph_module

    @graph_module.setter
    def graph_module(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's graph_module attribute.")

    @property
    def graph(self) -> Graph:
        return self._graph_module.graph

    @graph.setter
    def graph(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's graph attribute.")

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the graph's inputs and outputs are."""
        return self._graph_signature

    @graph_signature.setter
    def graph_signature(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's graph_signature attribute.")

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers, by name."""
        return self._state_dict

    @state_dict.setter
    def state_dict(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's state_dict attribute.")

    @property
    def constants(self) -> dict[str, Any]:
        """Other tensors that the program reads, by name."""
        return self._constants

    @constants.setter
    def constants(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's constants attribute.")

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict:
        """The bounds of the symbols in sizes."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        return self._module_call_graph

    @property
    def _call_signature(self) -> ModuleCallSignature:
        return self._module_call_graph[0].signature

    @property
    def call_spec(self) -> CallSpec:
        return CallSpec(self._call_signature.in_spec, self._call_signature.out_spec)

    @property
    def example_inputs(self) -> tuple[tuple, dict] | None:
        """The arguments that the program was exported with."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: tuple[tuple, dict] | None) -> None:
        if value is not None and not (
            isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict)
        ):
            raise ValueError(
                f"Example inputs should be a tuple of (args, kwargs), a tuple and a dict, got {type(value)}"
            )
        if value is not None and self._example_inputs is not None:
            known, new = (tree.tree_flatten(v)[1] for v in (self._example_inputs, value))
            if set(self._example_inputs[1]) != set(value[1]):
                raise ValueError(f"Ran into a kwarg keyword mismatch: the program was exported with {list(self._example_inputs[1])}, not {list(value[1])}")  # fmt: skip
            if known != new:
                raise ValueError(f"Trying to flatten user inputs of another structure. Example inputs should have the structure {known} that the program was exported with, got {new}")  # fmt: skip
        self._example_inputs = value

    @property
    def dialect(self) -> str:
        return "TRAINING" if self._is_training else "ATEN"

    _is_training = True  # whether writes are in the graph as the program has them
    _module_aliases: dict[str, str] = {}  # further names of modules: the first name of each
    _recording = True  # whether autograd recorded when the program was exported

    # ---- state
    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Parameter]:
        for _, p in self.named_parameters():
            yield p

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        temporary = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in temporary else self.state_dict)[name]

    def buffers(self) -> Iterator[Tensor]:
        for _, b in self.named_buffers():
            yield b

    def _value(self, spec: Any) -> Any:
        """What an input that is not the user's is."""
        stored = spec.kind is InputKind.PARAMETER or spec.kind is InputKind.BUFFER and spec.persistent
        return (self.state_dict if stored else self.constants)[spec.target]

    # ---- use
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """The program as a module that is called as the original was; it shares the state of this program."""
        from .unlift import unlifted

        return unlifted(self, check_guards)

    def run_decompositions(
        self, decomp_table: dict[Any, Callable] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program as a functional graph: writes become results, operators of the table what they are made of."""
        from .functional import decomposed

        return decomposed(self, default_decompositions() if decomp_table is None else decomp_table)

    def validate(self) -> None:
        """Check that the graph is one that programs may have, and fits its signature and state."""
        from .verifier import Verifier

        Verifier().check(self)

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__

    def __deepcopy__(self, memo: dict) -> ExportedProgram:
        import copy

        graph, values = Graph(), {}  # symbols belong to one environment, so values of nodes are shared
        for node in self.graph.nodes:
            values[node] = graph.node_copy(node, values.__getitem__)
        module = GraphModule(self.graph_module, graph)
        module.shape_env = self.graph_module.shape_env
        result = ExportedProgram(
            module, module.graph, copy.deepcopy(self.graph_signature), copy.deepcopy(self.state_dict, memo),
            self.range_constraints, copy.copy(self.module_call_graph), self.example_inputs,
            copy.deepcopy(self.constants, memo), guards=self._guards_code,
        )  # fmt: skip
        result._is_training, result._recording = self._is_training, self._recording
        result._module_aliases = self._module_aliases
        return result


__all__ = [
    "CustomDecompTable", "ExportGraphSignature", "ExportedProgram", "InputKind", "InputSpec", "ModuleCallEntry",
    "ModuleCallSignature", "OutputKind", "OutputSpec", "TensorArgument", "default_decompositions",
]  # fmt: skip
