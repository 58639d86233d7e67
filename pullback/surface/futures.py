"""`Future`: a value that another thread will give, and what is to be done with it then.

A future is completed once, by a value or by an exception. Callbacks run in the thread that completes it, or at once if
it is complete; each runs exactly once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)


class Future(Generic[T]):
    """A result to come.

    >>> future = torch.Future()
    >>> future.set_result(5)
    >>> future.wait()
    5
    """

    def __init__(self, *, devices: list | None = None):
        self._ready = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], object]] = []

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Whether it has a value or an exception."""
        return self._done

    def wait(self) -> Any:
        """The value, when it is there; an exception is raised."""
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        return self._outcome()

    def value(self) -> Any:
        """The value of a future that is complete."""
        if not self._done:
            raise RuntimeError("value() called on a Future that is not complete: call wait()")
        return self._outcome()

    def _outcome(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Complete it by a value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete it by an exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._ready:
            if self._done:
                raise RuntimeError("Future can only be marked completed once.")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._ready.notify_all()
        for callback in callbacks:
            _run_callback(callback, self)

    def add_done_callback(self, callback: Callable[[Future], object]) -> None:
        """Call `callback(self)` when complete; what it returns or raises is not kept."""
        with self._ready:
            if not self._done:
                self._callbacks.append(callback)
                return
        _run_callback(callback, self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of what `callback(self)` will return or raise."""
        after: Future = Future()

        def run(this: Future) -> None:
            try:
                result = callback(this)
            except Exception as e:  # noqa: BLE001 - handed to whoever waits
                error = RuntimeError(f"Got the following error when running the callback: {type(e).__name__}: {e}")
                error.__cause__ = e
                after.set_exception(error)
            else:
                after.set_result(result)

        self.add_done_callback(run)
        return after


def _run_callback(callback: Callable[[Future], object], future: Future) -> None:
    """Call a callback; nobody waits for its error, which is logged, and whoever completes the future does not get it."""
    try:
        callback(future)
    except Exception:
        log.exception("Got the following error when running the callback of a Future")


def check_future(future: Future | None) -> None:
    if future is None:
        raise RuntimeError("Future can't be None")


def collect_all(futures: list[Future]) -> Future:
    """A future of the list, complete when all in it are."""
    for future in futures:
        check_future(future)
    together: Future = Future()
    left, lock = [len(futures)], threading.Lock()

    def one_done(_: Future) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(one_done)
    return together


def wait_all(futures: list[Future]) -> list:
    """The values of all, when they are there."""
    return [f.wait() for f in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
