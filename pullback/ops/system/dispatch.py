"""How a call reaches its kernel when it is not the plain case.

    general(function, op, args, out)   from a public wrapper: overrides, conversion of arguments, then dispatch (`general`)
    dispatch(op, args)                 canonical arguments: transforms, autocast, composite bodies, recording
    below(op, args, keys)              under autograd: dispatch modes and subclasses
    execute(op, args, keys)            the kernel, by where the data is (`execute`)

Each layer does its own work and calls the next; with nothing listening the four are four ifs.
"""

from __future__ import annotations

from ...core import modes
from ...core.calls import history
from ...core.errors import no_memory
from ...core.layers import above
from ...core.modes import ambient
from ...core.node import UNTRACKED_VIEW, View, requires_grad
from ...core.tensor import (
    CUDA,
    DISPATCH_SUBCLASS,
    INFERENCE_TENSOR,
    LAYOUTS,
    NAMED,
    NESTED,
    Tensor,
)  # fmt: skip
from ..eager.functions import overridden_operators
from ..eager.views import is_unheard, may_have_history
from . import overrides
from .execute import execute
from .inplace import run_inplace
from .operator import NONDIFFERENTIABLE, Operator
from .record import check_saved, note_stack
from .return_types import pack_results

LISTENING = modes.LISTENING
LISTENERS = modes.TRANSFORM | modes.AUTOCAST | modes.PROFILE | modes.CAPTURE


def dispatch(op: Operator, args: tuple, seen: int = 0):
    """Run an operator on canonical arguments. `seen`: listeners that have had this call already."""
    mode = ambient.mode & ~seen
    if mode < LISTENING and op.layer is op.backend is None:
        live = history(args)
        if live is not None:
            if op.inplace_of is None:
                return _plain(op, args, live and mode)
            past = op.native is not None and not (live and mode and _is_heard(args))
            if past and (out := op.native(args)) is not None:
                return out
        elif op.inplace_of is None and begins_on_device(args):
            result = above.plain_on_device(op, args)
            if result is not None:
                return result
    if mode & LISTENERS:
        if mode & modes.PROFILE:
            return above.profiled(op, args)
        if mode & modes.AUTOCAST:
            cast = above.autocast(op, args)
            if cast is not None:  # what the operator calls in turn is as its policy says, and is not cast again
                with modes.masked(modes.AUTOCAST):
                    return dispatch(op, cast, seen)
            if not mode & LISTENERS & ~modes.AUTOCAST and op.layer is op.backend is op.body is op.inplace_of is None:
                if begins_on_device(args):
                    result = above.plain_on_device(op, args, modes.AUTOCAST)
                    if result is not None:
                        return result
        if mode & (modes.CAPTURE | modes.TRANSFORM) == modes.CAPTURE:
            return ambient.captures[-1].process(op, args)
    if op.body is not None:
        if op.declared.nested is not None and any(t._keys & NESTED for t in op.tensors(args)):
            return above.nested_layer(op, args)
        return op.body(*args) if above.run_body is None else above.run_body(op, args)
    if mode & modes.TRANSFORM:
        return ambient.transforms[-1].process(op, args)
    if op.layer is not None:
        return op.layer(args)
    return autograd_layer(op, args)


def _is_heard(args: tuple) -> bool:
    """Whether recording may have to do with a write to the first argument, some of which are known to it."""
    for i, v in enumerate(args):
        if isinstance(v, Tensor):
            if v._autograd is not None and (may_have_history(v) if i else not is_unheard(v)):
                return True
        elif v.__class__ is list or v.__class__ is tuple:
            return True
    return False


def begins_on_device(args: tuple) -> bool:
    """Whether the first argument, or what it begins with, is a plain tensor of a CUDA device."""
    first = args[0] if args else None
    if first.__class__ is list or first.__class__ is tuple:
        first = first[0] if first else None  # type: ignore[index]
    return getattr(first, "_keys", 0) == CUDA


