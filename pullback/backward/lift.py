"""What a node of the backward graph holds, taken apart: a function, and the values it is called with.

`lift(node, inputs)` gives a `NodeCall`: a function of (gradients, saved values) that is the same for all nodes with the
same key, and appends the node's own values to `inputs`: tensors, sizes, numbers, objects. The key is made of classes,
attributes and which inputs want a gradient, never of identities of things that change from step to step. A node says
what it holds (`Node.held`); one that does not, or whose Python does more than compute, is run itself (`ObjectCall`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..autograd.function import BackwardCFunction
from ..core.node import SAVED, SAVED_OUTPUT, Node, SavedTensor, unpack
from ..core.size import Size
from ..core.tensor import Tensor
from ..ops.system.operator import Operator
from ..ops.system.record import Info
from . import replay
from .custom import users_python

VARYING = "varying"  # numbers that are values of one call, 0 and 1 too
SHIFT = 2
CONSTANT_FIELDS = ("dtype", "device", "layout", "blocksize", "dense_dim")  # of metadata


class Inputs:
    """The arguments of one compiled backward, in the order in which its graph takes them."""

    def __init__(self, differentiable: bool = False) -> None:
        self.differentiable = differentiable  # whether the gradients are to be differentiated
        self.tensors: list = []
        self.sizes: list[int] = []
        self.scalars: list[float] = []
        self.hooks: list = []  # callables, and objects that are called
        self.packed: list = []  # what saved-tensor hooks packed
        self.read: dict[type, tuple] = {}  # the Python of custom functions, as it is now
        self.moving: set[int] = set()  # places of sizes that are known to differ from run to run

    def lists(self) -> tuple:
        return self.tensors, self.sizes, self.scalars, self.hooks, self.packed

    def put(self, kind: str, value) -> Slot:
        """Append a value to a list; gives its place."""
        values = self.hooks if kind == "unpack" else getattr(self, kind)
        values.append(value)
        return Slot(kind, len(values) - 1)


class Slot:
    """A place in a node's saved values that is filled at each run: (which list, where in it)."""

    __slots__ = ("kind", "index")

    def __init__(self, kind: str, index: int):
        self.kind, self.index = kind, index


class Unpacking:
    """A saved tensor that hooks packed: calling it unpacks it."""

    def __init__(self, entry: SavedTensor, node: Node):
        self.entry, self.node = entry, node

    @property
    def hook(self) -> Callable:
        return self.entry.unpack_hook

    def __call__(self) -> Tensor:
        return unpack(self.entry, self.node)


class Template:
    """Values with slots in them. `fill` takes the next values and gives what it stands for."""

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts

    def slots(self) -> list[Slot]:
        return slots_of(list(self.parts))

    def key(self) -> tuple:
        return (type(self).__name__, frozen(tuple(self.parts)))


class Sizes(Template):
    """A `Size`."""

    def fill(self, values):
        return Size([fill(p, values) for p in self.parts])


class Fields(Template):
    """An `Info`: (name, value) of its fields."""

    def fill(self, values):
        info = object.__new__(Info)
        for name, value in self.parts:
            setattr(info, name, fill(value, values))
        return info


class Mapping(Template):
    """A dict: (key, value) of its items."""

    def fill(self, values):
        return {name: fill(value, values) for name, value in self.parts}


class Shifted(Template):
    """An int that is lifted whatever it is: graphs take sizes of 0 and 1 for facts, so it goes over as a larger one."""

    def fill(self, values):
        return next(values) - SHIFT


class Inner:
    """A node that another node holds: its call, in the node's place."""

    def __init__(self, call: NodeCall):
        self.call = call

    def slots(self) -> list[Slot]:
        return slots_of(list(self.call.template.values()))

    def key(self) -> tuple:
        return self.call.key

    def fill(self, values):
        return self.call.node(values)


