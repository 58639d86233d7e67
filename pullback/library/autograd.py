"""How library operators are recorded.

A `Formula` is the backward that `register_autograd` gave (or that `custom_op` still waits for): a call whose inputs want
gradients becomes one custom function, whose backward is the user's. An operator with kernels and no formula runs as it
is: what its kernel does with operators is recorded, and backward through it warns, since nobody said that this is the
gradient (`unregistered`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from ..autograd.function import Function, call
from ..core import modes
from ..core.modes import ambient
from ..core.node import Autograd, Node, edge_of, next_sequence, requires_grad
from ..core.tensor import FAKE, Tensor

if TYPE_CHECKING:
    from .operator import LibraryOperator

_UNREGISTERED = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This may lead to "
    "silently incorrect behavior. This behavior is deprecated and will be removed in a future version of PyTorch. If your operator is "
    "differentiable, please ensure you have registered an autograd kernel to the correct Autograd key (e.g. DispatchKey::Autograd, "
    "DispatchKey::CompositeImplicitAutograd). If your operator is not differentiable, or to squash this warning and use the previous "
    "behavior, please register torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
)


class _Call:
    """One recorded call, on its way through the custom function: the operator, its arguments and where it runs."""

    __slots__ = ("op", "args", "keys", "backend", "lengths", "results", "alone")

    def __init__(self, op: LibraryOperator, args: tuple, keys: int, backend: str, lengths: tuple | None):
        self.op, self.args, self.keys, self.backend, self.lengths = op, args, keys, backend, lengths
        self.results: list | None = None  # per result, the length of a list or None; None: there are no lists
        self.alone = True  # whether there is one result, outside any tuple


class Formula:
    """The backward of an operator: an entry that stands at the Autograd key."""

    def __init__(self, op: LibraryOperator, backward: Callable | None = None, setup_context: Callable | None = None):
        self.op = op
        self.backward = backward
        self.setup_context = setup_context
        arguments = op.schema.arguments
        self.inputs = [i for i, a in enumerate(arguments) if not a.kwarg_only]
        self.keywords = [(i, a.name) for i, a in enumerate(arguments) if a.kwarg_only]
        self.has_lists = any(a.is_list and a.is_tensor for a in arguments)
        self.is_out = "out" in op.tags

    def __call__(self, op: LibraryOperator, args: tuple, tensors: list[Tensor], keys: int, backend: str):
        mode = ambient.mode
        wanted = bool(mode & modes.GRAD) and any(map(requires_grad, tensors))
        if wanted and self.is_out:
            raise RuntimeError(
                f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
            )
        if wanted or mode & modes.FORWARD:
            return self.record(op, args, keys, backend)
        return _run(op, args, keys, backend)

    def record(self, op: LibraryOperator, args: tuple, keys: int, backend: str):
        flat, lengths = self.flatten(args) if self.has_lists else ([args[i] for i in self.inputs], None)
        result = _Call(op, args, keys, backend, lengths)
        out = call(self.function, (*flat, result), {})
        if result.results is None:
            return out
        grouped = _group(out, result.results)
        return grouped[0] if result.alone else grouped

    def flatten(self, args: tuple) -> tuple[list, tuple]:
        """Positional arguments with lists of tensors spread out, and the length of each list."""
        flat: list = []
        lengths: list[int | None] = []
        for i in self.inputs:
            if self.op.schema.arguments[i].is_tensor and args[i].__class__ is tuple:
                flat.extend(args[i])
                lengths.append(len(args[i]))
            else:
                flat.append(args[i])
                lengths.append(None)
        return flat, tuple(lengths)

    @cached_property
    def function(self) -> type[Function]:
        """The custom function of this operator, with PyTorch's name for its node."""
        op, formula = self.op, self

        def forward(ctx, *flat):
            result = flat[-1]
            out = _run(op, result.args, result.keys, result.backend)
            ctx._pt_metadata = result.lengths
            if formula.setup_context is not None:
                formula.set_up(ctx, result.args, out)
            flat_out = _spread_results(result, out)
            ctx._pt_results = result.results
            return flat_out

        def backward(ctx, *grads):
            return formula.run_backward(ctx, grads)

        body = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__}
        body["users_backward"] = staticmethod(lambda: formula.backward or backward)
        return type(Function)(
            f"GeneratedBackwardFor_{op.namespace}_{op.name}_{op.overload}".replace(".", "_"), (Function,), body
        )

    def set_up(self, ctx, args: tuple, out) -> None:
        """Let the user save what backward needs."""
        inputs = tuple([list(args[i]) if args[i].__class__ is tuple else args[i] for i in self.inputs])
        if self.keywords:
            self.setup_context(  # type: ignore[misc]
                ctx=ctx, inputs=inputs, keyword_only_inputs={name: args[i] for i, name in self.keywords}, output=out
            )
        else:
            self.setup_context(ctx=ctx, inputs=inputs, output=out)  # type: ignore[misc]

    def run_backward(self, ctx, grads: tuple):
        if self.backward is None:
            raise RuntimeError(
                f"Trying to backward through {self.op} but no autograd formula was registered. Please use register_autograd to add one."
            )
        if ctx._pt_results is not None:
            grads = _group(grads, ctx._pt_results)
        lengths = ctx._pt_metadata
        if lengths is None:
            result = self.backward(ctx, *grads)
            result = result if isinstance(result, tuple) else (result,)
            rest = ctx.is_tensor[len(result) : -1]  # numbers at the end have no gradients, and none need be returned
            return (*result, *(() if any(rest) else (None,) * len(rest)), None)
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = _group(needed[:-1], lengths)
        try:
            result = self.backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = needed
        return (*_spread_gradients(result if isinstance(result, tuple) else (result,), lengths), None)


