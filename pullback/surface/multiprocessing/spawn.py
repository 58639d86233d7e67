"""`spawn`: a function in several new processes, and what goes wrong there raised here."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from typing import Any


class ProcessException(Exception):
    """A process that was started did not end well."""

    __slots__ = ("error_index", "error_pid")

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception; its traceback is in the message."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or ended itself with a code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable, index: int, args: tuple, error_file: str) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and says so
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        if "mpi4py.MPI" in sys.modules:  # a rank: to leave in order it would wait for the others, who wait for it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        sys.exit(1)


class ProcessContext:
    """The processes that were started together."""

    def __init__(self, processes: list, error_files: list[str]):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one has failed or all are done: True when all are done. A failure ends the others and is raised."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        self._raise(failed)
        return False

    def _end_others(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30 if grace_period is None else grace_period)
            if process.is_alive():
                warnings.warn(f"Process {process.pid} did not end when asked to; killing it", stacklevel=3)
                process.kill()
                process.join()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        if os.path.getsize(self.error_files[index]):
            with open(self.error_files[index], "rb") as file:
                text = pickle.load(file)
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}", index, process.pid
            )
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


class SpawnContext(ProcessContext):
    """The processes of `spawn`."""


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` new processes; with `join`, wait for them and raise what one of them raised."""
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for index in range(nprocs):
        handle, error_file = tempfile.mkstemp(prefix="pullback-process-", suffix=".error")
        os.close(handle)
        process = context.Process(target=_run, args=(fn, index, args, error_file), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(error_file)
    started = SpawnContext(processes, files)
    if not join:
        return started
    try:
        while not started.join():
            pass
    finally:
        for file in files:
            os.unlink(file)
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` new Python processes."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
