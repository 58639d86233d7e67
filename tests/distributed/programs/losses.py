"""Losses of a few steps, by every way to run them: `losses.py OUT WAY...` writes {model: {way: losses}} to a file.

Written with nothing but PyTorch's names, so that PyTorch itself runs it too (see `tests/distributed/losses.py`). Losses are means
over ranks. `fsdp` shards; other ways are those of `models.train`, under data parallel. A way `whole` is one process without any.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import GPT, ConvNet, gpt_batch, image_batch, train  # noqa: E402

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
STEPS = 5


def wrapped(model, way):
    """A model on all ranks."""
    if way == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for block in getattr(model, "blocks", ()):
            fully_shard(block)
        return fully_shard(model)
    return nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.002)


def losses(make, batch, way):
    torch.manual_seed(0)
    if way == "whole":
        return train(make(), *batch, steps=STEPS)
    mine = [t.chunk(size)[rank].clone() for t in batch]
    model = make() if size == 1 or make is GPT else nn.SyncBatchNorm.convert_sync_batchnorm(make())
    found = torch.tensor(train(wrapped(model, way), *mine, "eager" if way in ("ddp", "fsdp") else way, steps=STEPS))
    dist.all_reduce(found)
    return (found / size).tolist()


result = {}
for name, make, batch in (("gpt", GPT, gpt_batch()), ("convnet", ConvNet, image_batch())):
    for way in sys.argv[2:]:
        if name == "convnet" and way == "ddp" and size > 1 and "pullback" not in sys.modules:
            continue  # PyTorch has SyncBatchNorm for GPUs alone
        result.setdefault(name, {})[way] = losses(make, batch, way)
if rank == 0:
    with open(sys.argv[1], "w") as file:
        json.dump(result, file)
dist.destroy_process_group()
