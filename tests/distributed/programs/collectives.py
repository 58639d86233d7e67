"""Every collective on every rank, against what it must give."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def same(found, expected):
    expected = torch.as_tensor(expected)
    assert found.tolist() == expected.tolist(), f"rank {rank}: {found.tolist()} is not {expected.tolist()}"


def check_reductions():
    every = torch.stack([torch.arange(4.0) + 1 + r for r in range(size)])
    mine = every[rank]
    expected = {
        "SUM": every.sum(0),
        "AVG": every.mean(0),
        "PRODUCT": every.prod(0),
        "MIN": every.amin(0),
        "MAX": every.amax(0),
    }
    for name, value in expected.items():
        t = mine.clone()
        version = t._version
        dist.all_reduce(t, getattr(dist.ReduceOp, name))
        same(t, value)
        assert t._version > version
    t = mine.clone()
    dist.all_reduce(t, dist._make_nccl_premul_sum(0.5))
    same(t, every.sum(0) * 0.5)
    t = mine.clone()
    dist.reduce(t, dst=1)
    if rank == 1:
        same(t, every.sum(0))


def check_dtypes():
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.complex64):
        t = torch.full((3,), rank + 1).to(dtype)
        dist.all_reduce(t)
        assert t.dtype is dtype
        same(t, torch.full((3,), size * (size + 1) // 2).to(dtype))
    t = torch.tensor([True, False, rank == 0])
    dist.all_reduce(t)
    same(t, [True, False, True])
    t = torch.tensor([1 << rank, 7])
    dist.all_reduce(t, dist.ReduceOp.BOR)
    same(t, [(1 << size) - 1, 7])
    try:
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)
    except ValueError as e:
        assert "BAND" in str(e) and "float32" in str(e)
    else:
        raise AssertionError("bits of floats were reduced")


def check_layouts():
    t = (torch.arange(6.0).reshape(2, 3) + rank).t()
    dist.all_reduce(t)
    same(t, sum(torch.arange(6.0).reshape(2, 3) + r for r in range(size)).t())
    part = torch.zeros(4, 4)
    part[1:3, 1:3] = rank + 1
    dist.all_reduce(part[1:3, 1:3])
    assert part.sum() == 4 * size * (size + 1) / 2
    t = torch.tensor(float(rank))
    dist.all_reduce(t)
    same(t, size * (size - 1) / 2)


def check_copies():
    t = torch.full((2,), float(rank))
    dist.broadcast(t, 1)
    same(t, [1.0, 1.0])
    parts = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    for r, part in enumerate(parts):
        same(part, torch.full((r + 1,), float(r)))
    whole = torch.empty(size, 2)
    dist.all_gather_into_tensor(whole, torch.full((1, 2), float(rank)))
    same(whole, [[float(r)] * 2 for r in range(size)])
    parts = [torch.empty(1) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.tensor([float(rank)]), parts, dst=0)
    if rank == 0:
        same(torch.cat(parts), torch.arange(float(size)))
    t = torch.empty(1)
    dist.scatter(t, [torch.tensor([3.0 * r]) for r in range(size)] if rank == 1 else None, src=1)
    same(t, [3.0 * rank])


def check_scattered_sums():
    t = torch.empty(2)
    dist.reduce_scatter_tensor(t, torch.arange(2.0 * size) + rank)
    same(t, sum((torch.arange(2.0 * size) + r)[2 * rank : 2 * rank + 2] for r in range(size)))
    t = torch.empty(rank + 1)
    dist.reduce_scatter(t, [torch.full((r + 1,), float(rank)) for r in range(size)], dist.ReduceOp.MAX)
    same(t, torch.full((rank + 1,), size - 1.0))


def check_long_vectors():
    """Libraries take other ways for longer messages."""
    for n in (366, 5000, 200_000):
        x = torch.arange(float(size * n)) % 1000
        t = torch.empty(n)
        for _ in range(3):
            dist.reduce_scatter_tensor(t, x + rank)
            same(t.sum(), (x[rank * n : rank * n + n] * size + size * (size - 1) / 2).sum())
        whole = torch.empty(size * n)
        dist.all_gather_into_tensor(whole, x[rank * n : rank * n + n])
        assert torch.equal(whole, x)
        dist.all_reduce(whole)
        assert torch.equal(whole, x * size)
        f = torch.ops._c10d_functional
        for _ in range(5):  # what is sent has no other owner, and must live until it has arrived
            mine = f.wait_tensor(f.reduce_scatter_tensor(x * 1, "avg", size, "0"))
            assert torch.equal(mine, x[rank * n : rank * n + n])
            assert torch.equal(f.wait_tensor(f.all_gather_into_tensor(mine * 1, size, "0")), x)


def check_exchanges():
    t = torch.empty(size)
    dist.all_to_all_single(t, torch.arange(float(size)) + 10 * rank)
    same(t, [10.0 * r + rank for r in range(size)])
    counts = [rank + r + 1 for r in range(size)]
    t = torch.empty(sum(counts), 2)
    dist.all_to_all_single(t, torch.full((sum(counts), 2), float(rank)), counts, counts)
    same(t, [[float(r)] * 2 for r in range(size) for _ in range(counts[r])])
    out = [torch.empty(1) for _ in range(size)]
    dist.all_to_all(out, [torch.tensor([float(rank * size + r)]) for r in range(size)])
    same(torch.cat(out), [float(r * size + rank) for r in range(size)])


def check_messages():
    after, before = (rank + 1) % size, (rank - 1) % size
    t = torch.empty(3)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.full((3,), float(rank)), after),
            dist.P2POp(dist.irecv, t, before),
        ]
    )
    assert all(w.wait() for w in works)
    same(t, [float(before)] * 3)
    if rank == 0:
        dist.send(torch.tensor([5.0]), 1, tag=3)
        dist.send_object_list([{"a": 1}], 1)
    elif rank == 1:
        t = torch.empty(1)
        assert dist.recv(t, tag=3) == 0
        same(t, [5.0])
        got = [None]
        dist.recv_object_list(got, 0)
        assert got == [{"a": 1}]


def check_objects():
    got = [None] * size
    dist.all_gather_object(got, ("x" * rank, rank))
    assert got == [("x" * r, r) for r in range(size)]
    got = [{"a": 1}, 2] if rank == 0 else [None, None]
    dist.broadcast_object_list(got, 0)
    assert got == [{"a": 1}, 2]
    got = [None]
    dist.scatter_object_list(got, [f"for {r}" for r in range(size)] if rank == 0 else None, 0)
    assert got == [f"for {rank}"]
    got = [None] * size if rank == 1 else None
    dist.gather_object(rank * 2, got, dst=1)
    assert got is None or got == [2 * r for r in range(size)]


def check_works():
    tensors = [torch.full((1000,), float(rank + i)) for i in range(8)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for i, (t, work) in enumerate(zip(tensors, works)):
        assert work.get_future().wait()[0] is t and work.is_completed() and work.is_success()
        same(t, [sum(r + i for r in range(size))] * 1000)


def check_groups():
    alone = dist.new_group([1])
    assert dist.get_rank(alone) == (0 if rank == 1 else -1)
    back = dist.new_group(list(reversed(range(size))))
    assert dist.get_rank(back) == size - 1 - rank and dist.get_global_rank(back, 0) == size - 1
    parts = [torch.empty(1) for _ in range(size)]
    dist.all_gather(parts, torch.tensor([float(rank)]), group=back)
    same(torch.cat(parts), list(reversed([float(r) for r in range(size)])))
    t = torch.full((1,), float(rank))
    dist.broadcast(t, group_src=0, group=back)
    same(t, [size - 1.0])
    mine, every = dist.new_subgroups(1)
    assert mine.size() == 1 and len(every) == size
    dist.destroy_process_group(back)


def check_functional():
    f = torch.ops._c10d_functional
    x = torch.full((2, 2), float(rank), requires_grad=True)
    weights = torch.arange(4.0 * size).reshape(2 * size, 2)
    (f.wait_tensor(f.all_gather_into_tensor(x, size, "0")) * weights * (rank + 1)).sum().backward()
    same(x.grad, weights[2 * rank : 2 * rank + 2] * sum(r + 1 for r in range(size)))
    x = torch.full((3,), float(rank), requires_grad=True)
    (f.wait_tensor(f.all_reduce(x, "avg", "0")) * (rank + 1)).sum().backward()
    same(x.grad, [sum(r + 1 for r in range(size)) / size] * 3)
    x = torch.ones(2 * size, requires_grad=True)
    (f.wait_tensor(f.reduce_scatter_tensor(x, "sum", size, "0")) * (rank + 1)).sum().backward()
    same(x.grad, [float(r + 1) for r in range(size) for _ in range(2)])


def check_named_functions():
    import torch.distributed._functional_collectives as fc

    world, mine = dist.group.WORLD, torch.arange(4.0).reshape(2, 2) + 10 * rank
    every = [torch.arange(4.0).reshape(2, 2) + 10 * r for r in range(size)]
    same(fc.all_reduce(mine, "sum", world), sum(every))
    same(fc.broadcast(mine, 1, "0"), every[1])
    for dim in (0, 1):
        same(fc.all_gather_tensor(mine, dim, world), torch.cat(every, dim))
        same(fc.reduce_scatter_tensor(mine, "sum", dim, world), sum(every).chunk(size, dim)[rank])
    same(fc.all_to_all_single(mine, None, None, world), torch.cat([t.chunk(size)[rank] for t in every]))
    same(fc.permute_tensor(mine, [(r + 1) % size for r in range(size)], world), every[rank - 1])
    for found, expected in zip(fc.all_gather_into_tensor_coalesced([mine, mine * 2], world), (1, 2), strict=True):
        same(found, torch.cat(every) * expected)
    for found, dim in zip(fc.reduce_scatter_tensor_coalesced([mine, mine], "avg", [0, 1], world), (0, 1), strict=True):
        same(found, (sum(every) / size).chunk(size, dim)[rank])
    same(fc.all_reduce_coalesced([mine], "max", world)[0], every[-1])
    for wrong, words in (
        (lambda: fc.permute_tensor(mine, [0] * size, world), "expected every rank"),
        (
            lambda: fc.reduce_scatter_tensor(torch.ones(2 * size + 1), "sum", 0, world),
            "must be a multiple of group_size",
        ),
        (lambda: fc.all_reduce(mine, "sum", 3), "Invalid type for group"),
    ):
        try:
            wrong()
        except ValueError as e:
            assert words in str(e)
        else:
            raise AssertionError(words)


def check_barriers():
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier()


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
print(f"rank {rank} is done")
dist.destroy_process_group()
