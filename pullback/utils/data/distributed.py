"""A sampler that gives each of several processes its share."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...core.layers import above
from ...core.random import Generator
from .dataset import Dataset
from .sampler import Sampler, randperm


def _ask(question: str) -> int:
    """The number of processes, or which of them this one is, where there is a process group to ask."""
    return getattr(above.package().distributed, question)()


def standing() -> tuple[int, int]:
    """(number of processes, which of them this one is); a process by itself is the only one."""
    distributed = above.package().distributed
    joined = distributed.is_available() and distributed.is_initialized()
    return (_ask("get_world_size"), _ask("get_rank")) if joined else (1, 0)


class DistributedSampler(Sampler):
    """Every `num_replicas`-th index from `rank` on, of an order that `seed` and the epoch determine.

    All shares have one length: some indices come twice, or with `drop_last` some are left out.
    """

    def __init__(
        self, dataset: Dataset, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        num_replicas = _ask("get_world_size") if num_replicas is None else num_replicas
        rank = _ask("get_rank") if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.drop_last, self.shuffle, self.seed = 0, drop_last, shuffle, seed
        total = len(dataset)
        if drop_last and total % num_replicas:
            total -= num_replicas
        self.num_samples = math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        if not self.drop_last:
            order = (order * math.ceil(self.total_size / n))[: self.total_size] if n else order
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch it is, so that each has an order of its own."""
        self.epoch = epoch
