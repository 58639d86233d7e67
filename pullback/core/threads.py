"""The threads of the process: how many there are, and the two pools in which they wait.

Python callables (chunks of work of the array library) run on `run_all`'s pool: they need threads that the interpreter knows. C
code runs without the GIL on a pool of its own (`native_pool.h`), whose address `native_pool()` gives: a piece of a kernel takes
less time than waking a Python thread for it, and Python threads cannot run C without the GIL being asked for. So there are two,
and no more: the kernels in C and all generated code share the second. Both are made at first need, have as many threads as
`set_thread_count` says, and are made again in a child after a fork; BLAS, which has threads of its own, is told the number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .extension import extension
from .modes import process

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def processors() -> int:
    """How many processors this process may use, where the system says so; else how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """How many threads large work uses."""
    if process.threads is None:
        process.threads = int(os.environ.get("OMP_NUM_THREADS") or processors())
    return process.threads


def set_thread_count(n: int) -> None:
    """Set it, for both pools and for BLAS."""
    if n < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    process.threads = n
    tell_blas()


def tell_blas() -> None:
    """Let BLAS know how many threads it has: one where results may not depend on their number, since they would on how it cuts products. Where
    there are products of our own, they are then used for all, with all threads."""
    from .blas import set_blas_threads

    if (own := extension("_products")) is not None:
        own.prefer(2 if process.deterministic else 1)
    set_blas_threads(1 if process.deterministic else thread_count())


class Workers:
    """The threads that run Python callables."""

    def __init__(self) -> None:
        self.pool: ThreadPoolExecutor | None = None
        self.size = 0

    def of_size(self, n: int) -> ThreadPoolExecutor:
        """The pool, with this many threads."""
        if self.pool is None or self.size != n:
            from concurrent.futures import ThreadPoolExecutor  # it brings logging, and few programs need it

            before, self.size = self.pool, n
            self.pool = ThreadPoolExecutor(n, "pullback", initializer=quiet)
            if before is not None:
                before.shutdown(wait=False)  # its threads end when they have done what they were given
        return self.pool

    def forget(self) -> None:
        """In a child after a fork there are no threads behind the pool."""
        self.pool = None


workers = Workers()
os.register_at_fork(after_in_child=workers.forget)


def quiet() -> None:
    np.seterr(all="ignore")


def run_all(tasks: list[Callable]) -> list:
    """The results of thunks that run at the same time, the last of them on this thread."""
    if len(tasks) == 1:
        return [tasks[0]()]
    pool = workers.of_size(thread_count())
    futures = [pool.submit(t) for t in tasks[:-1]]
    last = tasks[-1]()
    return [f.result() for f in futures] + [last]


def native_pool() -> int | None:
    """The address of `parallel` of the pool for C code; None where the extension is not built, or by an older source."""
    pool = getattr(extension("_native"), "pool", None)
    return None if pool is None else pool()
