"""Recorders and node classes, generated from an operator's `vjp` rules.

`make_recorder(op)` gives `record(out, *args) -> out`: straight-line code that takes the edges of the differentiable
arguments, and if any is live makes the node, saves what the live rules name, and hangs the node on the outputs.
`make_node_class(op)` gives the Node subclass with `run`, likewise generated. What a rule's parameter names mean is said
in `operator`.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from ...core import modes
from ...core import node as nodes
from ...core.layers import above
from ...core.modes import ambient
from ...core.node import Autograd, Node, next_sequence, raise_freed, requires_grad, save, save_output, unpack
from ...core.objects import edge, hang, keep, keep_tangents
from ...core.source import run_source
from ...core.tensor import INFERENCE_TENSOR, PLAIN, Tensor, new_object, stride_of
from .declaration import NOT_IMPLEMENTED, Missing

if TYPE_CHECKING:
    from .operator import Operator

_SUFFIXES = ("_shape", "_dtype", "_info")


def refuse_gradients(name: str, **arguments) -> None:
    """Raise for arguments through which no gradient flows, where one is wanted: it would be lost in silence."""
    for argument, value in arguments.items():
        if isinstance(value, Tensor) and requires_grad(value) and ambient.mode & modes.GRAD:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot "
                "have requires_grad True."
            )


@dataclass(eq=False, repr=False)  # which would be compiled at each start
class Rule:
    """One vjp rule: the arguments it gives gradients of, and the parameters it takes."""

    targets: tuple[str, ...]
    function: object
    parameters: tuple[str, ...]
    joint: bool  # declared under a tuple of names: returns a tuple


@dataclass(eq=False, repr=False)
class Plan:
    """What recording an operator takes, read off its rules."""

    rules: list[Rule]
    targets: list[str] = field(default_factory=list)  # differentiable arguments, in schema order
    saved: list[str] = field(default_factory=list)  # parameter names to save, in schema order, results last
    users: dict[str, set[str]] = field(default_factory=dict)  # saved name -> targets whose rules read it


def parameters_of(function) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    if code is None:
        return tuple(inspect.signature(function).parameters)
    return code.co_varnames[: code.co_argcount]


def plan_of(op: Operator) -> Plan:
    """Read an operator's rules."""
    return _plan(op)


@cache
def _plan(op: Operator) -> Plan:
    vjp = op.vjp if isinstance(op.vjp, dict) else {_sole_tensor(op): op.vjp}
    rules = []
    for key, function in vjp.items():
        targets = key if isinstance(key, tuple) else (key,)
        parameters = () if isinstance(function, Missing) else parameters_of(function)
        rules.append(Rule(targets, function, parameters, isinstance(key, tuple)))
    order = op.schema.index
    plan = Plan(rules)
    plan.targets = sorted((t for r in rules for t in r.targets), key=order.__getitem__)
    for rule in rules:
        for p in rule.parameters:
            if p not in ("g", "gs") and not (p == "mask" and rule.joint):
                plan.users.setdefault(p, set()).update(rule.targets)
    results = result_names(op)
    for p in plan.users:
        if p not in order and p not in results and base_argument(p, order) is None:
            raise ValueError(f"{op}: rule parameter {p!r} is neither an argument nor a result")
    plan.saved = sorted(plan.users, key=lambda p: (order.get(p, 1000), p))
    return plan


def base_argument(parameter: str, index: dict[str, int]) -> tuple[str, str] | None:
    """("self", "_shape") for a parameter `self_shape`; None where it is not of that form."""
    for suffix in _SUFFIXES:
        if parameter.endswith(suffix) and parameter[: -len(suffix)] in index:
            return parameter[: -len(suffix)], suffix
    return None


def result_names(op: Operator) -> list[str]:
    names = [name for _, name in op.schema.returns]
    return (
        names
        if len(names) > 1 and all(names)
        else ["out"]
        if len(names) == 1
        else [f"out{i}" for i in range(len(names))]
    )


def _sole_tensor(op: Operator) -> str:
    names = [a.name for a in op.schema.arguments if a.is_tensor]
    if len(names) != 1:
        raise ValueError(f"{op}: a bare vjp rule needs exactly one tensor argument, there are {names}")
    return names[0]


