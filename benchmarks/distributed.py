"""Latency and bandwidth of this machine's ranks, and a step of data parallel beside what they predict.

    pullback launch -n 2 benchmarks/distributed.py [FOLDER]

Fits time = alpha + beta * bytes to all-reduces, predicts the step of a model from them and from the time that one rank
computes, and measures it. With a folder, writes the timeline of one backward there (trace.json, timeline.svg).
"""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pullback.distributed.timeline import recording

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


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


def step(net, x):
    net.zero_grad()
    net(x).sum().backward()


alpha, beta = fit()
x = torch.ones(64, 512)
alone = model()
ddp = DistributedDataParallel(model(), bucket_cap_mb=2)
step(alone, x)
step(ddp, x)
compute = measured = float("inf")
for _ in range(6):  # in turns, so that both meet the same machine
    compute = min(compute, best(lambda: step(alone, x), 3))
    measured = min(measured, best(lambda: step(ddp, x), 3))
buckets = [b.nbytes for b in ddp.reducer.buckets]
communication = sum(alpha + beta * n for n in buckets)
with recording(ddp.process_group) as line:
    loss = ddp(x).sum()
    with line.span("backward"):
        loss.backward()
if len(sys.argv) > 1 and rank == 0:
    line.write_trace(f"{sys.argv[1]}/trace.json")
    line.picture(f"{sys.argv[1]}/timeline.svg")
if rank == 0:
    print(f"{size} ranks: alpha {1e6 * alpha:.0f} us, 1/beta {1e-9 / beta:.2f} GB/s")
    print(f"compute {1e3 * compute:.1f} ms, communication {1e3 * communication:.1f} ms in {len(buckets)} buckets")
    print(
        f"predicted {1e3 * max(compute, communication):.1f} to {1e3 * (compute + communication):.1f} ms, measured {1e3 * measured:.1f} ms"
    )
    print(f"{100 * line.overlap('backward'):.0f}% of the time of collectives lies inside the backward")
    total = sum(buckets)
    print(f"sent per rank {line.volume():.0f} bytes = {line.volume() / total:.3f} of the gradients' {total}")
dist.destroy_process_group()
