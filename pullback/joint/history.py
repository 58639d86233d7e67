"""The history of what a compiled function gave: its one node, and how it is hung on the results.

In: a call's arguments, results and what the forward graph saved. Out: results whose gradients the compiled backward computes; under
`create_graph`, through the joint graph, so that they can be differentiated again. What always holds: a node keeps arguments as they
were when the function read them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..autograd.dependencies import branching
from ..batching.batched import drawing_once
from ..capture.front.boxing import consumed
from ..capture.trace.subclasses import parts_of
from ..core import modes
from ..core.modes import ambient
from ..core.node import SAVED, Autograd, Node, edge_of, next_sequence, raise_freed, requires_grad, save, unpack
from ..core.size import Size
from ..core.tensor import DISPATCH_SUBCLASS, TRANSFORMED, Tensor, stride_of
from ..ops.family.formats import dense_strides
from ..ops.system.dispatch import dispatch
from ..ops.system.operator import find
from .config import config
from .replay import drawn_again
from .stacks import note_users_line
from .subclasses import flat

if TYPE_CHECKING:
    from .runtime import Compiled

DOUBLE_BACKWARD = (
    "torch.compile with aot_autograd does not currently support double backward (config.double_backward is False). Set it "
    "to True, or differentiate an uncompiled function"
)

WRAPPED_DOUBLE_BACKWARD = (
    "torch.compile with aot_autograd does not currently support double backward of functions whose inputs or results are "
    "tensor subclasses. Differentiate an uncompiled function"
)

WRITTEN_DOUBLE_BACKWARD = (
    "aot_autograd does not support input mutations with requires_grad in backward for create_graph=True: the backward "
    "writes an argument that requires grad"
)

DRAWN_CAPTURE = (
    "capturing gradients, to be differentiated, of a compiled function that has drawn random numbers is not implemented: the capture would "
    "draw others"
)


class CompiledFunctionBackward(Node):
    """History of what a compiled function gave: runs the compiled backward graph on saved values and gradients."""

    __slots__ = ("compiled", "primals", "strides", "targets", "has_written", "drawn")
    holds_numbers = True
    of_many_calls = True

    compiled: Compiled
    primals: list | None  # the arguments; None once freed
    strides: list[tuple]  # of the results
    targets: list[Tensor]  # arguments that the backward writes
    has_written: bool  # whether it has: what it saved of them is old since
    drawn: dict | None  # the states of the generators from which the forward drew random numbers

    def run(self, grads: list) -> tuple | list:
        if self.saved is None:
            raise_freed()
        compiled = self.compiled
        if not ambient.mode and compiled.is_plain_backward:  # nobody listens
            wanted = [(grads[n], n) for n in compiled.joint.differentiable if grads[n] is not None]
            if len(wanted) == len(compiled.joint.differentiable):
                return self._run_plain(compiled, wanted)
        if compiled.joint.backward_error is not None:
            raise compiled.joint.backward_error
        around = compiled.joint.wrapping
        absent = tuple([k for k, n in enumerate(compiled.joint.differentiable) if grads[n] is None])
        fewer = compiled.without(absent) if absent else None
        tangents = self.tangents(grads, fewer is not None)
        again = (
            ambient.mode & modes.CAPTURE and ambient.mode & modes.GRAD
        )  # captured to be differentiated: by its operators
        if (
            ambient.mode & modes.TRANSFORM or again
        ) and self.primals:  # a batch of gradients, say: one operator after the other
            primals = [unpack(entry, self) for entry in self.primals]
            operators = (fewer or compiled).operators(bool(ambient.mode & modes.GRAD))
            if self.drawn is not None and again:
                raise NotImplementedError(DRAWN_CAPTURE)
            with drawn_again(self.drawn), drawing_once():
                return self._write_targets(operators(*primals, *tangents))
        if ambient.mode & modes.GRAD:
            with drawn_again(self.drawn):
                return self._write_targets(self._differentiable(tangents, (fewer or compiled).differentiate))
        saved = [unpack(entry, self) for entry in self.saved]
        inlined = (
            ambient.mode & (modes.CAPTURE | modes.TRANSFORM) and around is None and compiled.backward_module is not None
        )
        ran = fewer or compiled
        backward = ran.backward_module if inlined else ran.backward  # whoever captures this compiles it himself
        assert backward is not None, "a function without a backward leaves no history"
        given = [*saved, *tangents]
        del saved, tangents
        self._let_go()
        before = ambient.change(modes.AUTOCAST)
        try:
            out = consumed(backward, given)
            return self._write_targets(out) if self.targets else out
        except Exception as error:
            note_users_line(error)
            raise
        finally:
            ambient.restore(before)

    def _run_plain(self, compiled: Compiled, wanted: list[tuple[Tensor, int]]) -> tuple | list:
        """`run` where nobody listens, no gradient is missing, and the graph takes plain tensors and writes none."""
        try:
            values = [unpack(entry, self) for entry in self.saved or ()]
            values += [self._tangent(g, n) for g, n in wanted]
            self._let_go()
            return consumed(compiled.backward, values)  # type: ignore[arg-type]  # it has one
        except Exception as error:
            note_users_line(error)
            raise

    def _let_go(self) -> None:
        """Saved values were read: where nobody will ask for them again, they live until their last use."""
        if ambient.tasks and ambient.tasks[-1].node is self and not ambient.tasks[-1].keep_graph:
            self.saved = None

    def _write_targets(self, out: tuple | list) -> tuple | list:
        """The gradients among what the backward gave, when the rest is written to the arguments that it is for."""
        if not self.targets:
            return out
        if self.has_written:
            raise NotImplementedError("a second run of a compiled backward that writes an argument is not implemented")
        self.has_written = True
        with modes.masked(modes.GRAD):
            for target, value in zip(self.targets, out[-len(self.targets) :], strict=True):
                target.copy_(value)
        return out[: -len(self.targets)]

    def apply(self, *grads) -> tuple:
        """Gradients of the inputs from gradients of all results, as a custom function's node gives them."""
        return tuple(self.run(list(grads)))

    def tangents(self, grads: list, given_only: bool = False) -> list:
        """Gradients of the results as the backward graph takes them; all, or those that there are."""
        joint = self.compiled.joint
        if joint.wrapping is None:
            wanted = [n for n in joint.differentiable if grads[n] is not None] if given_only else joint.differentiable
            return [self._tangent(grads[n], n) for n in wanted]
        return [joint.wrapping.tangent(k, grads[n]) for k, n in enumerate(joint.differentiable)]

    def _tangent(self, g: Tensor | None, k: int) -> Tensor:
        """A gradient as the graph was made for: zeros where there is none, in the layout of the result."""
        shape, dtype, device = self.outputs[k]
        if g is None:
            return dispatch(find("zeros.default"), (tuple(shape), dtype, None, device, False))
        if stride_of(g) != tuple(self.strides[k]) and not g._keys & (DISPATCH_SUBCLASS | TRANSFORMED):
            return g.new_empty_strided(shape, self.strides[k]).copy_(g)
        return g

    def _differentiable(self, tangents: list, differentiate: Callable | None) -> tuple | list:
        """Gradients that can be differentiated again: through the joint graph, as a function of arguments and tangents."""
        if self.compiled.joint.wrapping is not None:
            raise RuntimeError(WRAPPED_DOUBLE_BACKWARD)
        if not config.double_backward or differentiate is None:
            raise RuntimeError(DOUBLE_BACKWARD)
        if any(map(requires_grad, self.targets)):
            raise RuntimeError(WRITTEN_DOUBLE_BACKWARD)
        return differentiate([unpack(entry, self) for entry in self.primals or ()], tangents)

    def saved_state(self, differentiable: bool = False) -> dict | None:
        """What compiled autograd takes apart; None where the node itself must run, since it writes, or draws again."""
        if self.saved is None:
            raise_freed()
        if self.targets or differentiable and self.drawn is not None:
            return None
        for entry, dims in zip(self.saved, self.compiled.symbolic_dims, strict=False):
            if dims and entry.__class__ is tuple:
                entry[1].__dict__.setdefault("_dynamo_weak_dynamic_indices", set()).update(dims)
        # sizes that are symbols of its graphs differ from call to call
        self.sizes_move = any(self.compiled.symbolic_dims) or any(isinstance(v, int) for v in self.saved)
        result = [(Size(shape), dtype, device) for shape, dtype, device in self.outputs]
        own = {
            "compiled": self.compiled,
            "saved": self.saved,
            "outputs": result,
            "strides": [Size(s) for s in self.strides],
            "targets": [],
            "drawn": None,
        }
        return {**own, "primals": self.primals} if differentiable else own

    def release(self) -> None:
        self.saved = self.primals = self.drawn = None
        self.targets = []


