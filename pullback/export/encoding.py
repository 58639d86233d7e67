"""Parts of graphs as plain data and back: nodes, arguments, targets, signatures, sizes.

In: nodes, or what JSON gives. Out: the other of the two. What always holds: a name in a file is looked up among operators
and a fixed table of functions, and nowhere else; an expression of sizes is arithmetic on known symbols.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from typing import Any

from ..capture.higher_order.base import HigherOrderOperator
from ..capture.shapes.contexts import RelaxedUnspecConstraint, StrictMinMaxConstraint, ValueRanges
from ..capture.shapes.environment import ShapeEnv
from ..capture.shapes.expressions import Expr, Symbol
from ..capture.shapes.facts import INFINITE
from ..capture.shapes.numbers import wrap
from ..capture.shapes.writing import write_python
from ..core import dtype as dtypes
from ..core import modes, symbolic
from ..core.device import device
from ..core.layers import above
from ..graph import Node
from ..graph.assertions import _assert
from ..ops.system.operator import Operator
from ..ops.system.packet import ops
from . import graph_signature as signatures
from .graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec

_OPERATORS = ("add sub mul floordiv truediv mod pow neg abs getitem eq ne lt le gt ge and_ or_ xor not_ pos").split()
FUNCTIONS: dict[str, Any] = {
    **{f"operator.{n}": getattr(operator, n) for n in _OPERATORS},
    **{f"math.{n}": getattr(math, n) for n in ("floor", "ceil", "trunc", "sqrt")},
    **{f"sym.{n}": getattr(symbolic, n) for n in ("sym_float", "sym_int", "sym_ite")},
    "round": builtins.round, "set_grad_enabled": modes._set_grad_enabled, "assert": _assert,
}  # fmt: skip
NAMES = {id(f): n for n, f in FUNCTIONS.items()}
CONSTANTS = ("dtype", "memory_format", "layout")


# ---- nodes
def node(n: Node) -> dict:
    """One node."""
    row = {"op": n.op, "name": n.name, "args": argument(n.args), "kwargs": argument(dict(n.kwargs))}
    if n.op in ("placeholder", "get_attr"):
        row["target"] = n.target
    elif n.op == "call_function":
        row["target"] = target(n)
    elif n.op != "output":
        raise NotImplementedError(f"save: a node of kind {n.op} ({n.name}) cannot be written to a file")
    return row | ({"stack_trace": n.meta["stack_trace"]} if "stack_trace" in n.meta else {})


def target(n: Node) -> str:
    if isinstance(n.target, Operator):
        return f"op:{n.target}"
    if isinstance(n.target, HigherOrderOperator):
        return f"higher_order:{n.target._name}"
    name = NAMES.get(id(n.target))
    if name is None:
        raise NotImplementedError(f"save: the function {getattr(n.target, '__name__', n.target)}, which {n.name} calls, cannot be written to a file")  # fmt: skip
    return name


def read_target(row: dict) -> Any:
    name = row["target"]
    if row["op"] in ("placeholder", "get_attr"):
        return name
    kind, _, rest = name.partition(":")
    if kind == "higher_order":
        found = getattr(ops.higher_order, rest, None)
        if not isinstance(found, HigherOrderOperator):
            raise RuntimeError(f"load: there is no operator {rest} that takes functions")
        return found
    if kind != "op":
        return FUNCTIONS[name]
    namespace, packet, overload = name[3:].split(".")
    try:
        return getattr(getattr(getattr(ops, namespace), packet), overload)
    except AttributeError as error:
        raise RuntimeError(f"load: the operator {name[3:]} is not registered") from error


def argument(value: Any) -> Any:
    """An argument of a node."""
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, (tuple, list)):
        return {"list" if isinstance(value, list) else "tuple": [argument(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": {k: argument(v) for k, v in value.items()}}
    if value is None or type(value) in (bool, int, float, str):
        return value
    kind = type(value).__name__
    if kind in CONSTANTS:
        return {"constant": str(value).removeprefix("torch.")}
    if kind == "device":
        return {"device": str(value)}
    if kind == "complex":
        return {"complex": [value.real, value.imag]}
    if kind == "slice":
        return {"slice": [argument(v) for v in (value.start, value.stop, value.step)]}
    raise NotImplementedError(f"save: an argument of type {kind} cannot be written to a file")


def read_argument(data: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()
    return READERS[kind](value, nodes)


def constant(name: str) -> Any:
    found = getattr(above.package(), name)
    if type(found).__name__ not in CONSTANTS:
        raise RuntimeError(f"load: {name} is no dtype, layout or memory format")
    return found


READERS: dict[str, Any] = {
    "node": lambda v, nodes: nodes[v],
    "tuple": lambda v, nodes: tuple([read_argument(x, nodes) for x in v]),
    "list": lambda v, nodes: [read_argument(x, nodes) for x in v],
    "dict": lambda v, nodes: {k: read_argument(x, nodes) for k, x in v.items()},
    "constant": lambda v, nodes: constant(v),
    "device": lambda v, nodes: device(v),
    "complex": lambda v, nodes: complex(*v),
    "slice": lambda v, nodes: slice(*[read_argument(x, nodes) for x in v]),
}


def dtype(name: str) -> dtypes.dtype:
    return constant(name.removeprefix("torch."))


# ---- signatures
def spec(s: InputSpec | OutputSpec) -> dict:
    row = {"kind": s.kind.name, "target": s.target, "arg": type(s.arg).__name__, "name": s.arg.name}
    if isinstance(s.arg, signatures.ConstantArgument):
        row["value"] = argument(s.arg.value)
    return row | ({"persistent": s.persistent} if isinstance(s, InputSpec) else {})


def read_signature(inputs: list[dict], outputs: list[dict]) -> ExportGraphSignature:
    return ExportGraphSignature(
        [InputSpec(InputKind[r["kind"]], _read_arg(r), r["target"], r["persistent"]) for r in inputs],
        [OutputSpec(OutputKind[r["kind"]], _read_arg(r), r["target"]) for r in outputs],
    )


def _read_arg(row: dict) -> Any:
    if row["arg"] == "ConstantArgument":
        return signatures.ConstantArgument(row["name"], read_argument(row["value"], {}))
    kinds = {c.__name__: c for c in (signatures.TensorArgument, signatures.SymIntArgument)}
    return kinds[row["arg"]](row["name"])


# ---- sizes
def number(env: ShapeEnv, value: Any) -> int | str:
    """A size: an int, or an expression of symbols."""
    expr = env.replace(value.node.expr) if hasattr(value, "node") else value
    return write_python(expr, lambda s: s.name) if isinstance(expr, Expr) else expr


def symbols(env: ShapeEnv, ranges: dict) -> dict:
    """What is known of the symbols in the inputs."""
    promised = {env.replace(s): c for s, c in env.constraints.items()}
    rows = {}
    for symbol in ranges:
        if isinstance(symbol, Symbol) and symbol in env.hints:
            low, high = env.facts.range_of(symbol)
            promise = promised.get(symbol)
            bounds = [*promise.vr] if isinstance(promise, StrictMinMaxConstraint) else "any" if promise else None
            rows[symbol.name] = {
                "hint": env.hints[symbol], "range": [low, high], "promise": bounds, "sources": env.var_to_sources[symbol],
            }  # fmt: skip
    return rows


def read_symbols(env: ShapeEnv, rows: dict) -> dict[str, Any]:
    """Make the symbols again; gives the number of each name."""
    result = {}
    for name, row in rows.items():
        symbol = Symbol(name, int)
        env._register(symbol, row["sources"][0], row["hint"])
        env.var_to_sources[symbol] = list(row["sources"])
        env.facts.set_range(symbol, *[b if abs(b) == INFINITE else int(b) for b in row["range"]])
        env.first_ranges[symbol] = env.facts.ranges[symbol]
        if row["promise"] == "any":
            env.constraints[symbol] = RelaxedUnspecConstraint()
        elif row["promise"]:
            env.constraints[symbol] = StrictMinMaxConstraint(vr=ValueRanges(*row["promise"]))
        result[name] = wrap(symbol, env)
    return result


BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip


def read_number(data: Any, known: dict[str, Any]) -> Any:
    """A size of what `number` gave."""
    return _evaluate(ast.parse(data, mode="eval").body, known) if isinstance(data, str) else data


def _evaluate(part: ast.expr, known: dict[str, Any]) -> Any:
    if isinstance(part, ast.Name):
        return known[part.id]
    if isinstance(part, ast.Constant) and type(part.value) is int:
        return part.value
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
        return -_evaluate(part.operand, known)
    if isinstance(part, ast.BinOp) and type(part.op) in BINARY:
        return BINARY[type(part.op)](_evaluate(part.left, known), _evaluate(part.right, known))
    raise RuntimeError(f"load: {ast.unparse(part)} is no expression of sizes")