def _plain(op: Operator, args: tuple, recorded: int):
    """An operator on plain tensors where nothing listens: what the layers below come to."""
    if op.body is not None:
        # A function in C goes past whatever the body calls.
        past = op.native is not None and not recorded and not overridden_operators
        out = op.native(args) if past else None
        if out is None:
            return op.body(*args)
        return pack_results(op, out) if out.__class__ is tuple else out
    family = op.family
    out = None if op.native is None else op.native(args)
    if out is None:
        try:
            out = family.execute_plain(op, args)
        except MemoryError as error:
            raise no_memory(error) from None
        if family.is_view:
            mark_views(op, out, args)
    elif out.__class__ is tuple:
        out = pack_results(op, out)
    if recorded and op.differentiable:
        op.record(out, *args)
    return out


def autograd_layer(op: Operator, args: tuple):
    """Record the call where a gradient is wanted; keep track of views; carry tangents."""
    mode = ambient.mode
    if op.inplace_of is not None:
        if getattr(args[0], "_keys", 0) & NESTED:
            return above.nested_layer(op, args)
        if mode & modes.FORWARD and not mode & modes.BELOW_AUTOGRAD:
            return above.forward_inplace(op, args)
        return run_inplace(op, args)
    tensors = op.tensors(args)
    keys = 0
    for t in tensors:
        keys |= t._keys
    if keys & NAMED and not mode & modes.UNNAMED:
        return above.named_layer(op, args)
    if keys & NESTED and not op.family.takes_layouts:
        return above.nested_layer(op, args)
    if mode & modes.BELOW_AUTOGRAD:
        return below(op, args, keys)
    wanted = bool(mode & modes.GRAD) and any(requires_grad(t) for t in tensors)
    if mode & modes.FORWARD:
        return above.forward_layer(op, args, keys, wanted)
    out = below(op, args, keys)
    if wanted and op.vjp is not None:
        if keys & INFERENCE_TENSOR:
            check_saved(op, args)
        out = record(op, out, args)
    if op.is_view and (not keys & LAYOUTS or op.family.takes_layouts or is_counted_with(out, tensors[0])):
        if keys & DISPATCH_SUBCLASS:
            share_version(out, tensors[0])
        mark_views(op, out, args)
    return out


def record(op: Operator, out, args: tuple):
    """Hang the call on its results."""
    if op.differentiable:
        op.record(out, *args)
        if ambient.mode & modes.ANOMALY:
            note_stack(out)
    return out


def is_counted_with(out, source: Tensor) -> bool:
    """Whether a result without a dense array shares memory with its source: not all views do."""
    return isinstance(out, Tensor) and out is not source and out._counter is source._counter


def share_version(out, source: Tensor) -> None:
    """Writes to a view that a subclass made are writes to what it shows."""
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and t._keys & DISPATCH_SUBCLASS:
            t._counter = source._counter


def mark_views(op: Operator, out, args: tuple) -> None:
    """Say on each result that it is a view, of what, and how to make it again; no gradient goes through some."""
    if op.vjp is NONDIFFERENTIABLE:
        return
    source = op.tensors(args)[0]
    many = not isinstance(out, Tensor)
    for i, t in enumerate(out if many else (out,)):
        if isinstance(t, Tensor) and t._view_info is None and t is not source:
            mark_view(t, source, op, args, i if many else None)


def mark_view(t: Tensor, source: Tensor, op: Operator, args: tuple, index: int | None = None) -> None:
    info = source._view_info
    base, parent = (source, None) if info is None else (info.base, info)
    creation = "multi_output" if index is not None else None if info is None else info.creation
    if not ambient.mode & modes.GRAD:
        creation = "inference" if ambient.mode & modes.INFERENCE else "no_grad"
    t._view_info = View(base, parent, op, args if index is None else (index, args), t._counter[0], creation)
    if t._autograd is None:
        t._autograd = UNTRACKED_VIEW


def below(op: Operator, args: tuple, keys: int):
    """Under autograd: hand the call to dispatch modes and subclasses, or run it."""
    if keys & DISPATCH_SUBCLASS or ambient.mode & modes.DISPATCH:
        handled = overrides.call_dispatch(op, args)
        if handled is not NotImplemented:
            return handled
    if op.backend is not None:
        result = op.backend(args, keys)
        if result is not NotImplemented:
            return result
    return execute(op, args, keys)


above.dispatch = dispatch
