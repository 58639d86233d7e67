"""Custom functions (`autograd.Function`), in a captured program.

A custom function is one call of the graph, with its backward, so a trace of both stands for all later calls. Where its
Python does what is seen outside (printing, adding to a list around it), the graph ends before it; between graphs it is applied as autograd does
it, with `forward` and `setup_context` in segments of their own. There, and in a backward that runs so, `ctx` is an
object from outside.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...autograd import function as functions
from ...autograd.function import BackwardCFunction, Function, FunctionCtx
from ...core import modes
from ...core.modes import ambient
from ...core.node import SavedTensor
from .signals import Break

if TYPE_CHECKING:
    from .attributes import Attributes

APPLY = Function.apply.__func__  # type: ignore[attr-defined]
OF_CONTEXTS = frozenset(vars(FunctionCtx).values()) - {None, FunctionCtx.mark_shared_storage}


def apply(cls: type[Function], args: tuple, kwargs: dict, by: Callable):
    """`cls.apply(*args)`; `by(function, args, kwargs)` calls the user's functions."""
    if ambient.mode & (modes.TRANSFORM | modes.CAPTURE):
        return cls.apply(*args, **kwargs)
    if cls.setup_context is not Function.setup_context:
        args, kwargs = functions.with_defaults(cls.forward, args, kwargs)
    return functions.call(cls, args, kwargs, by)


def is_of_context(function: types.FunctionType) -> bool:
    """Whether a function is a method of `ctx`, which only notes what it is told: it could be the program's own."""
    return function in OF_CONTEXTS


def saved_tensors(world: Attributes, ctx: BackwardCFunction) -> tuple:
    """`ctx.saved_tensors` of a node from outside."""
    known = world.outside
    source = known.source_of(ctx)
    if ctx._forward_cls.clear_saved_tensors_on_access or any(isinstance(e, SavedTensor) for e in ctx.saved or ()):
        raise Break("it unpacks saved tensors")
    if ctx.saved_for_forward is not None or source is None:
        return ctx.saved_tensors
    return known.enter(ctx.saved_tensors, known.sources.get("attribute", source, "saved_tensors"))
