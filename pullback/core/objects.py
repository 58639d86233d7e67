"""Tensor objects made in one step, for the paths that are taken on every call.

`make_view(source, array, offset, op, args, mode)` gives a plain tensor on the memory of a plain tensor: `array` already
shows the view, `op(*args)` is the call that makes it again, `mode` is the ambient mode: 0 or GRAD. With `many`, it is
one of several results, and `args` are (its number, the arguments). `dtype` is that of its elements where it is another.
`make_tensor(array, dtype)` gives a plain CPU tensor around an array that nobody else holds. Neither records anything.
`plain_arrays(tensors)` gives (arrays, dtype, whether any may have history) of a tuple or list of plain tensors of one
dtype, or None where they are not that. `hang` and `keep` are the two steps of recording a call. All are done in C where the extension is built (and `PULLBACK_NATIVE` is not 0);
here stands what they do.
"""

from __future__ import annotations

from .extension import extension
from .node import SAVED, UNTRACKED_VIEW, AccumulateGrad, Autograd, Node, View, edge_of
from .storage import storage_of
from .tensor import PLAIN, Tensor, assemble, new_object
from .tensor import make_tensor as make_tensor


def make_view(source: Tensor, array, offset: int, op, args: tuple, mode: int, many: bool = False, dtype=None) -> Tensor:
    memory, version = source._memory, source._counter
    if memory is None:
        memory = storage_of(source)
    t = assemble(Tensor, array, dtype or source.dtype, source.device, 0, UNTRACKED_VIEW, version, memory, offset)
    t._view_info = v = new_object(View)
    info = source._view_info
    if info is None:
        v.base = source
        v.parent = creation = None
    else:
        v.base = info.base
        v.parent = info
        creation = info.creation
    v.creation = "no_grad" if not mode else "multi_output" if many else creation
    v.op = op
    v.args = args
    v.version = version[0]
    return t


def plain_arrays(tensors) -> tuple[list, object, bool] | None:
    if tensors.__class__ not in _LISTS or not tensors:
        return None
    arrays, dtype, live = [], None, False
    for t in tensors:
        if t.__class__ not in PLAIN or t._keys or t.dtype is not dtype and dtype is not None:
            return None
        dtype = t.dtype
        live = live or t._autograd is not None
        arrays.append(t._array)
    return arrays, dtype, live


_LISTS = frozenset((tuple, list))


def keep_tangents(before: Autograd, after: Autograd) -> None:
    """A result that already carries tangents keeps them when it is recorded."""
    if before.tangents:
        after.tangents = before.tangents


def hang(result: Tensor, node_class: type, edges: tuple, sequence: int) -> Node:
    """A node with `result` as its only output; what it saves is the caller's to fill in."""
    node: Node = new_object(node_class)
    node.edges = edges
    node.sequence = sequence
    node.outputs = ((result._array.shape, result.dtype, result.device),)
    a = new_object(Autograd)
    a.requires_grad = True
    a.edge = (node, 0)
    a.grad = None
    if result._autograd is not None:
        keep_tangents(result._autograd, a)
    result._autograd = a
    return node


edge = edge_of  # where gradients of a tensor go; None for numbers


def keep(value):
    """What a node saves of an argument when nothing listens: numbers are themselves."""
    try:
        a = value._autograd
    except AttributeError:
        return value
    return (SAVED, value, value._counter[0], a.edge if a is not None else None)


native_objects = extension("_objects")
if native_objects is not None:
    native_objects.setup_nodes(Node, Autograd, SAVED, keep_tangents)
    native_objects.setup_edges(AccumulateGrad, edge_of)
    make_view, plain_arrays = native_objects.view, native_objects.arrays
    hang, keep, edge = native_objects.hang, native_objects.keep, native_objects.edge


def native_walk(*parts):
    """The engine's walk in C, or None where the extension is absent. `parts` are what it calls, as the engine has them: `validate`,
    the sum of two gradients, `add(a, b, a)` on the arrays of sums below so many elements, `accumulate`, `run_hooked`,
    `run_late_hooks`, `run_tensor_hooks`."""
    if native_objects is None:
        return None
    native_objects.setup_walk(*parts)
    return native_objects.walk


def no_starting(outputs, gradients, inputs) -> tuple[list, list, list] | None:
    """Where a backward of plain tensors starts, as lists: edges of the outputs, their gradients, edges of the inputs; None where
    there is more to say of one of them. Without the extension there always is."""
    return None


starting = no_starting if native_objects is None else native_objects.starting
