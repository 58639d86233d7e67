"""`Timer`: statements timed with a fixed number of threads.

In: a statement as text, setup code that is not timed, names that both see. Out: a `Measurement`. What always holds: the number
of threads is what it was before, however a run ends.
"""

from __future__ import annotations

import textwrap
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from ...core.threads import set_thread_count, thread_count
from .measurement import Measurement, TaskSpec

timer = perf_counter


@contextmanager
def _threads(n: int) -> Iterator[None]:
    before = thread_count()
    set_thread_count(n)
    try:
        yield
    finally:
        set_thread_count(before)


class Timer:
    """Times a statement: `Timer("x @ x", globals={"x": x}).blocked_autorange()`."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ):
        if str(getattr(language, "value", language)).lower() not in ("python", "py", "0"):
            raise ValueError(f"Timer: statements in {language} cannot be timed here, only in Python")
        if global_setup:
            raise ValueError(f"global_setup is for C++ alone, got `{global_setup}`; use setup")
        stmt, setup = (textwrap.dedent(code).strip() for code in (stmt, setup))
        self._globals = dict(globals or {})
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)

    def _run(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a clock may not have moved

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of `number` calls, after a shorter one that is not counted."""
        with _threads(self._task_spec.num_threads):
            self._run(max(number // 100, 1))
            return self._measured(number, [self._run(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable | None = None) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """So many calls that starting the clock is a thousandth of a run, or a run takes as long as was asked for."""
        overhead = sorted(timeit.Timer("pass", timer=self._timer.timer).timeit(1) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._run(number)
            if overhead / taken <= 1e-4 or taken >= min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Runs of as many calls as it takes to time them well, until `min_run_time` is over."""
        with _threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while not times or sum(times) < min_run_time:
                times.append(self._run(number))
                if callback is not None:
                    callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the interquartile range is below `threshold` of the median, or time is up."""
        with _threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times: list[float] = []
            while sum(times) < max_run_time:
                times.append(self._run(number))
                if callback is not None:
                    callback(number, times[-1])
                result = self._measured(number, times)
                if len(times) > 3 and sum(times) > min_run_time and result.iqr < threshold * result.median:
                    break
        return self._measured(number, times)
