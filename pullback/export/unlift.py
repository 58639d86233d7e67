"""`ExportedProgram.module()`: an exported program as a module that is called as the original was.

In: the program. Out: a `GraphModule` that holds parameters, buffers and constants under the names they had, takes the
original's arguments, checks them against what was traced, and writes new values of buffers and inputs back. What always
holds: arguments for which the graph was not made are refused, with the condition that fails.
"""

from __future__ import annotations

import math
import re
from typing import Any

from .. import core
from ..core import modes, tree
from ..core.modes import ambient
from ..graph import Graph, GraphModule
from ..graph.tree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..ops.system.packet import ops
from .graph_signature import InputKind, InputSpec, OutputKind
from .inputs import in_order, leaf_places


class GuardFailed(AssertionError):
    """Arguments that the graph was not made for."""

    is_expected = True


class DtypeGuardFailed(GuardFailed, RuntimeError):
    """A tensor of another dtype: operators that convert would raise a RuntimeError of it."""


class GuardsFn(Module):
    """Checks the leaves of the arguments; the first condition that does not hold is an AssertionError."""

    _is_impure = True  # a graph's call of it stays, though nothing uses its result

    def __init__(self, names: list[str], conditions: list[str], shown: list[str] | None = None):
        super().__init__()
        self.names, self.conditions, self.shown = names, conditions, shown or names
        self.code = [compile(c, "<guard>", "eval") for c in conditions]

    def forward(self, *leaves: Any) -> None:
        given = dict(zip(self.names, leaves, strict=True))
        scope = {"math": math, "torch": core.dtype, "L": given} | given
        for code, condition in zip(self.code, self.conditions, strict=True):
            if not holds(code, scope):
                words = f"Guard failed: {self.in_words(condition)}{found(condition, scope)}"
                if ".dtype == " in condition:
                    raise DtypeGuardFailed(f"Tensor dtype mismatch! {words}")
                raise GuardFailed(words)

    def in_words(self, condition: str) -> str:
        """A condition in the names of the user's arguments."""
        known = dict(zip(self.names, self.shown, strict=True))
        return re.sub(r"[A-Za-z_]\w*", lambda m: known.get(m.group(), m.group()), condition)

    def __deepcopy__(self, memo: dict) -> GuardsFn:
        return GuardsFn(self.names, self.conditions, self.shown)


def holds(code: Any, scope: dict) -> bool:
    """Whether a condition holds; one that cannot even be asked (an int for a tensor, say) does not."""
    try:
        return bool(eval(code, scope))
    except (AttributeError, TypeError, IndexError):
        return False


def found(condition: str, scope: dict) -> str:
    """The value that a condition of the form `input == value` found instead."""
    left, op, _ = condition.partition(" == ")
    try:
        return f" (it is {eval(left, scope)})" if op else ""
    except (AttributeError, TypeError, IndexError):
        return ""


class CalledAsTraced:
    """A module of a graph with nested arguments that is called as the function was that the graph was made of."""

    adapter: Any = None  # makes arguments of the traced structure of those of another
    argument_names: list[str]
    keyword_names: list[str]
    _in_spec: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*self._checked(args, kwargs))  # type: ignore[misc]

    def _checked(self, args: tuple, kwargs: dict) -> list:
        """The arguments in the order of the generated function, if their structure is the traced one."""
        keys = self.keyword_names
        spare = self.argument_names[: len(self.argument_names) - len(keys)]
        given = [*args, *[kwargs.pop(n) for n in spare[len(args) :] if n in kwargs]] if kwargs else list(args)
        named = in_order(kwargs, keys) if self.adapter is None or kwargs.keys() == set(keys) else kwargs
        spec = tree.tree_flatten((tuple(given), named))[1]
        if spec != self._in_spec and self.adapter is not None:
            flat = tree.tree_leaves((tuple(given), named))
            flat = self.adapter.adapt(
                target_spec=self._in_spec, input_spec=spec, input_args=flat, metadata={}, obj=None
            )
            positional, named = tree.tree_unflatten(flat, self._in_spec)
            return [*positional, *named.values()]
        if spec != self._in_spec:
            self._refuse(spec)
        return [*given, *named.values()]

    def _refuse(self, spec: Any) -> None:
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{self._in_spec}\nbut actually got inputs with tree spec of: \n{spec}.\n"
            "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
        )


