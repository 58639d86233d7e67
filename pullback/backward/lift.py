"""Nodes as functions of values: what the key of a node (`scan`) stands for.

`lifted(key, places)` gives the call of a node, a function of (gradients, saved values) that is the same for all nodes with
this key, and the slots of its saved values: where, among the inputs of a backward, each of them lies. Values are counted off
in the order in which `scan` appended them, which is the order of the key. A node that says nothing of what it holds, or whose
Python does more than compute, is run itself (`ObjectCall`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..autograd.function import BackwardCFunction
from ..core.node import Node, SavedTensor
from ..core.size import Size
from ..core.tensor import Tensor
from ..ops.system.operator import Operator
from ..ops.system.record import Info
from . import replay
from .scan import CONSTANT_FIELDS, SHIFT, VARYING, Identity, reads_offset

LISTS = {
    "tensors": 0,
    "sizes": 1,
    "scalars": 2,
    "hooks": 3,
    "packed": 4,
    "unpack": 3,
}  # of the inputs, by kind of value
SLOTS: dict[type, str] = {Tensor: "tensors", SavedTensor: "unpack", int: "sizes", float: "scalars"}


class Slot:
    """A place in a node's saved values that is filled at each run: (which list, where in it)."""

    __slots__ = ("kind", "index")

    def __init__(self, kind: str, index: int):
        self.kind, self.index = kind, index

    @property
    def list(self) -> int:
        return LISTS[self.kind]


class Places:
    """Counts values off: where the next of each kind lies among the inputs."""

    def __init__(self) -> None:
        self.taken = [0] * 5

    def next(self, kind: str) -> Slot:
        which = LISTS[kind]
        self.taken[which] += 1
        return Slot(kind, self.taken[which] - 1)

    def several(self, kind: str, count: int) -> list[Slot]:
        return [self.next(kind) for _ in range(count)]

    @property
    def hooks(self) -> int:
        """How many there were so far."""
        return self.taken[LISTS["hooks"]]


class Template:
    """Values with slots in them. `fill` takes the next values and gives what it stands for."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence):
        self.parts = parts

    def slots(self) -> list[Slot]:
        return slots_of(list(self.parts))

    def fill(self, values: Iterator) -> Any:
        raise NotImplementedError(type(self).__name__)


class Sizes(Template):
    """A `Size`."""

    def fill(self, values: Iterator) -> Size:
        return Size([fill(p, values) for p in self.parts])


class Fields(Template):
    """An `Info`: (name, value) of its fields."""

    def fill(self, values: Iterator) -> Info:
        info = object.__new__(Info)
        for name, value in self.parts:
            setattr(info, name, fill(value, values))
        return info


class Mapping(Template):
    """A dict: (key, value) of its items."""

    def fill(self, values: Iterator) -> dict:
        return {name: fill(value, values) for name, value in self.parts}


class Shifted(Template):
    """An int that is lifted whatever it is (see `scan.SHIFT`)."""

    def fill(self, values: Iterator) -> int:
        return next(values) - SHIFT


class Inner(Template):
    """A node that another node holds: its call, in the node's place."""

    __slots__ = ("call",)

    def __init__(self, call: NodeCall):
        super().__init__(list(call.template.values()))
        self.call = call

    def fill(self, values: Iterator) -> Node:
        return self.call.node(values)


class NodeCall:
    """What a node does as a function of gradients and values. `template`: its attributes, with slots for values."""

    def __init__(self, cls: type[Node], edges: tuple, template: dict[str, Any], key: tuple):
        self.cls, self.edges, self.template, self.key = cls, edges, template, key
        self.__name__ = self.__qualname__ = cls.__name__
        self.__module__ = "backward"

    def node(self, values: Iterator) -> Node:
        """A node of the class, in no graph, that holds these values."""
        result = object.__new__(self.cls)
        result.edges = self.edges
        for name, entry in self.template.items():
            setattr(result, name, fill(entry, values))
        return result

    def __call__(self, grads: list, values: list) -> tuple:
        return tuple(self.node(iter(values)).run(list(grads)))


