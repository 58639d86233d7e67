"""Ranks that no launcher started: MPI joins them where they meet at an address.

A program may start its processes itself (`torch.multiprocessing.spawn`, a command in each of two terminals) and give each a
rank and one address. An MPI library wants a launcher to tell it who is who, and asks by a protocol of its own: PMI-1, lines
of text, of which MPICH speaks the client's side. Here is the other side: a small process, started by rank 0, that listens at
the address, keeps the few values which the libraries exchange while they start, and holds their barriers. Afterwards it
only watches: when a rank goes without leaving, before its library has started or after, the others are told and end (`Watch`).

Run as a script it is that process: `python pmi.py SIZE HOST PORT` prints the port when it listens.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

LINGER = 30.0  # seconds in which ranks that come after another is gone are told so
NAMES = ("PMI_PORT", "PMI_ID", "PMI_RANK", "PMI_SIZE")


# ---- in a rank
class Watch:
    """A connection to the process beside rank 0; when that says that a rank is gone, this process ends."""

    def __init__(self, connection: socket.socket, rank: int):
        self.connection, self.rank = connection, rank
        connection.sendall(f"cmd=watch rank={rank}\n".encode())
        threading.Thread(target=self._listen, name="pullback-ranks", daemon=True).start()

    def _listen(self) -> None:
        try:
            words = self.connection.recv(1024).decode()
        except OSError:
            return
        if words.startswith("cmd=gone"):
            sys.stderr.write(
                f"[rank {self.rank}] rank {words.split('=')[-1].strip()} is gone without leaving the group\n"
            )
            sys.stderr.flush()
            os._exit(1)


def join(host: str, port: int, rank: int, size: int, limit: float) -> Watch:
    """Meet the other ranks at an address, and tell the MPI library, before it is loaded, which of them this is."""
    if "mpi4py.MPI" in sys.modules:
        raise RuntimeError(
            f"init_process_group: rank {rank} of {size} was not started by an MPI launcher, and mpi4py.MPI is loaded already, "
            "as one process alone; call init_process_group before it is imported"
        )
    if rank == 0:
        _start_server(size, host, port)
    connection = _connected(host, port, limit)
    os.environ.setdefault("UCX_LOG_LEVEL", "error")  # which warns of memory that MPICH keeps to the end
    os.environ.update(PMI_PORT=f"{host}:{port}", PMI_ID=str(rank), PMI_RANK=str(rank), PMI_SIZE=str(size))
    return Watch(connection, rank)


def forget() -> None:
    """Once the library has started, processes that this one starts are not ranks."""
    for name in NAMES:
        os.environ.pop(name, None)


_held: list = []  # what closes when this process ends, by which the one beside it knows


def _start_server(size: int, host: str, port: int) -> None:
    command = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(size), host, str(port)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    server = subprocess.Popen(command, start_new_session=True, **pipes)  # type: ignore[call-overload]
    _held.append(server.stdin)
    if not server.stdout.readline():
        why = server.stderr.read().decode().strip().splitlines()
        raise RuntimeError(
            f"init_process_group: rank 0 cannot listen at {host}:{port}: {why[-1] if why else 'no reason given'}"
        )


def _connected(host: str, port: int, limit: float) -> socket.socket:
    end = time.monotonic() + limit
    while True:
        try:
            return socket.create_connection((host, port), timeout=None)
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"init_process_group: rank 0 was not to be found at {host}:{port} in {limit:.0f} s ({error}); is it started, "
                    "with the same address?"
                ) from error
            time.sleep(0.05)


# ---- the process beside rank 0
class Server:
    """What the libraries of all ranks put and ask while they start; and who is still there."""

    def __init__(self, size: int):
        self.size = size
        self.name = f"pullback_{os.getpid()}_{time.time_ns()}"  # which the library also names its shared memory by
        self.values: dict[str, str] = {}
        self.arrived, self.change = 0, threading.Condition()
        self.watchers: dict[int, socket.socket] = {}
        self.left: set[int] = set()  # ranks whose library said that it ends
        self.lost: set[int] = set()  # ranks that went without

    def serve(self, connection: socket.socket) -> None:
        """Answer one connection until it closes."""
        state = {"rank": -1, "left": False}
        try:
            with connection.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    words = dict(word.split("=", 1) for word in line.split() if "=" in word)
                    if words.get("cmd") == "watch":
                        state["rank"] = int(words["rank"])
                        self.watch(state["rank"], connection)
                        continue
                    reply = self.answer(words, line, state)
                    connection.sendall(reply.encode())
                    if state["left"]:  # before its other connection closes
                        self.gone(state["rank"], True)
                    if words.get("cmd") == "abort":
                        break
        except OSError:
            pass  # gone: as good as closed
        if state["rank"] >= 0:
            self.gone(state["rank"], bool(state["left"]))

    def watch_parent(self) -> None:
        """Rank 0, which started this process, holds the other end of its standard input."""
        sys.stdin.read()
        self.gone(0, False)

    def watch(self, rank: int, connection: socket.socket) -> None:
        """A rank wants to know when another is gone; it may be already."""
        with self.change:
            self.watchers[rank] = connection
            for other in self.lost - {rank}:
                _tell(connection, other)

    def answer(self, words: dict[str, str], line: str, state: dict) -> str:
        """The reply to one line of PMI-1."""
        what = words.get("cmd", "")
        simple: dict[str, Callable[[], str]] = {
            "init": lambda: "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": lambda: "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": lambda: "cmd=appnum appnum=0",
            "get_universe_size": lambda: f"cmd=universe_size size={self.size}",
            "get_my_kvsname": lambda: f"cmd=my_kvsname kvsname={self.name}",
        }
        if what in simple:
            return simple[what]() + "\n"
        if what == "initack":
            state["rank"] = rank = int(words["pmiid"])
            return f"cmd=initack rc=0\ncmd=set size={self.size}\ncmd=set rank={rank}\ncmd=set debug=0\n"
        if what == "put":
            self.values[words["key"]] = line.split(" value=", 1)[1].rstrip("\n")
            return "cmd=put_result rc=0 msg=success\n"
        if what == "get":
            found = self.values.get(words["key"])
            return (
                f"cmd=get_result rc=0 msg=success value={found}\n"
                if found is not None
                else "cmd=get_result rc=-1 msg=absent\n"
            )
        if what == "barrier_in":
            self.barrier()
            return "cmd=barrier_out rc=0\n"
        if what == "finalize":
            state["left"] = True
            return "cmd=finalize_ack rc=0\n"
        return f"cmd={what} rc=-1 msg=unknown\n"

    def barrier(self) -> None:
        """Return when all ranks have asked for it."""
        with self.change:
            self.arrived += 1
            goal = -(-self.arrived // self.size) * self.size
            self.change.notify_all()
            self.change.wait_for(lambda: self.arrived >= goal)

    def gone(self, rank: int, left: bool) -> None:
        """A connection of a rank is closed: well, where its library said that it ends; else the other ranks are told."""
        with self.change:
            if left:
                self.left.add(rank)
            elif rank not in self.left | self.lost:
                self.lost.add(rank)
                for other, watcher in self.watchers.items():
                    if other != rank:
                        _tell(watcher, rank)
            self.change.notify_all()

    def run(self, listener: socket.socket) -> None:
        """Serve until every rank is gone; where one went without leaving, no longer than others may take to hear of it."""

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        with self.change:
            self.change.wait_for(lambda: self.lost or len(self.left) >= self.size)
            self.change.wait_for(lambda: len(self.left | self.lost) >= self.size, LINGER)


def _tell(watcher: socket.socket, rank: int) -> None:
    """Say that a rank is gone to one that watches."""
    with contextlib.suppress(OSError):  # it may be gone too
        watcher.sendall(f"cmd=gone rank={rank}\n".encode())


def main(size: int, host: str, port: int) -> int:
    listener = socket.create_server((host, port))
    print(listener.getsockname()[1], flush=True)
    server = Server(size)
    threading.Thread(target=server.watch_parent, daemon=True).start()
    server.run(listener)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
