"""Checkpointed functions in graphs: which nodes are computed again in backward.

`tag_activation_checkpoint(graph, *args)` runs a graph. Where a trace records it, each node is tagged: `recompute` with
the policy, `ac_graph_id` with a number of this call, which partitioners read (`capture.tagging`). Where a program is
captured, it is one call of the program, of a graph whose operands are all tensors that the function uses. Where nothing
records, it is a call of `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from ...core import modes
from ...core.layers import above
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...core.tree import tree_map_only
from ...graph import GraphModule
from ..trace.promises import running_graphs
from ..trace.tagging import Tagged, recording_trace
from . import subprogram
from .base import HigherOrderOperator, Part, distinct
from .subgraph import examples, with_origins

CHECKPOINT_OPTIONS = frozenset((
    "use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state",
))  # fmt: skip
CONTEXT = "_checkpoint_context_fn"  # where a graph's meta has the `context_fn` of a selective checkpoint


def run_region(graph: GraphModule, args: tuple, options: dict):
    """A region where nothing traces."""
    return graph(*args) if above.run_region is None else above.run_region(graph, args, options)


class TagActivationCheckpoint(HigherOrderOperator):
    """`tag_activation_checkpoint(graph, *args, **options of checkpoint)`."""

    prefixes = ("checkpointed_",)

    def __init__(self) -> None:
        super().__init__("tag_activation_checkpoint", cacheable=True)

    @staticmethod
    def divide_kwargs(kwargs: dict) -> tuple[dict, dict]:
        """Options of `checkpoint`, and arguments of the function."""
        options = {k: v for k, v in kwargs.items() if k in CHECKPOINT_OPTIONS}
        return options, {k: v for k, v in kwargs.items() if k not in CHECKPOINT_OPTIONS}

    def __call__(self, gmod: GraphModule, *args, **kwargs):
        options, named = self.divide_kwargs(kwargs)
        if not isinstance(gmod, GraphModule):
            return gmod(*args, **named)
        if named:
            raise NotImplementedError(f"keyword arguments of a checkpointed graph are not implemented: {list(named)}")
        if ambient.mode & modes.CAPTURE:
            return self.capture_rule(ambient.captures[-1], gmod, *args, **options)
        policy, trace = _policy(gmod), recording_trace()
        if trace is None and not ambient.mode & (modes.DISPATCH | modes.TRANSFORM):
            return run_region(gmod, args, options)
        with nullcontext() if trace is None else Tagged(trace, policy):
            return with_origins(gmod)(*args)

    def parts(self, function, *args) -> list[Part]:
        return [Part(0, "the checkpointed function", examples(args))]

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        return (*args, *free)

    def capture_rule(self, trace, function, *args, context_fn: Callable | None = None, **options):
        """One node in the graph of a program that is being captured."""
        with subprogram.paused_capture(trace):
            graph, *operands = self.closed(
                (function, *args), lambda given: subprogram.capture_functions(trace, given, False)
            )
            if context_fn is not None:
                graph.meta[CONTEXT] = context_fn
            operands = tree_map_only(Tensor, trace._inside, operands)
            before = [t._counter[0] for t in operands if isinstance(t, Tensor)]
            with running_graphs(trace):
                out = distinct(with_origins(graph)(*operands), operands)
            if before != [t._counter[0] for t in operands if isinstance(t, Tensor)]:
                trace.refuse("a checkpointed function writes to a tensor that it did not make")
        trace._note_grad_mode()
        self.record(trace, (graph, *operands), options, out)
        return out


def _policy(gmod: GraphModule) -> Callable | None:
    """The policy of a selectively checkpointed graph: its forward context says it."""
    context_fn = gmod.meta.get(CONTEXT)
    if context_fn is None:
        return None
    policy = getattr(context_fn()[0], "policy", None)
    if policy is None:
        raise NotImplementedError("checkpointing a graph with a context_fn that has no policy is not implemented")
    return policy


class WrapActivationCheckpoint(TagActivationCheckpoint):
    """`wrap_activation_checkpoint(graph, *args, **options)`: the older name, with the same meaning here."""

    def __init__(self) -> None:
        HigherOrderOperator.__init__(self, "wrap_activation_checkpoint")


tag_activation_checkpoint = TagActivationCheckpoint()
wrap_activation_checkpoint = WrapActivationCheckpoint()