class ObjectCall:
    """A node that is run as it is: one that says no more of itself, or whose Python does more than compute."""

    def __init__(self, cls: type[Node], key: tuple, effect: str | None = None):
        self.cls, self.key, self.effect = cls, key, effect
        self.__name__ = self.__qualname__ = cls.__name__
        self.__module__ = "backward"

    def users_backward(self) -> Callable | None:
        """The user's own Python, where it is what runs."""
        return self.cls._forward_cls.users_backward() if issubclass(self.cls, BackwardCFunction) else None

    def __call__(self, grads: list, saved: list) -> tuple:
        return replay.run_node(saved[0], grads)


class ForeignCall(ObjectCall):
    """A node whose backward is no Python and may not be traced: called with the values it holds, between graphs."""

    def __init__(self, call: NodeCall, effect: str | None):
        super().__init__(call.cls, call.key, effect)
        self.call = call

    def users_backward(self) -> None:
        return None

    def __call__(self, grads: list, saved: list) -> tuple:
        node, *values = saved
        replay.at_node(node)
        return self.call(grads, values)


# ---- keys
def lifted(key: tuple, places: Places) -> tuple[NodeCall | ObjectCall, list[Slot]]:
    """(the call, the slots of its saved values) of a node's key."""
    call, effect = _apart(key, places), _effect(key)
    if call is None:
        return ObjectCall(key[0], key, effect), [places.next("hooks")]
    slots = slots_of(list(call.template.values()))
    return (call, slots) if effect is None else (ForeignCall(call, effect), [places.next("hooks"), *slots])


def _effect(key: tuple) -> str | None:
    """What the Python of a node does besides computing."""
    return key[3] if issubclass(key[0], BackwardCFunction) else None


def _apart(key: tuple, places: Places) -> NodeCall | None:
    """The call of a node that was taken apart; None where it was not."""
    cls, live = key[:2]
    names, *parts = key[4:] if issubclass(cls, BackwardCFunction) else key[2:]
    if names is None:
        return None
    template = {name: _template(part, cls, places) for name, part in zip(names, parts, strict=True)}
    edges = (True,) * live if isinstance(live, int) else tuple([True if on else None for on in live])
    return NodeCall(cls, edges, template, key)


def _template(key: Any, cls: type[Node], places: Places) -> Any:
    """A part of a key, with slots for what was lifted."""
    if key.__class__ is not tuple:
        if key.__class__ is Identity:
            return key.value
        return places.next(SLOTS[key]) if isinstance(key, type) else key
    first, *rest = key
    if first is list or first is tuple:
        return first([_template(k, cls, places) for k in rest])
    if first is Size:
        return Sizes(places.several("sizes", rest[0]))
    if first is Info:
        return _fields(rest, cls, places)
    if first is dict:
        return Mapping([(name, _template(k, cls, places)) for name, k in rest])
    if first is Node:
        call = _apart(rest[0], places)
        return places.next("hooks") if call is None else Inner(call)
    if isinstance(first, Operator):
        args, others = ([_template(k, cls, places) for k in keys] for keys in rest)
        return first, tuple(args), *others
    if first == VARYING:
        return Shifted(places.several("sizes", 1))
    return first(rest[0]) if first is float or first is complex else rest[0]


def _fields(rest: list, cls: type[Node], places: Places) -> Fields:
    """The template of metadata."""
    size, stride, *constants = rest
    values: dict[str, Any] = {"shape": Sizes(places.several("sizes", size))}
    values["stride"] = None if stride is None else tuple(places.several("sizes", stride))
    if reads_offset(cls):
        values["offset"] = Shifted(places.several("sizes", 1))
    values.update({n: v for n, v in zip(CONSTANT_FIELDS, constants, strict=True) if v is not Info})
    return Fields(list(values.items()))


# ---- templates
def fill(entry: Any, values: Iterator) -> Any:
    """A template with the next values in its slots."""
    kind = entry.__class__
    if kind is Slot:
        return next(values)
    if kind is list or kind is tuple:
        return kind([fill(e, values) for e in entry])
    return entry.fill(values) if isinstance(entry, Template) else entry


def slots_of(entry: Any) -> list[Slot]:
    """The slots of a template, in the order in which they are filled."""
    if isinstance(entry, Slot):
        return [entry]
    if isinstance(entry, Template):
        return entry.slots()
    return [s for e in entry for s in slots_of(e)] if entry.__class__ in (list, tuple) else []
