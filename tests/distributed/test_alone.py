"""What programs ask of groups, meshes and factories, in a world of one rank."""

import json

import pytest

import pullback as torch
import pullback.distributed as dist
from pullback import nn
from pullback.distributed import consistency, debug, distributed_c10d
from pullback.distributed.checkpoint import hf_storage
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from pullback.distributed.nn import functional
from pullback.distributed.tensor import DTensor, Replicate, Shard, distribute_module, factories
from pullback.distributed.timeline import recording


@pytest.fixture(autouse=True)
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


# ---- groups
def test_who_is_who(monkeypatch):
    world = distributed_c10d._get_default_group()
    assert world is dist.group.WORLD and dist.is_available() and dist.get_backend() == "gloo"
    assert (dist.get_rank(), dist.get_world_size(), dist.get_process_group_ranks(None)) == (0, 1, [0])
    assert (dist.get_global_rank(world, 0), dist.get_group_rank(world, 0)) == (0, 0)
    assert (
        distributed_c10d._get_default_store() is world.store
        and distributed_c10d._get_process_group_store(world) is world.store
    )
    assert (
        distributed_c10d._resolve_process_group("0") is world and distributed_c10d._get_process_group_name(world) == "0"
    )
    assert distributed_c10d._get_group_size() == 1 and distributed_c10d._get_pg_default_device() == torch.device("cpu")
    assert distributed_c10d._rank_not_in_group(dist.GroupMember.NON_GROUP_MEMBER)
    assert "rank 0 of 1" in repr(world) and world.name() == world._get_backend_name() == "gloo"
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert dist.get_node_local_rank(fallback_rank=3) == 3
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert dist.get_node_local_rank() == 2


