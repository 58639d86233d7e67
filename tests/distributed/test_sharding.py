"""Sharding: two ranks against whole tensors; checkpoints between numbers of ranks."""

import os
import subprocess
import sys

import pytest

import pullback as torch
import pullback.distributed as dist
import pullback.distributed.checkpoint as dcp
from pullback.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from pullback.distributed.tensor.placements import part_of

from .ranks import PROGRAMS, needs_mpi, run_ranks


@pytest.fixture
def mesh():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@needs_mpi
def test_two_ranks_compute_as_one():
    out = run_ranks("sharding.py", 2)
    assert "rank 0 is done" in out and "rank 1 is done" in out


@needs_mpi
def test_a_checkpoint_of_two_ranks_is_loaded_by_one(tmp_path):
    saved = run_ranks("checkpoint.py", 2, "save", str(tmp_path / "saved"))
    env = os.environ | {"RANK": "0", "WORLD_SIZE": "1"}
    command = [
        sys.executable,
        "-m",
        "pullback",
        "run",
        str(PROGRAMS / "checkpoint.py"),
        "load",
        str(tmp_path / "saved"),
    ]
    loaded = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    expected, found = ([float(w) for w in text.split("losses ")[1].split()] for text in (saved, loaded))
    assert found == pytest.approx(expected, abs=2e-5)


def test_parts_are_cut_as_chunks():
    for n in (0, 1, 5, 8):
        pieces = torch.arange(n).chunk(3)
        for i in range(3):
            begin, length = part_of(n, 3, i)
            assert list(range(begin, begin + length)) == (pieces[i].tolist() if i < len(pieces) else [])


def test_a_distributed_tensor_has_the_shape_of_the_whole(mesh):
    d = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
    assert d.shape == (4, 2) and d.to_local().shape == (4, 2) and d.placements == (Shard(0),)
    assert (d + 1).placements == (Shard(0),) and d.sum().placements == (Partial("sum"),)
    assert d.softmax(1).placements == d.cumsum(1).placements == (Shard(0),)
    assert d.cumsum(0).placements == d.cumsum(1).cumsum(-2).placements == (Replicate(),)
    assert d.sum().full_tensor().item() == 8
    assert DTensor.from_local(torch.ones(2), mesh, [Replicate()]).full_tensor().tolist() == [1, 1]


def test_plain_and_distributed_tensors_do_not_mix(mesh):
    d = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
    with pytest.raises(RuntimeError, match="got mixed torch.Tensor and DTensor"):
        d + torch.ones(4)
    assert (d + torch.tensor(1.0)).full_tensor().tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match="Shard\\(dim=3\\) is no dimension of a tensor with 1"):
        distribute_tensor(torch.ones(4), mesh, [Shard(3)])


def test_checkpoints_say_what_does_not_fit(tmp_path):
    dcp.save({"a": torch.ones(3), "n": {"b": 1}}, checkpoint_id=tmp_path / "c")
    state = {"a": torch.zeros(3), "n": {"b": 0}}
    dcp.load(state, checkpoint_id=tmp_path / "c")
    assert state["a"].tolist() == [1, 1, 1] and state["n"]["b"] == 1
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: z"):
        dcp.load({"z": torch.ones(1)}, checkpoint_id=tmp_path / "c")
    with pytest.raises(dcp.CheckpointException, match="Size mismatch between saved \\[3\\] and current: \\[4\\] for a"):
        dcp.load({"a": torch.ones(4)}, checkpoint_id=tmp_path / "c")
    with pytest.raises(dcp.CheckpointException, match="is no checkpoint"):
        dcp.load({"a": torch.ones(4)}, checkpoint_id=tmp_path / "nothing")


def test_checkpoints_tell_objects_what_they_hold(tmp_path):
    """Modules and optimizers get their state by `load_state_dict`, numbers of an optimizer included."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    dcp.save({"model": model, "optimizer": optimizer, "epoch": 3}, checkpoint_id=tmp_path / "c")
    other = torch.nn.Linear(2, 2)
    fresh = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    other(torch.ones(1, 2)).sum().backward()
    fresh.step()
    state = {"model": other, "optimizer": fresh, "epoch": 0}
    dcp.load(state, checkpoint_id=tmp_path / "c")
    assert state["model"] is other and torch.equal(other.weight, model.weight)
    assert fresh.param_groups[0]["lr"] == 0.5 and state["epoch"] == 3


def test_a_checkpoint_is_written_while_the_program_goes_on(tmp_path):
    state = {"a": torch.ones(3), "n": {"b": [1, 2]}}
    future = dcp.async_save(state, checkpoint_id=tmp_path / "c", planner=dcp.DefaultSavePlanner())
    state["a"].zero_()
    state["n"]["b"].append(3)
    saved = future.result().state_dict_metadata
    assert saved["a"].size == (3,) and saved["a"].properties.dtype is torch.float32
    assert isinstance(saved["n.b"], dcp.BytesStorageMetadata) and saved["a"].chunks[0].offsets == (0,)
    dcp.load(state, checkpoint_id=tmp_path / "c")
    assert state["a"].tolist() == [1, 1, 1] and state["n"]["b"] == [1, 2]
    assert dcp.FileSystemReader(tmp_path / "c").read_metadata() == future.result()


def test_planners_and_storages(tmp_path):
    dcp.save({"a": torch.ones(3)}, checkpoint_id=tmp_path / "c")
    state = {"a": torch.zeros(3), "z": torch.full((2,), 7.0), "k": 5}
    dcp.load(state, checkpoint_id=tmp_path / "c", planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert state["a"].tolist() == [1, 1, 1] and state["z"].tolist() == [7, 7] and state["k"] == 5

    class Mine(dcp.DefaultSavePlanner, dcp.StorageWriter, dcp.StorageReader):
        pass

    with pytest.raises(NotImplementedError, match="planner must be None or a DefaultSavePlanner, got Mine"):
        dcp.save({}, checkpoint_id=tmp_path / "d", planner=Mine())
    with pytest.raises(NotImplementedError, match="storage_writer must be a FileSystemWriter, got Mine"):
        dcp.save({}, storage_writer=Mine())
    with pytest.raises(NotImplementedError, match="storage_reader must be a FileSystemReader, got Mine"):
        dcp.load({}, storage_reader=Mine())
    for kind in (dcp.DefaultSavePlanner, dcp.DefaultLoadPlanner):
        with pytest.raises(NotImplementedError, match="flatten_state_dict=False"):
            kind(flatten_state_dict=False)