class Info:
    """Metadata of a saved-by-shape argument: what a rule may need without keeping the tensor."""

    __slots__ = ("shape", "dtype", "device", "stride", "offset", "layout", "blocksize", "dense_dim", "form")

    def __init__(self, t: Tensor):
        self.shape = t.shape
        self.dtype = t.dtype
        self.device = t.device
        self.stride = stride_of(t)
        self.offset = t._offset
        self.layout = t.layout
        self.blocksize = getattr(t._array, "blocksize", None)
        self.form = getattr(t._array, "form", None)  # of a nested tensor: how its values are to be read
        self.dense_dim = getattr(t._array, "dense_dim", None)


def shape_of(x):
    return x.shape if isinstance(x, Tensor) else [shape_of(v) for v in x] if isinstance(x, (tuple, list)) else ()


def dtype_of(x):
    return x.dtype if isinstance(x, Tensor) else [dtype_of(v) for v in x] if isinstance(x, (tuple, list)) else None


def info_of(x):
    return Info(x) if isinstance(x, Tensor) else [info_of(v) for v in x] if isinstance(x, (tuple, list)) else None


def save_list(values) -> list:
    return [save(v) for v in values]


def edges_of(values) -> tuple:
    return tuple([edge(v) for v in values])


_GLOBALS = {
    "Autograd": Autograd, "edge": edge, "keep": keep, "keep_tangents": keep_tangents, "hang": hang, "ambient": ambient, "PLAIN": PLAIN, "edges_of": edges_of, "next_sequence": next_sequence, "save_listening": save, "save_list": save_list,
    "save_output": save_output, "new": new_object, "shape_of": shape_of, "dtype_of": dtype_of, "info_of": info_of, "Tensor": Tensor,
    "unpack": unpack, "raise_freed": raise_freed, "nodes": nodes,
}  # fmt: skip


def safe(name: str) -> str:
    """Argument names that are Python keywords or clash with generated names."""
    return f"{name}_" if name in ("lambda", "from", "in", "node", "result") else name


def make_recorder(op: Operator):
    """`record(out, *args) -> out` for an operator."""
    plan = plan_of(op)
    arguments = [safe(a.name) for a in op.schema.arguments]
    is_list = {a.name: a.is_list for a in op.schema.arguments}
    lines = [f"def record(result, {', '.join(arguments)}):"]
    live = {}
    for i, t in enumerate(plan.targets):
        lines.append(f"    e{i} = {'edges_of' if is_list[t] else 'edge'}({safe(t)})")
        live[t] = f"any(e{i})" if is_list[t] else f"e{i} is not None"
    lines.append(f"    if not ({' or '.join(live[t] for t in plan.targets)}):")
    lines.append("        return result")
    spread = ", ".join(f"{'*' if is_list[t] else ''}e{i}" for i, t in enumerate(plan.targets))
    lines += _attach_lines(op, f"({spread},)")
    results = result_names(op)
    entries = [_saved_entry(op, plan, p, live, results, is_list) for p in plan.saved]
    if any(e.startswith("save(") for e in entries):
        lines.append("    save = keep if ambient.mode < 2 else save_listening")
    lines.append(f"    node.saved = [{', '.join(entries)}]")
    lengths = [f"len({safe(t)})" if is_list[t] else "1" for t in plan.targets]
    if any(is_list[t] for t in plan.targets):
        lines.append(f"    node.lengths = ({', '.join(lengths)},)")
    lines.append("    return result")
    namespace = {**_GLOBALS, "node_class": op.node_class}
    run_source("\n".join(lines), f"record of {op}", namespace)
    return namespace["record"]


def _attach_lines(op: Operator, edges: str) -> list[str]:
    """Make the node and say on the results that they are its outputs."""
    if len(op.schema.returns) == 1 and not op.schema.returns[0][0].endswith("[]"):
        return [
            "    if result.dtype.category < 2:",
            "        return result",
            f"    node = hang(result, node_class, {edges}, next_sequence())",
        ]
    skip = op.declared.nondifferentiable
    return [
        "    node = new(node_class)",
        f"    node.edges = {edges}",
        "    node.sequence = next_sequence()",
        "    node.outputs = tuple([(r._array.shape, r.dtype, r.device) if r is not None else None for r in result])",
        "    for i, r in enumerate(result):",
        f"        if r is not None and r.dtype.category >= 2 and i not in {skip!r}:",
        "            a = Autograd(True, (node, i))",
        "            if r._autograd is not None:",
        "                keep_tangents(r._autograd, a)",
        "            r._autograd = a",
    ]


