"""Communication hooks: averaging in the gradients' own type, or in half of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core import dtype as dtypes
from ....surface.futures import Future
from ...collectives import start_all_reduce
from ...data_parallel.buckets import GradBucket
from ...groups import world_or_raise
from ...process_group import ProcessGroup
from ...reduce_op import ReduceOp


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """The mean over ranks."""
    work = start_all_reduce(process_group or world_or_raise(), bucket.buffer(), ReduceOp.AVG, watched=True)
    return work.get_future().then(lambda f: f.value()[0])


def _in_type(process_group: ProcessGroup | None, bucket: GradBucket, kind: Any) -> Future:
    group, own = process_group or world_or_raise(), bucket.buffer()
    small = (own / group.size()).to(kind)
    work = start_all_reduce(group, small, ReduceOp.SUM, watched=True)
    return work.get_future().then(lambda f: f.value()[0].to(own.dtype))


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """The mean, rounded to float16 on the way."""
    return _in_type(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """The mean, rounded to bfloat16 on the way."""
    return _in_type(process_group, bucket, dtypes.bfloat16)


def _wrapped(hook: Callable, kind: Any) -> Callable:
    def wrapped(state: Any, bucket: GradBucket) -> Future:
        own = bucket.buffer()
        bucket.set_buffer(own.to(kind).to(own.dtype))
        return hook(state, bucket)

    return wrapped


def fp16_compress_wrapper(hook: Callable) -> Callable:
    """A hook whose input is rounded to float16."""
    return _wrapped(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Callable) -> Callable:
    """A hook whose input is rounded to bfloat16."""
    return _wrapped(hook, dtypes.bfloat16)
