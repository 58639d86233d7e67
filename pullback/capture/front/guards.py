"""What a captured graph depends on: facts of tensors and of how they share memory, and the words for what does not fit.

The conditions of a graph are written down as code (`bytecode/conditions.py`), which asks these functions.
"""

from __future__ import annotations

import re
import types
from collections.abc import Container, Sequence

from ...core import modes
from ...core.node import requires_grad
from ...core.tensor import FAKE, META, Tensor, stride_of
from ..trace.subclasses import description

SIMPLE = (int, float, bool, str, bytes, complex, type(None))
LOCAL = re.compile(r"\bL\['(\w+)'\]")  # the name of a place in a frame's variables
AMBIENT = modes.GRAD | modes.ASKED | modes.AUTOCAST | modes.INFERENCE | modes.DEFAULT_DEVICE | modes.SAVED_HOOKS


def describe(t: Tensor) -> tuple:
    """What a graph depends on of a tensor."""
    keys, place = t._keys & ~(FAKE | META), (tuple(t._array.shape), stride_of(t))
    wants = requires_grad(t)
    own = (not wants or t.is_leaf, description(t) if keys else ())  # a leaf may not be written in place
    return (type(t), t.dtype, t.device, keys, wants, own, *place)


def tensor_mismatch(name: str, t: Tensor, fact: tuple) -> str | None:
    """The first way in which a tensor is not as it was, in PyTorch's words."""
    place, name = name, LOCAL.sub(r"\1", name)
    kind, dtype, device, keys, wants, inside, shape, stride = fact
    if not isinstance(t, Tensor):
        return f"expected type of '{name}' to be a tensor type, {kind.__name__}, but found {type(t).__name__}"
    have = describe(t)
    if have[0] is not kind:
        return f"expected type of '{name}' to be a tensor type, {kind.__name__}, but found {have[0].__name__}"
    if have[1] is not dtype:
        return f"tensor '{name}' dtype mismatch. expected {dtype.scalar_name}, actual {have[1].scalar_name}"
    if have[2] is not device:
        return f"tensor '{name}' device mismatch. expected {device}, actual {have[2]}"
    if have[3] != keys:
        return f"tensor '{name}' dispatch key set mismatch. expected {keys:#x}, actual {have[3]:#x}"
    if have[4] != wants:
        return f"tensor '{place}' requires_grad mismatch. expected requires_grad={int(wants)}"
    if have[5][0] != inside[0]:
        return f"tensor '{name}' is_leaf mismatch. expected is_leaf={inside[0]}"
    if have[5] != inside:
        return f"tensor '{name}' of type {kind.__name__} has another context, other attributes or other parts"
    if shape is None:
        return None
    if len(have[6]) != len(shape):
        return f"tensor '{name}' rank mismatch. expected {len(shape)}, actual {len(have[6])}"
    for word, old, new in (("size", shape, have[6]), ("stride", stride, have[7])):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                return f"tensor '{name}' {word} mismatch at index {i}. expected {a}, actual {b}"
    return None


def same_function(a, b) -> bool:
    """Whether two functions are one: of the same code, with the same values around them."""
    if a is b:
        return True
    if not (isinstance(a, types.FunctionType) and isinstance(b, types.FunctionType)) or a.__code__ is not b.__code__:
        return False
    if a.__defaults__ != b.__defaults__ or a.__kwdefaults__ != b.__kwdefaults__ or a.__globals__ is not b.__globals__:
        return False
    cells = zip(a.__closure__ or (), b.__closure__ or (), strict=True)
    try:
        return all(c is d or same_simple(c.cell_contents, d.cell_contents) for c, d in cells)
    except ValueError:  # a cell that is not filled
        return False


def same_simple(a, b) -> bool:
    return a is b or isinstance(a, SIMPLE) and type(a) is type(b) and a == b


def sharing(flat: Sequence, written: Container[int] | None = None) -> tuple:
    """Which tensors are the same object, and which lie on the same memory (and then where, from the first of them); ()
    where none do. Where they begin in that memory is for those to ask who name places in it. `written`: by their numbers among the tensors,
    those whose memory is written; on other memory, it does not matter where they lie to each other. None: any may be."""
    tensors = [a for a in flat if isinstance(a, Tensor)]
    if len({id(a if a._memory is None else a._memory) for a in tensors}) == len(tensors):
        return ()
    objects: dict[int, int] = {}
    memories: dict[int, tuple[int, int]] = {}
    changed = {
        id(a if a._memory is None else a._memory) for i, a in enumerate(tensors) if written is None or i in written
    }
    out = []
    for a in tensors:
        memory = id(a if a._memory is None else a._memory)
        number, first = memories.setdefault(memory, (len(memories), a._offset))
        out.append((objects.setdefault(id(a), len(objects)), number, a._offset - first if memory in changed else None))
    return tuple(out)


def sharing_mismatch(names: list[str], before: tuple, now: tuple) -> str:
    """Which tensors are now the same object, or no longer are."""
    for i in range(len(names)):
        for j in range(i):
            same = bool(before) and before[i][0] == before[j][0]
            if same != (bool(now) and now[i][0] == now[j][0]):
                return f"{names[j]} is {names[i]}" if same else f"{names[j]} is not {names[i]}"
    return f"tensors share memory in another way: {', '.join(names)}"


def of_package(module: str | None) -> bool:
    """Whether a module belongs to this package, whose functions and classes stay what they are."""
    return isinstance(module, str) and module.partition(".")[0] in ("pullback", "torch")
