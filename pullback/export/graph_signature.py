"""What the inputs and outputs of an exported graph are.

In: nothing but names. Out: `ExportGraphSignature`, one `InputSpec` for each placeholder and one `OutputSpec` for each
result of the graph, in their order. What always holds: mutations come before the user's outputs, and parameters,
buffers and constants before the user's inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class TokenArgument:
    """An ordering of effects, by the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A symbolic integer, by the name of its node."""

    name: str


@dataclass
class SymFloatArgument:
    """A symbolic float, by the name of its node."""

    name: str


@dataclass
class SymBoolArgument:
    """A symbolic truth value, by the name of its node."""

    name: str


@dataclass
class CustomObjArgument:
    """An object of a custom class."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A Python value that the graph was made with."""

    name: str
    value: Any


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(Enum):
    """What an input of the graph is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output of the graph is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


def _about(spec: InputSpec | OutputSpec) -> str:
    target = "" if spec.target is None else f" target='{spec.target}'"
    return f"{spec.arg.name}: {spec.kind.name}{target}"


@dataclass
class InputSpec:
    """One input: what it is, its placeholder, and the name it has in the module."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")
        _check(self.arg)

    def __str__(self) -> str:
        return _about(self) + ("" if self.persistent is None else f" persistent={self.persistent}")


@dataclass
class OutputSpec:
    """One output: what it is, its node, and the name of what it changes."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __post_init__(self) -> None:
        _check(self.arg)

    def __str__(self) -> str:
        return _about(self)


def _check(arg: Any) -> None:
    if not isinstance(arg, ArgumentSpec):
        raise AssertionError(f"expected valid arg type, got {type(arg)}")


@dataclass
class ExportBackwardSignature:
    """Which outputs of an exported joint graph are gradients, and of what."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class ExportGraphSignature:
    """See the module's docstring."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple:
        return tuple(s.target for s in self.input_specs if s.kind is kind)

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of parameters, as the module has them."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of buffers, as the module has them."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of buffers that are no part of a state dict."""
        return tuple(s.target for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of tensors that the program reaches and that are neither parameters nor buffers."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple:
        """Names of placeholders; a constant stands for itself."""
        return tuple(_shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple:
        """Names of nodes; a constant stands for itself."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_shown(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        return self._inputs(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Results of the graph that are new values of buffers."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Results of the graph that are new values of inputs."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        loss = next((s.arg.name for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT), None)
        if loss is None:
            return None
        parameters = self._outputs(OutputKind.GRADIENT_TO_PARAMETER)
        return ExportBackwardSignature(parameters, self._outputs(OutputKind.GRADIENT_TO_USER_INPUT), loss)

    @property
    def assertion_dep_token(self) -> None:
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self) -> tuple[str, ...]:
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Call a node by another name from now on."""
        if not isinstance(old, str) or not isinstance(new, str):
            raise AssertionError(f"expected names, got {old!r} and {new!r}")
        for s in (*self.input_specs, *self.output_specs):
            if s.arg.name == old:
                s.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False):
        """A hook for graph modules that keeps this signature in step when nodes are replaced."""

        def replaced(old: Any, new: str, user: Any) -> None:
            if user.op == "output" or replace_inputs and old.op == "placeholder":
                self.replace_all_uses(old.name, new)

        return replaced

    def __str__(self) -> str:
        inputs, outputs = "\n".join(map(str, self.input_specs)), "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclass
class ModuleCallSignature:
    """The inputs, outputs and structures of one call of a module."""

    inputs: list
    outputs: list
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        for arg in (*self.inputs, *self.outputs):
            if arg.name == original_node.name:
                arg.name = new_node.name


@dataclass
class ModuleCallEntry:
    """A module that the program calls; the root is called ""."""

    fqn: str
    signature: ModuleCallSignature | None = None
