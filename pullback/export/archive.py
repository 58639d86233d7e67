"""`save` and `load`: an exported program as one file.

In: an `ExportedProgram` and a file. Out: a zip archive: `program.json` (the graph and those that its operators take, its signature,
its structures and the symbols in its sizes, as plain data) and `state.pt` (tensors). What always holds: loading runs no code from the file;
operators are found by name, so custom ones must be registered before; what cannot be written down raises when saving.
"""

from __future__ import annotations

import io
import json
import operator
import os
import zipfile
from typing import Any

from ..capture.fake.mode import FakeTensorMode
from ..capture.shapes.environment import ShapeEnv
from ..capture.trace.graph_trace import GraphTrace
from ..core import modes, tree
from ..core.device import device
from ..core.tensor import Tensor
from ..graph import Graph, GraphModule, Interpreter, Node
from . import encoding
from .constraints import ExportEnv, conditions_of, ranges_of
from .exported_program import ExportedProgram
from .graph_signature import InputKind, ModuleCallEntry, ModuleCallSignature
from .structures import decoded, encoded

FORMAT = "pullback.export"
VERSION = 1


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | io.IOBase,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write an exported program to a file. `extra_files`: names and texts that go with it."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    if opset_version is not None:
        raise NotImplementedError("save: opset_version is not implemented")
    from ..serialization import save as save_tensors

    state = io.BytesIO()
    leaves = None if ep.example_inputs is None else tree.tree_flatten(ep.example_inputs)[0]
    inner = tensors_of(ep.graph_module)
    save_tensors(
        {"state_dict": dict(ep.state_dict), "constants": ep.constants, "examples": leaves, "inner": inner}, state
    )
    program = json.dumps(described(ep))
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("program.json", program)
        archive.writestr("state.pt", state.getvalue())
        for name, text in (extra_files or {}).items():
            archive.writestr(f"extra_files/{name}", text)


