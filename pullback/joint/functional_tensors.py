"""Functionalization that is switched on and off by calls, and tensors that belong to it.

In: `enable_functionalization()`; from then on writes become values, as inside `func.functionalize`, until
`disable_functionalization()`. `to_functional(t)` is a tensor that holds what `t` holds and whose writes `t` never sees;
`from_functional(t)` is what such a tensor holds now. What is computed while functionalization is on is functional too.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from ..autograd.nodes import Error, insert
from ..capture.trace.graph_trace import mark, marks_of
from ..core import modes, tree
from ..core.geometry import Geometry
from ..core.layers import extend
from ..core.node import Autograd, requires_grad
from ..core.storage import storage_of
from ..core.tensor import FAKE, LAYOUTS, META, TRANSFORMED, Tensor, assemble, set_requires_grad
from ..ops.make.lifting import lift_fresh
from ..ops.shape.view_inverses import call
from ..ops.system.operator import Operator
from .functionalize import Functionalization, geometry, same_layout
from .transform import CopiedViews, current_value, functionalize

FUNCTIONAL = "functional"  # under what a tensor is marked: True
SOURCE = "functional copy of"  # under what one is marked that was made of another: that, and its version then


class Marking(Functionalization):
    """Functionalization that marks what is computed under it."""

    def handle(self, op: Operator, args: tuple):
        out = super().handle(op, args)
        if op is lift_fresh and not is_functional(out):
            return to_functional(out)  # the tensor itself sees no writes
        return marked(out)

    def assign(self, t: Tensor, new: Tensor) -> None:
        if getattr(storage_of(t), "frozen", False):
            raise RuntimeError(
                "a write to a functional tensor that was frozen (_freeze_functional_tensor), or to a view of it"
            )
        super().assign(t, new)

    def resize(self, target: Tensor, shape: tuple, stride: tuple) -> None:
        if self.chain(target) is not None and math.prod(shape) > target._array.size:
            raise RuntimeError(
                "Attempted to resize a view tensor to a larger size. This is not allowed in the functionalization pass: "
                f"the view has {target._array.size} elements, and the new shape {list(shape)} has {math.prod(shape)}"
            )
        super().resize(target, shape, stride)

    def higher_order(self, op, args: tuple, kwargs: dict):
        return marked(super().higher_order(op, args, kwargs))


class _On(threading.local):
    """What was switched on in a thread, the innermost last."""

    def __init__(self) -> None:
        self.modes: list[tuple[Marking, CopiedViews | None]] = []


_on = _On()


def marked(out):
    for t in tree.tree_leaves(out):
        if isinstance(t, Tensor):
            mark(t, FUNCTIONAL, True)
    return out


def enable_functionalization(*, reapply_views: bool = False) -> None:
    """Switch functionalization on; without `reapply_views`, views become the operators that copy what they show."""
    if _on.modes:
        raise RuntimeError(
            "multiple layers of mode-style functionalization nesting is not currently supported, outside of the "
            "functionalize() transform"
        )
    mode, copies = Marking(), None if reapply_views else CopiedViews()
    if copies is not None:
        copies.__enter__()
    mode.__enter__()
    _on.modes.append((mode, copies))


def disable_functionalization() -> None:
    """Switch off what was switched on last."""
    if not _on.modes:
        return
    _finish(*_on.modes.pop())


def _finish(mode: Marking, copies: CopiedViews | None) -> None:
    Functionalization.__exit__(mode, None, None, None)
    written = [s.root for m in mode.memories if (s := m.__dict__.get("written", {}).get(mode)) is not None and s.writes]
    values = [current_value(mode, t) for t in written]
    if copies is not None:
        copies.__exit__(None, None, None)
    for t, value in zip(written, values, strict=True):
        _settle(mode, t, value)


def _settle(mode: Marking, t: Tensor, value: Tensor) -> None:
    """Put what a tensor held at last into its memory: it is its own value again."""
    state = mode.state(t)
    mode.forget(t)
    if not is_functional(t):
        with modes.masked(modes.GRAD):
            t.copy_(value)
        return
    if not t._keys & (FAKE | META):  # nobody but functionalization knows of it, so no trace is told
        t._array[...] = value._array
    t._memory.__dict__["settled"] = (mode, state, t._version)  # a trace knows the values that the memory holds by these


def _current(t: Tensor) -> Tensor:
    """What a functional tensor holds, as a trace knows it."""
    if _on.modes:
        mode = _on.modes[-1][0]
        with mode.stepped_aside():
            return mode.value(t)
    settled = getattr(t._memory, "settled", None)
    if settled is None or settled[2] != t._version:
        return t
    mode, state, _ = settled
    states = t._memory.__dict__.setdefault("written", {})
    states[mode] = state
    try:
        return current_value(mode, t)
    finally:
        mode.forget(t)


def is_functional(t: Tensor) -> bool:
    """Whether a tensor is one of functionalization."""
    return isinstance(t, Tensor) and FUNCTIONAL in marks_of(t)


def to_functional(t: Tensor) -> Tensor:
    """A tensor without history that holds what another does, and whose writes the other never sees."""
    if is_functional(t):
        raise AssertionError("the tensor is functional already")
    if t._array.__class__ is Geometry and not t._keys & (FAKE | META):  # a wrapper, whose class knows how to copy it
        with modes.masked(modes.GRAD):
            return marked(t.clone())
    if t._keys & (LAYOUTS | TRANSFORMED):
        raise NotImplementedError(f"a tensor of layout {t.layout} as a functional one is not implemented")
    array, offset = (t._array, t._offset) if t._keys & (FAKE | META) else (t._array.copy(order="K"), 0)
    result = assemble(type(t), array, t.dtype, t.device, t._keys, None, [0], None, offset)  # no trace sees a copy
    result.__dict__.update({k: v for k, v in t.__dict__.items() if k in ("fake_mode", "trace_marks")})
    mark(result, SOURCE, (t, t._version))
    return marked(result)


def from_functional(t: Tensor) -> Tensor:
    """What a functional tensor holds now, as an ordinary one."""
    if not is_functional(t):
        raise AssertionError("the tensor is not functional")
    value = _current(t)
    source, version = marks_of(t).get(SOURCE, (None, 0))
    if source is not None and value is t and t._version == 0 and source._version == version:
        return source  # neither was written
    if not same_layout(value, t):  # memory with gaps has a value without
        whole = call("new_empty_strided.default", value, *geometry(t)[:2])
        with modes.masked(modes.GRAD):
            value = whole.copy_(value)
    result = value.shallow(t._autograd)
    result.__dict__["trace_marks"] = {k: v for k, v in marks_of(value).items() if k not in (FUNCTIONAL, SOURCE)}
    return result


def sync(t: Tensor) -> None:
    """Nothing: what a tensor holds is made when it is read."""


def freeze(t: Tensor) -> None:
    """Let every later write to a functional tensor's memory raise."""
    if not is_functional(t):
        raise RuntimeError("the tensor is not functional")
    storage_of(t).__dict__["frozen"] = True


