"""Ranks that no launcher started: by `spawn`, by an address, a file or a store; `joined.py HOW FOLDER`."""

import os
import sys

import pullback.multiprocessing as mp

import pullback as torch
import pullback.distributed as dist
from pullback import nn


def place(how: str, folder: str, port: int, rank: int) -> dict:
    if how == "env":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        return {}
    if how == "tcp":
        return {"init_method": f"tcp://127.0.0.1:{port}"}
    if how == "file":
        return {"init_method": f"file://{folder}/meeting"}
    return {"store": dist.TCPStore("127.0.0.1", port, 2, rank == 0)}


def work(rank: int, size: int, how: str, folder: str, port: int) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=size, **place(how, folder, port, rank))
    for _ in range(2):  # a world can be left and made again
        total = torch.full((3,), rank + 1.0)
        dist.all_reduce(total)
        assert total.tolist() == [3.0, 3.0, 3.0]
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        model(torch.full((1, 2), rank + 1.0)).sum().backward()
        assert model.module.weight.grad.tolist() == [[1.5, 1.5]]
        dist.destroy_process_group()
        dist.init_process_group("gloo", rank=rank, world_size=size)
    if how == "tcp" and "fail" in folder:
        if rank == 1:
            raise ValueError("no such file of samples")
        dist.barrier()
    with open(os.path.join(folder, f"done-{rank}"), "w"):
        pass


if __name__ == "__main__":
    mp.spawn(work, args=(2, *sys.argv[1:3], int(sys.argv[3])), nprocs=2)
    print("all done")
