"""A model's graph, as TensorBoard draws it: the nodes of the exported program, under the names of their modules.

In: a module and example inputs. Out: (`GraphDef`, `RunMetadata`) of TensorBoard's protocol.
"""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ...core.layers import above


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> tuple[GraphDef, RunMetadata]:
    """`use_strict_trace` asks for nothing here: results that are dicts or lists are recorded either way."""
    inputs = tuple(args) if isinstance(args, tuple | list) else (args,)
    program = above.package().export.export(model, inputs)
    if verbose:
        print(program.graph)
    names = {node: f"{_scope(node)}{node.name}" for node in program.graph.nodes}
    nodes = [_node(node, names) for node in program.graph.nodes]
    stats = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    return GraphDef(node=nodes, versions=VersionDef(producer=22)), stats


def _scope(node: Any) -> str:
    """`0/attention/`: the path of the module in which a node was recorded."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]).removeprefix("L__self__").strip(".") if stack else ""
    return "".join(f"{part}/" for part in path.split(".") if part)


def _node(node: Any, names: dict) -> NodeDef:
    kind = {"placeholder": "IO Node", "output": "IO Node"}.get(node.op, str(node.target))
    made = NodeDef(name=names[node], op=kind, input=[names[n] for n in node.all_input_nodes])
    value = node.meta.get("val")
    if hasattr(value, "shape"):
        sizes = [TensorShapeProto.Dim(size=int(s) if type(s) is int else -1) for s in value.shape]
        shape = AttrValue.ListValue(shape=[TensorShapeProto(dim=sizes)])
        made.attr["_output_shapes"].CopyFrom(AttrValue(list=shape))
    return made