def record(compiled: Compiled, args: Sequence, results: Sequence, saved: Sequence, drawn: dict | None = None) -> None:
    """Hang the backward on the results that have gradients; `drawn`: the states of the generators before the forward drew."""
    joint = compiled.joint
    if not any(requires_grad(args[i]) for i in joint.gradients):
        return
    node = CompiledFunctionBackward.__new__(CompiledFunctionBackward)
    node.compiled = compiled
    node.edges = tuple([edge_of(args[i]) for i in joint.gradients])
    node.sequence = next_sequence()
    if compiled.branches is not None:
        node.branches, branching.exists = compiled.branches, True
    ids = set(map(id, results if joint.wrapping is None else flat(results)))
    changed = {i for i, _, _ in compiled.changed}
    memories = {id(m) for i in changed for p in parts_of(args[i]) for m in (p, p._memory) if m is not None}
    saved = [_lasting(v, ids, memories) if isinstance(v, Tensor) else v for v in saved]
    if ambient.saved_hooks:
        compiled.mark_saved(args, saved)
    node.saved = [save(v) if isinstance(v, Tensor) else v for v in saved]
    node.primals = (
        [
            save(_before(compiled, i, a, results) if i in changed else a) if isinstance(a, Tensor) else a
            for i, a in enumerate(args)
        ]
        if config.double_backward and joint.wrapping is None and joint.backward_error is None
        else []
    )
    node.targets, node.has_written, node.drawn = [args[i] for i in joint.backward_written], False, drawn
    node.outputs, node.strides = _facts(results)
    for n in joint.differentiable:
        results[n]._autograd = Autograd(True, (node, n))
        results[n]._view_info = None


