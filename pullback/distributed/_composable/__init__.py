"""`torch.distributed._composable`: an older home of `fully_shard`."""

from ..fsdp.fully_shard import fully_shard

__all__ = ["fully_shard"]
