"""The pool covers each range exactly once, from one caller or several, and after a fork."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

from pullback.core import native
from pullback.core.threads import native_pool
from pullback.runtime import build, threads

try:
    build.compiler()
except build.NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

BODY = """
void add_one(long begin, long end, void *const *a) { long *p = a[0]; for (long i = begin; i < end; i++) p[i] += 1; }
"""


def by_itself() -> int:
    return ctypes.cast(threads.built().parallel, ctypes.c_void_p).value


@pytest.fixture(scope="module", params=[threads.parallel, by_itself], ids=["shared", "built here"])
def add_one(request):
    library = ctypes.CDLL(str(build.build(BODY)))
    pool = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_long] * 3, ctypes.c_void_p, ctypes.c_long)(
        request.param()
    )
    body = ctypes.cast(library.add_one, ctypes.c_void_p).value

    def run(array, first: int, last: int, grain: int, count: int) -> None:
        arguments = (ctypes.c_void_p * 1)(array.ctypes.data)
        pool(body, first, last, grain, ctypes.addressof(arguments), count)

    return run


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [1, 7, 1000, 12345])
def test_every_iteration_once(add_one, n, count):
    a = np.zeros(n, np.int64)
    for _ in range(20):
        add_one(a, 0, n, 1, count)
    assert (a == 20).all()


def test_part_of_a_range(add_one):
    a = np.zeros(100, np.int64)
    add_one(a, 10, 90, 1, 4)
    assert a.sum() == 80 and not a[:10].any() and not a[90:].any()


def test_callers_at_the_same_time(add_one):
    arrays = [np.zeros(5000, np.int64) for _ in range(4)]

    def work(a):
        for _ in range(50):
            add_one(a, 0, 5000, 1, 3)

    callers = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert all((a == 50).all() for a in arrays)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_a_fork(add_one):
    a = np.zeros(1000, np.int64)
    add_one(a, 0, 1000, 1, 4)
    child = os.fork()
    if child == 0:
        add_one(a, 0, 1000, 1, 4)
        os._exit(0 if (a == 2).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not native.available, reason="the extension is not built")
def test_generated_code_shares_the_pool_of_the_kernels_in_c():
    assert threads.parallel() == native_pool() != 0


def test_the_pool_is_built_by_itself_where_the_extension_is_not(monkeypatch):
    monkeypatch.setattr("pullback.core.threads.extension", lambda name: None)
    assert threads.parallel() == by_itself()
