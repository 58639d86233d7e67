"""Graphs for others to keep: a function or module, traced ahead of time and given as a graph with a description.

Where `aot_function` gives something to call, these give the graph itself: pure, flat, and with all parameters and
buffers as inputs. `GraphSignature` says which input and output is what.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..autograd.calls import grad
from ..capture.fake.mode import fake_mode_of
from ..capture.trace.make_fx import by_operator
from ..core import modes, tree
from ..core.node import requires_grad
from ..core.tensor import Tensor
from ..func.stateless import functional_call
from ..graph import GraphModule
from ..nn.module import Module
from .aot import Compilers, fresh_fake_mode, nop
from .config import config
from .facts import Joint
from .trace import AliasedWrite, JointTrace


@dataclass
class BackwardSignature:
    """Which outputs of an exported joint graph are gradients, and of what."""

    gradients_to_parameters: dict[str, str] = field(default_factory=dict)
    gradients_to_user_inputs: dict[str, str] = field(default_factory=dict)
    loss_output: str = ""


@dataclass
class GraphSignature:
    """What the inputs and outputs of an exported graph are."""

    parameters: list[str]
    buffers: list[str]
    user_inputs: list[str]
    user_outputs: list[str | None]  # None for what is no value of the graph
    inputs_to_parameters: dict[str, str]
    inputs_to_buffers: dict[str, str]
    buffers_to_mutate: dict[str, str]
    user_inputs_to_mutate: dict[str, str]
    in_spec: Any
    out_spec: Any
    backward_signature: BackwardSignature | None = None


def trace(f: Callable, args: list, decompositions: dict | None, backward: bool, dynamic: bool = False) -> Joint:
    """The joint (or forward) graph of a flat function."""
    if config.functionalize_rng_ops:
        raise RuntimeError("Functionalized RNG is not currently supported in the aot_export workflow")
    fake_mode = fake_mode_of(args) or fresh_fake_mode(dynamic)
    try:
        joint = JointTrace(
            f, args, fake_mode=fake_mode, decompositions=by_operator(decompositions or {}), backward=backward
        ).run()
    except AliasedWrite as clash:
        same = len({id(args[i]) for i in clash.inputs}) < len(clash.inputs)
        raise RuntimeError(
            f"Encountered {'duplicated' if same else 'aliased'} inputs that are mutated in the graph: inputs "
            f"{clash.inputs}. Exporting them is not supported: give the function one tensor for each memory that it writes"
        ) from None
    if joint.wrapping is not None:
        raise NotImplementedError(
            "exporting a function whose inputs or results are of a tensor subclass is not implemented"
        )
    return joint


def refuse_side_effects(joint: Joint, name: str) -> None:
    """Raise where the graph alone would not do what the function does."""
    for i, fact in enumerate(joint.inputs):
        if fact is not None and (fact.written or fact.geometry is not None or i in joint.moved):
            raise RuntimeError(
                f"Found an input that received a metadata mutation or a write, through input {i}; {name} does not support "
                f"input mutations. ViewAndMutationMeta of it: {fact}"
            )
    for out in joint.outputs:
        if out.kind in ("input", "input view", "view", "same"):
            raise RuntimeError(
                f"Found an output that is an alias of an input or of another output; {name} does not support that"
            )


def aot_export_joint_simple(
    func: Callable, args, *, trace_joint: bool, num_params_buffers: int = 0, decompositions: dict | None = None
) -> GraphModule:
    """The graph of a function without writes and aliases, with its backward if `trace_joint`; takes and gives flat values."""
    flat, spec = tree.tree_flatten(tuple(args))
    if any(isinstance(a, (tuple, list, dict)) for a in args):
        raise RuntimeError(
            "aot_export_joint_simple requires individual inputs not to be pytrees: it takes tensors and numbers, "
            f"got arguments of the structure {spec}"
        )

    def flat_fn(*given):
        out = func(*tree.tree_unflatten(given, spec))
        if any(isinstance(v, (tuple, list, dict)) for v in (out if isinstance(out, (tuple, list)) else ())):
            raise RuntimeError("aot_export_joint_simple requires individual outputs not to be pytrees")
        return out

    if trace_joint:
        _refuse_written_leaves(flat_fn, flat)
        joint = trace(flat_fn, flat, decompositions, True)
    else:
        with modes.no_grad():
            joint = trace(flat_fn, flat, decompositions, False)
    refuse_side_effects(joint, "aot_export_joint_simple")
    return joint.module


def _refuse_written_leaves(f: Callable, args: list) -> None:
    """A leaf that requires grad may be written under no_grad alone, where its gradient would not know of it."""
    with modes.no_grad():
        joint = trace(f, args, None, False)
    for i in joint.written:
        if requires_grad(args[i]) and args[i].is_leaf:
            raise RuntimeError(
                f"Found a graph input that requires gradients, and received a mutation: input {i}. Exporting that is not "
                "supported"
            )


def aot_export_function(
    func: Callable, args, *, num_params_buffers: int = 0, decompositions: dict | None = None, no_tangents: bool = False,
    pre_dispatch: bool = False, dynamic_shapes: bool | None = None, keep_input_mutations: bool = False,
    trace_joint: bool = False, kwargs: dict | None = None,
):  # fmt: skip
    """(graph, what was found out, structure of the arguments, structure of the outputs) of a function."""
    flat, in_spec = tree.tree_flatten((tuple(args), kwargs or {}))

    def flat_fn(*given):
        inner, named = tree.tree_unflatten(given, in_spec)
        return func(*inner, **named)

    wanted = trace_joint and any(isinstance(a, Tensor) and requires_grad(a) for a in flat)
    joint = trace(flat_fn, flat, decompositions, wanted)
    return joint.module, joint, in_spec, joint.out_spec


def create_functional_call(
    mod: Module, params_spec, params_len: int, store_orig_mod: bool = False, strict_out_tuple: bool = True
) -> Callable:
    """A module as a function of its flat parameters and buffers, then its arguments."""

    def call(*args, **kwargs):
        state = tree.tree_unflatten(list(args[:params_len]), params_spec)
        out = functional_call(mod, state, tuple(args[params_len:]), kwargs)
        if strict_out_tuple and not isinstance(out, (tuple, list)):
            raise RuntimeError(
                "Graph output must be a (). This is so that we can avoid pytree processing of the outputs. Please change the "
                "module to have tuple outputs or use aot_module instead."
            )
        return out

    return call


def aot_export_module(
    mod: Module, args, *, decompositions: dict | None = None, trace_joint: bool, output_loss_index: int | None = None,
    pre_dispatch: bool = False, dynamic_shapes: bool | None = None, kwargs: dict | None = None,
) -> tuple[GraphModule, GraphSignature]:  # fmt: skip
    """The graph of a module with parameters and buffers as inputs, and its signature; with the gradients of the loss
    (`output_loss_index`) with respect to parameters and inputs if `trace_joint`."""
    if trace_joint and output_loss_index is None:
        raise RuntimeError(
            "If trace_joint=True it is required that one of your forward outputs must be a scalar loss. You must specify the which (index) output is the loss with output_loss_index."
        )
    if not trace_joint and output_loss_index is not None:
        raise RuntimeError("output_loss_index is only needed when trace_joint=True")
    parameters, buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
    names = [*parameters, *buffers]
    flat, in_spec = tree.tree_flatten((tuple(args), kwargs or {}))
    state = [*parameters.values(), *buffers.values()]

    def run(*given):
        inner, named = tree.tree_unflatten(given[len(names) :], in_spec)
        return functional_call(mod, dict(zip(names, given, strict=False)), inner, named)

    whole = run if output_loss_index is None else _with_gradients(run, output_loss_index, len(parameters))
    with contextlib.nullcontext() if trace_joint else modes.no_grad():
        joint = trace(whole, [*state, *flat], decompositions, False, bool(dynamic_shapes))
    put_written_first(joint)
    return joint.module, _signature(joint, list(parameters), list(buffers), in_spec, trace_joint, output_loss_index)


def put_written_first(joint: Joint) -> None:
    """Let the graph give the new values of written inputs before everything else, as whoever runs it expects."""
    node = joint.module.graph.output_node()
    results, first, count = list(node.args[0]), joint.first_written, len(joint.written)
    node.args = ((*results[first : first + count], *results[:first], *results[first + count :]),)
    joint.module.recompile()


def _with_gradients(run: Callable, loss_index: int, parameters: int) -> Callable:
    """A function that gives its outputs and the gradients of its loss."""

    def call(*given):
        with modes.enable_grad():
            out = run(*given)
            leaves = tree.tree_leaves(out)
            wanted = [a for a in given if isinstance(a, Tensor) and requires_grad(a)]
            loss = leaves[loss_index]
            if loss.numel() != 1:
                raise RuntimeError(
                    f"Expected the loss (output {loss_index}) to be a scalar, got one of shape {list(loss.shape)}"
                )
            others = [k for k, t in enumerate(leaves) if k != loss_index and isinstance(t, Tensor) and requires_grad(t)]
            if others:
                raise RuntimeError(
                    "Found an output of the forward that requires gradients, that was not the scalar loss: outputs "
                    f"{others}. A gradient is computed of the loss (output {loss_index}) alone: detach() the others"
                )
            gradients = grad(loss, wanted, allow_unused=True)
        return tuple(t.detach() if isinstance(t, Tensor) else t for t in leaves), gradients

    return call


def _signature(
    joint: Joint, parameters: list[str], buffers: list[str], in_spec, with_gradients: bool, loss_index
) -> GraphSignature:
    graph = joint.module.graph
    inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
    results = graph.output_node().args[0]
    outputs = [getattr(r, "name", None) for r in results]
    state = len(parameters) + len(buffers)
    names = [*parameters, *buffers]
    count = len(joint.written)
    fresh = outputs[count : count + joint.first_written]
    mutated = {results[k].name: i for k, i in enumerate(joint.written)}
    signature = GraphSignature(
        parameters, buffers, inputs[state:], fresh, dict(zip(inputs, parameters, strict=False)),
        dict(zip(inputs[len(parameters) : state], buffers, strict=True)),
        {o: names[i] for o, i in mutated.items() if i < state}, {o: inputs[i] for o, i in mutated.items() if i >= state},
        in_spec, joint.out_spec,
    )  # fmt: skip
    if with_gradients:
        wanted = [i for i, fact in enumerate(joint.inputs) if fact is not None and fact.requires_grad]
        user, gradients = fresh[: len(fresh) - len(wanted)], fresh[len(fresh) - len(wanted) :]
        signature.user_outputs = user
        signature.backward_signature = BackwardSignature(
            {g: names[i] for g, i in zip(gradients, wanted, strict=True) if i < len(parameters) and g is not None},
            {g: inputs[i] for g, i in zip(gradients, wanted, strict=True) if i >= state and g is not None},
            user[loss_index],
        )
    return signature


__all__ = ["Compilers", "aot_export_joint_simple", "aot_export_module", "nop"]
