"""Selective checkpointing: a policy says, operator by operator, what is kept and what is computed again.

`create_selective_checkpoint_contexts(policy)` gives the two contexts for `checkpoint(..., context_fn=...)`: the first
keeps results in the forward, the second hands them out, in the same order, in the recomputation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ...core.checkpointing import CheckpointPolicy, SelectiveCheckpointContext
from ...core.tensor import Tensor
from ...core.tree import tree_map
from ...ops.system.operator import Operator
from ...ops.system.overrides import TorchDispatchMode
from ...ops.system.packet import OpOverloadPacket, ops

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)
SAC_IGNORED_OPS = {ops.aten.detach.default}
_AGAIN, _TAKEN = object(), object()


class _Kept:
    """A result, and the version of each tensor when it was kept."""

    def __init__(self, value) -> None:
        self.value = value.detach() if isinstance(value, Tensor) else value
        self.version = value._version if isinstance(value, Tensor) else None

    def take(self, may_have_changed: bool):
        if self.version is not None and not may_have_changed and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


class _Keeping(TorchDispatchMode):
    """The forward: keeps the results that the policy wants kept."""

    def __init__(self, policy: Callable, storage: dict) -> None:
        super().__init__()
        self.policy, self.storage = policy, storage

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return out
        choice = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **kwargs)
        keep = choice is True or choice in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        self.storage[func].append(tree_map(_Kept, out) if keep else _AGAIN)
        return out


class _Handing(TorchDispatchMode):
    """The recomputation: hands kept results out, and lets the rest be computed."""

    def __init__(self, storage: dict, may_have_changed: bool) -> None:
        super().__init__()
        self.storage, self.may_have_changed = storage, may_have_changed
        self.counts: dict = defaultdict(int)

    def __enter__(self):
        self.counts.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        at = self.counts[func]
        self.counts[func] += 1
        if func not in self.storage:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_MISMATCH}")
        entries = self.storage[func]
        if at >= len(entries):
            raise RuntimeError(
                f"{func} invocation index {at} encountered during backward but not found in storage. {_MISMATCH}"
            )
        entry = entries[at]
        if entry is _TAKEN:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is _AGAIN:
            return func(*args, **(kwargs or {}))
        entries[at] = _TAKEN
        return tree_map(lambda kept: kept.take(self.may_have_changed), entry)


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation: bool = False) -> tuple:
    """(context of the forward, context of the recomputation) for a policy or a list of operators to save."""
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, Operator):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                    "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                    f"{extra if isinstance(op, OpOverloadPacket) else ''}"
                )

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in policy_fn_or_list else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict = defaultdict(list)
    return _Keeping(policy, storage), _Handing(storage, allow_cache_entry_mutation)