def recorder(compiled: Compiled) -> Callable[..., None]:
    """`record` for a function of plain tensors that writes none of them, called with results and saved values that always have the
    same shapes and strides: what is the same in every call is found once."""
    joint = compiled.joint
    if joint.wrapping is not None or compiled.changed or joint.backward_written or compiled.branches is not None:
        return functools.partial(record, compiled)
    gradients, differentiable = tuple(joint.gradients), tuple(joint.differentiable)
    facts: list[tuple] = []  # shapes and strides of the results

    def hang(args: tuple, results: tuple, saved: tuple, drawn: dict | None = None) -> None:
        if ambient.saved_hooks:
            return record(compiled, args, results, saved, drawn)
        edges = tuple([edge_of(args[i]) for i in gradients])
        if edges.count(None) == len(edges):
            return None
        if not facts:
            facts.append(_facts(results))
        node = CompiledFunctionBackward.__new__(CompiledFunctionBackward)
        node.compiled, node.edges, node.sequence, node.targets, node.has_written = (
            compiled,
            edges,
            next_sequence(),
            [],
            False,
        )
        node.drawn = drawn
        node.outputs, node.strides = facts[0]
        ids = set(map(id, results))
        node.saved = [_entry(v.shallow() if id(v) in ids else v) if isinstance(v, Tensor) else v for v in saved]
        node.primals = [_entry(a) if isinstance(a, Tensor) else a for a in args] if config.double_backward else []
        for n in differentiable:
            results[n]._autograd = Autograd(True, (node, n))
            results[n]._view_info = None
        return None

    return hang


def _entry(t: Tensor) -> tuple:
    """`save(t)` where no hooks are around."""
    a = t._autograd
    return (SAVED, t, t._counter[0], None if a is None else a.edge)


def _facts(results: Sequence) -> tuple[tuple, list]:
    """(shape, dtype and device; strides) of each result."""
    tensors = [t if isinstance(t, Tensor) else None for t in results]
    outputs = tuple([((), None, None) if t is None else (t._array.shape, t.dtype, t.device) for t in tensors])
    return outputs, [() if t is None else dense_strides(t) for t in tensors]


def _lasting(v: Tensor, results: set, changed: set) -> Tensor:
    """A value to save: a copy of what is about to be written; a result without its history."""
    if id(v) in changed or id(v._memory) in changed:
        with modes.masked(modes.GRAD):
            return v.clone()
    return v.shallow() if id(v) in results else v


def _before(compiled: Compiled, i: int, t: Tensor, results: Sequence) -> Tensor:
    """An argument that is about to be written, as it is now; its new value, where no gradient depends on which it is."""
    place = compiled.replaced.get(i)
    return _kept(t) if place is None or requires_grad(t) else results[place]


def _kept(t: Tensor) -> Tensor:
    """An argument that is about to be written, as it is now."""
    with modes.masked(modes.GRAD):
        kept = t.clone()
    edge = edge_of(t) if requires_grad(t) else None
    kept._autograd = None if edge is None else Autograd(True, edge)
    return kept
