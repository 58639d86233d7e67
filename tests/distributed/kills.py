"""Jobs of which a rank is killed at a random moment: the rest must end by itself, soon, and leave no process behind.

    python -m tests.distributed.kills --count 50 [--ranks 2] [--seed 0] [--joined]

Prints a line for each job and a table at the end; the exit status is 1 where a job hung, ended well, or left a process.
`--joined`: ranks that no launcher started, of which rank 0 starts the process that joins them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAM = str(Path(__file__).parent / "programs" / "faults.py")
MARK = "PULLBACK_TEST_MARK"  # in the environment of a job's processes, by which those left behind are found
LIMIT = 60.0  # seconds after the kill in which a job must have ended


@dataclass
class Outcome:
    """What became of a job."""

    rank: int
    after: float  # seconds from its start to the kill
    ended: float  # seconds from the kill to its end
    code: int | None  # None: it was still there after `LIMIT`
    orphans: list[int]
    words: str

    @property
    def good(self) -> bool:
        return self.code not in (None, 0) and not self.orphans


def marked(mark: str) -> dict[int, str]:
    """{process: its command line} of those that carry a mark."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # gone, or not ours
            continue
    return {pid: line for pid, line in found.items() if line}  # without those that wait to be collected


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def has_come(pid: int, port: int) -> bool:
    """Whether a process is connected to a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry))
    return bool(found & sockets)


def start(ranks: int, mark: str, port: int | None) -> list[subprocess.Popen]:
    """The processes of a job that this one starts: a launcher; or, with a port to meet at, all ranks."""
    env = os.environ | {MARK: mark, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    if port is None:
        command = [sys.executable, "-m", "pullback", "launch", "-n", str(ranks), PROGRAM, "work"]
        return [subprocess.Popen(command, env=env, start_new_session=True, **quiet)]  # type: ignore[call-overload]
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    command = [sys.executable, "-m", "pullback", "run", PROGRAM, "work"]
    return [subprocess.Popen(command, env=env | {"RANK": str(r)}, **quiet) for r in range(ranks)]  # type: ignore[call-overload]


def ranks_of(mark: str, jobs: list[subprocess.Popen], joined: bool) -> list[int]:
    """The processes that are ranks."""
    if joined:
        return [j.pid for j in jobs]
    return sorted(p for p, line in marked(mark).items() if "pullback.cli.worker" in line and "mpiexec" not in line and "hydra" not in line)  # fmt: skip


def kill_one(ranks: int, chance: random.Random, joined: bool = False, longest: float = 4.0) -> Outcome:
    """Start a job, kill one rank of it at a random moment, and see what becomes of the rest."""
    mark = f"{os.getpid()}-{chance.getrandbits(48):x}"
    port = free_port()
    jobs = start(ranks, mark, port if joined else None)
    began = time.monotonic()
    while len(pids := ranks_of(mark, jobs, joined)) < ranks and time.monotonic() - began < LIMIT:
        time.sleep(0.02)
    while joined and not all(has_come(p, port) for p in pids) and time.monotonic() - began < LIMIT:
        time.sleep(0.01)  # without a launcher nobody knows of a rank before it comes to the address
    time.sleep(chance.uniform(0, longest))
    which = chance.randrange(ranks)
    killed = time.monotonic()
    os.kill(pids[which], signal.SIGKILL)
    code, words = ended(jobs, which if joined else None)
    over = time.monotonic()
    while marked(mark) and time.monotonic() - over < 3:  # the last are being collected
        time.sleep(0.05)
    left = list(marked(mark))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return Outcome(which, killed - began, over - killed, code, left, words)


def ended(jobs: list[subprocess.Popen], killed: int | None) -> tuple[int | None, str]:
    """(the exit status of a job's other processes, what they said); None where they did not end in time."""
    end, codes, words = time.monotonic() + LIMIT, [], ""
    for number, job in enumerate(jobs):
        try:
            words += job.communicate(timeout=max(end - time.monotonic(), 0.1))[1]
        except subprocess.TimeoutExpired:
            return None, words
        codes += [job.returncode] if number != killed else []
    return min((abs(c) for c in codes), default=0), words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--joined", action="store_true", help="ranks without a launcher")
    args = parser.parse_args()
    chance, outcomes = random.Random(args.seed), []
    for n in range(args.count):
        o = kill_one(args.ranks, chance, args.joined)
        outcomes.append(o)
        print(f"{n + 1:3} rank {o.rank} killed after {o.after:.2f} s; the job ended {o.ended:.2f} s later, status {o.code}, "
              f"{len(o.orphans)} left behind{'' if o.good else ': ' + o.words[-600:]}", flush=True)  # fmt: skip
    longest = max(o.ended for o in outcomes)
    print(
        f"{len(outcomes)} kills: {sum(o.code is None for o in outcomes)} hung, {sum(o.code == 0 for o in outcomes)} ended well, "
        f"{sum(bool(o.orphans) for o in outcomes)} left processes behind; the longest took {longest:.2f} s to end"
    )
    return int(not all(o.good for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
