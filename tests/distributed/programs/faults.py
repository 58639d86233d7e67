"""One rank does what it should not: `faults.py WHAT`."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

what = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
if what == "work":  # collectives, data parallel and plain computing, until somebody ends it
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(256, 256), bucket_cap_mb=0.1)
    parts = [torch.zeros(64) for _ in range(dist.get_world_size())]
    for step in range(100_000):
        model(torch.ones(32, 256)).sum().backward()
        dist.all_gather(parts, torch.full((64,), float(rank)))
        if step % 5 == rank:
            time.sleep(0.01)
        dist.barrier()
t = torch.ones(3)
dist.all_reduce(t)
if what == "raise" and rank == 1:
    raise ValueError("no such file of samples")
if what == "exit" and rank == 1:
    sys.exit(7)
if what == "kill" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if what == "late":
    dist.set_timeout(1.0)
    time.sleep(30 * rank)
if what == "shapes":
    dist.all_reduce(torch.ones(3 + rank))
if what == "dtypes":
    dist.all_reduce(t.double() if rank else t)
if what == "monitored":
    if rank:
        time.sleep(30)
    import datetime

    dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.5))
if what == "order":
    dist.barrier() if rank else dist.all_reduce(t)
for _ in range(10_000):
    dist.all_reduce(t)
    time.sleep(0.001)
