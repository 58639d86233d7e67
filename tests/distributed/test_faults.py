"""Ranks that fail: the job ends at once, and says which and why."""

import random
import time

import pytest

from pullback.distributed import launcher

from .kills import kill_one
from .ranks import finish, needs_mpi, start


@needs_mpi
@pytest.mark.parametrize(("what", "level", "words"), [
    ("raise", "OFF", ["rank 1 failed first", "ValueError: no such file of samples", "faults.py"]),
    ("kill", "OFF", ["rank 1 (pid", "was ended by signal 9 (Killed)"]),
    ("late", "OFF", ["timed out after 1000 ms on rank 0: rank 1 has not come to it", "rank 1: after all_reduce #1"]),
    ("shapes", "DETAIL", ["Rank 0 is running collective: all_reduce #2 of group 0([3] float32", "but rank 1 is running collective: all_reduce #2 of group 0([4] float32"]),
    ("dtypes", "DETAIL", ["Rank 0 is running collective: all_reduce #2 of group 0([3] float32", "but rank 1 is running collective: all_reduce #2 of group 0([3] float64"]),
    ("monitored", "OFF", ["rank 1", "monitored_barrier"]),
    ("order", "DETAIL", ["Rank 0 is running collective: all_reduce #2", "but rank 1 is running collective: barrier #2"]),
])  # fmt: skip
def test_a_fault_ends_the_job(what, level, words):
    began = time.monotonic()
    code, _, err = finish(start("faults.py", 2, what, TORCH_DISTRIBUTED_DEBUG=level))
    assert code != 0 and time.monotonic() - began < 60
    report = err.partition("pullback launch: ")[2]
    for word in words:
        assert word in report, err


@needs_mpi
@pytest.mark.parametrize("joined", [False, True])
def test_a_rank_that_is_killed_at_any_moment_leaves_nothing_behind(joined):
    """Twice here, and as often as one likes by `python -m tests.distributed.kills`."""
    outcome = kill_one(2, random.Random(), joined, longest=2.0)
    assert outcome.good, outcome


def test_the_first_failure_is_on_top(tmp_path):
    for rank, moment in ((0, 12.0), (1, 11.0)):
        (tmp_path / f"failed-{rank}.json").write_text(
            f'{{"rank": {rank}, "pid": 1, "host": "h", "time": {moment}, "code": 1, "traceback": "trace {rank}\\n"}}'
        )
    text = launcher.report(str(tmp_path), "", 10.0, 1)
    assert (
        text.index("rank 1 failed first (pid 1 on h, after 1.0 s") < text.index("trace 1") < text.index("also failed")
    )


def test_words_of_mpiexec_are_kept_for_the_report(tmp_path):
    said = "prterun noticed that process rank 3 with PID 99 on node x exited on\nsignal 9 (Killed).\n"
    assert "rank 3 (pid 99) was ended by signal 9 (Killed)" in launcher.report(str(tmp_path), said, 0.0, 137)


def test_ranks_are_named_as_torchrun_names_them():
    env = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    assert launcher.name_rank(env) == 2
    assert (env["RANK"], env["WORLD_SIZE"], env["LOCAL_RANK"], env["MASTER_ADDR"]) == ("2", "4", "0", "127.0.0.1")
