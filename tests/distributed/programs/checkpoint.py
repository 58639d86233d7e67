"""A sharded model, saved by some ranks and loaded by others: `checkpoint.py save|load FOLDER`."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import GPT, gpt_batch, loss_of  # noqa: E402

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
what, folder = sys.argv[1:]
torch.manual_seed(0 if what == "save" else 7)
model = GPT()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = (t.chunk(size)[rank] for t in gpt_batch())


def step():
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    mean = loss.detach().clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    return mean.item()


if what == "save":
    step()
    step()
    state, optim = get_state_dict(model, optimizer)
    dcp.save({"model": state, "optim": optim, "epoch": 3}, checkpoint_id=folder)
else:
    state, optim = get_state_dict(model, optimizer)
    loaded = {"model": state, "optim": optim, "epoch": 0}
    dcp.load(loaded, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state, optim_state_dict=loaded["optim"])
    assert loaded["epoch"] == 3
losses = [step(), step()]
if rank == 0:
    print("losses", *losses)
dist.destroy_process_group()
