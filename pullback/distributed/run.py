"""`torch.distributed.run` (torchrun): its command line, served by MPI.

In: torchrun's arguments. Out: the exit status. One node, and several that a hostfile names, are started by `mpiexec`, from one of
them. Without a hostfile each node runs the command itself (see `nodes`): with `--node-rank` and the address of the first, or
with one `--rdzv-endpoint` for all, where they are numbered as they come.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .launcher import launch
from .nodes import Node, launch_node, met, split_address, static

UNUSED = (
    "rdzv-conf", "local-addr", "role", "monitor-interval", "start-method", "log-dir", "redirects", "tee", "local-ranks-filter", "logs-specs", "event-log-handler",
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="torchrun", description="Start a script as several ranks.", allow_abbrev=False
    )
    both = lambda name: (f"--{name}", f"--{name.replace('-', '_')}")
    result.add_argument(*both("nproc-per-node"), default="1", help="ranks on each node: a number, cpu, gpu or auto")
    result.add_argument("--nnodes", default="1", help="nodes: listed in --hostfile, or each running this command")
    result.add_argument(*both("node-rank"), type=int, default=0, help="which node this is, where each runs the command")
    result.add_argument(*both("master-addr"), help="the host of rank 0")
    result.add_argument(*both("master-port"), type=int, help="a free port there")
    result.add_argument(*both("rdzv-endpoint"), default="", help="HOST[:PORT] of one node, at which all meet")
    result.add_argument(*both("rdzv-backend"), default="c10d", help="static: --rdzv-endpoint is the address of rank 0")
    result.add_argument(*both("rdzv-id"), default="none", help="the name of the job at the endpoint")
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


def node_of(args: argparse.Namespace, count: int) -> Node:
    """Which node this is, by the arguments or by a meeting at the endpoint."""
    if args.rdzv_endpoint and args.rdzv_backend != "static":
        return met(args.rdzv_endpoint, count, args.rdzv_id)
    if args.rdzv_endpoint:
        return static(args.node_rank, count, *split_address(args.rdzv_endpoint, 29500))
    if args.master_addr is None:
        raise SystemExit(
            f"--nnodes {count}: where several nodes meet must be said, by --rdzv-endpoint HOST:PORT, or by --master-addr HOST and "
            "--node-rank; or --hostfile lists them, and this one starts all"
        )
    return static(args.node_rank, count, args.master_addr, args.master_port or 29500)


get_args_parser = parser


def run(args: argparse.Namespace) -> int:
    """Start the processes that parsed arguments ask for, and wait for them."""
    count = nodes(args.nnodes)
    command = command_of(args.script, args.arguments, args.module, args.no_python)
    if count > 1 and not args.hostfile:
        return launch_node(command, ranks_per_node(args.nproc_per_node), node_of(args, count), args.max_restarts)
    for name, value in (("MASTER_ADDR", args.master_addr), ("MASTER_PORT", args.master_port)):
        if value is not None:
            os.environ[name] = str(value)
    return launch(command, ranks_per_node(args.nproc_per_node) * count, args.hostfile, args.max_restarts)


def main(argv: Sequence[str] | None = None) -> int:
    return run(parser().parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
