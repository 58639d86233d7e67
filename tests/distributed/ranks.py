"""Running a program of `tests/distributed/programs` as several ranks, and what it said."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from pullback.distributed import mpi

PROGRAMS = pathlib.Path(__file__).parent / "programs"
needs_mpi = pytest.mark.skipif(not mpi.is_installed(), reason="MPI is not installed: pip install 'pullback[mpi]'")


def start(program: str, ranks: int, *arguments: str, **environment: str) -> subprocess.Popen:
    """Launch a program; its ranks end with the test, whatever happens."""
    command = [sys.executable, "-m", "pullback", "launch", "-n", str(ranks), str(PROGRAMS / program), *arguments]
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(job: subprocess.Popen, limit: float = 200) -> tuple[int, str, str]:
    """(exit status, standard output, standard error); a job that hangs is ended, and fails the test."""
    try:
        out, err = job.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        out, err = job.communicate()
        pytest.fail(f"the job hangs after {limit} s\n{out}\n{err}")
    return job.returncode, out, err


def run_ranks(program: str, ranks: int, *arguments: str, **environment: str) -> str:
    """What a program that must succeed wrote to standard output."""
    code, out, err = finish(start(program, ranks, *arguments, **environment))
    assert code == 0, f"status {code}\n{out}\n{err}"
    return out
