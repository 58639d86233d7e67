"""What groups, collectives and their relatives refuse and report, in a world of one rank."""

import copy
import datetime
import pickle

import pytest

import pullback as torch
import pullback.distributed as dist
from pullback import nn
from pullback.distributed import _functional_collectives as functional
from pullback.distributed import rpc
from pullback.distributed.algorithms.ddp_comm_hooks import default_hooks
from pullback.distributed.algorithms.join import Join, Joinable, JoinHook
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.elastic_launch import LaunchConfig, elastic_launch
from pullback.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from pullback.distributed.optim import ZeroRedundancyOptimizer
from pullback.distributed.tensor import DTensor, Partial, Replicate, Shard, _utils, distribute_tensor
from pullback.distributed.work import Work

OUTSIDE = dist.GroupMember.NON_GROUP_MEMBER


@pytest.fixture(autouse=True)
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def refused(*table):
    """Each row is a call, the error it must raise and words of its message."""
    for call, error, words in table:
        with pytest.raises(error, match=words):
            call()


# ---- collectives
@pytest.mark.filterwarnings("ignore:Running a collective on global rank")
def test_ranks_outside_of_a_group_do_nothing():
    t, objects = torch.ones(2), [None]
    for call in (
        lambda: dist.all_reduce(t, group=OUTSIDE),
        lambda: dist.reduce(t, 0, group=OUTSIDE),
        lambda: dist.broadcast(t, 0, group=OUTSIDE),
        lambda: dist.all_gather([t], t, group=OUTSIDE),
        lambda: dist.all_gather_into_tensor(t, t, group=OUTSIDE),
        lambda: dist.gather(t, [t], 0, group=OUTSIDE),
        lambda: dist.scatter(t, [t], 0, group=OUTSIDE),
        lambda: dist.reduce_scatter(t, [t], group=OUTSIDE),
        lambda: dist.reduce_scatter_tensor(t, t, group=OUTSIDE),
        lambda: dist.all_to_all([t], [t], group=OUTSIDE),
        lambda: dist.all_to_all_single(t, t, group=OUTSIDE),
        lambda: dist.barrier(group=OUTSIDE),
        lambda: dist.isend(t, 0, group=OUTSIDE),
        lambda: dist.irecv(t, 0, group=OUTSIDE),
        lambda: dist.all_gather_object(objects, 1, group=OUTSIDE),
        lambda: dist.gather_object(1, objects, 0, group=OUTSIDE),
        lambda: dist.broadcast_object_list(objects, 0, group=OUTSIDE),
        lambda: dist.scatter_object_list(objects, [1], 0, group=OUTSIDE),
        lambda: dist.destroy_process_group(OUTSIDE),
    ):
        assert call() is None
    assert t.tolist() == [1, 1] and objects == [None] and dist.is_initialized()
    assert dist.recv(t, 0, group=OUTSIDE) == -1
    assert dist.get_rank(OUTSIDE) == dist.get_world_size(OUTSIDE) == -1
    with pytest.raises(ValueError, match="Invalid process group specified"):
        dist.get_backend(OUTSIDE)


def test_lists_of_another_length():
    t = torch.ones(2)
    refused(
        (lambda: dist.broadcast(t, 0, group_src=0), ValueError, "Can't specify both group_src and src"),
        (lambda: dist.reduce_scatter(t, [t, t]), ValueError, "input_list: expected 1 tensors, one for each rank, got 2"),
        (lambda: dist.all_to_all([t], []), ValueError, "input_tensor_list: expected 1 tensors"),
        (lambda: dist.gather(t, None, 0), ValueError, "gather_list"),
        (lambda: dist.scatter(t, [t, t], 0), ValueError, "expected 1 tensors, one for each rank, got 2"),
        (lambda: dist.isend(t), ValueError, "Must specify dst or group_dst"),
        (lambda: dist.isend(t, group_dst=4), ValueError, "dst: expected a rank below 1, got 4"),
        (lambda: dist.P2POp(print, t, 0), ValueError, "Invalid ``op``"),
        (lambda: dist.batch_isend_irecv([]), ValueError, "Invalid ``p2p_op_list``"),
        (lambda: dist.all_gather_object([], 1), ValueError, "expected a list of 1, one for each rank, got 0"),
        (lambda: dist.gather_object(1, None, 0), ValueError, "must be specified on destination rank"),
        (lambda: dist.broadcast_object_list((1,), 0), TypeError, "expected a list, got tuple"),
        (lambda: dist.scatter_object_list([], [1], 0), ValueError, "list of size at least 1"),
        (lambda: dist.scatter_object_list([None], [1, 2], 0), ValueError, "scatter_object_input_list"),
        (lambda: torch.ops._c10d_functional.all_gather_into_tensor(t, 3, "0"), ValueError, "expected 1, the size of"),
        (lambda: functional.all_reduce(t, "median", dist.group.WORLD), ValueError, "op: expected a ReduceOp or one of"),
    )  # fmt: skip


