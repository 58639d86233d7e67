"""`torch.distributed.fsdp`: parameters, gradients and optimizer state in parts, one on each rank (`fully_shard`)."""

from .fully_shard import FSDPModule, fully_shard
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]


def __getattr__(name: str):
    if name in ("FullyShardedDataParallel", "ShardingStrategy", "MixedPrecision", "StateDictType"):
        raise AttributeError(
            f"torch.distributed.fsdp.{name} (FSDP1) does not exist here: use fully_shard, which replaces it"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
