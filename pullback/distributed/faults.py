"""Ranks that die: the first to fail says why, and takes the others with it.

In: an exception that nobody caught. Out: its traceback under the rank's name, on standard error and, under a launcher, in
a file of the job's folder; then all ranks end. Without this the others would wait for the dead one.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import traceback
from types import TracebackType
from typing import Any

_STARTERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli") + os.sep
_watched: dict[str, Any] = {}


def watch(channel: Any) -> None:
    """From now on, an exception that nobody catches in this process ends all ranks of the job."""
    _watched["channel"] = channel
    if "hook" not in _watched:
        _watched["hook"], sys.excepthook = sys.excepthook, _report


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    channel = _watched["channel"]
    fail(error, channel.rank, channel.size)


def fail(error: BaseException, rank: int, size: int, code: int = 1) -> None:
    """Say what went wrong in this rank, and end the job."""
    text = "".join(traceback.format_exception(type(error), error, programs_part(error.__traceback__)))
    host, pid = socket.gethostname(), os.getpid()
    sys.stdout.flush()
    lines = f"[rank {rank} of {size}, pid {pid} on {host}] failed:\n{text}".splitlines()
    sys.stderr.write("".join(f"[rank {rank}] {line}\n" for line in lines))
    sys.stderr.flush()
    write_record(rank, text)
    abort(code)


def programs_part(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of what started the program."""
    at = trace
    while at is not None and is_starter(at.tb_frame.f_code.co_filename):
        at = at.tb_next
    return at or trace


def is_starter(path: str) -> bool:
    """Whether a file is one of those that start programs."""
    return path.startswith(_STARTERS) or path == "<frozen runpy>"


def write_record(rank: int, text: str, code: int = 1) -> None:
    """Leave the reason of a failure where the launcher looks for it."""
    folder = os.environ.get("PULLBACK_JOB")
    if not folder or not os.path.isdir(folder):
        return
    facts = {
        "rank": rank, "pid": os.getpid(), "host": socket.gethostname(), "time": time.time(), "code": code, "traceback": text,
    }  # fmt: skip
    path = os.path.join(folder, f"failed-{rank}.json")
    with open(path + ".part", "w") as file:
        json.dump(facts, file)
    os.replace(path + ".part", path)


def abort(code: int) -> None:
    """End all ranks. A process that MPI does not know ends alone."""
    module = sys.modules.get("mpi4py.MPI")
    if module is not None and module.Is_initialized() and not module.Is_finalized():
        module.COMM_WORLD.Abort(code)
    os._exit(code)