def test_several_tensors_at_once():
    a, b = torch.ones(2), torch.zeros(2)
    assert dist.all_reduce_coalesced([a, b]) is None
    work = dist.all_gather_coalesced([[b]], [a], async_op=True)
    assert work.wait() and work.is_completed() and b.tolist() == [1, 1]
    assert functional.all_reduce(a, "mean", None).tolist() == [1, 1]
    mesh = init_device_mesh("cpu", (1,))
    for group in ("0", mesh, (mesh, 0)):
        assert functional.group_of(group) is dist.group.WORLD


def test_messages_to_oneself():
    t = torch.empty(2)
    work = dist.irecv(t, 0)
    assert not work.is_completed()
    dist.send(torch.tensor([3.0, 4.0]), 0)
    work.synchronize()
    assert t.tolist() == [3, 4] and work.exception() is None and work.result()[0] is t
    dist.send(torch.ones(2), 0)
    assert dist.recv(t, group_src=0) == 0 and t.tolist() == [1, 1]
    dist.send(torch.zeros(2), 0)
    assert dist.recv(t) == 0 and t.tolist() == [0, 0]
    dist.monitored_barrier()


def test_a_call_that_never_ends_times_out():
    with pytest.raises(dist.DistBackendError, match="timed out after 20 ms on rank 0"):
        dist.irecv(torch.empty(2), 0).wait(datetime.timedelta(milliseconds=20))


def test_an_error_at_the_end_is_kept_for_who_waits():
    class Done:
        def Test(self):
            return True

    def finish():
        raise ValueError("no room")

    work = Work(dist.group.WORLD, "gather", 1, Done(), finish, [], 1.0)
    with pytest.raises(dist.DistBackendError, match="gather: no room"):
        work.wait()
    assert isinstance(work.exception(), dist.DistBackendError)
    with pytest.raises(dist.DistBackendError, match="gather: no room"):
        work.get_future().wait()


def test_calls_in_a_graph():
    @torch.compile(fullgraph=True)
    def function(x, parts, out):
        dist.all_gather([parts], x)
        dist.all_to_all_single(out, x)
        return parts + out

    assert function(torch.arange(3.0), torch.empty(3), torch.empty(3)).tolist() == [0, 2, 4]


def test_kinds_of_reduction():
    op = dist.ReduceOp.SUM
    assert op.op is op and int(op) == op.value == 0 and repr(op) == "<RedOpType.SUM: 0>"
    assert op == pickle.loads(pickle.dumps(op)) and op != dist.ReduceOp.MAX and len({op, dist.ReduceOp.SUM}) == 1
    refused(
        (lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.PREMUL_SUM), ValueError, "PREMUL_SUM"),
        (lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND), ValueError, "BAND with tensors of dtype"),
    )


# ---- groups
def test_groups_are_not_data():
    world = dist.group.WORLD
    assert copy.deepcopy(world) is world
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(world)
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo" and dist.get_pg_count() == 1
    dist.set_timeout(datetime.timedelta(seconds=5), world)
    assert world.timeout == 5


