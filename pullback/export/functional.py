"""`run_decompositions`: an exported program traced again, below autograd, under functionalization.

In: an `ExportedProgram` and a decomposition table. Out: another, whose graph writes nothing: new values of buffers and
inputs are its first results. What always holds: both compute the same, and share their state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..capture.fake.mode import FakeTensorMode
from ..capture.shapes.environment import ShapeEnv
from ..capture.trace.make_fx import by_operator, finish
from ..core import modes
from ..core.tensor import CONJ, NEG, Tensor, stride_of
from ..graph import GraphModule, Interpreter, Node, traceback
from ..joint.trace import JointTrace
from .constraints import conditions_of, ranges_of
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    ModuleCallEntry,
    ModuleCallSignature,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from .numbers import fill_numbers

MUTATIONS = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


class FunctionalTrace(JointTrace):
    """A graph traced again without writes."""

    def __init__(self, names: list[str], *args: Any, **options: Any):
        self.names = iter(names)
        self.spoken: dict[str, Any] = {}  # nodes of the old graph that signatures of modules name: what they are here
        super().__init__(*args, **options)
        self.trace.stacks = False  # lines come from the nodes that run
        self.trace.whole = True

    def _placeholder(self):
        return self.trace.graph.placeholder(next(self.names))

    def run(self) -> GraphModule:
        with self.fake_mode, self.trace, self.functional:
            outs = self.f(*self.args)
            self._refuse_writes()
            self.inputs = [
                self._input_fact(i, a, leaf, before)
                for i, (a, leaf, before) in enumerate(zip(self.args, self.leaves, self.before, strict=True))
            ]
            for i, fact in enumerate(self.inputs):
                if fact is not None and fact.geometry is not None:
                    raise NotImplementedError(
                        f"run_decompositions: changing the shape of input {i} in place is not implemented"
                    )
            self.written = [i for i, fact in enumerate(self.inputs) if fact is not None and fact.written]
            nodes = [self._node(self._new_value(i)) for i in self.written] + [self._node(o) for o in outs]
        out = self.trace.graph.output((tuple(nodes), [v for v in self.spoken.values() if isinstance(v, Node)]))
        fill_numbers(self.trace.graph, self.fake_mode)
        module = finish(self.trace, "GraphModule")
        out.args = (tuple(nodes),)
        module.recompile()
        return module


class Again(Interpreter):
    """Runs a graph; what is traced meanwhile gets the lines and modules of the nodes that run."""

    KEPT = ("stack_trace", "nn_module_stack")

    def __init__(self, ep: ExportedProgram):
        super().__init__(ep.graph_module)
        self.wanted = {
            a.name for e in ep.module_call_graph if e.fqn and e.signature for a in named_arguments(e.signature)
        }
        self.trace: FunctionalTrace | None = None

    def run_node(self, n: Node) -> Any:
        before = traceback.current_meta
        traceback.current_meta = {k: n.meta[k] for k in self.KEPT if k in n.meta}
        try:
            result = super().run_node(n)
            if n.name in self.wanted and self.trace is not None:
                self.trace.spoken[n.name] = self.trace._node(result)
            return result
        finally:
            traceback.current_meta = before


def fresh(value: Any) -> Any:
    """A fake like one that traces may have written to."""
    if not isinstance(value, Tensor):
        return value
    result = value.__dict__["fake_mode"].make(tuple(value._array.shape), stride_of(value), value.dtype, value.device)
    result._keys |= value._keys & (CONJ | NEG)
    return result


def decomposed(ep: ExportedProgram, table: dict[Any, Callable]) -> ExportedProgram:
    """See the module's docstring."""
    specs = ep.graph_signature.input_specs
    placeholders = ep.graph.find_nodes(op="placeholder")
    values = [n.meta["val"] for n in placeholders]
    env: ShapeEnv = ep.graph_module.shape_env
    fake_mode = next((v.__dict__["fake_mode"] for v in values if isinstance(v, Tensor)), None)
    if fake_mode is None:
        fake_mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=False, export=True)
    values = [fresh(v) for v in values]
    decompositions = by_operator(dict(table))
    again = Again(ep)
    with modes.enable_grad():  # inputs require none; what the program differentiates itself, it does here
        trace = FunctionalTrace(
            [n.name for n in placeholders], again.run, values, fake_mode=fake_mode, decompositions=decompositions, backward=False
        )  # fmt: skip
        again.trace = trace
        module = trace.run()
    module.shape_env = env
    signature = _signature(ep, module, [specs[i] for i in trace.written])
    user = [
        n
        for n, s in zip(module.graph.find_nodes(op="placeholder"), specs, strict=True)
        if s.kind is InputKind.USER_INPUT
    ]
    sizes = [n.meta["val"] for n in user]
    result = ExportedProgram(
        module, module.graph, signature, ep.state_dict, ranges_of(env, sizes), call_graph(ep, trace.spoken), ep.example_inputs,
        ep.constants, guards=conditions_of(env, [(n.name, v) for n, v in zip(user, sizes, strict=True)]),
    )  # fmt: skip
    result._is_training, result._module_aliases = False, ep._module_aliases
    return result


def named_arguments(signature: ModuleCallSignature) -> list:
    """The inputs and outputs of a module that are nodes."""
    return [a for a in (*signature.inputs, *signature.outputs) if not isinstance(a, ConstantArgument)]


def call_graph(ep: ExportedProgram, spoken: dict[str, Any]) -> list[ModuleCallEntry]:
    """The calls of modules, in the names of the new graph."""
    from .trace import argument_of

    def renamed(argument: Any) -> Any:
        known = not isinstance(argument, ConstantArgument) and argument.name in spoken
        return argument_of(spoken[argument.name]) if known else argument

    entries = []
    for entry in ep.module_call_graph:
        signature = entry.signature
        if entry.fqn and signature is not None:
            inputs, outputs = ([renamed(a) for a in side] for side in (signature.inputs, signature.outputs))
            signature = replace(signature, inputs=inputs, outputs=outputs)
        entries.append(ModuleCallEntry(entry.fqn, signature))
    return entries


def _signature(ep: ExportedProgram, module: GraphModule, written: list) -> ExportGraphSignature:
    from .trace import argument_of

    results = module.graph.output_node().args[0]
    for spec in written:
        if spec.kind not in MUTATIONS:
            raise RuntimeError(
                f"Constant {spec.target or spec.arg.name} is mutated in the forward method. Programs keep the changes of buffers "
                "only: register it as one, with register_buffer()."
            )
    mutations = [
        OutputSpec(MUTATIONS[s.kind], TensorArgument(r.name), s.target or s.arg.name)
        for s, r in zip(written, results, strict=False)
    ]
    kept = ep.graph_signature.output_specs
    users = [
        OutputSpec(old.kind, argument_of(r), old.target) for old, r in zip(kept, results[len(written) :], strict=True)
    ]
    inputs = [replace(s, arg=replace(s.arg)) for s in ep.graph_signature.input_specs]
    return ExportGraphSignature(inputs, [*mutations, *users])