def _saved_entry(op, plan: Plan, name: str, live: dict, results: list[str], is_list: dict) -> str:
    wanted = " or ".join(live[t] for t in sorted(plan.users[name]))
    index = op.schema.index
    if name in results and name not in index:
        source = "result" if len(results) == 1 else f"result[{results.index(name)}]"
        return f"save_output({source})"
    if name in index:
        argument = op.schema.arguments[index[name]]
        if not argument.is_tensor:
            return safe(name)
        saver = "save_list" if is_list[name] else "save"
        return f"{saver}({safe(name)}) if {wanted} else None"
    base, suffix = base_argument(name, index)
    return f"{suffix[1:]}_of({safe(base)}) if {wanted} else None"


class OperatorNode(Node):
    """A recorded call of an operator; each operator has a class of its own."""

    __slots__ = ()

    op: Operator
    plan: Plan


def make_node_class(op: Operator) -> type:
    """The Node subclass of an operator, named as PyTorch names it."""
    plan = plan_of(op)
    keeps_tensors = any(_is_tensor_name(op, p) for p in plan.saved)
    free = {} if keeps_tensors else {"release": _keep}  # without saved tensors a graph may be walked again
    run = _make_run(op, plan)
    body = {"__slots__": (), **free, "op": op, "plan": plan, "run": run, "run_for": run, "__getattr__": saved_attribute}
    body["saved_state"] = _saved_state
    return type(Node)(backward_name(op), (OperatorNode,), body)


def _is_tensor_name(op: Operator, name: str) -> bool:
    index = op.schema.index
    return op.schema.arguments[index[name]].is_tensor if name in index else base_argument(name, index) is None


def _keep(node: Node) -> None:
    """Nothing to release."""


def _saved_state(node: Node, differentiable: bool = False) -> dict:
    """What a rule reads of its node."""
    if node.saved is None:
        raise_freed()
    own = node.__dict__
    return {"saved": node.saved, "lengths": own["lengths"]} if "lengths" in own else {"saved": node.saved}


def backward_name(op: Operator) -> str:
    """`MulBackward0` from `mul.Tensor`; the number tells overloads apart where the declaration says so."""
    if op.declared.node is not None:
        return op.declared.node
    if all(rule.function is NOT_IMPLEMENTED for rule in plan_of(op).rules):
        return "NotImplemented"
    name = op.name
    camel = "".join(
        part.title() for part in name.split("_")
    )  # a letter after a digit too: MaxPool2DWithIndicesBackward0
    return f"{camel}Backward{op.declared.number}"


def _make_run(op: Operator, plan: Plan):
    is_list = {a.name: a.is_list for a in op.schema.arguments}
    single = len(op.schema.returns) == 1 and not op.schema.returns[0][0].endswith("[]")
    index = op.schema.index
    lines = ["def run(node, gs, edges=None):"]
    lines += ["    saved = node.saved", "    if saved is None:", "        raise_freed()"]
    lines += ["    g = gs[0]"]
    nothing = "g is None" if single else "all([g is None for g in gs])"
    lines += [f"    if {nothing}:", "        return (None,) * len(node.edges)"]
    lines += _liveness_lines(plan, is_list)
    for i, name in enumerate(plan.saved):
        plain = (
            name in index
            and not op.schema.arguments[index[name]].is_tensor
            or base_argument(name, index)
            and name not in index
        )
        lines.append(
            f"    s_{name} = "
            + (f"saved[{i}]" if plain else f"None if saved[{i}] is None else unpack(saved[{i}], node)")
        )
    namespace = dict(_GLOBALS)
    results: dict[str, str] = {}
    for k, rule in enumerate(plan.rules):
        namespace[f"rule{k}"] = _raising(op, rule.function) if isinstance(rule.function, Missing) else rule.function
        call = f"rule{k}({', '.join(_rule_argument(p, rule, plan) for p in rule.parameters)})"
        if rule.joint:
            alive = " or ".join(f"live{plan.targets.index(t)}" for t in rule.targets)
            lines.append(f"    r{k} = {call} if {alive} else (None,) * {len(rule.targets)}")
            results.update({t: f"r{k}[{j}]" for j, t in enumerate(rule.targets)})
        else:
            i = plan.targets.index(rule.targets[0])
            lines.append(
                f"    r{k} = {call} if live{i} else {f'(None,) * node.lengths[{i}]' if is_list[rule.targets[0]] else 'None'}"
            )
            results[rule.targets[0]] = f"r{k}"
    lines.append(f"    return ({', '.join(('*' if is_list[t] else '') + results[t] for t in plan.targets)},)")
    run_source("\n".join(lines), f"backward of {op}", namespace)
    return namespace["run"]


