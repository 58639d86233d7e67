"""`torch.distributed.nn`: collectives with gradients."""

from . import functional

__all__ = ["functional"]