def test_starts_that_cannot_be(monkeypatch):
    dist.destroy_process_group()
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    store = dist.HashStore()
    start = dist.init_process_group
    refused(
        (dist.destroy_process_group, ValueError, "Invalid process group specified or has been destroyed"),
        (lambda: start(init_method="env://", store=store), ValueError, "Cannot specify both init_method and store"),
        (lambda: start(store=store), ValueError, "world_size and rank must be given"),
        (lambda: start(init_method="smoke://x", rank=0, world_size=2), RuntimeError, "No rendezvous handler for smoke"),
        (lambda: start(init_method="tcp://127.0.0.1:1"), ValueError, "rank or world_size parameter missing"),
        (lambda: start(init_method="file://", rank=0, world_size=1), ValueError, "expected a path after file://"),
        (lambda: start(rank=3, world_size=2, store=store), ValueError, "rank 3 is not below world_size 2"),
        (lambda: start(init_method="env://", rank=0, world_size=2), ValueError, "MASTER_ADDR expected, but not set"),
        (lambda: start("nccl", rank=0, world_size=1), RuntimeError, "needs CuPy with NCCL"),
    )  # fmt: skip
    assert not dist.is_initialized() and not dist.is_torchelastic_launched()
    start("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
    assert dist.get_backend() == "gloo"
    found, rank, size = next(dist.rendezvous("tcp://127.0.0.1:0?rank=0&world_size=1"))
    found.set("a", b"1")
    assert (found.get("a"), rank, size) == (b"1", 0, 1)


def test_stores():
    store = dist.HashStore()
    store.set_timeout(datetime.timedelta(seconds=0.05))
    assert store.timeout == datetime.timedelta(seconds=0.05) and store.has_extended_api()
    store.multi_set(["a", "b"], ["1", b"2"])
    assert store.multi_get(["a", "b"]) == [b"1", b"2"]
    with pytest.raises(dist.DistStoreError):
        store.get("c")


def test_meshes_that_cannot_be():
    mesh = DeviceMesh("cpu", torch.tensor(0))
    assert mesh.shape == (1,) and len(mesh) == 1 and mesh.get_rank() == 0 and mesh.mesh.tolist() == [0]
    refused(
        (lambda: DeviceMesh("cpu", [0], mesh_dim_names=("a", "b")), RuntimeError, "as many as the mesh has dimensions, 1"),
        (lambda: DeviceMesh("cpu", [0, 1]), RuntimeError, "Mesh should not be bigger than default world size 1"),
        (lambda: init_device_mesh("cpu", (2,)), RuntimeError, "use all ranks"),
        (lambda: init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a")), RuntimeError, "must be unique"),
        (lambda: init_device_mesh("cuda:0", (1,)), RuntimeError, "Device type with index is not supported"),
    )  # fmt: skip
    dist.destroy_process_group()
    assert init_device_mesh("cpu", (1,)).get_group() is dist.group.WORLD  # a world of one is begun for it
    dist.destroy_process_group()
    assert DeviceMesh("cpu", [0]).size(0) == 1


# ---- tensors
def test_distributed_tensors_are_copied_and_moved_with_care():
    mesh = init_device_mesh("cpu", (1,))
    d = distribute_tensor(nn.Parameter(torch.arange(4.0)), mesh, [Shard(0)])
    other = copy.deepcopy(d)
    assert other.placements == d.placements and other.requires_grad and isinstance(other, nn.Parameter)
    assert other.to_local().data_ptr() != d.to_local().data_ptr() and "placements=(Shard(dim=0),)" in repr(d)
    assert distribute_tensor(d, mesh, [Replicate()]).placements == (Replicate(),)
    assert _utils.compute_local_shape_and_global_offset((5, 2), mesh, [Shard(0)]) == ((5, 2), (0, 0))
    assert _utils.compute_local_shape_and_global_offset((5, 2), mesh, [Shard(0)], skip_offset=True)[1] == ()
    assert _utils.compute_global_tensor_shape((5, 2), mesh, [Shard(-1)]) == (5, 2)
    refused(
        (lambda: d.redistribute(init_device_mesh("cpu", (1, 1)), [Replicate()]), NotImplementedError, "another mesh"),
        (lambda: d.redistribute(), RuntimeError, "placements is needed"),
        (lambda: d.redistribute(placements=[Partial()]), RuntimeError, "Can not redistribute to Partial"),
        (lambda: distribute_tensor(torch.ones(1)), RuntimeError, "device_mesh is needed"),
        (lambda: distribute_tensor(torch.ones(1), mesh, [Partial()]), ValueError, "is no partial one"),
        (lambda: distribute_tensor(torch.ones(1), mesh, ["S"]), TypeError, "expected Shard, Replicate or Partial"),
        (lambda: distribute_tensor(torch.ones(1), mesh, []), ValueError, "Found 0 and 1"),
    )


# ---- wrappers
def test_whole_parameters_by_policy():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float64)
    parts = fully_shard([model[0], model[1]], mp_policy=policy, offload_policy=CPUOffloadPolicy())
    assert all(isinstance(p, FSDPModule) for p in parts) and isinstance(model[0].weight, DTensor)
    seen = []
    model[1].register_forward_hook(lambda m, args, out: seen.append((args[0].dtype, out.dtype)))
    model(torch.ones(1, 2)).sum().backward()
    assert seen == [(torch.float64, torch.float64)] and model[0].weight.grad.dtype is torch.float32
    model[0].set_reshard_after_forward(False)
    assert not model[0]._fsdp[0].reshard and model[1]._fsdp[0].reshard
    refused(
        (lambda: fully_shard(model[0]), ValueError, "has already been applied"),
        (lambda: fully_shard(model, shard_placement_fn=print), NotImplementedError, "shard_placement_fn"),
        (lambda: FullyShardedDataParallel(model), NotImplementedError, "use torch.distributed.fsdp.fully_shard"),
        (lambda: FullyShardedDataParallel.summon_full_params(model), NotImplementedError, "summon_full_params"),
        (lambda: FullyShardedDataParallel.state_dict_type(model), NotImplementedError, "state_dict_type"),
    )
    assert FullyShardedDataParallel.fsdp_modules(model) == []


def test_an_optimizer_in_parts():
    model = nn.Linear(2, 1)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.5, momentum=0.9)
    refused(
        (optimizer.state_dict, RuntimeError, "consolidate_state_dict"),
        (
            lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]}),
            NotImplementedError,
            "changes who keeps what",
        ),
        (
            lambda: ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True),
            NotImplementedError,
            "overlap_with_ddp",
        ),
    )
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.consolidate_state_dict(0)
    state = optimizer.state_dict()
    other = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == other.optim.param_groups[0]["lr"] == 0.5
    assert other.optim.state[model.weight]["momentum_buffer"].tolist() == [[1, 1]]