def test_groups_of_some_ranks():
    small = dist.new_group([0])
    assert small.ranks == [0] and dist.get_group_rank(small, 0) == 0
    mine, every = dist.new_subgroups_by_enumeration([[0]])
    assert every == [mine]
    for call, words in (
        (lambda: dist.new_group([0, 1]), "world size should be between 1 and the world size 1"),
        (lambda: dist.new_group([5]), "rank should be within the world_size"),
        (lambda: dist.new_subgroups(2), "must be divisible by 'group_size=2'"),
        (lambda: dist.new_subgroups_by_enumeration([]), "cannot be empty"),
        (lambda: dist.new_subgroups_by_enumeration([[0], [0]]), "a rank is in two subgroups"),
        (lambda: dist.get_group_rank(small, 4), "Global rank 4 is not part of group"),
        (lambda: dist.get_global_rank(small, 4), "is not part of group"),
        (lambda: dist.init_process_group("gloo"), "initialize the default process group twice"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    dist.destroy_process_group(small)
    with pytest.raises(ValueError, match="Invalid process group specified or has been destroyed"):
        dist.destroy_process_group(small)
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        dist.all_reduce(torch.ones(1), group=dist.GroupMember.NON_GROUP_MEMBER)
    with pytest.raises(TypeError, match="expected a ProcessGroup or None, got int"):
        dist.all_reduce(torch.ones(1), group=3)
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.all_reduce(torch.ones(1))


def test_backends():
    assert dist.is_gloo_available() and not dist.is_ucc_available() and not dist.is_xccl_available()
    assert dist.is_backend_available("gloo") and not dist.is_backend_available("smoke")
    assert dist.Backend("GLOO") == "gloo"
    with pytest.raises(ValueError, match="Unknown c10d backend type 'smoke'"):
        dist.Backend("smoke")
    with pytest.raises(ValueError, match="must be string-ish"):
        dist.Backend(3)


def test_levels_of_watching(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "info")
    assert debug.get_debug_level() is debug.DebugLevel.INFO
    debug.set_debug_level(debug.DebugLevel.OFF)
    assert debug.get_debug_level() is debug.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(ValueError, match="expected OFF, INFO or DETAIL, got 'MUCH'"):
        debug.get_debug_level()


def test_calls_that_differ_are_named():
    import numpy as np

    def gathered(mine):
        other = np.zeros_like(mine)
        other[:3] = np.frombuffer(b"xyz", np.uint8)
        return np.concatenate([mine, other])

    with pytest.raises(
        dist.DistBackendError, match="Rank 4 is running collective: abc, but rank 7 is running collective: xyz"
    ):
        consistency.check_alike(gathered, "abc", [4, 7])
    consistency.check_alike(lambda mine: np.concatenate([mine, mine]), "abc", [4, 7])


# ---- functions of tensors
def test_differentiable_functions():
    x = torch.arange(4.0, requires_grad=True)
    out = functional.all_reduce(x) + functional.broadcast(x, 0) + functional.all_gather(x)[0]
    out = out + functional.reduce_scatter(torch.empty(4), [x * 2]) + functional.all_to_all_single(torch.empty(4), x)
    out.sum().backward()
    assert x.grad.tolist() == [6] * 4 and torch.equal(out, x * 6)


def test_calls_in_a_graph_give_works():
    @torch.compile(fullgraph=True)
    def function(x, whole, part):
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        dist.all_gather_into_tensor(whole, x)
        dist.reduce_scatter_tensor(part, x)
        dist.broadcast(x, 0)
        return x + whole + part

    x = torch.arange(3.0)
    assert function(x, torch.empty(3), torch.empty(3)).tolist() == [0, 3, 6]


# ---- meshes
def test_meshes():
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("replicate", "shard"))
    assert (mesh.ndim, mesh.size(), mesh.shape, mesh.get_coordinate()) == (2, 1, (1, 1), [0, 0])
    assert mesh.get_local_rank("shard") == 0 and mesh["shard"].mesh_dim_names == ("shard",)
    assert mesh["shard", "replicate"].shape == (1, 1) and len(mesh.get_all_groups()) == 2
    assert "mesh_dim_names=('replicate', 'shard')" in repr(mesh)
    assert mesh == init_device_mesh("cpu", (1, 1)) and hash(mesh) == hash(init_device_mesh("cpu", (1, 1)))
    with pytest.raises(RuntimeError, match="has 2 dimensions: say of which the group is wanted"):
        mesh.get_group()
    with pytest.raises(KeyError, match="Invalid mesh_dim_name 'depth'"):
        mesh["depth"]
    assert DeviceMesh.from_group(dist.group.WORLD, "cpu").get_group() is dist.group.WORLD
    with pytest.raises(ValueError, match="Must pass mesh if passing multiple ProcessGroups"):
        DeviceMesh.from_group([dist.group.WORLD, dist.group.WORLD], "cpu")


def test_factories():
    mesh = init_device_mesh("cpu", (1,))
    for make, value in ((factories.zeros, 0), (factories.ones, 1)):
        d = make(2, 3, device_mesh=mesh, placements=[Shard(0)], requires_grad=True)
        assert isinstance(d, DTensor) and d.requires_grad and d.full_tensor().tolist() == [[value] * 3] * 2
    assert factories.full((2,), 7.0, device_mesh=mesh).placements == (Replicate(),)
    assert (
        factories.empty((2, 2)).shape
        == factories.rand(2, 2).shape
        == factories.randn(2, 2, placements=[Shard(1)]).shape
        == (2, 2)
    )


def test_modules_are_distributed_as_a_function_says():
    mesh, seen = init_device_mesh("cpu", (1,)), []
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    result = distribute_module(
        module, mesh, lambda name, child, mesh: seen.append(name),
        input_fn=lambda m, inputs, mesh: (DTensor.from_local(inputs[0], mesh, [Replicate()]),),
        output_fn=lambda m, out, mesh: out.to_local(),
    )  # fmt: skip
    assert seen == ["", "0", "1"] and all(isinstance(p, DTensor) for p in result.parameters())
    assert all(isinstance(b, DTensor) for b in result.buffers())
    assert not isinstance(result.eval()(torch.ones(3, 2)), DTensor)


# ---- records
def test_a_timeline_is_a_trace_and_a_picture(tmp_path):
    with recording(dist.group.WORLD) as line, line.span("step"):
        dist.all_reduce(torch.ones(4))
        dist.barrier()
    assert [row for row, *_ in line.events()] == ["compute", "communication", "communication"]
    assert 0 < line.overlap("step") <= 1 and line.overlap("other") == 0 and line.volume() == 0
    line.write_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["name"] for e in events} == {"step", "all_reduce", "barrier"} and all(e["dur"] >= 0 for e in events)
    line.picture(str(tmp_path / "line.svg"))
    assert (tmp_path / "line.svg").read_text().count("<rect") == 3
    assert dist.group.WORLD.log is None


def test_exceptions_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))

    @record
    def main(x):
        if x:
            raise ValueError("no such file")
        return "well"

    assert main(0) == "well" and not (tmp_path / "error.json").exists()
    with pytest.raises(ValueError, match="no such file"):
        main(1)
    message = json.loads((tmp_path / "error.json").read_text())["message"]
    assert message["message"] == "ValueError: no such file" and "in main" in message["extraInfo"]["py_callstack"]
    assert str(ChildFailedError("train.py", {1: "why"})) == "train.py FAILED: rank 1: why"


def test_what_is_not_there_says_so():
    for make in (
        hf_storage.HuggingFaceStorageWriter,
        hf_storage.HuggingFaceStorageReader,
        hf_storage.consolidate_safetensors_files,
    ):
        with pytest.raises(NotImplementedError):
            make()
