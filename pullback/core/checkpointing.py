"""What checkpointing may do with an operator's result: the words that policies, traces and partitioners share."""

from __future__ import annotations

import enum


class CheckpointPolicy(enum.Enum):
    """What to do with an operator's result; PREFER leaves the last word to a compiler."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told besides the call: whether this is the recomputation, and the result."""

    def __init__(self, *, is_recompute: bool, op_output=None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output
