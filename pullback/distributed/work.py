"""Calls under way: `Work`, which programs wait for, and the one thread that keeps MPI going while a program computes.

In: a request of a channel, and what is to be done when it is complete (`finish`, which runs once). Out: tensors that are
written when `wait` returns or `is_completed` is true. MPI moves data only while somebody calls it: the thread `progress`
does, as long as calls are under way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..surface.futures import Future
from .channel import LOCK

if TYPE_CHECKING:
    from .process_group import ProcessGroup

SPINS = 200  # tests of a request in a row before the first sleep
SHORTEST, LONGEST = 5e-5, 1e-3  # seconds between tests, then


class DistError(RuntimeError):
    """An error of a process group."""


class DistBackendError(DistError):
    """A call that the communication library, or another rank, made impossible."""


class DistNetworkError(DistError):
    """A rank or a store that cannot be reached."""


class DistStoreError(DistError):
    """A store without the key that was asked for."""


class Work:
    """One call on a group, under way or done."""

    def __init__(
        self, group: ProcessGroup, name: str, number: int, request: Any, finish: Callable[[], None] | None,
        outputs: list, timeout: float, started: float = 0.0,
    ):  # fmt: skip
        self.group, self.name, self.number, self.outputs, self.timeout = group, name, number, outputs, timeout
        self.request, self._finish = request, finish
        self.started, self.ended = started or time.perf_counter(), 0.0
        self.nbytes = 0
        self._done, self._error = False, None
        self._turn = threading.Lock()
        self._future: Future | None = None

    # ---- what programs ask
    def wait(self, timeout: Any = None) -> bool:
        """Return when the call is complete; raise what went wrong."""
        limit = self.timeout if timeout is None else seconds(timeout)
        end, pause, spins = time.monotonic() + limit, SHORTEST, SPINS
        while not self._poll():
            if spins:
                spins -= 1
                continue
            if time.monotonic() > end:
                self._fail(self.group.late(self, limit))
                break
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._poll()

    def is_success(self) -> bool:
        return self._poll() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list:
        return self.outputs

    def source_rank(self) -> int:
        """The rank that a message came from."""
        return self.group.ranks[self.group.channel.source_of(self.request)]

    def get_future(self) -> Future:
        """A future of the list of tensors that the call writes."""
        with self._turn:
            if self._future is None:
                self._future = _WorkFuture(self)
                if self._done:
                    self._complete_future()
        if not self._poll():
            progress.watch(self)  # what follows on the future has nobody else who would notice
        return self._future

    def boxed(self) -> Work:
        return self

    # ---- how it ends
    def _poll(self) -> bool:
        """Whether it is complete; whoever notices does what is left to do."""
        if self._done:
            return True
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if not self._done:
                self._test()
            return self._done
        finally:
            self._turn.release()

    def _test(self) -> None:
        try:
            with LOCK:
                ready = self.request.Test()
            if not ready:
                return
            if self._finish is not None:
                self._finish()
        except Exception as e:  # noqa: BLE001 - kept for whoever waits
            self._error = e if isinstance(e, RuntimeError) else DistBackendError(f"{self.name}: {e}")
        self._end()

    def _fail(self, error: Exception) -> None:
        with self._turn:
            if not self._done:
                self._error = error
                self._end()

    def _end(self) -> None:
        self.ended = time.perf_counter()
        self._finish = None
        self._done = True
        self.group.over(self)
        if self._future is not None:
            self._complete_future()

    def _complete_future(self) -> None:
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self.outputs)


class _WorkFuture(Future):
    """The future of a work: waiting for it waits for the work, and so keeps it going."""

    def __init__(self, work: Work):
        super().__init__()
        self._work = work

    def wait(self) -> Any:
        self._work.wait()
        return super().wait()


def seconds(timeout: Any) -> float:
    """A number of seconds from one, or from a timedelta."""
    return timeout.total_seconds() if hasattr(timeout, "total_seconds") else float(timeout)


class Progress:
    """The thread that keeps calls going which nobody waits for yet."""

    PAUSE = 3e-4  # seconds between rounds

    def __init__(self) -> None:
        self.pending: list[Work] = []
        self.changed = threading.Condition()
        self.thread: threading.Thread | None = None
        self.stopped = False

    def watch(self, work: Work) -> None:
        with self.changed:
            if work not in self.pending:
                self.pending.append(work)
            if self.thread is None:
                self.stopped = False
                self.thread = threading.Thread(target=self._run, name="pullback-progress", daemon=True)
                self.thread.start()
            self.changed.notify()

    def stop(self) -> None:
        """End the thread; calls that are still under way are left to those who wait."""
        with self.changed:
            self.stopped = True
            self.changed.notify()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()
        self.thread, self.pending = None, []

    def _run(self) -> None:
        while True:
            with self.changed:
                while not self.pending and not self.stopped:
                    self.changed.wait()
                if self.stopped:
                    return
                works = list(self.pending)
            ended = [w for w in works if w._poll()]
            with self.changed:
                self.pending = [w for w in self.pending if w not in ended]
            time.sleep(self.PAUSE)


progress = Progress()
