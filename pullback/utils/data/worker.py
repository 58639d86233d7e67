"""A worker process: takes tasks from its pipe, fetches batches, sends them back.

Tasks are `(number, index)` and come back as `(number, batch)`; `Resume` starts an epoch and is sent back as it is;
None ends the worker, and so does the end of the pipe, which is how it notices that the loader is gone. A thread sends
results, so that the next batch is fetched while the last one still waits to be read. An error travels as `Failure`.
"""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...core.random import manual_seed
from ...core.threads import set_thread_count
from .fetch import DatasetKind

WorkerInitFunction = Callable[[int], None]  # what `DataLoader(worker_init_fn=...)` takes


@dataclass
class Resume:
    """The start of another epoch; a seed that all workers share travels with it."""

    shared_seed: int | None = None


class ParentWatch:
    """In a worker: whether the process that started it is still there."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclass
class Exhausted:
    """An iterable dataset has no more in this worker."""

    worker_id: int


class Failure:
    """An exception on its way to another process or thread, as words: the one that is being handled, unless told."""

    def __init__(self, exc_info: tuple | None = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type, with the traceback from there as its words."""
        words = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            words = _Shown(words)
        elif hasattr(self.exc_type, "message"):
            raise self.exc_type(message=words)
        try:
            error = self.exc_type(words)
        except Exception:  # noqa: BLE001 - the type takes other arguments
            raise RuntimeError(words) from None
        raise error


class _Shown(str):
    """Words that KeyError shows as they are, with their lines."""

    def __repr__(self) -> str:
        return str(self)


class WorkerInfo:
    """What a worker knows of itself: `id`, `num_workers`, `seed`, `dataset` (its copy). It cannot be changed."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)

    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self.__dict__.items())})"


_worker_info: WorkerInfo | None = None  # other loaders set it in their workers


def get_worker_info() -> WorkerInfo | None:
    """In a worker process what it is, else None."""
    return _worker_info


@dataclass
class Plan:
    """All that a worker needs to know to start."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], None] | None
    workers: int


def seed_everything(base_seed: int, worker_id: int) -> int:
    """Give every random generator of this process a seed of its own; the first of them is returned."""
    import numpy as np

    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(seed_words(base_seed, worker_id))
    return seed


def seed_words(base_seed: int, worker_id: int) -> list[int]:
    """The words that a worker seeds NumPy with."""
    import numpy as np

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


def _make_fetcher(plan: Plan):
    return DatasetKind.create_fetcher(
        plan.dataset_kind, plan.dataset, plan.auto_collation, plan.collate_fn, plan.drop_last
    )


def _start(plan: Plan, worker_id: int):
    """The fetcher, or what went wrong in making it: the first task brings that to the loader."""
    global _worker_info
    set_thread_count(1)
    seed = seed_everything(plan.base_seed, worker_id)
    _worker_info = WorkerInfo(id=worker_id, num_workers=plan.workers, seed=seed, dataset=plan.dataset)
    try:
        if plan.init_fn is not None:
            plan.init_fn(worker_id)
        return _make_fetcher(plan), None
    except Exception:  # noqa: BLE001 - sent to the loader, whatever it is
        return None, Failure(where=f"in DataLoader worker process {worker_id}")


def work(plan: Plan, worker_id: int, pipe, others: list) -> None:
    """The life of a worker. `others` are ends of pipes that fork has copied here and that belong to somebody else."""
    for other in others:
        other.close()
    results: queue.SimpleQueue = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(pipe, results), daemon=True)
    sender.start()
    fetcher, failure = _start(plan, worker_id)
    ended = False
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        if task is None:
            break
        if isinstance(task, Resume):
            ended = False
            fetcher, failure = _resumed(plan, worker_id, failure)
            results.put((task, None))
            continue
        number, index = task
        if failure is not None:
            results.put((number, failure))
            failure = None
        elif not ended:
            result = _fetch(fetcher, index, plan, worker_id)
            ended = isinstance(result, Exhausted)
            results.put((number, result))
    results.put(None)
    sender.join()


def _resumed(plan: Plan, worker_id: int, failure: Failure | None):
    if failure is not None:
        return None, failure
    try:
        return _make_fetcher(plan), None
    except Exception:  # noqa: BLE001 - sent to the loader, whatever it is
        return None, Failure(where=f"in DataLoader worker process {worker_id}")


def _fetch(fetcher, index, plan: Plan, worker_id: int):
    try:
        return fetcher.fetch(index)
    except Exception as e:  # noqa: BLE001 - sent to the loader, whatever it is
        if isinstance(e, StopIteration) and plan.dataset_kind == DatasetKind.Iterable:
            return Exhausted(worker_id)
        return Failure(where=f"in DataLoader worker process {worker_id}")


def _send_all(pipe, results: queue.SimpleQueue) -> None:
    while True:
        result = results.get()
        if result is None:
            return
        try:
            pipe.send(result)
        except (BrokenPipeError, OSError):
            return
        except Exception:  # noqa: BLE001 - a batch that cannot be pickled: the loader is told
            pipe.send((result[0], Failure(where="in DataLoader worker process while sending a batch")))