def load(
    f: str | os.PathLike[str] | io.IOBase,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """The exported program in a file; `extra_files` gets the texts of the names that are its keys."""
    if expected_opset_version is not None:
        raise NotImplementedError("load: expected_opset_version is not implemented")
    from ..serialization import load as load_tensors

    refused = f"load: {f} is no exported program of pullback"
    if not zipfile.is_zipfile(f):
        raise RuntimeError(f"{refused}: it is not a zip archive")
    with zipfile.ZipFile(f) as archive:
        if not {"program.json", "state.pt"} <= set(archive.namelist()):
            raise RuntimeError(f"{refused} (programs that PyTorch saved are not read, nor are files of torch.save)")
        data = json.loads(archive.read("program.json"))
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise RuntimeError(
                f"{refused}: its format is {data.get('format')} {data.get('version')}, not {FORMAT} {VERSION}"
            )
        state = load_tensors(io.BytesIO(archive.read("state.pt")), weights_only=True)
        for name in extra_files or ():
            extra_files[name] = archive.read(f"extra_files/{name}").decode()
    return rebuilt(data, state)


# ---- writing
def described(ep: ExportedProgram) -> dict:
    """Everything of a program but its tensors, as plain data."""
    call = ep.module_call_graph[0].signature
    signature, env = ep.graph_signature, ep.graph_module.shape_env
    inputs = [
        value_described(env, n.meta["val"])
        for n, s in zip(ep.graph.find_nodes(op="placeholder"), signature.input_specs, strict=True)
        if s.kind is InputKind.USER_INPUT
    ]
    return {
        "format": FORMAT, "version": VERSION, "training": ep._is_training, "recording": ep._recording,
        **graph_described(ep.graph_module),
        "inputs": [encoding.spec(s) for s in signature.input_specs],
        "outputs": [encoding.spec(s) for s in signature.output_specs],
        "in_spec": structure(call.in_spec), "out_spec": structure(call.out_spec), "names": call.forward_arg_names,
        "values": inputs, "symbols": encoding.symbols(env, ep.range_constraints),
    }  # fmt: skip


def graph_described(module: GraphModule) -> dict:
    """A graph, and those that its operators take, as plain data."""
    inner = {name: graph_described(value) for name, value in attributes_of(module) if isinstance(value, GraphModule)}
    return {"nodes": [encoding.node(n) for n in module.graph.nodes], "graphs": inner}


def attributes_of(module: GraphModule) -> list[tuple[str, Any]]:
    """The attributes of a module that its graph reads, by name: graphs, and tensors of the graphs inside."""
    names = dict.fromkeys(n.target for n in module.graph.find_nodes(op="get_attr"))
    return [(name, operator.attrgetter(name)(module)) for name in names]


def tensors_of(module: GraphModule) -> dict[str, Any]:
    """The tensors that the graphs inside a module hold, nested as the graphs are."""
    found = attributes_of(module)
    return {name: tensors_of(value) if isinstance(value, GraphModule) else value for name, value in found}


def structure(spec: Any) -> Any:
    return encoded(tree.tree_unflatten(range(spec.num_leaves), spec))


def value_described(env: ShapeEnv, value: Any) -> Any:
    """An input as it was traced."""
    if not isinstance(value, Tensor):
        return encoding.number(env, value) if hasattr(value, "node") else None
    sizes, strides = ([encoding.number(env, s) for s in part] for part in (value.shape, value.stride()))
    return {"shape": sizes, "stride": strides, "dtype": str(value.dtype), "device": str(value.device)}


# ---- reading
def rebuilt(data: dict, state: dict) -> ExportedProgram:
    """The program of what `described` gave, and its tensors."""
    env = ExportEnv(traced=True)
    known = encoding.read_symbols(env, data["symbols"])
    module = read_module(data, state.get("inner", {}))
    graph = module.graph
    module.shape_env = env
    signature = encoding.read_signature(data["inputs"], data["outputs"])
    in_spec, out_spec = (tree.tree_flatten(decoded(data[k]))[1] for k in ("in_spec", "out_spec"))
    call = ModuleCallSignature([], [], in_spec, out_spec, data["names"])
    examples = None if state["examples"] is None else tree.tree_unflatten(state["examples"], in_spec)
    ep = ExportedProgram(
        module, graph, signature, state["state_dict"], {}, [ModuleCallEntry("", call)], examples, state["constants"]
    )  # fmt: skip
    ep._is_training, ep._recording = data["training"], data["recording"]
    user = propagate(ep, env, [read_value(v, known) for v in data["values"]])
    ep._range_constraints = ranges_of(env, [v for _, v in user])
    ep._guards_code = conditions_of(env, user)
    ep.validate()
    return ep


def read_module(data: dict, tensors: dict[str, Any]) -> GraphModule:
    """The module of what `graph_described` gave, with the tensors that it holds."""
    inner = {name: read_module(graph, tensors.get(name, {})) for name, graph in data.get("graphs", {}).items()}
    held = {name: t for name, t in tensors.items() if isinstance(t, Tensor)}
    return GraphModule(inner | held, read_graph(data["nodes"]))


def read_graph(rows: list[dict]) -> Graph:
    graph = Graph()
    nodes: dict[str, Node] = {}
    for row in rows:
        args, kwargs = encoding.read_argument(row["args"], nodes), encoding.read_argument(row["kwargs"], nodes)
        if row["op"] == "output":
            result = graph.output(args[0])
        else:
            result = graph.create_node(row["op"], encoding.read_target(row), args, kwargs, name=row["name"])
        nodes[row["name"]] = result
        if row.get("stack_trace"):
            result.meta["stack_trace"] = row["stack_trace"]
    return graph


def read_value(data: Any, known: dict) -> Any:
    """A function of a fake mode that makes an input as it was traced."""
    if not isinstance(data, dict):
        return lambda mode: encoding.read_number(data, known)
    shape, stride = ([encoding.read_number(s, known) for s in data[k]] for k in ("shape", "stride"))
    return lambda mode: mode.make(tuple(shape), tuple(stride), encoding.dtype(data["dtype"]), device(data["device"]))


class Values(Interpreter):
    """Runs a graph on fakes and keeps the value of each node."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode):
        super().__init__(module)
        self.trace = GraphTrace(fake_mode=mode)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if n.op != "output" and not isinstance(result, GraphModule):
            n.meta["val"] = tree.tree_map(self.trace.snapshot, result)
        return result


def propagate(ep: ExportedProgram, env: ShapeEnv, makers: list) -> list[tuple[str, Any]]:
    """Give every node its fake value; what the operators ask about sizes is learned again. Gives the user's inputs."""
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=False, export=True)
    rest, given, user = iter(makers), [], []
    for spec in ep.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            given.append(mode.from_tensor(ep._value(spec), static_shapes=True))
            continue
        make = next(rest)
        value = spec.arg.value if hasattr(spec.arg, "value") else make(mode)
        given.append(value)
        user.append((spec.arg.name, value))
    before = ep.graph_module.training
    with modes.no_grad(), mode:
        Values(ep.graph_module, mode).run(*given)
    ep.graph_module.training = before
    return user
