"""Starting ranks: one command, run as many processes that MPI joins, on this machine or those of a hostfile.

In: a command and a number of ranks. Out: the exit status. `mpiexec` (Open MPI's or MPICH's) starts and joins the ranks,
and ends all when one dies; what a failed rank left in the job's folder is reported last, the first to fail on top.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO

RULES = ("-" * 40, "=" * 40)  # mpiexec frames its own words in lines of these: Open MPI's, MPICH's
TAIL = (
    "YOUR APPLICATION TERMINATED",
    "This typically refers to a problem",
    "Please see the FAQ page for",
)  # MPICH's, after it
SIGNAL = re.compile(r"rank (\d+)\D+(\d+).*?exited on\s+signal (\d+) \(([^)]*)\)", re.DOTALL)
HYDRA = re.compile(r"PID (\d+) RUNNING AT .*?EXIT STRING: (.*?) \(signal (\d+)\)", re.DOTALL)


def launch(
    command: Sequence[str], ranks: int, hostfile: str | None = None, restarts: int = 0, grace: float = 5.0
) -> int:
    """Run a command as `ranks` ranks, again up to `restarts` times where it fails; gives the last exit status."""
    for attempt in range(restarts + 1):
        code = _run(command, ranks, hostfile, attempt, grace)
        if code == 0 or attempt == restarts:
            return code
        print(f"pullback launch: start {attempt + 2} of {restarts + 1}", file=sys.stderr)
    return code


def _run(command: Sequence[str], ranks: int, hostfile: str | None, attempt: int, grace: float) -> int:
    folder = tempfile.mkdtemp(prefix="pullback-job-")
    started = time.time()
    job = subprocess.Popen(
        [*mpiexec_words(ranks, hostfile), *command], env=environment(ranks, hostfile, folder, attempt),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent,
    )  # fmt: skip
    said: list[str] = []
    readers = [
        threading.Thread(target=forward, args=(stream, sink, said), daemon=True)
        for stream, sink in ((job.stdout, sys.stdout), (job.stderr, sys.stderr))
    ]
    for reader in readers:
        reader.start()
    try:
        code = _wait(job, grace)
        for reader in readers:
            reader.join(2)
        if code:
            sys.stderr.write(report(folder, "".join(said), started, code))
        return code
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(job: subprocess.Popen, grace: float) -> int:
    """The job's exit status. An interrupt goes to the job first; then it has `grace` seconds."""
    try:
        code = job.wait()
    except BaseException:
        job.terminate()
        try:
            job.wait(grace)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
        raise
    return 128 - code if code < 0 else code


def forward(stream: IO[bytes], sink: IO[str], said: list[str]) -> None:
    """Pass on what ranks write; keep mpiexec's own words, which stand between rules, for the report."""
    inside = False
    for raw in stream:
        line = raw.decode(errors="replace")
        if line.startswith(RULES):
            inside = not inside
        elif inside or line.startswith(TAIL):
            said.append(line)
        else:
            sink.write(line)
            sink.flush()


def report(folder: str, said: str, started: float, code: int) -> str:
    """Which rank failed first, and why."""
    found = []
    for name in os.listdir(folder):
        if name.startswith("failed-") and name.endswith(".json"):
            with open(os.path.join(folder, name)) as file:
                found.append(json.load(file))
    found.sort(key=lambda f: f["time"])
    killed = _killed(folder, said)
    if killed and not found:
        rank, pid, number, word = killed
        return f"\npullback launch: rank {rank} (pid {pid}) was ended by signal {number} ({word})\n"
    if not found:
        return f"\npullback launch: the job ended with status {code}\n{said}"
    first, others = found[0], [str(f["rank"]) for f in found[1:]]
    more = f"also failed, later: rank {', '.join(others)}\n" if others else ""
    return (
        f"\npullback launch: rank {first['rank']} failed first (pid {first['pid']} on {first['host']}, "
        f"after {first['time'] - started:.1f} s, status {first['code']}):\n{first['traceback']}{more}"
    )


