"""Collectives in native code: the values of the operators, one native call for a whole step, and what happens where they fail."""

import os
import signal
import sys
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from pullback.codegen import program
from pullback.distributed.timeline import recording

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import GPT, ConvNet, gpt_batch, image_batch, loss_of  # noqa: E402

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
f = torch.ops._c10d_functional
compiled = []
before = program.compile_static


def keep(module):
    compiled.append(before(module))
    return compiled[-1]


program.compile_static = keep


def calls_of(native):
    return [step.function for segment in native.segments for step in segment.source.calls]


def everything(x, y, n):
    begun = [f.all_reduce(x * 2, op, "0") for op in ("sum", "avg", "max", "min", "product")]
    begun += [f.all_reduce(n, "avg", "0"), f.all_reduce(x.double(), "avg", "0")]
    begun.append(f.all_gather_into_tensor(y[:, :1], size, "0"))
    begun.append(f.reduce_scatter_tensor(y.t(), "avg", size, "0"))
    begun.append(f.broadcast(x + 1, 1, "0"))
    given = [1, y.shape[0] - 1]  # so many rows to each rank
    begun.append(f.all_to_all_single(y, [given[rank]] * size, given, "0"))
    return y.sin(), *[f.wait_tensor(t) for t in begun]


def check_values():
    x, y, n = (
        torch.arange(4.0) + rank,
        torch.arange(12.0).reshape(4, 3) * (rank + 1),
        torch.tensor([-3, 4]) * (rank + 1),
    )
    y = torch.cat([y, y], 1)
    expected = everything(x, y, n)
    fast = torch.compile(everything, fullgraph=True)
    for _ in range(3):
        for a, b in zip(expected, fast(x, y, n), strict=True):
            assert a.dtype == b.dtype and torch.allclose(a, b, equal_nan=True), (a, b)
    assert compiled[-1].native and calls_of(compiled[-1]).count("STARTED") == 11


def check_narrow_floats_are_operators():
    fast = torch.compile(lambda x: f.wait_tensor(f.all_reduce(x, "sum", "0")) + 1)
    assert fast(torch.ones(3, dtype=torch.bfloat16)).tolist() == [size + 1.0] * 3


def check_a_step_is_one_native_call():
    for model, batch in ((GPT(), gpt_batch()), (nn.SyncBatchNorm.convert_sync_batchnorm(ConvNet()), image_batch())):
        x, y = (t.chunk(size)[rank].clone() for t in batch)
        ddp = DDP(model, bucket_cap_mb=0.0002)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)

        def step(x, y, ddp=ddp, optimizer=optimizer):
            loss = loss_of(ddp, x, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        fast = torch.compile(step, fullgraph=True)
        for _ in range(3):
            fast(x, y)
        native = compiled[-1]
        assert native.native, native.reasons
        calls = calls_of(native)
        assert calls.count("STARTED") == calls.count("AWAITED") >= len(ddp.reducer.buckets) > 1
        first = calls.index("STARTED")
        assert any(
            c.startswith("kernel") for c in calls[first : calls.index("AWAITED", first)]
        )  # work while it travels
        with recording(dist.group.WORLD) as line:
            fast(x, y)
        gradients = sum(p.numel() * 4 for p in ddp.parameters())
        sent = sum(w.nbytes for w in line.works if w.name == "all_reduce")
        assert sent == gradients and all(w.ended >= w.started for w in line.works)


def check_a_rank_that_runs_operators_meets_others():
    fast = torch.compile(lambda x: f.wait_tensor(f.all_reduce(x * 2, "sum", "0")) + 1)
    x = torch.arange(6.0).reshape(2, 3)
    fast(x)
    native = compiled[-1]
    assert native.native
    odd = torch.arange(6.0).reshape(3, 2).t().contiguous() if rank else x
    odd = (
        torch.empty(2, 6)[:, ::2].copy_(odd) if rank else odd
    )  # other strides: not those that the code was written for
    (found,) = native(odd) if isinstance(native(odd), (tuple, list)) else (native(odd),)
    other = torch.arange(6.0).reshape(3, 2).t()
    assert torch.allclose(found, 2 * (x + (other if size > 1 else 0)) + 1)


def check_what_is_begun_in_one_call_is_awaited_in_another():
    begin = torch.compile(lambda x: f.all_reduce(x + 1, "sum", "0"), fullgraph=True)
    for _ in range(3):
        started = begin(torch.full((5,), float(rank)))
        dist.barrier()
        assert f.wait_tensor(started).tolist() == [sum(r + 1.0 for r in range(size))] * 5


def check_groups_that_are_gone():
    fast = torch.compile(lambda x: f.wait_tensor(f.all_reduce(x, "sum", group.group_name)))
    group = dist.new_group(list(range(size)))
    assert fast(torch.ones(2)).tolist() == [size] * 2
    native = compiled[-1]
    assert native.native
    dist.destroy_process_group(group)
    try:
        native(torch.ones(2))
    except Exception as e:
        assert group.group_name in str(e), e
    else:
        raise AssertionError("a group that is gone was used")


def check_a_rank_that_does_not_come():
    group = dist.new_group(list(range(size)))
    fast = torch.compile(lambda x: f.wait_tensor(f.all_reduce(x, "sum", group.group_name)))
    fast(torch.ones(2))
    assert compiled[-1].native
    if rank == 0:
        group.timeout = 0.3
        try:
            fast(torch.ones(2))
        except dist.DistBackendError as e:
            assert "all_reduce #2 of group" in str(e) and "rank 1 has not come to it" in str(e), e
            assert "in a compiled graph" in str(e), e
        else:
            raise AssertionError("it did not time out")
    dist.barrier()
    if rank:
        fast(torch.ones(2))


def check_signals_are_heard():
    group = dist.new_group(list(range(size)))
    fast = torch.compile(lambda x: f.wait_tensor(f.all_reduce(x, "sum", group.group_name)))
    fast(torch.ones(2))
    if rank == 0:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            fast(torch.ones(2))
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("it was not interrupted")
    dist.barrier()
    if rank:
        fast(torch.ones(2))


def check_wrong_indices_are_not_run_again():
    table = torch.ones(4, 2)
    fast = torch.compile(
        lambda i: nn.functional.embedding(i, table) + f.wait_tensor(f.all_reduce(table[:1] * 1.0, "sum", "0"))
    )
    fast(torch.tensor([1, 2]))
    assert compiled[-1].native
    try:
        fast(torch.tensor([1, 9]))
    except IndexError as e:
        assert "not run again" in str(e)
    else:
        raise AssertionError("an index out of range went unnoticed")


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
print(f"rank {rank} is done")
dist.destroy_process_group()