class NodeCall:
    """What a node does as a function of gradients and values. `template`: its attributes, with slots for values."""

    def __init__(self, cls: type, edges: tuple, template: dict, key: tuple):
        self.cls, self.edges, self.template, self.key = cls, edges, template, key
        self.__name__ = self.__qualname__ = cls.__name__
        self.__module__ = "backward"

    def node(self, values) -> Node:
        """A node of the class, in no graph, that holds these values."""
        made = object.__new__(self.cls)
        made.edges = self.edges
        for name, entry in self.template.items():
            setattr(made, name, fill(entry, values))
        return made

    def __call__(self, grads: list, values: list) -> tuple:
        return tuple(self.node(iter(values)).run(list(grads)))


class ObjectCall:
    """A node that is run as it is: one that says no more of itself, or whose Python does more than compute."""

    def __init__(self, cls: type, key: tuple, effect: str | None = None):
        self.cls, self.key, self.effect = cls, key, effect
        self.__name__ = self.__qualname__ = cls.__name__
        self.__module__ = "backward"

    @property
    def is_python(self) -> bool:
        """Whether what runs is the user's own Python."""
        return type(self) is ObjectCall and issubclass(self.cls, BackwardCFunction)

    def __call__(self, grads: list, saved: list) -> tuple:
        return replay.run_node(saved[0], grads)


class ForeignCall(ObjectCall):
    """A node whose backward is no Python and may not be traced: called with the values it holds, between graphs."""

    def __init__(self, call: NodeCall, effect: str | None):
        super().__init__(call.cls, call.key, effect)
        self.call = call

    def __call__(self, grads: list, saved: list) -> tuple:
        node, *values = saved
        replay.at_node(node)
        return self.call(grads, values)


def lift(node: Node, inputs: Inputs) -> tuple[Callable, list]:
    """(the call, the slots of its saved values) of a node; the values go to `inputs`."""
    live = tuple([e is not None for e in node.edges])
    own, effect = users_python(node, inputs.read) if isinstance(node, BackwardCFunction) else ((), None)
    foreign = effect is not None and node._forward_cls.computes_only is False
    held = node.held(inputs.differentiable) if effect is None or foreign else None
    if held is None:
        return ObjectCall(type(node), (type(node), live, own), effect), [inputs.put("hooks", node)]
    call = taken_apart(node, held, live, own, inputs)
    slots = slots_of(list(call.template.values()))
    return (ForeignCall(call, effect), [inputs.put("hooks", node), *slots]) if foreign else (call, slots)


def taken_apart(node: Node, held: dict, live: tuple, own: tuple, inputs: Inputs) -> NodeCall:
    sizes_before = len(inputs.sizes)
    template = {
        name: saved_entries(node, v, inputs) if name == "saved" and v else take(v, node, inputs, numbers_of(node, name))
        for name, v in held.items()
    }
    if node.sizes_move:
        inputs.moving.update(range(sizes_before, len(inputs.sizes)))
    key = (type(node), live, own, tuple([(name, frozen(v)) for name, v in template.items()]))
    return NodeCall(type(node), tuple([True if on else None for on in live]), template, key)


def numbers_of(node: Node, name: str) -> bool | str:
    """Whether numbers in an attribute are values of one call (see `take`)."""
    return name[0] != "_" and (VARYING if name in node.varying else node.holds_numbers)


def saved_entries(node: Node, saved: list, inputs: Inputs) -> list:
    """What a node saved, entry by entry: those of an operator are named, and its schema says which of them are sizes."""
    if not hasattr(type(node), "plan"):
        return [take(e, node, inputs, node.holds_numbers) for e in saved]
    return [take(e, node, inputs, size) for e, size in zip(saved, which_are_sizes(type(node)), strict=True)]


@functools.cache
def which_are_sizes(cls: type) -> list[bool]:
    """Of what the nodes of an operator save, entry by entry, whether it is sizes."""
    types = {a.name: a.type for a in cls.op.schema.arguments}
    return [types.get(name, "").startswith("SymInt") for name in cls.plan.saved]


@functools.cache
def sizes_in_call(op: Operator, count: int) -> list[bool]:
    """Of the arguments of a call that makes a view, after the first, which are sizes."""
    return [a.type.startswith("SymInt") for a in op.schema.arguments[1 : count + 1]]


@functools.cache
def reads_offset(cls: type) -> bool:
    """Whether a rule reads where in memory a tensor began: `as_strided` and its kin name places there."""
    return getattr(cls, "op", None) is not None and cls.op.declared.names_memory