def mirror_autograd(source: Tensor, target: Tensor) -> None:
    """Let a tensor want a gradient if another does; it is a leaf if that is. Its history is not the other's: backward raises."""
    if not requires_grad(source) or requires_grad(target):
        return
    if source.is_leaf:
        set_requires_grad(target, True)
    else:
        node = Error()
        node.message = (
            "backward through a tensor that only mirrors what autograd knows of another (_mirror_autograd_meta_to)"
        )
        target._autograd = insert(node, (target.shallow(Autograd(True)),))._autograd


class FunctionalTensorMode(Marking):
    """A block under functionalization; what is computed in it is functional."""

    def __init__(self, pre_dispatch: bool = False, export: bool = False, _allow_token_discovery: bool = False):
        if pre_dispatch:
            raise NotImplementedError("FunctionalTensorMode: functionalization above autograd is not implemented")
        super().__init__()
        self.export = export

    def __enter__(self):
        result = super().__enter__()
        _on.modes.append((self, None))
        return result

    def __exit__(self, *exc) -> None:
        if _on.modes[-1][0] is not self:
            raise RuntimeError("functionalization inside this block was not switched off")
        _finish(*_on.modes.pop())


class _FunctionalTensorMeta(type):
    def __instancecheck__(cls, value) -> bool:
        return is_functional(value)


class FunctionalTensor(metaclass=_FunctionalTensorMeta):
    """The class that functional tensors answer to: `isinstance(x, FunctionalTensor)`. They are ordinary tensors with a mark."""

    @staticmethod
    def to_functional(x: Tensor) -> Tensor:
        result = to_functional(x)
        mirror_autograd(x, result)
        return result


def dispatch_functionalize(func: Callable, mode: FunctionalTensorMode | None = None) -> Callable:
    """A function that is run on functional copies of its arguments, so that it writes to none of them."""

    def run(*args, **kwargs):
        with FunctionalTensorMode() if mode is None else mode:
            given = tree.tree_map_only(Tensor, to_functional, (args, kwargs))
            out = func(*given[0], **given[1])
            return tree.tree_map_only(Tensor, lambda t: from_functional(t) if is_functional(t) else t, out)

    return run


class _Elem:
    """`x.elem` of a functional tensor: what it wraps, which is itself here. Other tensors have none, and may be given one."""

    def __get__(self, t: Tensor | None, owner: type):
        if t is None or not is_functional(t):
            raise AttributeError(f"'{owner.__name__}' object has no attribute 'elem'")
        return t


extend(Tensor, __name__, elem=_Elem())


class CppFunctionalizeAPI:
    """Functionalization of a function, and of values at its borders."""

    def wrap_tensors(self, args):
        return tree.tree_map_only(Tensor, lambda t: t if is_functional(t) else to_functional(t), args)

    def unwrap_tensors(self, args):
        return tree.tree_map_only(Tensor, lambda t: from_functional(t) if is_functional(t) else t, args)

    def functionalize(self, inner_f):
        return functionalize(inner_f)

    def sync(self, tensor: Tensor) -> None:
        sync(tensor)
