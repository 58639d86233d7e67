"""What it costs to keep a node's value, and what to compute it again.

In: nodes of a joint graph. Out: bytes, and classes of operators by the `cost` that they declare: views (free),
recomputable (one pass over memory that a compiler fuses into what uses it), random, heavy (everything else). What always
holds: an operator that does not say that it is cheap is heavy, and nothing that writes or is random is recomputable.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..core.tensor import Tensor
from ..graph import Node
from ..ops.system.operator import Operator, registry

UNKNOWN_SIZE = 4096  # what a size that is only known at run time counts as


class Kind(Enum):
    """How a node's value comes about."""

    VIEW = "view"
    CHEAP = "cheap"
    RANDOM = "random"
    HEAVY = "heavy"


_kinds: dict[Any, Kind] = {operator.getitem: Kind.CHEAP}


def kind_of(target: Any) -> Kind:
    """The class of what a node calls."""
    known = _kinds.get(target)
    if known is None:
        known = _kinds[target] = _operator_kind(target) if isinstance(target, Operator) else _function_kind(target)
    return known


_BY_COST = {"view": Kind.VIEW, "cheap": Kind.CHEAP, "passes": Kind.HEAVY, "compute": Kind.HEAVY}


def _operator_kind(op: Operator) -> Kind:
    if is_random(op):
        return Kind.RANDOM
    return Kind.HEAVY if op.schema.is_mutable else _BY_COST[op.declared.cost]


def _function_kind(function: Any) -> Kind:
    """Python functions in a graph compute numbers from numbers."""
    home = getattr(function, "__module__", None)
    if home in ("_operator", "operator", "math", "builtins") or getattr(function, "is_symbolic_function", False):
        return Kind.CHEAP
    return Kind.HEAVY


def is_compute_bound(target: Any) -> bool:
    """Whether a call takes longer than a few passes over memory: never computed again, unless a policy says so."""
    return not isinstance(target, Operator) or target.schema.is_mutable or target.declared.cost == "compute"


def is_random(target: Any) -> bool:
    """Whether a call draws random numbers, or may: one that drops values with a probability it is given."""
    if "nondeterministic_seeded" in getattr(target, "tags", ()):
        return True
    return isinstance(target, Operator) and "dropout_p" in target.schema.index and len(target.schema.returns) == 2


def is_view(node: Node) -> bool:
    """Whether a node's value lies in the memory of the value it is computed from."""
    if node._op != "call_function":
        return False
    if node._target is operator.getitem:
        source = node._args[0]
        return isinstance(source, Node) and source._op == "call_function" and kind_of(source._target) is Kind.VIEW
    return kind_of(node._target) is Kind.VIEW


def is_fusible(node: Node) -> bool:
    """Whether a compiler makes a node part of a loop over elements."""
    return node._op == "call_function" and kind_of(node._target) is not Kind.HEAVY


def fuses_into(node: Node, user: Node) -> bool:
    """Whether a value is used in the loop that makes it, without going through memory."""
    if user._op == "call_function" and isinstance(user._target, Operator) and user._target.declared.fuses_operands:
        return True
    return is_fusible(node) and is_fusible(user)


# ---- bytes
def bytes_of(node: Node) -> int:
    """Bytes of what a node gives; symbolic sizes count as the values they were traced with."""
    return value_bytes(node.meta.get("val"))


def value_bytes(value: Any) -> int:
    """Bytes of a value: a tensor, a number (8), a sequence of them."""
    if isinstance(value, Tensor):
        count = value.dtype.itemsize
        for size in value._array.shape:
            count *= size if size.__class__ is int else hint(size)
        return count
    if isinstance(value, (tuple, list)):
        return sum(map(value_bytes, value))
    return 8 if value is not None else 0


def hint(size: Any) -> int:
    """The number behind a symbolic size."""
    node = getattr(size, "node", None)
    found = getattr(node, "hint", None)
    if found is None:
        return UNKNOWN_SIZE if node is not None else int(size)
    return int(found)


# ---- the table, for those who ask for it
@dataclass(frozen=True)
class OpTypes:
    """The operators of each class, as sets of overload packets."""

    fusible_ops: set = field(repr=False)
    compute_intensive_ops: set = field(repr=False)
    random_ops: set = field(repr=False)
    view_ops: set = field(repr=False)
    recomputable_ops: set = field(repr=False)

    def is_fusible(self, node: Node) -> bool:
        return is_fusible(node)

    def is_compute_intensive(self, node: Node) -> bool:
        return node._op == "call_function" and kind_of(node._target) is Kind.HEAVY

    def is_random(self, node: Node) -> bool:
        return is_random(node._target)

    def is_view(self, node: Node) -> bool:
        return is_view(node)

    def is_recomputable(self, node: Node) -> bool:
        return node._op == "call_function" and kind_of(node._target) in (Kind.VIEW, Kind.CHEAP)


def get_default_op_list() -> OpTypes:
    """Which operators the min-cut partitioner takes for cheap, random, views, and so on."""
    sets: dict[Kind, set] = {kind: set() for kind in Kind}
    for op in [op for op in registry.values() if op.body is None]:  # bodies are made of others, which graphs show
        sets[kind_of(op)].add(op.overloadpacket)
    cheap = sets[Kind.CHEAP] | sets[Kind.VIEW] | {operator.getitem}
    return OpTypes(cheap | sets[Kind.RANDOM], sets[Kind.HEAVY] - cheap, sets[Kind.RANDOM], sets[Kind.VIEW], cheap)