# ---- templates
def fill(entry, values):
    """A template with the next values in its slots."""
    kind = entry.__class__
    if kind is Slot:
        return next(values)
    if kind is list or kind is tuple:
        return kind([fill(e, values) for e in entry])
    return entry.fill(values) if isinstance(entry, (Template, Inner)) else entry


def slots_of(entry) -> list[Slot]:
    """The slots of a template, in the order in which they are filled."""
    if isinstance(entry, Slot):
        return [entry]
    if isinstance(entry, (Template, Inner)):
        return entry.slots()
    return [s for e in entry for s in slots_of(e)] if entry.__class__ in (list, tuple) else []


def take(entry, node: Node, inputs: Inputs, numbers: bool | str = False):
    """A held value with slots for what is lifted; constants stay. `numbers`: ints and floats are lifted too, and where
    `VARYING`, 0 and 1 among them."""
    kind = entry.__class__
    if kind is tuple and entry and (entry[0] is SAVED or entry[0] is SAVED_OUTPUT):
        return inputs.put("tensors", unpack(entry, node))
    if kind is SavedTensor:
        return inputs.put("unpack", Unpacking(entry, node))
    if kind is tuple and entry and isinstance(entry[0], Operator):
        return taken_call(entry, node, inputs)
    if kind is list or kind is tuple:
        return kind([take(e, node, inputs, numbers) for e in entry])
    if kind is dict:
        return Mapping([(name, take(v, node, inputs, numbers)) for name, v in entry.items()])
    if kind is Size:
        return Sizes([inputs.put("sizes", s) for s in entry])
    if kind is Info:
        return Fields(fields(entry, node, inputs))
    if isinstance(entry, Tensor):
        return inputs.put("tensors", entry)
    if isinstance(entry, Node):
        return inner(entry, inputs)
    if numbers is VARYING and kind is int and entry >= 0:
        return Shifted([inputs.put("sizes", entry + SHIFT)])
    if numbers and (kind is int and entry >= 0 or kind is float):
        return inputs.put("sizes" if kind is int else "scalars", entry)
    return entry


def taken_call(call: tuple, node: Node, inputs: Inputs) -> tuple:
    """A call that made a view: (operator, its arguments after the first, which of several results)."""
    op, args, *rest = call
    sizes = sizes_in_call(op, len(args))
    return (op, tuple([take(a, node, inputs, size) for a, size in zip(args, sizes, strict=True)]), *rest)


def inner(node: Node, inputs: Inputs):
    """A node inside another: taken apart in its turn, or itself where it cannot be."""
    own, effect = users_python(node, inputs.read) if isinstance(node, BackwardCFunction) else ((), None)
    held = node.held(inputs.differentiable) if effect is None else None
    if held is None:
        return inputs.put("hooks", node)
    return Inner(taken_apart(node, held, tuple([e is not None for e in node.edges]), own, inputs))


def fields(info: Info, node: Node, inputs: Inputs) -> list[tuple]:
    """The fields of an `Info`: shapes, strides and places in memory are lifted, the last only for those who read them."""
    out = []
    for name in Info.__slots__:
        value = getattr(info, name, None)
        if name in CONSTANT_FIELDS or value is None:
            out += [(name, value)] if hasattr(info, name) else []
        elif name != "offset":
            slots = [inputs.put("sizes", s) for s in value]
            out.append((name, Sizes(slots) if name == "shape" else tuple(slots)))
        elif reads_offset(type(node)):
            out.append((name, Shifted([inputs.put("sizes", value + SHIFT)])))
    return out


def frozen(value):
    """A template as part of a key: what cannot be hashed is known by its identity, metadata by its contents."""
    if isinstance(value, Slot):
        return ("slot", value.kind)
    if isinstance(value, (tuple, list)):
        return tuple([frozen(v) for v in value])
    if isinstance(value, (Template, Inner)):
        return value.key()
    return constant(value)


def constant(value) -> tuple:
    """A value that is part of a key. Numbers that compare equal and are not the same (0.0 and -0.0) are told apart."""
    kind = value.__class__
    if kind is float or kind is complex:
        return kind, repr(value)
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return kind, value
