"""The backend nccl, on one device: a world of one rank."""

import pytest

import pullback as torch
import pullback.distributed as dist
from pullback import nn


@pytest.fixture
def world():
    if not dist.is_nccl_available():
        pytest.skip("CuPy has no NCCL here")
    dist.init_process_group("nccl", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_collectives(world):
    t = torch.arange(4.0, device="cuda")
    dist.all_reduce(t)
    dist.all_reduce(t, dist.ReduceOp.AVG)
    assert t.tolist() == [0, 1, 2, 3]
    whole = torch.empty(4, device="cuda")
    dist.all_gather_into_tensor(whole, t)
    assert whole.tolist() == [0, 1, 2, 3]
    part = torch.empty(4, device="cuda")
    dist.reduce_scatter_tensor(part, whole)
    dist.broadcast(part, 0)
    got = [torch.empty(4, device="cuda")]
    dist.all_gather(got, part)
    dist.barrier()
    assert got[0].tolist() == [0, 1, 2, 3]
    half = torch.ones(3, device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(half)
    assert half.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="takes tensors on cuda"):
        dist.all_reduce(torch.ones(2))


def test_functional_collectives(world):
    f = torch.ops._c10d_functional
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    y = f.wait_tensor(f.reduce_scatter_tensor(f.wait_tensor(f.all_gather_into_tensor(x * 2, 1, "0")), "sum", 1, "0"))
    f.wait_tensor(f.all_reduce(y, "sum", "0")).sum().backward()
    assert x.grad.tolist() == [2, 2, 2, 2]


def test_objects(world):
    every, one = [None], [{"a": 1}]
    dist.all_gather_object(every, {"rank": 0})
    dist.broadcast_object_list(one, 0)
    assert every == [{"rank": 0}] and one == [{"a": 1}]


def test_data_parallel(world):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2).to("cuda"))
    model(torch.ones(4, 3, device="cuda")).sum().backward()
    assert model.module.weight.grad.cpu().tolist() == [[4, 4, 4], [4, 4, 4]]


def test_parts_and_messages(world):
    x = torch.arange(4.0, device="cuda")
    for call in (
        lambda out: dist.gather(x, [out], dst=0),
        lambda out: dist.scatter(out, [x], src=0),
        lambda out: dist.all_to_all([out], [x]),
        lambda out: dist.all_to_all_single(out, x),
        lambda out: dist.reduce_scatter(out, [x]),
    ):
        out = torch.empty(4, device="cuda")
        call(out)
        assert out.tolist() == [0, 1, 2, 3]
    dist.reduce(x, dst=0)
    assert x.tolist() == [0, 1, 2, 3]
    parts = torch.zeros(2, 4, device="cuda").t()[:, :1]  # not contiguous: received aside, then copied in
    dist.all_gather([parts], x.reshape(4, 1))
    assert parts.reshape(-1).tolist() == [0, 1, 2, 3]
    received = torch.empty(4, device="cuda")
    work = dist.irecv(received, 0)
    dist.isend(x, 0).wait()
    work.wait()
    assert received.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="receives from a rank that is named"):
        dist.recv(received)


def test_groups(world):
    group = dist.new_group([0])
    t = torch.ones(2, device="cuda")
    dist.all_reduce(t, group=group)
    assert t.tolist() == [1, 1] and group.channel.device == "cuda" and group.channel.on_host.device == "cpu"


def test_what_nccl_cannot_do(world):
    channel = dist.group.WORLD.channel
    with pytest.raises(ValueError, match="NCCL cannot reduce elements of dtype complex64"):
        channel.allreduce(None, torch.ones(2, dtype=torch.complex64, device="cuda")._array, "SUM")
    with pytest.raises(ValueError, match=r"scatters parts of one size, got \[1, 2\]"):
        channel.reduce_scatter(None, None, "SUM", [1, 2])
    with pytest.raises(ValueError, match=r"gathers parts of one size, got \[4, 8\] bytes"):
        channel.allgather(None, [torch.ones(n, device="cuda")._array for n in (1, 2)])
