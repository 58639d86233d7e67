"""One owner of threads: both pools have as many as are asked for, and a child after a fork has its own."""

from __future__ import annotations

import os
import threading

import pytest

from pullback.core import threads


@pytest.fixture
def two():
    before = threads.thread_count()
    threads.set_thread_count(2)
    yield
    threads.set_thread_count(before)


def test_thunks_run_at_the_same_time_and_give_results_in_order(two):
    meet = threading.Barrier(2, timeout=20)

    def thunk(n):
        def run():
            meet.wait()
            return n, threading.current_thread().name

        return run

    (first, worker), (second, own) = threads.run_all([thunk(1), thunk(2)])
    assert (first, second) == (1, 2) and worker.startswith("pullback") and own == threading.current_thread().name


def test_the_pool_changes_its_size_and_lets_the_old_one_go(two):
    before = threads.workers.of_size(2)
    assert threads.workers.of_size(2) is before
    after = threads.workers.of_size(3)
    with pytest.raises(RuntimeError, match="after shutdown"):
        before.submit(int)
    assert after.submit(int).result() == 0


def test_a_child_after_a_fork_has_its_own_pool(two):
    assert threads.run_all([lambda: 1, lambda: 2]) == [1, 2]
    child = os.fork()
    if not child:
        os._exit(0 if threads.run_all([lambda: 3, lambda: 4]) == [3, 4] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_number_below_one_is_refused():
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        threads.set_thread_count(0)
