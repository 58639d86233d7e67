"""Checkpointed functions in graphs: which nodes are computed again in backward.

`tag_activation_checkpoint(graph, *args)` runs a graph. Where a trace records it, each node is tagged: `recompute` with
the policy, `ac_graph_id` with a number of this call, which partitioners read. Where nothing records, it is just the run:
what to keep for backward is decided by the caller's `checkpoint`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ...core.checkpointing import CheckpointPolicy, SelectiveCheckpointContext
from ...graph import GraphModule, Interpreter, traceback
from .base import HigherOrderOperator

_numbers = itertools.count(1)
CHECKPOINT_OPTIONS = frozenset((
    "use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state",
))  # fmt: skip


class _Tagging(Interpreter):
    """Runs a graph; nodes that a trace makes of it carry the tags."""

    def __init__(self, module: GraphModule, policy: Callable | None):
        super().__init__(module)
        self.policy, self.number = policy, next(_numbers)

    def run_node(self, n):
        if n.op != "call_function":
            return super().run_node(n)
        before = n.meta
        n.meta = {**before, "recompute": self.choice(n), "ac_graph_id": self.number}
        try:
            return super().run_node(n)
        finally:
            n.meta = before

    def choice(self, n) -> CheckpointPolicy:
        """What the policy says of a node's call."""
        if self.policy is None:
            return CheckpointPolicy.PREFER_RECOMPUTE
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        said = self.policy(SelectiveCheckpointContext(is_recompute=False), n.target, *args, **kwargs)
        if isinstance(said, bool):
            return CheckpointPolicy.MUST_SAVE if said else CheckpointPolicy.PREFER_RECOMPUTE
        return said


class TagActivationCheckpoint(HigherOrderOperator):
    """`tag_activation_checkpoint(graph, *args, **options of checkpoint)`."""

    def __init__(self) -> None:
        super().__init__("tag_activation_checkpoint", cacheable=True)

    @staticmethod
    def divide_kwargs(kwargs: dict) -> tuple[dict, dict]:
        """Options of `checkpoint`, and arguments of the function."""
        options = {k: v for k, v in kwargs.items() if k in CHECKPOINT_OPTIONS}
        return options, {k: v for k, v in kwargs.items() if k not in CHECKPOINT_OPTIONS}

    def __call__(self, gmod: GraphModule, *args, **kwargs):
        _, named = self.divide_kwargs(kwargs)
        if not isinstance(gmod, GraphModule):
            return gmod(*args, **named)
        if named:
            raise NotImplementedError(f"keyword arguments of a checkpointed graph are not implemented: {list(named)}")
        with traceback.preserve_node_meta():
            return _Tagging(gmod, _policy(gmod)).run(*args)


def _policy(gmod: GraphModule) -> Callable | None:
    """The policy of a selectively checkpointed graph: its forward context says it."""
    context_fn = gmod.meta.get("_checkpoint_context_fn")
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
