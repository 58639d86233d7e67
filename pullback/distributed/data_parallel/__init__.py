"""Data parallel: one model on many ranks, each with its part of the batch, gradients averaged over all."""

from .buckets import GradBucket
from .module import DistributedDataParallel

__all__ = ["DistributedDataParallel", "GradBucket"]
