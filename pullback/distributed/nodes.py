"""One node of several, each started by a command of its own, as torchrun does it: its ranks meet those of the others at an address.

In: a command, how many ranks run here, and a `Node`: which of how many this is, and where rank 0 listens. Out: the exit status.
The processes are started here and joined by MPI without a launcher of its own (see `pmi`). One that fails ends those beside it,
and through MPI those of other nodes; what it left in the job's folder is reported last.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .launcher import die_with_parent, environment, forward, report
from .stores import Store, TCPStore
from .work import DistError


@dataclass
class Node:
    """Which node of how many, and the address at which all ranks meet."""

    rank: int
    count: int
    host: str
    port: int
    kept: list[Store] = field(default_factory=list)  # a store that other nodes use, as long as this one runs


def split_address(endpoint: str, port: int = 29400) -> tuple[str, int]:
    """(host, port) of `HOST[:PORT]`."""
    host, _, given = endpoint.partition(":")
    return host, int(given or port)


def met(endpoint: str, count: int, job: str) -> Node:
    """The place of this node among those that name the same endpoint: in the order in which they come."""
    host, port = split_address(endpoint)
    try:
        store = TCPStore(host, port, is_master=True)
    except (OSError, DistError):  # another node's address, or it was there first
        store = TCPStore(host, port, is_master=False)
    rank = store.add(f"{job}/nodes", 1) - 1
    if rank >= count:
        raise RuntimeError(f"--nnodes {count}: {count} nodes of job {job!r} have come to {endpoint} already")
    if rank == 0:
        here = host if host in ("localhost", "127.0.0.1") else socket.gethostname()
        with socket.create_server((here, 0)) as found:
            store.set(f"{job}/ranks", f"{here}:{found.getsockname()[1]}")
    place = store.get(f"{job}/ranks").decode()
    return Node(rank, count, *split_address(place), [store])


def launch_node(command: Sequence[str], ranks: int, node: Node, restarts: int = 0, grace: float = 5.0) -> int:
    """Run a command as the ranks of one node, again up to `restarts` times where it fails; gives the last exit status."""
    code = 0
    for attempt in range(restarts + 1):
        folder = tempfile.mkdtemp(prefix="pullback-job-")
        try:
            code = _run(command, ranks, node, folder, attempt, grace)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if code == 0:
            break
    return code


def variables(ranks: int, node: Node, folder: str, attempt: int, local: int) -> dict[str, str]:
    """What one rank finds in its environment, under torchrun's names."""
    size = ranks * node.count
    own = {
        "RANK": node.rank * ranks + local, "WORLD_SIZE": size, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": ranks,
        "GROUP_RANK": node.rank, "GROUP_WORLD_SIZE": node.count, "MASTER_ADDR": node.host, "MASTER_PORT": node.port,
    }  # fmt: skip
    return environment(size, None, folder, attempt) | {name: str(value) for name, value in own.items()}


def _run(command: Sequence[str], ranks: int, node: Node, folder: str, attempt: int, grace: float) -> int:
    started = time.time()
    jobs = [
        subprocess.Popen(
            command, env=variables(ranks, node, folder, attempt, i), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        for i in range(ranks)
    ]  # fmt: skip
    readers = [
        threading.Thread(target=forward, args=(stream, sink, []), daemon=True)
        for job in jobs
        for stream, sink in ((job.stdout, sys.stdout), (job.stderr, sys.stderr))
    ]
    for reader in readers:
        reader.start()
    try:
        first = _first_failure(jobs)
        if first is not None:
            _wait(jobs, grace)
    finally:
        _end(jobs)
    for reader in readers:
        reader.join(2)
    if first is None:
        return 0
    code = jobs[first].returncode
    sys.stderr.write(report(folder, ended_by(node.rank * ranks + first, jobs[first]), started, abs(code)))
    return 128 - code if code < 0 else code


def _first_failure(jobs: list[subprocess.Popen]) -> int | None:
    """Which process failed first; None where all have ended well."""
    while True:
        codes = [job.poll() for job in jobs]
        failed = [i for i, code in enumerate(codes) if code]
        if failed or None not in codes:
            return failed[0] if failed else None
        time.sleep(0.05)


def _wait(jobs: list[subprocess.Popen], grace: float) -> None:
    """Give the others time to hear of a failure, and to say what they were at."""
    end = time.monotonic() + grace
    while any(job.poll() is None for job in jobs) and time.monotonic() < end:
        time.sleep(0.05)


def _end(jobs: list[subprocess.Popen]) -> None:
    for job in jobs:
        if job.poll() is None:
            job.kill()
        job.wait()


def ended_by(rank: int, job: subprocess.Popen) -> str:
    """In mpiexec's words, the signal that ended a rank; nothing where none did."""
    if job.returncode is None or job.returncode >= 0:
        return ""
    number = -job.returncode
    return f"rank {rank} with PID {job.pid} exited on signal {number} ({signal.strsignal(number)})"


def static(node_rank: int, count: int, host: str, port: int) -> Node:
    """A node whose place the command line says."""
    if not 0 <= node_rank < count:
        raise ValueError(f"--node-rank: expected a number from 0 to {count - 1}, got {node_rank}")
    return Node(node_rank, count, host, port)
