"""Gradients that arrive: made to fit the node they go to, and added to the `.grad` of a leaf.

The first gradient of a leaf becomes its `.grad` itself where nobody else holds it; else it is copied, in the leaf's layout.
"""

from __future__ import annotations

import threading
from sys import getrefcount
from typing import Protocol

from ..core import modes
from ..core.geometry import is_dense
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import UNTRACKED_VIEW
from ..core.tensor import CUDA, FAKE, META, SPARSE, Tensor, stride_of, wrap
from ..ops.layout.sparse.gradients import take_over
from .cached_tensors import is_cached
from .hook_calls import users_code


class Named(Protocol):
    """A node, or what stands for one in messages."""

    def name(self) -> str: ...


def validate(node: Named, index: int, expected: tuple, g: Tensor) -> Tensor:
    """A gradient as the node it goes to expects it: summed to its shape, real where it is real, in its dtype."""
    shape, dtype, device = expected
    if not isinstance(g, Tensor):
        raise TypeError(
            f"{node.name()} returned a gradient of type {type(g).__name__} at index {index}; expected a Tensor or None"
        )
    if tuple(g._array.shape) != tuple(shape):
        g = reduce_to(node, g, tuple(shape), index)
    if g.dtype is not dtype and dtype is not None:
        if g.dtype.is_complex and not dtype.is_complex:
            g = g.real
        if g.dtype is not dtype:
            g = g.to(dtype)
    if g.device is not device:
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {index} - expected device {device} but got {g.device}"
        )
    return g


def reduce_to(node: Named | None, g: Tensor, shape: tuple, index: int = 0) -> Tensor:
    """Undo broadcasting."""
    if g._keys & SPARSE:
        return g
    lead = g._array.ndim - len(shape)
    fits = lead >= 0 and all(s == 1 or s == n for s, n in zip(shape, g._array.shape[lead:], strict=True))
    if not fits:
        name = node.name() if node is not None else "jvp"
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index {index} - got {list(g._array.shape)} but expected shape compatible with {list(shape)}"
        )
    return g.sum_to_size(shape)


_locks = [threading.Lock() for _ in range(16)]


def accumulate(variable: Tensor, grads: list, watchers: int = 0) -> None:
    """`variable.grad += g`, where `g` is taken out of `grads`: the first gradient becomes `.grad` itself, not a copy, if
    this is the only reference to it, but for those of the sink's own hooks (`watchers`). (The same tensor may have gone to
    several leaves.)"""
    g = grads.pop()
    a = variable._autograd
    if g is None or not a.requires_grad:  # it may have been detached since
        return
    recording = ambient.mode & modes.GRAD
    with _locks[id(a) >> 6 & 15]:  # several threads may run backward over one leaf
        have = a.grad
        if have is None:
            sole = getrefcount(g) == 2 + watchers  # `g` here, and the call's own
            if recording:
                a.grad = recorded_copy(g)
            elif not sole or g._keys & ~CUDA or not lies_as(g, variable):
                a.grad = copy_of(g, variable)
            else:
                a.grad = g if is_own(g) else wrap(g._array, g.dtype) if is_sole_view(g) else copy_of(g, variable)
        elif recording:
            a.grad = total(have, g)
        elif have._keys & SPARSE:
            a.grad = have.add_(g) if g._keys & SPARSE else g + have
        else:
            have.add_(g)
    if a.post_accumulate_hooks:
        for hook in list(a.post_accumulate_hooks.values()):
            with users_code():
                result = hook(variable)
            if result is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def is_own(g: Tensor) -> bool:
    """Whether a gradient's memory is plain, dense and its own, and nobody will hand it out again."""
    alone = g._memory is None or getrefcount(g._memory) == 2 and g._array.flags.c_contiguous
    return alone and g._view_info is None and g._autograd is None and not g._keys & ~CUDA and not is_cached(g)


def is_sole_view(g: Tensor) -> bool:
    """Whether a gradient is a view of all of a plain tensor, and nobody has that or a view between: that of a transposed weight."""
    info, array = g._view_info, g._array
    if info is None or g._keys or g._autograd is not UNTRACKED_VIEW or not array.flags.c_contiguous or is_cached(g):
        return False
    base, views, source = info.base, 1, info.args[0] if info.args else None
    while source is not base:
        parent = info.parent
        if parent is None or getrefcount(source) != 3 or not parent.args:  # `args`, `source` here, and the call's own
            return False
        info, source, views = parent, parent.args[0], views + 1
    return (
        getrefcount(base) == views + 4  # each view's, the `args` of the first, `base`, `source`, and the call's own
        and getrefcount(g._memory) == views + 2
        and base._autograd is None
        and not base._keys  # what is no plain array counts no bytes
        and base._array.nbytes == array.nbytes
        and not is_cached(base)
    )


def recorded_copy(g: Tensor) -> Tensor:
    """A gradient that has a history of its own stays apart from the tensor that the graph holds."""
    return g if g._keys & ~CUDA else g.new_empty_strided(g.shape, g.stride()).copy_(g)


class grad_layout:
    """Whether the first gradient of a leaf takes the leaf's own strides."""

    enforced = True


def lies_as(g: Tensor, variable: Tensor) -> bool:
    """Whether a gradient, which is a plain array, lies in memory as its leaf does; row by row, if that is not dense."""
    ours, leaf = g._array, variable._array
    if ours.__class__ is not leaf.__class__ or ours.strides == leaf.strides or not grad_layout.enforced:
        return True
    return ours.flags.c_contiguous and (leaf.flags.c_contiguous or not is_dense(leaf.shape, stride_of(variable)))


def copy_of(g: Tensor, variable: Tensor) -> Tensor:
    if g._keys & SPARSE:
        return take_over(g)
    if grad_layout.enforced and not (g._keys | variable._keys) & ~(CUDA | FAKE | META):
        shape, stride = variable._array.shape, stride_of(variable)
        if stride_of(g) != stride and is_dense(shape, stride):
            return g.detach().new_empty_strided(shape, stride).copy_(g.detach())
    return g.detach().clone()


def total(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two gradients; dense first where one is sparse, since sparse + dense is not defined."""
    return b + a if a._keys & SPARSE and not b._keys & SPARSE else a + b


above.accumulate = accumulate
