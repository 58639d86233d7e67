"""One rank does what it should not: `faults.py WHAT`."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
what, rank = sys.argv[1], dist.get_rank()
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
if what == "order":
    dist.barrier() if rank else dist.all_reduce(t)
for _ in range(10_000):
    dist.all_reduce(t)
    time.sleep(0.001)