def _run(op: LibraryOperator, args: tuple, keys: int, backend: str):
    """The call under autograd, and the writes it stands for."""
    out = op.below(args, keys, backend)
    if op.counts_writes:
        op.count_writes(args)
    return out


def _group(flat: tuple, lengths) -> tuple:
    """Values in the places of arguments or results: lists where those were lists."""
    out, at = [], 0
    for n in lengths:
        out.append(flat[at] if n is None else list(flat[at : at + n]))
        at += 1 if n is None else n
    return tuple(out)


def _spread_results(result: _Call, out):
    """What a custom function may return: a tuple of tensors and other values, lists spread out."""
    result.alone = not isinstance(out, tuple)
    results = (out,) if result.alone else out
    if not any(r.__class__ is list for r in results):
        return out
    result.results = [len(r) if isinstance(r, list) else None for r in results]
    return tuple([t for r in results for t in (r if isinstance(r, list) else (r,))])


def _spread_gradients(result: tuple, lengths: tuple) -> list:
    """Gradients of arguments in the order of the spread arguments; their structure must be that of the arguments."""
    out: list = []
    fits = len(result) == len(lengths)
    for g, n in zip(result, lengths, strict=False):
        if n is None:
            fits = fits and not isinstance(g, (list, tuple))
            out.append(g)
        else:
            fits = fits and isinstance(g, (list, tuple)) and len(g) == n
            out.extend(g if isinstance(g, (list, tuple)) else [g] * n)
    if not fits:
        raise RuntimeError(
            "Expected the return from backward to be of the same structure as the inputs. Got: "
            f"{_structure([len(g) if isinstance(g, (list, tuple)) else None for g in result])} (return from backward), {_structure(lengths)} (inputs)"
        )
    return out


def _structure(lengths) -> str:
    return f"({', '.join('*' if n is None else '[' + ', '.join('*' * n) + ']' for n in lengths)})"


# ---- operators of which nobody said how they are differentiated
class WarnNotImplemented(Node):
    """The history of a result that a kernel made without operators: backward warns and goes no further."""

    def run(self, grads: list) -> tuple:
        warn_unregistered(self.operator)
        return (None,) * len(self.edges)

    def release(self) -> None:
        """Nothing is saved here."""


_fallback_mode = "warn"


def set_fallback_mode(mode: str) -> None:
    """What happens on backward through an operator without an autograd kernel: "warn", "nothing" or "error"."""
    global _fallback_mode
    if mode not in ("nothing", "warn", "error"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _fallback_mode = mode


def get_fallback_mode() -> str:
    return _fallback_mode


def warn_unregistered(name: str) -> None:
    if _fallback_mode == "error":
        raise RuntimeError(_UNREGISTERED.format(name))
    warnings.warn(_UNREGISTERED.format(name), UserWarning, stacklevel=2)


def unregistered(op: LibraryOperator, args: tuple, tensors: list[Tensor], keys: int, backend: str):
    """A call without an autograd kernel: run it, and see to it that backward through its results warns."""
    out = op.below(args, keys, backend)
    if _fallback_mode == "nothing" or not ambient.mode & modes.GRAD:
        return out
    live = [t for t in tensors if requires_grad(t)]
    if live:
        written = [v for a, v in zip(op.schema.arguments, args, strict=False) if a.writes]
        _watch(op, live, written, out)
    return out


def _watch(op: LibraryOperator, live: list[Tensor], written: list, out) -> None:
    name = op.qualified_name

    def warn(g: Tensor) -> None:
        warn_unregistered(name)

    results = [
        t for r in (out if isinstance(out, (tuple, list)) else (out,)) for t in (r if isinstance(r, list) else (r,))
    ]
    fresh: list[Tensor] = []
    for t in results:
        if not isinstance(t, Tensor) or t.dtype.category < 2:
            continue
        mutated = any(t is x for x in written)
        if requires_grad(t) and t._keys & FAKE:
            continue  # a graph is being made of the call: it warns when the graph runs
        if requires_grad(t):
            t.register_hook(warn)
            if mutated and t._view_info is not None and requires_grad(t._view_info.base):
                t._view_info.base.register_hook(warn)  # what is read of it later has no path through this view
        elif not mutated and t._view_info is None and not any(t is f for f in fresh):
            fresh.append(t)
    if not fresh:
        return
    node = WarnNotImplemented()
    node.edges, node.sequence, node.saved = tuple([edge_of(t) for t in live]), next_sequence(), []
    node.outputs = tuple([(t._array.shape, t.dtype, t.device) for t in fresh])
    node.operator = name
    for i, t in enumerate(fresh):
        t._autograd = Autograd(True, (node, i))
