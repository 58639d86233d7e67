"""How a batch is fetched: by indices from a dataset, or by taking the next examples of an iterable one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any


class Fetcher:
    """What both kinds have: a dataset, and whether and how examples become a batch."""

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = (
            dataset,
            auto_collation,
            collate_fn,
            drop_last,
        )

    def fetch(self, possibly_batched_index) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.fetch is not implemented")


class MapFetcher(Fetcher):
    """Fetches what the sampler names: a list of indices, or without batching a single one."""

    def fetch(self, index) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(many(index) if callable(many) else [self.dataset[i] for i in index])


class IterableFetcher(Fetcher):
    """Fetches as many examples as the sampler names; StopIteration when there are none left."""

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        batch = self._next_examples(len(index))
        self.ended = len(batch) < len(index)
        if not batch or self.ended and self.drop_last:
            raise StopIteration
        return self.collate_fn(batch)

    def _next_examples(self, count: int) -> list:
        """By `next` alone: a dataset that is its own iterator may begin anew when it is asked for one."""
        batch: list = []
        with contextlib.suppress(StopIteration):
            while len(batch) < count:
                batch.append(next(self.dataset_iter))
        return batch


class DatasetKind:
    """Which of the two kinds a dataset is, as loaders say it (`_DatasetKind` in PyTorch)."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, *args) -> Fetcher:
        return (IterableFetcher if kind == DatasetKind.Iterable else MapFetcher)(*args)
