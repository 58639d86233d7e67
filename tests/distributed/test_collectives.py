"""Collectives of two ranks, and of one without MPI."""

import subprocess
import sys

import pytest

import pullback as torch
import pullback.distributed as dist

from .ranks import needs_mpi, run_ranks


@needs_mpi
def test_collectives_of_two_ranks():
    out = run_ranks("collectives.py", 2)
    assert "rank 0 is done" in out and "rank 1 is done" in out


@pytest.fixture
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_one_rank_is_its_own_world(alone):
    t = torch.arange(3.0)
    dist.all_reduce(t)
    assert t.tolist() == [0, 1, 2]
    work = dist.all_reduce(t, dist.ReduceOp.AVG, async_op=True)
    assert work.wait() and work.get_future().value() == [t]
    got = [None]
    dist.all_gather_object(got, "x")
    assert got == ["x"] and dist.get_rank() == 0 and dist.get_backend() == "gloo"


def test_one_rank_sends_to_itself(alone):
    work = dist.irecv(torch.empty(2), 0)
    assert not work.is_completed()
    dist.send(torch.ones(2), 0)
    assert work.wait()


def test_one_rank_needs_no_mpi():
    code = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "import pullback as torch, pullback.distributed as dist\n"
        "dist.init_process_group('gloo', rank=0, world_size=1); t = torch.ones(2); dist.all_reduce(t); print(t.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1.0, 1.0]"


def test_more_ranks_than_processes_say_how_to_start_them(monkeypatch):
    monkeypatch.setattr("pullback.distributed.mpi.launched", lambda: False)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ValueError, match="MASTER_ADDR expected, but not set.*pullback launch -n 2"):
        dist.init_process_group("gloo", rank=0, world_size=2)


def test_environment_without_a_rank(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")


def test_calls_before_init():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.all_reduce(torch.ones(1))


@pytest.mark.parametrize("call", [
    lambda: dist.all_reduce([1]),
    lambda: dist.all_gather(torch.ones(1), torch.ones(1)),
])  # fmt: skip
def test_arguments_that_are_no_tensors(alone, call):
    with pytest.raises(TypeError, match="Expected parameter"):
        call()


def test_lists_and_sizes_that_do_not_fit(alone):
    with pytest.raises(ValueError, match="expected 1 tensors, one for each rank, got 2"):
        dist.all_gather([torch.ones(1), torch.ones(1)], torch.ones(1))
    with pytest.raises(ValueError, match="expected 2 elements, got 3"):
        dist.all_gather_into_tensor(torch.ones(3), torch.ones(2))
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather_into_tensor(torch.ones(2), torch.ones(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="Unknown c10d backend type 'smoke'"):
        dist.Backend("smoke")


def test_wait_and_gradients_of_functional_collectives(alone):
    f = torch.ops._c10d_functional
    x = torch.arange(3.0, requires_grad=True)
    y = f.wait_tensor(f.all_reduce(x * 2, "sum", "0"))
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert g.tolist() == [0, 8, 16]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [8, 8, 8]
    y = f.wait_tensor(f.all_reduce(x, "max", "0"))
    with pytest.raises(NotImplementedError, match="reduce_op='max'"):
        y.sum().backward()