def test_rounding_on_the_way():
    for hook, expected in (
        (default_hooks.fp16_compress_hook, 0.333251953125),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 0.333984375),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 0.333251953125),
    ):
        model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        model.register_comm_hook(None, hook)
        model(torch.tensor([[1 / 3]])).sum().backward()
        assert model.module.weight.grad.item() == expected


def test_ranks_that_run_out_of_inputs():
    ended = []

    class Counted(Joinable):
        join_process_group = dist.group.WORLD

        def join_hook(self, **kwargs):
            class Hook(JoinHook):
                def post_hook(self, is_last_joiner):
                    ended.append((is_last_joiner, kwargs))

            return Hook()

    counted = Counted()
    with Join([counted], word="a"):
        assert Join.notify_join_context(counted) == 1 and Join.notify_join_context(object()) == 0
    assert ended == [(True, {"word": "a"})] and counted.join_device == "cpu"
    with Join([counted], enable=False):
        assert Join.notify_join_context(counted) == 0
    with pytest.raises(KeyError), Join([counted]):
        raise KeyError
    assert len(ended) == 1 and Join.notify_join_context(counted) == 0
    refused(
        (lambda: Join([]), ValueError, "at least one joinable"),
        (Joinable().join_hook, NotImplementedError, None),
        (lambda: Joinable().join_process_group, NotImplementedError, None),
    )


def test_there_are_no_remote_calls():
    assert not rpc.is_available() and not rpc.is_current_rpc_agent_set()
    calls = [lambda n=n: getattr(rpc, n)("w", print) for n in ("init_rpc", "rpc_sync", "rpc_async", "remote")]
    for call in (*calls, rpc.shutdown, rpc.get_worker_info, rpc.RRef, rpc.TensorPipeRpcBackendOptions):
        with pytest.raises(RuntimeError, match="remote procedure calls are not implemented"):
            call()


def test_programs_do_not_start_their_ranks():
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_configs={"rank": 0})
    with pytest.raises(NotImplementedError, match="torchrun --nproc-per-node 2"):
        elastic_launch(config, print)(1)
