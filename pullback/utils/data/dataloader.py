"""`DataLoader`: batches of a dataset, in this process or by workers.

Each pass draws a base seed from the generator before the sampler draws its order, as PyTorch does: a seed gives the
same batches there and here. Workers get the seeds that follow the base seed.
"""

from __future__ import annotations

import math
import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ...core.cupy_library import device_count
from ...core.random import Generator
from ...core.threads import processors
from .collate import default_collate, default_convert
from .datapipes import IterDataPipe, MapDataPipe
from .dataset import Dataset, IterableDataset
from .distributed import standing
from .fetch import DatasetKind
from .pinning import pinned
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .worker import get_worker_info

T = TypeVar("T", covariant=True)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class Forever(Sampler):
    """The sampler of an iterable dataset: it has no indices, and says how many examples to take."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T]):
    """An iterable over batches."""

    _initialized = False

    def __init__(
        self, dataset: Dataset[T], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None, batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0, collate_fn: Callable | None = None, pin_memory: bool = False, drop_last: bool = False,
        timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None, multiprocessing_context=None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.multiprocessing_context = _context(multiprocessing_context, num_workers)
        self._dataset_kind = DatasetKind.Iterable if isinstance(dataset, IterableDataset) else DatasetKind.Map
        iterable = self._dataset_kind == DatasetKind.Iterable
        shuffle = _check_sampling(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if sampler is None:
            sampler = Forever() if iterable else _order(dataset, shuffle, generator)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.generator = batch_size, drop_last, generator
        self.sampler, self.batch_sampler = sampler, batch_sampler
        default = default_collate if self._auto_collation else default_convert
        self.collate_fn = default if collate_fn is None else collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator: Any = None
        self._initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: object) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> DataLoaderIterator:
        if self.num_workers == 0:
            return InProcess(self)
        from .workers import ByWorkers

        return ByWorkers(self)

    def __iter__(self) -> DataLoaderIterator:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than this process may use processors."""
        if not self.num_workers:
            return
        available = processors()
        if self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {available}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


# ---- checks of arguments
def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _context(given, num_workers: int):
    """A multiprocessing context, from one or the name of a start method."""
    if given is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(given, str):
        known = multiprocessing.get_all_start_methods()
        if given not in known:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                f"multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={given}"
        )
    return given


def _check_sampling(iterable: bool, batch_size, shuffle, sampler, batch_sampler, drop_last: bool) -> bool:
    """Whether to shuffle; arguments that contradict each other are refused."""
    if iterable:
        given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    return bool(shuffle)


def _order(dataset: Dataset, shuffle: bool, generator: Generator | None) -> Sampler:
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)  # type: ignore[arg-type]


# ---- one pass
class DataLoaderIterator:
    """One pass over the data; with persistent workers, one after the other.

    Other packages' loaders extend it: they define `_next_data`, and `_reset` for another pass, and read what a pass goes by
    under PyTorch's names.
    """

    _shared_seed: int | None = None  # one for the workers of all ranks, where the data are pipes
    _world_size, _rank = 1, 0

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self._dataset_kind, self._auto_collation = loader._dataset_kind, loader._auto_collation
        self._collate_fn, self._drop_last = loader.collate_fn, loader.drop_last
        self._num_workers, self._persistent_workers = loader.num_workers, loader.persistent_workers
        self._index_sampler, self._pin_memory_device = loader._index_sampler, loader.pin_memory_device
        self._dataset, self._timeout = loader.dataset, loader.timeout
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
            self._world_size, self._rank = standing()
        self._pin_memory = loader.pin_memory and device_count() > 0
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=4,
            )
        self._sampler_iter = iter(loader._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0

    def __iter__(self) -> DataLoaderIterator:
        return self

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """Begin another pass."""
        self._sampler_iter = iter(loader._index_sampler)
        self._num_yielded = 0

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next_data()
        batch = pinned(batch) if self._pin_memory else batch
        self._num_yielded += 1
        promised = self.loader._IterableDataset_len_called
        if self.loader._dataset_kind == DatasetKind.Iterable and promised is not None and self._num_yielded > promised:
            self._warn_of_length(promised)
        return batch

    def _warn_of_length(self, promised: int) -> None:
        words = (
            f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), "
            f"but {self._num_yielded} samples have been fetched. "
        )
        if self.loader.num_workers > 0:
            words += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see https://pytorch.org/docs/stable/data.html"
                "#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(words, stacklevel=3)

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class InProcess(DataLoaderIterator):
    """Batches fetched here, when they are asked for."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self.fetcher = DatasetKind.create_fetcher(
            loader._dataset_kind, self._dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next_data(self) -> Any:
        return self.fetcher.fetch(self._next_index())


__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
