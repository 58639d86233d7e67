"""One pass over what nodes hold: the values of this backward, and the key of its structure.

`scan(node, inputs)` appends to `inputs` what is lifted (tensors, sizes, numbers, objects) and gives a key of everything
else: classes, constants, which inputs want a gradient, and for each lifted value its kind, in its place. Keys never hold what
changes from step to step, so the second backward of a structure finds its graph; and they hold all that is constant, so the
graph of the first is made from the key alone (`lift`). A part of a key is

    Tensor, SavedTensor, int, float     a lifted value
    None, a bool, a str                 itself
    (list | tuple, *parts)              (dict, *(name, part))    (Size, how many)    (Info, ...) see `scan_info`
    (operator, parts, parts)            a call that made a view: its arguments, and the rest
    (VARYING,)                          a lifted int that may be 0 or 1
    (Node, key)                         a node inside a node
    (kind, value), an `Identity`        any other constant
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.engine import needed_edges
from ..autograd.function import BackwardCFunction
from ..core.node import SAVED, SAVED_OUTPUT, Node, SavedTensor, unpack
from ..core.size import Size
from ..core.tensor import Tensor
from ..ops.system.operator import Operator
from ..ops.system.record import Info, OperatorNode
from .custom import users_python

VARYING = "varying"  # numbers that are values of one call, 0 and 1 too
SHIFT = 2  # graphs take sizes of 0 and 1 for facts, so that such a number goes over as a larger one
CONSTANT_FIELDS = ("dtype", "device", "layout", "blocksize", "dense_dim")  # of metadata
CONSTANTS = frozenset((type(None), bool, str))  # kinds that are never lifted: they are their own keys


class Inputs:
    """The arguments of one compiled backward, in the order in which its graph takes them."""

    def __init__(self, differentiable: bool = False, needed: dict | None = None) -> None:
        self.differentiable = differentiable  # whether the gradients are to be differentiated
        self.needed = needed  # the nodes that lead to what was asked for; None: all do
        self.tensors: list = []
        self.sizes: list[int] = []
        self.scalars: list[float] = []
        self.hooks: list = []  # callables, and objects that are called
        self.packed: list = []  # what nodes expect of gradients: (shape, dtype, device)
        self.read: dict[type, tuple] = {}  # the Python of custom functions, as it is now
        self.moving: set[int] = set()  # places of sizes that are known to differ from run to run

    def lists(self) -> tuple:
        return self.tensors, self.sizes, self.scalars, self.hooks, self.packed


class Unpacking:
    """A saved tensor that hooks packed: calling it unpacks it."""

    def __init__(self, entry: SavedTensor, node: Node):
        self.entry, self.node = entry, node

    @property
    def hook(self) -> Callable:
        return self.entry.unpack_hook

    def __call__(self) -> Tensor:
        return unpack(self.entry, self.node)


class Identity:
    """A constant that cannot be hashed: equal to itself alone, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def constant(value: object) -> Any:
    """A constant as part of a key. Numbers that compare equal and are not the same (0.0 and -0.0) are told apart."""
    kind = value.__class__
    if kind is float or kind is complex:
        return kind, repr(value)
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return kind, value


# ---- nodes
def scan(node: Node, inputs: Inputs, holder: Node | None = None) -> tuple:
    """The key of a node: its class, which of its inputs want a gradient (a number: so many, all), for a custom function what its Python depends on
    and does, then the names and parts of what it holds; None for names: only the node itself can be run. `holder`: the node
    that it is part of."""
    cls = node.__class__
    edges = node.edges if inputs.needed is None else _needed_edges(node, inputs.needed, holder)
    live = tuple([e is not None for e in edges]) if None in edges else len(edges)
    if not isinstance(node, BackwardCFunction):
        state = node.saved_state(inputs.differentiable)
        if state is None:
            inputs.hooks.append(node)
            return cls, live, None
        return cls, live, *scan_state(node, state, which_are_sizes(cls), inputs)
    own, effect = users_python(node, inputs.read)
    foreign = effect is not None and holder is None and node._forward_cls.computes_only is False
    if effect is not None and not foreign:
        inputs.hooks.append(node)
        return cls, live, own, effect, None
    parts = scan_state(node, node.saved_state(inputs.differentiable), None, inputs)
    if foreign:
        inputs.hooks.append(node)
    return cls, live, own, effect, *parts


def _needed_edges(node: Node, needed: dict, holder: Node | None) -> tuple:
    """Edges of a node that lead to what was asked for. Those that its holder has not are not the backward's: they stay."""
    kept = needed_edges(node.edges, needed)
    if holder is None:
        return kept
    return tuple([k if own in holder.edges else own for k, own in zip(kept, node.edges, strict=True)])


