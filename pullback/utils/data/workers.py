"""The loader's side of its workers: who has which task, and batches put back in order.

Each worker has a pipe of its own. Tasks go to the workers in turn, `prefetch_factor` of them ahead for each; what
comes back early waits until it is its turn. The loader waits on the pipes and on the processes together, so a worker
that dies is noticed at once and named.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import time
import warnings
import weakref
from multiprocessing.connection import wait
from typing import Any

from .dataloader import DataLoader, DataLoaderIterator
from .worker import Exhausted, Failure, Plan, Resume, work

JOIN_SECONDS = 5.0

_NOT_PICKLABLE = (
    "Got pickle error when attempting to start a worker Process. This might be because the worker Process arguments are not picklable. Python "
    "3.14+ changed the multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which requires the worker Process arguments to be "
    "picklable. You can also try multiprocessing.set_start_method('fork')."
)


class ByWorkers(DataLoaderIterator):
    """Batches fetched by worker processes."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self.count, self.ahead = loader.num_workers, loader.prefetch_factor
        if self.ahead <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        plan = Plan(
            loader._dataset_kind, self._dataset, loader._auto_collation, loader.collate_fn, loader.drop_last, self._base_seed,
            loader.worker_init_fn, self.count,
        )  # fmt: skip
        self.pipes: list = []
        self.processes: list = []
        self.stop = weakref.finalize(self, shut_down, os.getpid(), self.processes, self.pipes)
        self._start(loader.multiprocessing_context or multiprocessing.get_context(), plan)
        self._begin()

    def _start(self, context, plan: Plan) -> None:
        forks = context.get_start_method() == "fork"
        for i in range(self.count):
            mine, its = context.Pipe()
            copied = [*self.pipes, mine] if forks else []  # a worker that kept them would hide the end of a pipe
            process = context.Process(target=work, args=(plan, i, its, copied), daemon=True)
            try:
                process.start()
            except (TypeError, AttributeError, pickle.PicklingError):
                warnings.warn(_NOT_PICKLABLE, stacklevel=2)
                raise
            its.close()
            self.pipes.append(mine)
            self.processes.append(process)

    @property
    def _workers(self) -> list:
        """The worker processes, under the name that programs know them by."""
        return self.processes

    # ---- one pass
    def _begin(self) -> None:
        self.sent = self.taken = 0  # numbers of the next task to send, and of the next batch to hand out
        self.tasks: dict[int, int] = {}  # task -> worker, while it is out
        self.batches: dict[int, Any] = {}  # task -> batch, while it waits
        self.alive = [True] * self.count  # workers with something left to fetch
        self.turns = itertools.cycle(range(self.count))
        for _ in range(self.ahead * self.count):
            self._send_next()

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self.alive = [True] * self.count  # all must answer
        for worker in range(self.count):
            self._give(worker, Resume())
        left = self.count
        while left:  # what is still on its way from the last pass is thrown away
            number, _ = self._receive()
            left -= isinstance(number, Resume)
        self._begin()

    def _send_next(self) -> None:
        """Give the next worker whose turn it is the next task, if there are both."""
        limit = self.ahead * self.count
        if len(self.tasks) + len(self.batches) >= limit:
            return
        worker = self._next_worker()
        if worker is None:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        self.tasks[self.sent] = worker
        self._give(worker, (self.sent, index))
        self.sent += 1

    def _give(self, worker: int, message: Any) -> None:
        try:
            self.pipes[worker].send(message)
        except ConnectionError:
            pass  # its process has died, which the next wait for a batch says, with the cause

    def _next_worker(self) -> int | None:
        alive = sum(self.alive)
        fair = self.ahead * self.count // alive if alive else 0
        for _ in range(self.count):
            worker = next(self.turns)
            if self.alive[worker] and (self.loader.in_order or self._out(worker) < fair):
                return worker
        return None

    def _out(self, worker: int) -> int:
        return sum(w == worker for w in self.tasks.values())

    def _next_data(self) -> Any:
        while True:
            number = self._ready()
            if number is not None:
                batch = self.batches.pop(number)
                self.taken = max(self.taken, number + 1) if self.loader.in_order else self.taken
                self._send_next()
                if isinstance(batch, Failure):
                    batch.reraise()
                return batch
            if not self.tasks:
                if not self.loader.persistent_workers:
                    self.stop()
                raise StopIteration
            self._note(*self._receive())

    def _ready(self) -> int | None:
        """The task whose batch may be handed out now."""
        if not self.loader.in_order:
            return next(iter(self.batches), None)
        while self.taken < self.sent and self.taken not in self.batches and self.taken not in self.tasks:
            self.taken += 1  # a task that ended without a batch: its worker had no more
        return self.taken if self.taken in self.batches else None

    def _note(self, number, batch) -> None:
        if not isinstance(batch, Exhausted):
            del self.tasks[number]
            self.batches[number] = batch
            return
        self.alive[batch.worker_id] = False
        for task in [n for n, worker in self.tasks.items() if worker == batch.worker_id]:
            del self.tasks[task]
        if not self.loader.persistent_workers:
            self._give(batch.worker_id, None)
        self._send_next()

    # ---- what comes back
    def _receive(self) -> tuple:
        """The next message of any worker."""
        deadline = time.monotonic() + self._timeout if self._timeout else None
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = wait([*self._open(), *(p.sentinel for p in self._watched())], left)
            if not ready:
                self.stop()
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            for pipe in self._open():
                if pipe in ready:
                    try:
                        return pipe.recv()
                    except (EOFError, ConnectionError, FileNotFoundError):
                        pass  # its process has died, perhaps with memory that it meant to share: said below
            self._check_processes()

    def _open(self) -> list:
        return [p for p in self.pipes if not p.closed]

    def _watched(self) -> list:
        """Processes that must not end: those that have tasks, or may get some."""
        return [p for p, alive in zip(self.processes, self.alive, strict=True) if alive]

    def _check_processes(self) -> None:
        dead = [p for p in self._watched() if not p.is_alive()]
        if not dead:
            return
        pids = ", ".join(str(p.pid) for p in dead)
        causes = "".join(_cause(p) for p in dead)
        self.stop()
        raise RuntimeError(f"{causes}DataLoader worker (pid(s) {pids}) exited unexpectedly")


def _cause(process) -> str:
    code = process.exitcode
    if code is None or code >= 0:
        return f"DataLoader worker (pid {process.pid}) ended with exit code {code}. "
    name = signal.strsignal(-code) or signal.Signals(-code).name
    return f"DataLoader worker (pid {process.pid}) is killed by signal: {name}. "


def shut_down(owner: int, processes: list, pipes: list) -> None:
    """End workers: kindly, then not. A process that fork has given a copy of the loader leaves them alone."""
    if os.getpid() != owner:
        return
    for pipe in pipes:
        try:
            pipe.send(None)
        except (BrokenPipeError, OSError):
            pass
        pipe.close()
    deadline = time.monotonic() + JOIN_SECONDS
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join(JOIN_SECONDS)
