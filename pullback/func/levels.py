"""Open reverse-mode transforms: what is recorded for whom, and what must not outlive them.

All transforms record on one graph. A level says what a graph cannot: whether anything outside may see history made
inside (it may not where the transform was called under `no_grad`), which hooks belong to its own backward alone, and
which tensors were written while it was open. When it closes, results and written tensors lose all history that leads
to nothing but its own arguments.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from ..batching.interpreters import TransformType
from ..batching.levels import batch_everywhere, rewrap, strip
from ..core import modes
from ..core.modes import ambient
from ..core.node import AccumulateGrad, Autograd, edge_of, next_sequence
from ..core.tensor import INFERENCE_TENSOR, Tensor
from ..ops.shape.views import alias as alias_op
from ..ops.system.dispatch import dispatch

_SWITCHES = modes.GRAD | modes.INFERENCE | modes.BELOW_AUTOGRAD


def _is_gone(leaf: Tensor) -> bool:
    """Whether a leaf is the argument of a transform of which nothing is left, so that nobody can ask for its gradient."""
    level = leaf.__dict__.get("_level")
    return level is not None and level() is None


class ReverseLevel:
    """One open `grad` or `vjp`: inside, calls are recorded, whatever was switched off outside."""

    def __init__(self) -> None:
        self.tracked: list[Tensor] = []  # the arguments, as the function sees them
        self.edges: list[tuple] = []  # where their gradients go outside, as long as no write to them is recorded
        self.written: dict[int, tuple] = {}  # id -> (weak reference, Autograd before the first write)

    def __enter__(self) -> ReverseLevel:
        self.recorded_outside = bool(ambient.mode & modes.GRAD)
        self.start = next_sequence()
        self.resume()
        return self

    def __exit__(self, kind, *exc) -> None:
        self.suspend()
        now = [edge_of(t) for t in self.tracked]  # None: detached in place, so that nothing depends on it any more
        written = kind is None and any(n is not None and n != e for n, e in zip(now, self.edges, strict=True))
        self.settle_written()
        if written:  # its gradient would be that of what was written
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")

    def resume(self) -> None:
        self.before = ambient.mode & _SWITCHES, ambient.reverse_levels
        ambient.reverse_levels = (*ambient.reverse_levels, self)
        ambient.change(modes.INFERENCE | modes.BELOW_AUTOGRAD, modes.GRAD)
        ambient.function_levels += 1
        self.depth = ambient.function_levels

    def suspend(self) -> None:
        switches, ambient.reverse_levels = self.before
        ambient.change(_SWITCHES, switches)
        ambient.function_levels -= 1

    # ---- as an interpreter (`batching.interpreters`)
    def key(self) -> TransformType:
        return TransformType.Grad

    def level(self) -> ReverseLevel:
        return self

    @contextmanager
    def lower(self):
        """A block in which the level is not open; after it, all is as it was before, recording switched off or not."""
        switches, levels = ambient.mode & _SWITCHES, ambient.reverse_levels
        self.suspend()
        try:
            yield
        finally:
            ambient.reverse_levels = levels
            ambient.change(_SWITCHES, switches)
            ambient.function_levels += 1

    # ---- arguments and results
    def track(self, x: Tensor) -> Tensor:
        """A differentiable alias: a leaf of its own, or connected to what `x` depends on."""
        value, wraps = strip(dispatch(alias_op, (batch_everywhere(x),)))
        if not value.requires_grad:
            tangents = value._autograd.tangents if value._autograd is not None else None
            value = value.shallow(Autograd(True))
            value._autograd.tangents = tangents
            value._level = weakref.ref(self)
        elif value.is_leaf:
            value = value.view_as(value)
        value._keys &= ~INFERENCE_TENSOR
        value._view_info = None  # no write gives it another history, that of what it shows, which would pass it by
        self.tracked.append(value)
        self.edges.append(edge_of(value))
        return rewrap(value, wraps)

    def settle(self, result, recorded: bool | None = None, inner: ReverseLevel | None = None):
        """A result without the history that leads to nothing but this level's arguments and those of an `inner` one; without
        any, where the transform was called with recording off."""
        if not isinstance(result, Tensor):
            return result
        value, wraps = strip(result)
        return rewrap(self._settled(value, self.recorded_outside if recorded is None else recorded, inner), wraps)

    def _settled(self, value: Tensor, recorded: bool, inner: ReverseLevel | None) -> Tensor:
        if not value.requires_grad or recorded and self.reaches_outside(value, inner):
            return value
        return without_history(value, lambda t: self._settled(t, recorded, inner))

    def reaches_outside(self, value: Tensor, inner: ReverseLevel | None = None) -> bool:
        """Whether the history of a value leads to a leaf that is none of this level's arguments, nor of the inner one's."""
        own = {id(t) for t in (*self.tracked, *(inner.tracked if inner is not None else ()))}
        stack, seen = [edge_of(value)[0]], set()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, AccumulateGrad) and id(node.variable) not in own and not _is_gone(node.variable):
                return True
            stack.extend(e[0] for e in node.edges if e is not None)
        return False

    # ---- what the function wrote to
    def wrote(self, tensor: Tensor) -> None:
        """`tensor` is about to get history by a write."""
        if id(tensor) not in self.written:
            a = tensor._autograd
            before = Autograd() if a is None else Autograd(a.requires_grad, a.edge)
            self.written[id(tensor)] = weakref.ref(tensor), before

    def kept(self, result: Tensor) -> Tensor:
        """A result that keeps its history for a backward after the level is closed, even if it was written."""
        value, wraps = strip(result)
        if id(value) not in self.written:
            return result
        return rewrap(
            value.shallow(_with_tangents_of(value, Autograd(value.requires_grad, value._autograd.edge))), wraps
        )

    def settle_written(self) -> None:
        outer = ambient.reverse_levels[-1] if ambient.reverse_levels else None
        for ref, before in self.written.values():
            tensor = ref()
            if tensor is None or tensor._autograd is None or not tensor.requires_grad:
                continue
            if not self.recorded_outside:
                tensor._autograd = _with_tangents_of(tensor, before)
            elif not self.reaches_outside(tensor):
                # a new one, not None: graphs that saved the tensor know its history themselves
                tensor._autograd = _with_tangents_of(tensor, Autograd())
            elif outer is not None:
                outer.written.setdefault(id(tensor), (ref, before))
        self.written.clear()


def without_history(value: Tensor, each=None) -> Tensor:
    """The same values at no place in the graph; tangents stay, each without history too (or as `each` makes it)."""
    result = value.shallow()
    if value._autograd is not None and value._autograd.tangents:
        result._autograd = Autograd()
        result._autograd.tangents = {n: (each or without_history)(t) for n, t in value._autograd.tangents.items()}
    return result


def _with_tangents_of(tensor: Tensor, history: Autograd) -> Autograd:
    """Another history for a tensor: what forward mode knows of its value is no part of it."""
    history.tangents = tensor._autograd.tangents
    return history
