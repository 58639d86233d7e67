"""Latency and bandwidth of this machine's ranks, and steps of data parallel beside what they predict.

    pullback launch -n 2 benchmarks/distributed.py [FOLDER]

Fits time = alpha + beta * bytes to all-reduces, predicts the step of a model from them and from the time that one rank
computes, and measures it: eager, and compiled with its collectives as one native call. With a folder, writes timelines of one
step each there (eager.json, eager.svg, compiled.json, compiled.svg). Then what the fit says of more ranks.
"""

import math
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pullback.distributed.timeline import recording

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
x = torch.ones(64, 512)


def best(call, rounds=9):
    """The time of a call: the shortest of some rounds (other work on the machine only adds to it), of the slowest rank."""
    times = []
    for _ in range(rounds):
        dist.barrier()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    worst = torch.tensor(min(times))
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    return worst.item()


def fit():
    """(alpha, beta) of an all-reduce of n bytes: alpha + beta * n."""
    small = best(lambda: dist.all_reduce(torch.ones(8)), 41)
    n = 1 << 20
    large = best(lambda: dist.all_reduce(torch.ones(n)))
    return small, (large - small) / (4 * n)


def model():
    torch.manual_seed(0)
    layers = [nn.Linear(512, 512) for _ in range(8)]
    return nn.Sequential(*[m for layer in layers for m in (layer, nn.GELU())])


def stepping(net, compiled):
    """One step: gradients of a model's sum."""

    def step(x):
        net.zero_grad()
        net(x).sum().backward()

    result = torch.compile(step, fullgraph=True) if compiled else step
    for _ in range(3):  # what is compiled, or made once, is made here
        result(x)
    return result


def measured(compiled, alpha, beta, folder):
    """A step beside its prediction, in lines of text; and its timeline."""
    ddp = DistributedDataParallel(model(), bucket_cap_mb=2)
    alone, together = stepping(model(), compiled), stepping(ddp, compiled)
    compute = both = math.inf
    for _ in range(8):  # in turns, so that both meet the same machine
        compute, both = min(compute, best(lambda: alone(x), 3)), min(both, best(lambda: together(x), 3))
    buckets = [b.nbytes for b in ddp.reducer.buckets]
    communication = sum(alpha + beta * n for n in buckets)
    with recording(ddp.process_group) as line, line.span("step"):
        together(x)
    name = "compiled" if compiled else "eager"
    if folder and rank == 0:
        line.write_trace(f"{folder}/{name}.json")
        line.picture(f"{folder}/{name}.svg")
    total = sum(buckets)
    return (
        f"{name}: compute {1e3 * compute:.1f} ms, communication {1e3 * communication:.1f} ms in {len(buckets)} buckets; "
        f"predicted {1e3 * max(compute, communication):.1f} to {1e3 * (compute + communication):.1f} ms, measured {1e3 * both:.1f} ms\n"
        f"    begun before the last gradient: {sum(w.started < line.works[-1].started for w in line.works)} of {len(buckets)} buckets; "
        f"sent per rank {line.volume():.0f} bytes = {line.volume() / total:.3f} of the gradients' {total}"
    )


alpha, beta = fit()
folder = sys.argv[1] if len(sys.argv) > 1 else None
lines = [measured(compiled, alpha, beta, folder) for compiled in (False, True)]
if rank == 0:
    print(f"{size} ranks: alpha {1e6 * alpha:.0f} us, 1/beta {1e-9 / beta:.2f} GB/s", *lines, sep="\n")
    hop, byte = alpha / (2 * math.log2(size)), beta / (2 * (size - 1) / size)
    for n in (8, 64, 1024):
        cost = lambda nbytes, n=n: hop * 2 * math.log2(n) + byte * nbytes * 2 * (n - 1) / n
        print(
            f"{n} ranks of this kind: {1e3 * cost(25 << 20):.0f} ms for a bucket of 25 MB, {1e3 * cost(8):.2f} ms for 8 bytes"
        )
dist.destroy_process_group()
