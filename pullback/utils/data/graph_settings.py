"""Settings of a whole chain of data pipes: shuffling, shards, seeds.

A pipe has others among its attributes; `get_all_graph_pipes` finds all that lead to it. A setting reaches every pipe that has the
methods for it (`set_shuffle` and `set_seed`, `apply_sharding`), whatever its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...core.random import Generator
from .datapipes import IterDataPipe, MapDataPipe
from .sampler import draw_seed


def _inside(value: Any) -> Iterator[Any]:
    """The pipes that an attribute holds, in lists and dictionaries too."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _inside(one)
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from _inside(one)


def get_all_graph_pipes(datapipe: Any) -> list:
    """The pipe and all that lead to it, each once, the nearest first."""
    found, left = {}, [datapipe]
    while left:
        pipe = left.pop(0)
        if id(pipe) not in found:
            found[id(pipe)] = pipe
            left += list(_inside(vars(pipe)))
    return list(found.values())


def _shuffles(pipe: Any) -> bool:
    return callable(getattr(pipe, "set_shuffle", None)) and callable(getattr(pipe, "set_seed", None))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch shuffling on or off in every pipe that can shuffle. Without one, `shuffle=True` puts one at the end."""
    if shuffle is None:
        return datapipe
    pipes = [pipe for pipe in get_all_graph_pipes(datapipe) if _shuffles(pipe)]
    if shuffle and not pipes:
        datapipe = datapipe.shuffle()
        pipes = [datapipe]
    for pipe in pipes:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Tell every pipe that takes one its shard. Pipes that have it from another of the same chain would read less: an error."""
    left = [(datapipe, False)]
    seen = set()
    while left:
        pipe, sharded = left.pop(0)
        if (id(pipe), sharded) in seen:
            continue
        seen.add((id(pipe), sharded))
        if callable(getattr(pipe, "apply_sharding", None)):
            if sharded:
                raise RuntimeError(f"Sharding twice on a single pipeline is likely unintended: {pipe!r}")
            sharded = True
            _shard(pipe, num_of_instances, instance_id, sharding_group)
        left += [(one, sharded) for one in _inside(vars(pipe))]
    return datapipe


def _shard(pipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any) -> None:
    if sharding_group is None:
        pipe.apply_sharding(num_of_instances, instance_id)
    else:
        pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)


def apply_random_seed(datapipe: Any, rng: Generator) -> Any:
    """Give every pipe that takes a seed one of its own, drawn in the order of the chain."""
    for pipe in get_all_graph_pipes(datapipe):
        if callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(draw_seed(rng))
    return datapipe


def shard_and_start(init_fn: Callable | None, world_size: int, rank: int, worker_id: int) -> None:
    """In a worker whose dataset is a pipe: take the worker's part of the rank's shard, then run the user's start function."""
    from . import worker

    info = worker.get_worker_info()
    assert info is not None, "called outside a worker"
    workers = info.__dict__["num_workers"]
    apply_sharding(info.__dict__["dataset"], world_size * workers, worker_id * world_size + rank)
    if init_fn is not None:
        init_fn(worker_id)