def scan_state(node: Node, state: dict, sizes: list[bool] | None, inputs: Inputs) -> list:
    """The names of what a node holds, then the key of each. `sizes`: see `which_are_sizes`."""
    before = len(inputs.sizes)
    parts: list = [tuple(state)]
    for name, value in state.items():
        if name != "saved" or not value:
            parts.append(scan_value(value, node, inputs, numbers_of(node, name)))
        elif sizes is not None:
            parts.append((list, *[scan_value(e, node, inputs, s) for e, s in zip(value, sizes, strict=True)]))
        else:
            parts.append((list, *[scan_value(e, node, inputs, node.holds_numbers) for e in value]))
    if node.sizes_move:
        inputs.moving.update(range(before, len(inputs.sizes)))
    return parts


def numbers_of(node: Node, name: str) -> bool | str:
    """Whether numbers in an attribute are values of one call (see `scan_value`)."""
    return name[0] != "_" and (VARYING if name in node.varying else node.holds_numbers)


@functools.cache
def which_are_sizes(cls: type[Node]) -> list[bool] | None:
    """Of what the nodes of an operator save, entry by entry, whether it is sizes; None for other nodes."""
    if not issubclass(cls, OperatorNode):
        return None
    types = {a.name: a.type for a in cls.op.schema.arguments}
    return [types.get(name, "").startswith("SymInt") for name in cls.plan.saved]


@functools.cache
def sizes_in_call(op: Operator, count: int) -> list[bool]:
    """Of the arguments of a call that makes a view, after the first, which are sizes."""
    return [a.type.startswith("SymInt") for a in op.schema.arguments[1 : count + 1]]


@functools.cache
def reads_offset(cls: type[Node]) -> bool:
    """Whether a rule reads where in memory a tensor began: `as_strided` and its kin name places there."""
    return issubclass(cls, OperatorNode) and cls.op.declared.names_memory


# ---- what they hold
def scan_value(entry: Any, node: Node, inputs: Inputs, numbers: bool | str = False) -> Any:
    """The key of a held value. `numbers`: ints and floats are lifted too, and where `VARYING`, 0 and 1 among them."""
    kind = entry.__class__
    if kind is tuple and entry:
        first = entry[0]
        if first is SAVED or first is SAVED_OUTPUT:
            inputs.tensors.append(unpack(entry, node))
            return Tensor
        if isinstance(first, Operator):
            _, args, *rest = entry
            sizes = sizes_in_call(first, len(args))
            result = [scan_value(a, node, inputs, s) for a, s in zip(args, sizes, strict=True)]
            return first, tuple(result), tuple([constant(r) for r in rest])
    if kind in CONSTANTS:
        return entry
    if kind is Info:
        return scan_info(entry, node, inputs)
    if kind is Size:
        inputs.sizes.extend(entry)  # `+=` would make a `Size`
        return Size, len(entry)
    if kind is tuple or kind is list:
        return kind, *[scan_value(e, node, inputs, numbers) for e in entry]
    return scan_rare(entry, kind, node, inputs, numbers)


def scan_rare(entry: Any, kind: type, node: Node, inputs: Inputs, numbers: bool | str) -> Any:
    """The kinds that few nodes hold."""
    if kind is SavedTensor:
        inputs.hooks.append(Unpacking(entry, node))
        return SavedTensor
    if kind is dict:
        return dict, *[(name, scan_value(v, node, inputs, numbers)) for name, v in entry.items()]
    if isinstance(entry, Tensor):
        inputs.tensors.append(entry)
        return Tensor
    if isinstance(entry, Node):
        return Node, scan(entry, inputs, node)
    if numbers:
        if numbers is VARYING and kind is int and entry >= 0:
            inputs.sizes.append(entry + SHIFT)
            return (VARYING,)
        if kind is int and entry >= 0:
            inputs.sizes.append(entry)
            return int
        if kind is float:
            inputs.scalars.append(entry)
            return float
    return constant(entry)


def scan_info(info: Info, node: Node, inputs: Inputs) -> tuple:
    """The key of metadata: (Info, how many sizes, how many strides or None, each of `CONSTANT_FIELDS`, or Info for one that
    is not there). Sizes, strides and, for those who read it, the place in memory are lifted, in this order."""
    sizes = inputs.sizes
    sizes.extend(info.shape)
    stride = getattr(info, "stride", None)
    if stride is not None:
        sizes.extend(stride)
    if reads_offset(node.__class__):
        sizes.append(info.offset + SHIFT)
    return (
        Info, len(info.shape), None if stride is None else len(stride), *[getattr(info, name, Info) for name in CONSTANT_FIELDS],
    )  # fmt: skip
