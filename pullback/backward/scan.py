"""The values of a node and the key of its structure, in one pass: all that a backward needs whose graph is known.

`scan(node, inputs)` appends to `inputs` what `lift` would, in the same order, and gives a key: nodes with equal keys have
equal templates. So a backward that finds its graph builds no template, and one that does not takes its nodes apart by
`lift`; `Backward.graph` checks that both saw the same values.
"""

from __future__ import annotations

from ..autograd.function import BackwardCFunction
from ..core.node import SAVED, SAVED_OUTPUT, Node, SavedTensor, unpack
from ..core.size import Size
from ..core.tensor import Tensor
from ..ops.system.operator import Operator
from ..ops.system.record import Info
from .custom import users_python
from .lift import (
    CONSTANT_FIELDS,
    SHIFT,
    VARYING,
    Inputs,
    Unpacking,
    constant,
    numbers_of,
    reads_offset,
    sizes_in_call,
    which_are_sizes,
)

CONSTANTS = frozenset((type(None), bool, str))  # kinds that are never lifted: they are their own keys


def scan(node: Node, inputs: Inputs) -> tuple:
    """The key of a node; its values go to `inputs`."""
    cls = node.__class__
    live = [e is not None for e in node.edges]
    if not issubclass(cls, BackwardCFunction):
        held = node.held(inputs.differentiable)
        if held is None:
            inputs.hooks.append(node)
            return cls, *live
        return cls, *live, *scan_held(node, held, inputs)
    own, effect = users_python(node, inputs.read)
    foreign = effect is not None and node._forward_cls.computes_only is False
    held = node.held(inputs.differentiable) if effect is None or foreign else None
    if held is None:
        inputs.hooks.append(node)
        return cls, *live, own, effect
    parts = scan_held(node, held, inputs)
    if foreign:
        inputs.hooks.append(node)
    return cls, *live, own, effect, *parts


def scan_held(node: Node, held: dict, inputs: Inputs) -> list:
    """The keys of what a node holds."""
    before = len(inputs.sizes)
    parts: list = []
    for name, value in held.items():
        if name == "saved" and value:
            if hasattr(node, "plan"):
                sizes = which_are_sizes(node.__class__)
                parts += [scan_value(e, node, inputs, size) for e, size in zip(value, sizes, strict=True)]
            else:
                parts += [name, *[scan_value(e, node, inputs, node.holds_numbers) for e in value]]
        else:
            parts += (name, scan_value(value, node, inputs, numbers_of(node, name)))
    if node.sizes_move:
        inputs.moving.update(range(before, len(inputs.sizes)))
    return parts


def scan_value(entry, node: Node, inputs: Inputs, numbers: bool | str = False):
    """The key of a held value: as `lift.take`, kind by kind."""
    kind = entry.__class__
    if kind is tuple and entry:
        first = entry[0]
        if first is SAVED or first is SAVED_OUTPUT:
            inputs.tensors.append(unpack(entry, node))
            return Tensor
        if isinstance(first, Operator):
            _, args, *rest = entry
            sizes = sizes_in_call(first, len(args))
            made = [scan_value(a, node, inputs, s) for a, s in zip(args, sizes, strict=True)]
            return first, tuple(made), tuple([constant(r) for r in rest])
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


def scan_rare(entry, kind: type, node: Node, inputs: Inputs, numbers: bool | str):
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
        return scan_inner(entry, inputs)
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
    """The key of metadata: shapes and strides are values."""
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


def scan_inner(node: Node, inputs: Inputs) -> tuple:
    """A node that another holds."""
    own, effect = users_python(node, inputs.read) if isinstance(node, BackwardCFunction) else ((), None)
    held = node.held(inputs.differentiable) if effect is None else None
    if held is None:
        inputs.hooks.append(node)
        return (Node,)
    return Node, node.__class__, own, *[e is not None for e in node.edges], *scan_held(node, held, inputs)
