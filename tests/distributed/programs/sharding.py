"""Tensors, parameters and optimizer state in parts give what whole ones give."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from pullback.distributed.timeline import recording
from pullback.distributed.under_way import pending

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402
from models import GPT, gpt_batch, loss_of  # noqa: E402

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (size,))


def close(a, b, what=""):
    assert torch.allclose(a, b, atol=1e-4, rtol=1e-4), f"rank {rank} {what}: {a} is not {b}"


def check_placements():
    torch.manual_seed(0)
    w = torch.randn(7, 5)
    for p in (Shard(0), Shard(1), Replicate()):
        d = distribute_tensor(w, mesh, [p])
        close(d.full_tensor(), w)
        for q in (Shard(0), Shard(1), Replicate()):
            close(d.redistribute(placements=[q]).full_tensor(), w)


def check_operators():
    torch.manual_seed(0)
    a, b = torch.randn(6, 5), torch.randn(5, 8)
    for p in (Shard(0), Shard(1), Replicate()):
        for q in (Shard(0), Shard(1), Replicate()):
            results = []
            for x, y in ((distribute_tensor(a, mesh, [p]), distribute_tensor(b, mesh, [q])), (a.clone(), b.clone())):
                x.requires_grad_()
                y.requires_grad_()
                z = ((x @ y).relu() * 2 + 1).softmax(1).cumsum(1).view(2, 3, 8).transpose(0, 1).sum(0)
                z = z.full_tensor() if isinstance(z, DTensor) else z
                z.pow(2).sum().backward()
                full = [t.full_tensor() if isinstance(t, DTensor) else t for t in (x.grad, y.grad)]
                results.append([z.detach(), *full])
            for found, expected in zip(*results):
                close(found, expected, f"{p} {q}")


def check_sums_that_stay_apart():
    """What is done to parts of a sum is done to the sum, or the sum is made first."""
    part, every = torch.full((2, 3), rank + 0.7), sum(torch.full((2, 3), r + 0.7) for r in range(size))
    p = DTensor.from_local(part, mesh, [Partial()])
    other = distribute_tensor(torch.arange(6.0).reshape(2, 3), mesh, [Replicate()])
    for function in (
        lambda t, o: t * 2,
        lambda t, o: t / 2,
        lambda t, o: t - o,
        lambda t, o: t * o,
        lambda t, o: t * t,
        lambda t, o: t + 1,
        lambda t, o: torch.div(t, 2, rounding_mode="floor"),
        lambda t, o: -t,
        lambda t, o: t.to(torch.int64),
        lambda t, o: t.abs().mean(1),
        lambda t, o: t.t() @ o,
        lambda t, o: torch.addmm(o.t()[:, :2] @ o, o.t(), t, alpha=2, beta=3),
        lambda t, o: torch.zeros_like(t),
        lambda t, o: t.sum(0).neg(),
    ):
        close(function(p, other).full_tensor(), function(every, other.full_tensor()))


def check_norms():
    for w in (torch.arange(1.0, 8.0), torch.tensor([-3.0])):  # of the second, some ranks have nothing
        d = distribute_tensor(w, mesh, [Shard(0)])
        for order in (2, 1, 3, -1, 0, float("inf"), -float("inf")):
            close(torch.linalg.vector_norm(d, order).full_tensor(), torch.linalg.vector_norm(w, order), order)
        kept = torch.linalg.vector_norm(d, keepdim=True)
        assert kept.shape == kept.to_local().shape == (1,)


def check_random_numbers():
    """Ranks with different seeds draw alike, however a tensor is cut, and gradients go by the same draws."""
    torch.manual_seed(100 + rank)
    for p in (Shard(0), Replicate()):
        x = distribute_tensor(torch.ones(6, 4), mesh, [p]).requires_grad_()
        y = nn.functional.dropout(x, 0.5)
        y.sum().backward()
        write = distribute_tensor(torch.zeros(6, 4), mesh, [p])
        drawn = [
            y,
            x.grad,
            torch.rand_like(x),
            torch.bernoulli(torch.full_like(x, 0.5)),
            write.uniform_(),
            nn.functional.rrelu(-x, training=True),
        ]
        for k, d in enumerate(drawn):
            whole = d.full_tensor().detach().contiguous()
            first = whole.clone()
            dist.broadcast(first, 0)
            assert torch.equal(whole, first), f"rank {rank} {p} {k}: {whole} is not {first}"
            assert whole.unique().numel() > 1
        close(y.full_tensor(), x.grad.full_tensor(), "a gradient by other draws")


def check_tensor_parallel():
    batch = gpt_batch()
    losses = []
    for parallel in (True, False):
        torch.manual_seed(0)
        model = GPT()
        if parallel:
            parallelize_module(model, mesh, {"blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel()})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        for _ in range(3):
            loss = loss_of(model, *batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
        if parallel:
            assert model.blocks[0].up.weight.to_local().shape[0] == 32 // size
    close(*losses)


def train(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    out = []
    for _ in range(3):
        loss = loss_of(model, x, y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        out += [mean, norm.full_tensor() if isinstance(norm, DTensor) else norm]
    return torch.stack(out)


def check_fully_shard():
    torch.manual_seed(0)
    expected = train(GPT(), *gpt_batch())
    mine = [t.chunk(size)[rank] for t in gpt_batch()]
    torch.manual_seed(0)
    close(train(nn.parallel.DistributedDataParallel(GPT()), *mine), expected, "DDP")
    for reshard in (True, False):
        torch.manual_seed(0)
        model = GPT()
        whole = sum(p.numel() for p in model.parameters())
        for block in model.blocks:
            fully_shard(block, reshard_after_forward=reshard)
        fully_shard(model, reshard_after_forward=reshard)
        close(train(model, *mine), expected, "FSDP")
        assert sum(p.to_local().numel() for p in model.parameters()) <= whole / size * 1.3
        assert all(isinstance(p, DTensor) for p in model.parameters())


def check_gathers_ahead():
    """The gather of a layer is under way while the one before it computes, in forward and backward."""
    torch.manual_seed(0)
    layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(3)])
    for layer in layers:
        fully_shard(layer)
    fully_shard(layers)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    x = torch.ones(4, 64)
    reached = {}
    for i, layer in enumerate(layers):
        layer.register_forward_hook(lambda m, a, out, i=i: reached.setdefault(i, time.perf_counter()) and None)
    for step in range(3):
        reached.clear()
        with recording(dist.group.WORLD) as line:
            layers(x).sum().backward()
        gathers = [w for w in line.works if w.name == "all_gather_into_tensor"]
        assert len(gathers) == 5, (step, len(gathers))  # all but the first layer are needed again in the backward
        ahead = [gathers[i + 1].started < reached[i] for i in range(2)]
        assert not step or all(ahead), (step, ahead)
        optimizer.step()  # what was gathered before is no longer true
        optimizer.zero_grad()
    with torch.no_grad():
        layers(x)
    layers[0].set_modules_to_forward_prefetch([layers[1], layers[2]])
    layers[2].set_modules_to_backward_prefetch([layers[1]])
    layers(x).sum().backward()


def check_gradients_travel_while_a_backward_goes_on():
    """The reduce-scatter of a layer is not awaited before gradients of the one below it are there; hooks see what they saw."""
    x = (torch.randn(4, 64) + rank).requires_grad_()
    make = lambda wrap: nn.Sequential(*[wrap(nn.Linear(64, 64)) for _ in range(3)])
    torch.manual_seed(0)
    whole = nn.parallel.DistributedDataParallel(make(lambda m: m))
    whole(x).pow(2).sum().backward()
    expected = [p.grad for p in whole.parameters()]
    begun = lambda: [work.name for _, work in pending.values()].count("reduce_scatter_tensor")
    for hooked in (False, True):
        torch.manual_seed(0)
        model, heard = make(fully_shard), []
        if hooked:
            model[0].weight.register_hook(lambda g, heard=heard: heard.append(g) or g * 2)
            model[1].weight.register_post_accumulate_grad_hook(lambda p, heard=heard: heard.append(p.grad))
        hidden = model[0](x)
        travelling = []
        hidden.register_hook(lambda g, travelling=travelling: travelling.append(begun()))
        model[2](model[1](hidden)).pow(2).sum().backward()
        assert travelling == [2], travelling
        assert not begun()
        assert [type(g) for g in heard] == [DTensor] * 2 * hooked
        for i, (p, g) in enumerate(zip(model.parameters(), expected, strict=True)):
            close(p.grad.full_tensor(), g * (2 if hooked and not i else 1))


def check_gradients_are_kept_until_they_are_wanted():
    torch.manual_seed(0)
    model = fully_shard(nn.Linear(8, 4))
    x = torch.randn(6, 8) * (rank + 1)
    for _ in range(3):
        model(x).pow(2).sum().backward()
    expected = model.weight.grad.full_tensor()
    model.zero_grad()
    model.set_requires_gradient_sync(False)
    with recording(dist.group.WORLD) as line:
        for _ in range(2):
            model(x).pow(2).sum().backward()
            assert model.weight.grad is None
        assert not [w for w in line.works if w.name == "reduce_scatter_tensor"]
        model.set_requires_gradient_sync(True)
        model(x).pow(2).sum().backward()
    assert len([w for w in line.works if w.name == "reduce_scatter_tensor"]) == 1
    close(model.weight.grad.full_tensor(), expected)
    weight = model.weight
    (g,) = torch.autograd.grad(model(x).pow(2).sum(), [weight])
    close(g.full_tensor() * 3, expected)


def check_gradients_that_were_kept_meet_those_that_somebody_sees():
    """A hook, or a compiled backward, has a gradient reduced at once: with what earlier backwards kept."""
    x = torch.randn(6, 8) * (rank + 1)
    for see in ("hook", "compiled autograd"):
        torch.manual_seed(0)
        model = fully_shard(nn.Linear(8, 4))
        for _ in range(2):
            model(x).pow(2).sum().backward()
        expected = model.weight.grad.full_tensor()
        model.zero_grad()
        model.set_requires_gradient_sync(False)
        model(x).pow(2).sum().backward()
        model.set_requires_gradient_sync(True)
        loss = model(x).pow(2).sum()
        if see == "hook":
            model.weight.register_hook(lambda g: None)
            loss.backward()
        else:
            with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
                loss.backward()
        close(model.weight.grad.full_tensor(), expected, see)


def check_replicas_of_shards():
    """A mesh of two dimensions: replicas agree, and are reduced over when that is wanted; also in another dtype."""
    x = torch.randn(6, 8) * (rank + 1)
    torch.manual_seed(0)
    whole = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
    whole(x).pow(2).sum().backward()
    expected = whole.module.weight.grad
    for shape in ((size, 1), (1, size)):
        for policy in (MixedPrecisionPolicy(), MixedPrecisionPolicy(reduce_dtype=torch.float64)):
            torch.manual_seed(0)
            model = fully_shard(nn.Linear(8, 4), mesh=init_device_mesh("cpu", shape), mp_policy=policy)
            model.set_requires_all_reduce(False)
            model(x).pow(2).sum().backward()
            assert model.weight.grad is None
            model.set_requires_all_reduce(True)
            model(x).pow(2).sum().backward()
            assert model.weight.grad.dtype is torch.float32
            close(model.weight.grad.full_tensor(), 2 * expected, f"{shape} {policy}")


def check_other_methods_see_whole_parameters():
    class Scored(nn.Linear):
        def score(self):
            return self.weight.sum()

    torch.manual_seed(0)
    module = Scored(6, 4)
    whole = module.weight.sum().item()
    register_fsdp_forward_method(module, "score")  # not sharded yet: nothing
    fully_shard(module)
    assert isinstance(module.score(), DTensor)
    register_fsdp_forward_method(module, "score")
    assert not isinstance(module.score(), DTensor) and abs(module.score().item() - whole) < 1e-5
    handle = module.unshard(async_op=True)
    handle.wait()
    assert module.weight.shape == (4, 6) and not isinstance(module.weight, DTensor)
    module.reshard()
    assert isinstance(module.weight, DTensor)


def check_sharding_in_a_compiled_step():
    torch.manual_seed(0)
    expected = models.train(GPT(), *gpt_batch())
    mine = [t.chunk(size)[rank] for t in gpt_batch()]
    for how in ("compiled", "compiled autograd", "each block"):
        torch.manual_seed(0)
        model, calls = GPT(), []
        keep = lambda m, _, calls=calls: calls.append(m) or m.forward
        for i, block in enumerate(model.blocks if how == "each block" else ()):
            (fully_shard(block) if i else block).compile(backend=keep)
        for block in model.blocks:
            if not isinstance(block, FSDPModule):
                fully_shard(block)
        found = torch.tensor(models.train(fully_shard(model), *mine, how))
        dist.all_reduce(found, dist.ReduceOp.AVG)
        assert torch.allclose(found, torch.tensor(expected), atol=2e-5), how
        assert (len(calls) >= len(model.blocks)) == (how == "each block")


def check_zero_redundancy():
    x, y = (t.chunk(size)[rank] for t in gpt_batch())
    results = []
    for make in (
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: ZeroRedundancyOptimizer(p, torch.optim.Adam, lr=0.01),
    ):
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(GPT())
        optimizer = make(model.parameters())
        for _ in range(3):
            loss_of(model, x, y).backward()
            optimizer.step()
            optimizer.zero_grad()
        results.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
    assert torch.equal(*results)
    owned = sum(p.numel() for p in optimizer.optim.state)
    assert owned < 0.7 * results[0].numel() or size == 1
    optimizer.consolidate_state_dict(0)
    if rank == 0:
        assert len(optimizer.state_dict()["state"]) == len(list(model.parameters()))


def sent_in_a_step(model, x, y):
    loss_of(model, x, y).backward()  # the first makes what stays
    with recording(dist.group.WORLD) as line:
        loss_of(model, x, y).backward()
    return line.volume()


def check_volume():
    """What a rank sends in a step is what theory says."""
    batch = [t.chunk(size)[rank] for t in gpt_batch()]
    make = lambda: GPT(words=32, d=8 * size)
    gradients = sum(p.numel() * 4 for p in make().parameters())
    share = (size - 1) / size
    assert sent_in_a_step(nn.parallel.DistributedDataParallel(make()), *batch) == 2 * share * gradients
    for reshard, times in ((True, 3), (False, 2)):
        model = make()
        for block in model.blocks:
            fully_shard(block, reshard_after_forward=reshard)
        fully_shard(model, reshard_after_forward=reshard)
        assert sent_in_a_step(model, *batch) == times * share * gradients


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
print(f"rank {rank} is done")
dist.destroy_process_group()
