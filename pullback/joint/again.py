"""Gradients that can be differentiated again: of the function itself, not of its graph.

In: a function that was traced, and what is known of it. Out: `gradients(*arguments, *tangents)`, which calls the function once
more and walks the history that the call leaves, recorded if recording is on. What always holds: what the function hides from
autograd (`no_grad`, `detach_()`, custom functions, hooks) is hidden here too; a graph of operators does not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from ..amp.autocast import casting
from ..autograd.calls import grad
from ..core import modes, tree
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import Tensor
from ..graph import GraphModule
from .facts import Joint, Output

CUT_DOUBLE_BACKWARD = (
    "torch.compile with aot_autograd does not currently support double backward of this function: it computes with recording off, "
    "writes to inputs between their elements or gives them other memory, and its graph does not know what has a history. "
    "Differentiate an uncompiled function"
)


@dataclass
class Again:
    """A function as it was traced."""

    f: Callable
    recording: bool = field(default_factory=modes.is_grad_enabled)
    autocast: Any = field(default_factory=lambda: dict(ambient.autocast) if ambient.mode & modes.AUTOCAST else None)

    def gradients(self, joint: Joint, absent: Sequence[int] = ()) -> Callable | None:
        """Gradients of the inputs, as the joint graph gives them, where some of the differentiable results (`absent`) have none;
        None where results cannot be told among those of another call."""
        numbers = [n for k, n in enumerate(joint.differentiable) if k not in absent]
        found = [_result(joint, n) for n in numbers]
        if joint.moved or joint.backward_written or None in found:
            return None

        def gradients(*args):
            given = [_given(joint, i, a) for i, a in enumerate(args[: len(joint.inputs)])]
            with nullcontext() if self.autocast is None else casting(self.autocast):
                with modes.masked(0 if self.recording else modes.GRAD):
                    leaves = tree.tree_leaves(self.f(*given))
            roots = [read(leaves, given) for read in found]
            asked = [given[i] for i in joint.gradients]
            return grad(roots, asked, list(args[len(given) :]), create_graph=modes.is_grad_enabled(), allow_unused=True)

        return gradients


def differentiable_gradients(again: Again, joint: Joint, module: GraphModule, absent: tuple[int, ...] = ()) -> Callable:
    """Gradients of arguments and tangents that may be differentiated: of the function called again, or the joint graph (`module`)
    where that knows all histories."""
    found = again.gradients(joint, absent)
    return found or (_refuse if joint.cut else lambda *args: module(*args)[joint.results :])


def _refuse(*args):
    raise RuntimeError(CUT_DOUBLE_BACKWARD)


def _given(joint: Joint, i: int, a):
    """An argument that the function may write and switch as it likes, with the history that the argument has."""
    fact = joint.inputs[i]
    if fact is None:
        return a
    with modes.masked(0, modes.GRAD):
        if fact.written or fact.bumped or fact.geometry is not None:
            return a.clone()
        return a.view_as(a) if requires_grad(a) else a.detach()


def _result(joint: Joint, n: int) -> Callable | None:
    """How result number `n` of the graph is read off the function's outputs and the arguments that it was given."""
    if n < joint.first_written:
        k = _output(joint, "fresh", n)
        return None if k is None else lambda leaves, given: leaves[k]
    if n < joint.first_written + len(joint.written):
        i = joint.written[n - joint.first_written]
        return None if joint.tensor_input(i).row is not None else lambda leaves, given: given[i]
    k = _output(joint, "view", n)
    return None if k is None else lambda leaves, given: _base(leaves[k])


def _output(joint: Joint, kind: str, n: int) -> int | None:
    return next((k for k, o in enumerate(joint.outputs) if _is(o, kind, n)), None)


def _is(o: Output, kind: str, n: int) -> bool:
    return o.kind == kind and o.index == n


def _base(t: Tensor) -> Tensor:
    base = t._base
    if base is None:
        raise RuntimeError(CUT_DOUBLE_BACKWARD)
    return base
