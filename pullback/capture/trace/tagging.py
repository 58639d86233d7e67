"""Checkpointed regions in traces: which nodes are to be computed again in backward.

`Tagged` is a dispatch mode above a trace, in force while a region runs. Every node that the trace makes meanwhile gets
`meta["recompute"]`, what the region's policy says of the operator (without one: compute it again), and
`meta["ac_graph_id"]`, the region's number. Partitioners read both. In a region inside a region the inner one decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ...core.checkpointing import CheckpointPolicy, SelectiveCheckpointContext
from ...core.modes import ambient
from ...graph import Node
from ...ops.make.conversion import detach_op
from ...ops.shape.views import alias
from ...ops.system.dispatch import dispatch
from ...ops.system.operator import Operator
from ...ops.system.overrides import TorchDispatchMode, call_form
from .graph_trace import GraphTrace

_numbers = itertools.count(1)
NEVER_ASKED = frozenset((detach_op, alias))  # what autograd calls of itself: policies hear nothing of it


class Tagged(TorchDispatchMode):
    """See the module's docstring. `policy(context, operator, *args, **kwargs)` gives a `CheckpointPolicy`, or whether to save."""

    def __init__(self, trace: GraphTrace, policy: Callable | None):
        super().__init__()
        self.trace, self.policy = trace, policy
        self.number = next(_numbers)

    def handle(self, op: Operator, args: tuple):
        last = self._last()
        out = dispatch(op, args)
        self._tag(last, self._choice(op, *call_form(op, args), out))
        return out

    def higher_order(self, op, args: tuple, kwargs: dict):
        """An operator that takes functions."""
        last = self._last()
        out = op(*args, **kwargs)
        self._tag(last, self._choice(op, args, kwargs, out))
        return out

    def _choice(self, op, args: tuple, kwargs: dict, out) -> CheckpointPolicy:
        if self.policy is None or op in NEVER_ASKED:
            return CheckpointPolicy.PREFER_RECOMPUTE
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        said = self.policy(context, op, *args, **kwargs)
        if isinstance(said, bool):
            return CheckpointPolicy.MUST_SAVE if said else CheckpointPolicy.PREFER_RECOMPUTE
        return said

    def _last(self) -> Node | None:
        return next(iter(reversed(self.trace.graph.nodes)), None)

    def _tag(self, last: Node | None, choice: CheckpointPolicy) -> None:
        """Tag the nodes made since `last`."""
        for node in reversed(self.trace.graph.nodes):
            if node is last:
                break
            if node.op == "call_function" and node.meta.get("ac_graph_id", 0) <= self.number:
                node.meta["recompute"], node.meta["ac_graph_id"] = choice, self.number


def recording_trace() -> GraphTrace | None:
    """The innermost trace that records operators now."""
    return next((m for m in reversed(ambient.dispatch_modes) if isinstance(m, GraphTrace)), None)
