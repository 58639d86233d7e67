"""Ranks of several nodes add something up, and say where they are."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(
    f"rank {dist.get_rank()} of {dist.get_world_size()} on node {os.environ.get('GROUP_RANK', '?')}: sum {total.item()}"
)
dist.destroy_process_group()
