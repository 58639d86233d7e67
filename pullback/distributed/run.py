"""`torch.distributed.run` (torchrun): its command line, served by MPI.

In: torchrun's arguments. Out: the exit status. What concerns its own rendezvous is accepted and not needed: ranks that
`mpiexec` starts know one another. More than one node takes a hostfile, and is started from one of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .launcher import launch

UNUSED = (
    "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "node-rank", "master-addr", "master-port", "local-addr", "role",
    "monitor-interval", "start-method", "log-dir", "redirects", "tee", "local-ranks-filter", "logs-specs", "event-log-handler",
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="torchrun", description="Start a script as several ranks.", allow_abbrev=False
    )
    both = lambda name: (f"--{name}", f"--{name.replace('-', '_')}")
    result.add_argument(*both("nproc-per-node"), default="1", help="ranks on each node: a number, cpu, gpu or auto")
    result.add_argument("--nnodes", default="1", help="nodes, all listed in --hostfile where more than one")
    result.add_argument("--hostfile", help="the nodes, as mpiexec reads them")
    result.add_argument(*both("max-restarts"), type=int, default=0, help="how often to start again after a failure")
    result.add_argument("--standalone", action="store_true", help="one node: what is done without --hostfile anyway")
    for name in UNUSED:
        result.add_argument(*dict.fromkeys(both(name)), help=argparse.SUPPRESS)
    result.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    result.add_argument(*both("no-python"), action="store_true", help="the script is a program of its own")
    result.add_argument("script")
    result.add_argument("arguments", nargs=argparse.REMAINDER)
    return result


def ranks_per_node(word: str) -> int:
    """The number that `--nproc-per-node` means."""
    if word in ("cpu", "auto", "gpu"):
        from .. import cuda

        gpus = cuda.device_count()
        if word == "gpu" and not gpus:
            raise ValueError("--nproc-per-node gpu: this machine has no GPU that can be used")
        return gpus if gpus and word != "cpu" else os.cpu_count() or 1
    if not word.isdecimal() or int(word) < 1:
        raise ValueError(f"--nproc-per-node: expected a number above zero, cpu, gpu or auto, got {word!r}")
    return int(word)


def nodes(word: str) -> int:
    """The number of nodes; of a range, the largest."""
    return int(word.rpartition(":")[2])


def command_of(script: str, arguments: Sequence[str], module: bool = False, program: bool = False) -> list[str]:
    """What each rank runs."""
    if program:
        return [script, *arguments]
    return [sys.executable, "-m", "pullback.cli.worker", *(["-m"] if module else []), script, *arguments]


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    count = nodes(args.nnodes)
    if count > 1 and not args.hostfile:
        raise SystemExit(f"--nnodes {count}: more than one node needs --hostfile, with which MPI finds them")
    command = command_of(args.script, args.arguments, args.module, args.no_python)
    return launch(command, ranks_per_node(args.nproc_per_node) * count, args.hostfile, args.max_restarts)


if __name__ == "__main__":
    sys.exit(main())