class UnliftedModule(CalledAsTraced, GraphModule):
    """The module of an exported program."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = ambient.mode & modes.GRAD
        try:
            return super().__call__(*args, **kwargs)
        except BaseException:
            ambient.switch(modes.GRAD, before)  # the graph may have been inside a no_grad of the program's
            raise

    def train(self, mode: bool = True):
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self):
        raise NotImplementedError("Calling eval() is not supported yet.")


def unlifted(ep: Any, check_guards: bool = True) -> UnliftedModule:
    """See the module's docstring."""
    signature, call = ep.graph_signature, ep.module_call_graph[0].signature
    graph, root, result = Graph(), {}, {}
    temporary = {s.target for s in signature.input_specs if s.kind is InputKind.BUFFER and not s.persistent}
    buffers = {s.target for s in signature.input_specs if s.kind is InputKind.BUFFER} | ep.state_dict.keys()
    user: list = []
    for node, spec in zip(ep.graph.find_nodes(op="placeholder"), signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            result[node] = graph.placeholder(node.name)
            user.append(result[node])
    for node, spec in zip(ep.graph.find_nodes(op="placeholder"), signature.input_specs, strict=True):
        if spec.kind is not InputKind.USER_INPUT:
            result[node] = graph.get_attr(spec.target)
            root[spec.target] = ep._value(spec)
        result[node].meta = dict(node.meta)
    if check_guards:
        graph.call_module("_guards_fn", tuple(user))
        root["_guards_fn"] = GuardsFn(
            [n.name for n in user], ep._guards_code, leaf_places(call.forward_arg_names, call.in_spec)
        )
    if any(n.target is modes._set_grad_enabled for n in ep.graph.nodes):
        as_called = graph.call_function(modes.is_grad_enabled)
    for node in ep.graph.nodes:
        if node.op not in ("placeholder", "output"):
            result[node] = graph.node_copy(node, result.__getitem__)
            if node.target is modes._set_grad_enabled and node.args == (ep._recording,):
                result[node].args = (as_called,)  # where the program goes back to what it was called with
            if node.op == "get_attr":
                root[node.target] = getattr(ep.graph_module, node.target)
    _finish(ep, graph, result)
    names = list(call.forward_arg_names)
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, call.in_spec, call.out_spec)))
    shared = {name: value for name, value in ep.state_dict.items() if name not in root}
    return _module(graph, {**root, **shared}, names, len(call.in_spec.children()[1].entries()), buffers, temporary)


WRITTEN = {
    OutputKind.BUFFER_MUTATION: InputKind.BUFFER,
    OutputKind.PARAMETER_MUTATION: InputKind.PARAMETER,
    OutputKind.USER_INPUT_MUTATION: InputKind.USER_INPUT,
}


def _key(spec: InputSpec) -> tuple[InputKind, str]:
    return spec.kind, spec.target or spec.arg.name


def _finish(ep: Any, graph: Graph, output: dict) -> None:
    """Write mutations back, and give the user's outputs: a new value that is one of them is what it was written to."""
    inputs = dict(zip(map(_key, ep.graph_signature.input_specs), ep.graph.find_nodes(op="placeholder"), strict=True))
    outputs, written = [], {}
    for spec, result in zip(ep.graph_signature.output_specs, ep.graph.output_node().args[0], strict=True):
        if spec.kind is OutputKind.USER_OUTPUT:
            outputs.append(written.get(result) or output.get(result, result) if hasattr(result, "op") else result)
        else:
            written[result] = graph.call_function(
                ops.aten.copy_.default, (output[inputs[WRITTEN[spec.kind], spec.target]], output[result])
            )
    graph.output(tuple(outputs))


def _module(
    graph: Graph, root: dict, names: list[str], keywords: int, buffers: set[str], temporary: set[str]
) -> UnliftedModule:
    holder = Module()
    for target, value in root.items():
        owner, (*path, leaf) = holder, target.split(".")
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, Module())
            owner = owner._modules[part]
        if target in buffers and not isinstance(value, Parameter):
            owner.register_buffer(leaf, value, persistent=target not in temporary)
        else:
            setattr(owner, leaf, value)
    module = UnliftedModule({}, Graph())
    for held in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
        getattr(module, held).update(getattr(holder, held))
    vars(module).update({k: v for k, v in vars(holder).items() if k in root})
    module.graph = graph
    type(module).__name__ = "GraphModule"
    for part in module.modules():
        part.training = True
    module.argument_names, module.keyword_names = names, names[len(names) - keywords :] if keywords else []
    return module