def _killed(folder: str, said: str) -> tuple[str, str, str, str] | None:
    """(rank, process, signal, its name) of a rank that a signal ended, from what mpiexec said."""
    if found := SIGNAL.search(said):
        rank, pid, number, word = found.groups()
        return rank, pid, number, word
    if found := HYDRA.search(said):
        pid, word, number = found.groups()
        ranks = [name.split("-")[1] for name in os.listdir(folder) if name.endswith(f"-{pid}.pid")]
        return (ranks or ["?"])[0], pid, number, word
    return None


def note_process(rank: int) -> None:
    """Leave a rank's process number where the launcher looks for it."""
    folder = os.environ.get("PULLBACK_JOB")
    if folder and os.path.isdir(folder):
        open(os.path.join(folder, f"rank-{rank}-{os.getpid()}.pid"), "w").close()


# ---- mpiexec
def find_mpiexec() -> str:
    """The launcher beside this Python, or on the path."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if found is None:
        raise RuntimeError(
            "no mpiexec beside this Python or on the path; install one with: pip install 'pullback[mpi]'"
        )
    return found


def is_open_mpi(mpiexec: str) -> bool:
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    return "Open MPI" in said or "prte" in said.lower() or "OpenRTE" in said


def mpiexec_words(ranks: int, hostfile: str | None) -> list[str]:
    mpiexec = find_mpiexec()
    if not is_open_mpi(mpiexec):
        return [mpiexec, "-n", str(ranks), *(["-f", hostfile] if hostfile else [])]
    where = ["--hostfile", hostfile] if hostfile else []
    sent = (
        [word for name in ("PULLBACK_JOB", "PYTHONPATH", "OMP_NUM_THREADS") for word in ("-x", name)]
        if hostfile
        else []
    )
    return [mpiexec, "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *where, *sent]


def environment(ranks: int, hostfile: str | None, folder: str, attempt: int) -> dict[str, str]:
    """What ranks find in their environment. Ranks that wait give way to those that compute: there may be more than cores."""
    env = {**os.environ, "PULLBACK_JOB": folder, "TORCHELASTIC_RUN_ID": os.path.basename(folder)}
    env["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
    env.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    env.setdefault("UCX_LOG_LEVEL", "error")  # which warns of memory that MPICH keeps to the end
    if ranks > 1:
        env.setdefault("OMP_NUM_THREADS", "1")
        env.setdefault("OPENBLAS_NUM_THREADS", env["OMP_NUM_THREADS"])
    if hostfile is not None:
        env.setdefault("MASTER_ADDR", first_host(hostfile))
    else:  # one machine: shared memory, without looking for networks
        env.setdefault("OMPI_MCA_pml", "ob1")
        env.setdefault("OMPI_MCA_osc", "^ucx")
    if os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env


def first_host(hostfile: str) -> str:
    """The host that a hostfile names first (`HOST`, `HOST:RANKS` or `HOST slots=RANKS`): rank 0 runs there."""
    with open(hostfile) as file:
        for line in file:
            words = line.partition("#")[0].split()
            if words:
                return words[0].partition(":")[0]
    raise RuntimeError(f"--hostfile {hostfile}: it names no host")


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """End this process when the one that started it ends, however that happens. Linux only; elsewhere nothing."""
    try:
        ctypes.CDLL(None).prctl(1, int(number))  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return


RANK_NAMES = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    "LOCAL_WORLD_SIZE": ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
    "GROUP_RANK": ("OMPI_COMM_WORLD_NODE_RANK",),
}


def name_rank(env: dict | os._Environ = os.environ) -> int:
    """Say in the environment, under torchrun's names, which rank this is; gives its number."""
    for name, sources in RANK_NAMES.items():
        found = next((env[s] for s in sources if s in env), None)
        if found is not None:
            env[name] = found
    env.setdefault("LOCAL_RANK", env.get("RANK", "0"))
    env.setdefault("LOCAL_WORLD_SIZE", env.get("WORLD_SIZE", "1"))
    env.setdefault("MASTER_ADDR", "127.0.0.1")
    env.setdefault("MASTER_PORT", "29500")
    return int(env.get("RANK", "0"))
