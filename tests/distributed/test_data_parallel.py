"""Data parallel: two ranks against one process with the whole batch, and what one rank can show."""

import pytest

import pullback as torch
import pullback.distributed as dist
from pullback import nn
from pullback.backward.build import Backward
from pullback.nn.parallel import DistributedDataParallel

from .losses import FAR, differences
from .ranks import needs_mpi, run_ranks


@pytest.fixture
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@needs_mpi
def test_two_ranks_train_as_one():
    out = run_ranks("data_parallel.py", 2, "eager", "whole step")
    assert "rank 0 is done" in out and "rank 1 is done" in out


@needs_mpi
def test_losses_are_those_of_pytorch():
    """With two ranks here; with one and four too, and checkpoints between them, by `python -m tests.distributed.losses`."""
    found = differences(2, ("ddp", "compiled autograd", "fsdp"))
    assert max(found.values()) < FAR, found


def test_buckets_are_filled_in_the_order_of_a_backward(alone):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    ddp = DistributedDataParallel(model, bucket_cap_mb=80 / (1 << 20))
    members = [[id(p) for p in b.members] for b in ddp.reducer.buckets]
    assert [p for b in members for p in b] == [id(p) for p in reversed(list(model.parameters()))]
    assert len(members) == 3 and all(b.nbytes == 80 for b in ddp.reducer.buckets)


def test_the_graph_of_a_backward_holds_the_reductions(alone):
    torch.manual_seed(0)
    ddp = DistributedDataParallel(
        nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), bucket_cap_mb=20 / (1 << 20)
    )
    loss = ddp(torch.ones(2, 4)).sum()
    graph = Backward([(loss.grad_fn, 0)], [torch.ones(())], None, False, False, None).graph().graph
    names = [n.name for n in graph.nodes]
    starts = [i for i, n in enumerate(names) if n.startswith("start")]
    ends = [i for i, n in enumerate(names) if n.startswith("finish")]
    assert len(starts) == len(ends) == len(ddp.reducer.buckets) > 1
    rules = [i for i, n in enumerate(names) if "Backward" in n]
    assert starts[0] < rules[-1] < ends[0], (
        "the first starts before the last gradient is computed, and is waited for after"
    )


def test_compiled_autograd_and_the_engine_agree(alone):
    grads = []
    for compiled in (False, True):
        torch.manual_seed(0)
        ddp = DistributedDataParallel(nn.Linear(3, 2))
        for _ in range(2):  # the second adds to what is there
            loss = ddp(torch.ones(2, 3)).pow(2).sum()
            if compiled:
                from pullback.backward.switch import enable

                with enable(torch.compile):
                    loss.backward()
            else:
                loss.backward()
        grads.append(torch.cat([p.grad.reshape(-1) for p in ddp.parameters()]))
    assert torch.allclose(*grads)


def test_a_compiled_step_holds_the_reductions(alone):
    torch.manual_seed(0)
    ddp, graphs = DistributedDataParallel(nn.Linear(3, 2)), []

    def keep(module, inputs):
        graphs.append(module)
        return module.forward

    @torch.compile(fullgraph=True, backend=keep)
    def step(x):
        loss = ddp(x).sum()
        loss.backward()
        return loss.detach()

    step(torch.ones(2, 3))
    called = [str(n.target) for g in graphs for n in g.graph.nodes if n.op == "call_function"]
    assert (
        called.count("_c10d_functional.all_reduce.default") == called.count("_c10d_functional.wait_tensor.default") == 1
    )
    assert torch.allclose(ddp.module.weight.grad, torch.full((2, 3), 2.0))


def test_modules_that_need_none(alone):
    with pytest.raises(RuntimeError, match="doesn't have any parameters that require a gradient"):
        DistributedDataParallel(nn.ReLU())


def test_unused_parameters_are_named(alone):
    model = nn.ModuleDict({"used": nn.Linear(2, 2), "idle": nn.Linear(2, 2)})
    model.forward = lambda x: model["used"](x)
    ddp = DistributedDataParallel(model)
    ddp(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="did not receive grad on this rank: idle"):
        ddp(torch.ones(1, 2))


def test_hooks_replace_the_average(alone):
    ddp = DistributedDataParallel(nn.Linear(2, 1))
    seen = []

    def hook(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), len(bucket.gradients())))
        result = torch.futures.Future()
        result.set_result(bucket.buffer() * 10)
        return result

    ddp.register_comm_hook("state", hook)
    ddp(torch.ones(1, 2)).sum().backward()
    assert seen == [("state", 0, True, 2)]
    assert ddp.module.weight.grad.tolist() == [[10, 10]]
    with pytest.raises(RuntimeError, match="can only be called once"):
        ddp.register_comm_hook("state", hook)


def test_sequences_are_taken_apart_where_they_are_made(alone):
    f = torch.ops._c10d_functional

    @torch.compile(fullgraph=True)
    def function(x):
        normed, mean, _ = torch.native_layer_norm(x, (4,), None, None, 1e-5)
        started = f.all_reduce(normed, "sum", "0")
        return f.wait_tensor(started) + 1, mean * 2

    x = torch.arange(8.0).reshape(2, 4)
    found, mean = function(x)
    assert torch.allclose(found, torch.nn.functional.layer_norm(x, (4,)) + 1) and mean.reshape(-1).tolist() == [3, 11]


def test_native_code_computes_while_a_reduction_is_under_way(alone):
    from pullback.capture.trace.make_fx import make_fx
    from pullback.codegen.segment import Operators, Segment
    from pullback.codegen.stages import stages_of

    f = torch.ops._c10d_functional

    def function(x, y):
        started = f.all_reduce.default(x * 2, "sum", "0")
        return y.sin() + 1, f.wait_tensor.default(started)

    stages, _ = stages_of(make_fx(function, tracing_mode="fake")(torch.ones(4), torch.ones(4)).graph)
    kinds = [type(s) for s in stages]
    assert kinds == [Segment, Operators, Segment, Operators], "multiply; begin; sine and sum, meanwhile; wait"