def _liveness_lines(plan: Plan, is_list: dict) -> list[str]:
    lines = ["    if edges is None:", "        edges = node.edges"]
    if any(is_list[t] for t in plan.targets):
        lines.append("    at = 0")
        for i, t in enumerate(plan.targets):
            lines.append(
                f"    live{i} = "
                + (f"any(edges[at : at + node.lengths[{i}]])" if is_list[t] else "edges[at] is not None")
            )
            lines.append(f"    at += node.lengths[{i}]")
        return lines
    return lines + [f"    live{i} = edges[{i}] is not None" for i in range(len(plan.targets))]


def _rule_argument(p: str, rule: Rule, plan: Plan) -> str:
    if p in ("g", "gs"):
        return p
    if p == "mask" and rule.joint:
        return "(" + "".join(f"live{plan.targets.index(t)}, " for t in rule.targets) + ")"
    return f"s_{p}"


def _raising(op: Operator, missing: Missing):
    """The rule of a gradient that is not written."""

    def rule():
        if missing is NOT_IMPLEMENTED:
            raise nodes.MissingError(f"derivative for {op.namespace}::{op.name} is not implemented")
        raise nodes.UnwrittenError(f"the derivative for '{missing.name}' is not implemented.")

    return rule


# `self_sym_sizes`, `bias_sym_sizes_opt`, `batch1_sym_argsize_0`, `self_sym_argsize_minus_1`: PyTorch's names of saved shapes
_SIZES = r"(\w+)_sym_(?:sizes(?:_opt)?|argsize_(minus_)?(\d+))"


def saved_attribute(node: Node, attribute: str):
    """`node._saved_self`, `node._raw_saved_self`: what the node keeps, by PyTorch's names."""
    raw = attribute.startswith("_raw_saved_")
    if not raw and not attribute.startswith("_saved_"):
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{attribute}'")
    name = attribute.removeprefix("_raw").removeprefix("_saved_")
    sizes = re.fullmatch(_SIZES, name)
    kept = f"{sizes[1]}_shape" if sizes else "out" if name == "result" else name
    plan = type(node).plan
    if kept not in plan.saved:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{attribute}'")
    at = plan.saved.index(kept)
    if raw:
        return above.saved_entry(node, at)
    if node.saved is None:
        raise_freed()
    value = unpack(node.saved[at], node)
    return value if sizes is None or value is None else _saved_sizes(value, sizes, node)


def _saved_sizes(shape: tuple, asked: re.Match, node: Node) -> tuple | int:
    """A saved shape as PyTorch shows it: a plain tuple, (0,) for an argument that was absent; or one of its sizes."""
    if asked[3] is None:
        absent = shape.__class__ is tuple and not shape  # `shape_of(None)`; the shape of a tensor is a Size
        return (0,) if absent else tuple(shape)
    at = -int(asked[3]) if asked[2] else int(asked[3])
    if not -len(shape) <= at < len(shape):
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{asked[0]}'")
    return shape[at]


def check_saved(op: Operator, args: tuple) -> None:
    """Refuse to keep tensors of inference mode for a gradient: nothing counts writes to them."""
    if ambient.reverse_levels or not op.differentiable:
        return
    plan, index = plan_of(op), op.schema.index
    wanted = {t for t in plan.targets if any(map(requires_grad, _tensors_in(args[index[t]])))}
    kept = [t for p in plan.saved if p in index and plan.users[p] & wanted for t in _tensors_in(args[index[p]])]
    if any(t._keys & INFERENCE_TENSOR for t in kept):
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked "
            "by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
            "`torch.no_grad()` instead of `torch.inference_mode()`."
        )


def _tensors_in(value) -> list[Tensor]:
    return [v for v in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(v, Tensor)]


def note_stack(out) -> None:
    """Remember where the nodes of some results were made."""
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and t._autograd is not None and t._autograd.edge is not None:
            above.note_creation(t._autograd.edge[0])
