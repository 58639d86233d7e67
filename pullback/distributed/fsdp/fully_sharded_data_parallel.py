"""FSDP's first interface, a wrapper around a module: not built. `fully_shard` is the one that is here; using this one raises.

The names exist because libraries ask whether a module is an instance of them.
"""

from __future__ import annotations

from enum import Enum, auto

from ...nn.module import Module


class StateDictType(Enum):
    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class ShardingStrategy(Enum):
    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class FullyShardedDataParallel(Module):
    """Would shard a module by wrapping it."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "FullyShardedDataParallel is not implemented: use torch.distributed.fsdp.fully_shard(module)"
        )


def _absent(name: str):
    def call(*args, **kwargs):
        raise NotImplementedError(
            f"{name} belongs to FullyShardedDataParallel, which is not implemented: use fully_shard"
        )

    return call


MixedPrecision = _absent("MixedPrecision")
CPUOffload = _absent("CPUOffload")
FullStateDictConfig = _absent("FullStateDictConfig")
ShardedStateDictConfig = _absent("ShardedStateDictConfig")
FullOptimStateDictConfig = _absent("FullOptimStateDictConfig")
ShardedOptimStateDictConfig = _absent("ShardedOptimStateDictConfig")
StateDictConfig = _absent("StateDictConfig")
OptimStateKeyType = _absent("OptimStateKeyType")
