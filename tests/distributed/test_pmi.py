"""Ranks that no launcher started: what the process beside rank 0 answers, and worlds that MPICH joins by it."""

import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from pullback.distributed import mpi, pmi
from pullback.distributed.rendezvous import place_of

from .ranks import PROGRAMS


def has_mpich() -> bool:
    if not mpi.is_installed():
        return False
    said = subprocess.run(
        [sys.executable, "-c", "from mpi4py import MPI; print(MPI.get_vendor()[0])"], capture_output=True, text=True, check=False
    )  # fmt: skip
    return "MPICH" in said.stdout


needs_mpich = pytest.mark.skipif(not has_mpich(), reason="MPICH is not installed: pip install 'pullback[mpi]'")


# ---- the protocol
def ask(server, line, state):
    return server.answer(dict(w.split("=", 1) for w in line.split() if "=" in w), line + "\n", state)


def test_what_a_library_asks_while_it_starts():
    server, state = pmi.Server(2), {"rank": -1, "left": False}
    assert "size=2\ncmd=set rank=1" in ask(server, "cmd=initack pmiid=1", state)
    assert "rc=0" in ask(server, "cmd=init pmi_version=1 pmi_subversion=1", state)
    assert "size=2" in ask(server, "cmd=get_universe_size", state)
    assert "kvsname_max=256" in ask(server, "cmd=get_maxes", state)
    assert "appnum=0" in ask(server, "cmd=get_appnum", state)
    assert server.name in ask(server, "cmd=get_my_kvsname", state)
    assert "rc=-1" in ask(server, "cmd=get kvsname=k key=card", state)
    ask(server, "cmd=put kvsname=k key=card value=a=b c", state)
    assert ask(server, "cmd=get kvsname=k key=card", state).endswith("value=a=b c\n")
    assert "finalize_ack" in ask(server, "cmd=finalize", state) and state == {"rank": 1, "left": True}
    assert "rc=-1" in ask(server, "cmd=spawn", state)


def test_two_jobs_have_names_of_their_own():
    assert pmi.Server(2).name != pmi.Server(2).name


def test_a_barrier_waits_for_all():
    server, out = pmi.Server(2), []
    first = threading.Thread(target=lambda: (server.barrier(), out.append("first")))
    first.start()
    first.join(0.05)
    assert out == []
    server.barrier()
    first.join(5)
    assert out == ["first"] and server.arrived == 2


@pytest.mark.parametrize("leaves", [True, False])
def test_who_goes_without_leaving_is_told_to_the_others(leaves):
    server = pmi.Server(2)
    listener = socket.create_server(("127.0.0.1", 0))
    running = threading.Thread(target=server.run, args=(listener,), daemon=True)
    running.start()
    port = listener.getsockname()[1]
    watcher = socket.create_connection(("127.0.0.1", port))
    watcher.sendall(b"cmd=watch rank=0\n")
    libraries = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
    for rank, library in enumerate(libraries):
        library.sendall(f"cmd=initack pmiid={rank}\n".encode())
        library.recv(1024)
        if rank == 0 or leaves:
            library.sendall(b"cmd=finalize\n")
            library.recv(1024)
    while len(server.watchers) < 1:
        pass
    for library in reversed(libraries):
        library.shutdown(socket.SHUT_RDWR)
        library.close()
    running.join(10)
    assert not running.is_alive()
    watcher.settimeout(0.2)
    if leaves:
        with pytest.raises(TimeoutError):
            watcher.recv(100)
    else:
        assert watcher.recv(100) == b"cmd=gone rank=1\n"


def test_who_comes_after_another_is_gone_is_told_so(monkeypatch):
    monkeypatch.setattr(pmi, "LINGER", 2.0)
    server = pmi.Server(3)
    listener = socket.create_server(("127.0.0.1", 0))
    running = threading.Thread(target=server.run, args=(listener,), daemon=True)
    running.start()
    with socket.create_connection(listener.getsockname()) as early:
        early.sendall(b"cmd=watch rank=0\n")  # its library has not even started
    with socket.create_connection(listener.getsockname(), timeout=10) as late:
        while not server.lost:
            pass
        late.sendall(b"cmd=watch rank=1\n")
        assert late.recv(100) == b"cmd=gone rank=0\n"
    running.join(10)
    assert not running.is_alive()  # although rank 2 never came


# ---- addresses
def test_ranks_without_an_address_are_told_what_is_missing(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", *mpi.LAUNCHERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mpi, "_joined", [])
    with pytest.raises(ValueError, match="environment variable MASTER_ADDR expected, but not set"):
        place_of(None, 2, 0, None, needs_env=True)
    assert place_of("tcp://host:1234", 2, 1, None, needs_env=True).meeting_point() == ("host", 1234)
    monkeypatch.setenv("MASTER_ADDR", "elsewhere")
    monkeypatch.setenv("MASTER_PORT", "77")
    assert place_of("env://", 2, 1, None, needs_env=True).meeting_point() == ("elsewhere", 77)


def test_an_address_where_nobody_listens(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    with pytest.raises(RuntimeError, match="rank 0 was not to be found at 127.0.0.1"):
        pmi.join("127.0.0.1", port, 1, 2, 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RuntimeError, match="rank 0 cannot listen at"):
        pmi.join("127.0.0.1", taken.getsockname()[1], 0, 2, 0.1)


# ---- worlds
def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def environment():
    known = {k: v for k, v in os.environ.items() if k not in mpi.LAUNCHERS}
    return known | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@needs_mpich
@pytest.mark.parametrize("how", ["env", "tcp", "file", "store"])
def test_spawned_ranks_are_joined(how, tmp_path):
    command = [sys.executable, str(PROGRAMS / "joined.py"), how, str(tmp_path), free_port()]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "all done\n", done.stderr
    assert {"done-0", "done-1"} <= set(os.listdir(tmp_path))


@needs_mpich
def test_a_spawned_rank_that_fails_ends_the_others(tmp_path):
    folder = tmp_path / "fail"
    folder.mkdir()
    command = [sys.executable, str(PROGRAMS / "joined.py"), "tcp", str(folder), free_port()]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "ValueError: no such file of samples" in done.stderr


KILLED = """
import os, sys
import pullback as torch, pullback.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1)
for i in range(10**6):
    dist.all_reduce(t)
    if i == 5 and dist.get_rank() == 1:
        os.kill(os.getpid(), 9)
"""


@needs_mpich
def test_a_rank_that_is_killed_ends_the_others():
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen([sys.executable, "-c", KILLED], env=environment() | place | {"RANK": str(r)}, stderr=subprocess.PIPE, text=True)
        for r in range(2)
    ]  # fmt: skip
    said = [rank.communicate(timeout=100)[1] for rank in ranks]
    assert ranks[1].returncode == -signal.SIGKILL
    assert ranks[0].returncode == 1
    assert "[rank 0] rank 1 is gone without leaving the group" in said[0]
