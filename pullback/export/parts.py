"""What nodes of an exported graph stand for: parameters, buffers, lifted tensors.

In: a program and a node. Out: whether the node is such an input, and the tensor that it is.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..graph import GraphModule, Node
from ..nn.parameter import Parameter
from .exported_program import ExportedProgram


def is_param(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is a parameter."""
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program: ExportedProgram, node: Node) -> Parameter | None:
    """The parameter that a node is; None for another node."""
    name = program.graph_signature.inputs_to_parameters.get(node.name)
    return None if name is None else program.state_dict[name]


def is_buffer(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is a buffer."""
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program: ExportedProgram, node: Node) -> Tensor | None:
    """The buffer that a node is; None for another node."""
    name = program.graph_signature.inputs_to_buffers.get(node.name)
    if name is None:
        return None
    temporary = name in program.graph_signature.non_persistent_buffers
    return (program.constants if temporary else program.state_dict)[name]


def is_lifted_tensor_constant(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is a tensor that the program reached."""
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program: ExportedProgram, node: Node) -> Tensor | None:
    """The tensor that the program reached and a node is; None for another node."""
    name = program.graph_signature.inputs_to_lifted_tensor_constants.get(node.name)
    return None if name is None else program.constants[name]


def shape_env_of(gm: GraphModule) -> Any:
    """The environment of the symbols in a graph's sizes; None where there are none."""
    return gm.shape_env
