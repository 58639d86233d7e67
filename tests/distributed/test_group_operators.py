"""Collectives as operators of `c10d`, in a process that is alone: they write their tensors and give a work."""

import pytest

import pullback as torch
from pullback import distributed as dist


@pytest.fixture
def world(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_each_writes_its_tensors(world):
    x = torch.ones(2)
    tensors, work = torch.ops.c10d.allreduce_.default([x], world, dist.ReduceOp.SUM)
    work.wait()
    assert tensors[0] is x and x.tolist() == [1, 1]
    torch.ops.c10d.scatter_([x], [[torch.full((2,), 3.0)]], world, 0, async_op=False)
    assert x.tolist() == [3, 3]
    torch.ops.c10d.broadcast_([x], world, 0, 0, async_op=False)
    assert x.tolist() == [3, 3]


def test_names():
    op = torch.ops.c10d.scatter_
    assert op.default is op and op.name() == "c10d::scatter_" and op.overloads() == ["default"]
    assert repr(op) == "<OpOverload(op='c10d.scatter_', overload='default')>"


def test_groups_by_their_ranks(world):
    from pullback.distributed import _functional_collectives as collectives  # declares them

    x, old = torch.ones(2), torch.ops.c10d_functional
    for result in (
        old.all_reduce(x, "sum", "", [0], 1),
        old.broadcast(x, 0, "", [0], 1),
        old.all_gather_into_tensor(x, "", [0], 1),
        old.reduce_scatter_tensor(x, "sum", "", [0], 1),
    ):
        assert old.wait_tensor(result).tolist() == [1, 1] and collectives.wait_tensor(result).tolist() == [1, 1]
    assert torch.ops._c10d_functional._wrap_tensor_autograd(x).tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"no process group has the ranks \[0, 1\]"):
        old.all_reduce(x, "sum", "", [0, 1], 2)


def test_functions_of_parts(world):
    from pullback.distributed.tensor import Replicate, Shard, distribute_tensor
    from pullback.distributed.tensor.experimental import SHARDINGS, local_map, register_sharding

    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    x = distribute_tensor(torch.arange(4.0).reshape(2, 2), mesh, [Shard(0)])
    doubled = local_map(lambda t, k: t * k, [Shard(0)], in_placements=([Shard(0)], None))
    assert doubled(x, 2).full_tensor().tolist() == [[0, 2], [4, 6]] and doubled(x, 2).placements == (Shard(0),)
    strict = local_map(lambda t: t, [Replicate()], in_placements=([Replicate()],))
    with pytest.raises(ValueError, match="redistribute_inputs"):
        strict(x)
    loose = local_map(lambda t: t, [Replicate()], in_placements=([Replicate()],), redistribute_inputs=True)
    assert loose(x).full_tensor().tolist() == [[0, 1], [2, 3]]
    assert (
        register_sharding(torch.ops.aten.sin.default)(len) is len and SHARDINGS.pop(torch.ops.aten.sin.default) is len
    )
