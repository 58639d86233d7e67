"""Data parallel gives the losses of one process with the whole batch, however a step runs."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import GPT, ConvNet, gpt_batch, image_batch, train  # noqa: E402

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
ways = sys.argv[1:] or ["eager"]


def mine(*tensors):
    return [t.chunk(size)[rank].clone() for t in tensors]


def close(found, expected, what):
    mean = torch.tensor(found)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    worst = (mean - torch.tensor(expected)).abs().max().item()
    assert worst < 2e-5, f"{what}: {mean.tolist()} is not {expected}"


def check_gpt():
    torch.manual_seed(0)
    expected = train(GPT(), *gpt_batch())
    for how in ways:
        torch.manual_seed(0)
        model = DDP(GPT(), bucket_cap_mb=0.002)
        assert len(model.reducer.buckets) > 2
        close(train(model, *mine(*gpt_batch()), how), expected, how)


def check_convnet():
    torch.manual_seed(0)
    expected = train(ConvNet(), *image_batch())
    for how in ways:
        torch.manual_seed(0)
        model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(ConvNet()))
        close(train(model, *mine(*image_batch()), how), expected, how)
        running = model.module.b1.running_var.clone()
        dist.broadcast(running, 0)
        assert torch.equal(running, model.module.b1.running_var)


def gradients(model):
    return torch.cat([p.grad.reshape(-1) for p in model.parameters()])


def check_no_sync():
    torch.manual_seed(0)
    model, whole = DDP(nn.Linear(3, 2)), nn.Linear(3, 2)
    whole.load_state_dict(model.module.state_dict())
    x = torch.randn(2 * size, 3, generator=torch.Generator().manual_seed(5))
    with model.no_sync():
        model(x[rank : rank + 1]).sum().backward()
    alone = gradients(model).clone()
    assert not torch.equal(alone, gradients_mean(alone)) or size == 1
    model(x[size + rank : size + rank + 1]).sum().backward()
    (whole(x).sum() / size).backward()
    assert torch.allclose(gradients(model), gradients(whole))


def gradients_mean(g):
    g = g.clone()
    dist.all_reduce(g, dist.ReduceOp.AVG)
    return g


def check_unused():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x, first):
            return self.a(x) if first else self.b(x)

    model = DDP(Two(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2), rank == 0).sum().backward()
        assert torch.allclose(model.module.a.weight.grad, torch.full((1, 2), 1 / size))
        assert model.module.c.weight.grad is None
    strict = DDP(Two())
    strict(torch.ones(1, 2), True).sum().backward()
    try:
        strict(torch.ones(1, 2), True)
    except RuntimeError as e:
        assert "Expected to have finished reduction in the prior iteration" in str(e) and "b.weight" in str(e)
    else:
        raise AssertionError("an unfinished reduction went unnoticed")


def check_hooks():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    results = []
    for hook in (None, default_hooks.allreduce_hook, default_hooks.bf16_compress_hook):
        torch.manual_seed(0)
        model = DDP(nn.Linear(4, 4), gradient_as_bucket_view=hook is None)
        if hook is not None:
            model.register_comm_hook(None, hook)
        model(torch.full((1, 4), rank + 1.0)).pow(2).sum().backward()
        results.append(gradients(model))
    assert torch.equal(results[0], results[1]) and torch.allclose(results[1], results[2], rtol=2e-2)


def check_join():
    torch.manual_seed(0)
    model = DDP(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for _ in range(1 + rank):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    w = model.module.weight.detach().clone()
    dist.broadcast(w, 0)
    assert torch.equal(w, model.module.weight.detach())


def check_same_start():
    torch.manual_seed(rank)
    model = DDP(nn.Linear(2, 2))
    w = model.module.weight.detach().clone()
    dist.broadcast(w, 0)
    assert torch.equal(w, model.module.weight.detach())
    try:
        DDP(nn.Linear(2, 2 + rank))
    except RuntimeError as e:
        assert "DDP expects same model across all ranks" in str(e) and "rank 1" in str(e)
    else:
        assert size == 1


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
print(f"rank {rank} is done")
dist.destroy_process_group()
