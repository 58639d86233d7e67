"""Worker processes that end before they should, noticed by their signal.

A loader that starts processes of its own registers them (`watch`); the handler of SIGCHLD, and whoever calls
`raise_for_dead_workers`, raises with the process and what ended it. Processes that were taken out (`forget`) may end.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
import threading

_watched: dict[int, set[int]] = {}  # loader -> processes
_handling = False
python_is_ending = False


@atexit.register
def _note_the_end() -> None:
    global python_is_ending
    python_is_ending = True


def watch(loader: int, pids: tuple[int, ...]) -> None:
    if loader in _watched:
        raise ValueError(f"the workers of loader {loader} are already watched: {sorted(_watched[loader])}")
    _watched[loader] = set(pids)


def forget(loader: int) -> None:
    if loader not in _watched:
        raise ValueError(f"no workers of loader {loader} are watched")
    del _watched[loader]


def raise_for_dead_workers() -> None:
    """An error for a watched process that a signal or a failure ended; nobody else loses the news of it."""
    for pids in _watched.values():
        for pid in pids:
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # somebody waited for it
                continue
            words = _what_ended(ended)
            if words:
                pids.clear()  # one error for one loader
                raise RuntimeError(f"DataLoader worker (pid {pid}) {words}")


def _what_ended(ended: os.waitid_result | None) -> str:
    if ended is None or (ended.si_code == os.CLD_EXITED and not ended.si_status):
        return ""
    if ended.si_code == os.CLD_EXITED:
        return f"exited unexpectedly with exit code {ended.si_status}. Its error is above, or with num_workers=0."
    return f"is killed by signal: {signal.strsignal(ended.si_status)}."


def handle_ended_children() -> None:
    """From now on the end of a child is looked at when it comes; handlers from before run afterwards."""
    global _handling
    if _handling or os.name == "nt" or threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGCHLD)

    def look(number, frame) -> None:
        raise_for_dead_workers()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGCHLD, look)
    _handling = True


def prepare_worker() -> None:
    """In a worker: crashes (a bus error, when shared memory is full) leave a traceback."""
    if not faulthandler.is_enabled():
        faulthandler.enable()
