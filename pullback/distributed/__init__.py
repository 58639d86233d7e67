"""`torch.distributed`: several processes, joined by MPI or NCCL.

`pullback launch -n 4 script.py` starts ranks; `init_process_group` makes them one world. Collectives (`all_reduce`, ...)
work on tensors in place; functional collectives are operators that graphs hold. On them stand `DistributedDataParallel`,
`fsdp.fully_shard`, `tensor.DTensor` and `checkpoint`. One rank needs no MPI.
"""

from __future__ import annotations

from . import group_operators as _group_operators  # noqa: F401 - sets the operators of `c10d`
from . import sync_batch_norm as _sync_batch_norm  # noqa: F401 - sets its seam
from .collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)  # fmt: skip
from .groups import (
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    set_timeout,
)  # fmt: skip
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)  # fmt: skip
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, monitored_barrier, recv, send
from .process_group import Backend, GroupMember, ProcessGroup, group
from .reduce_op import ReduceOp, make_premul_sum
from .rendezvous import rendezvous
from .stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from .work import DistBackendError, DistError, DistNetworkError, DistStoreError, Work

_make_nccl_premul_sum = make_premul_sum
_reduce_scatter_base, _all_gather_base = reduce_scatter_tensor, all_gather_into_tensor

_LATER = {
    "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh", "DistributedDataParallel": "data_parallel",
    "get_debug_level": "debug", "set_debug_level": "debug", "DebugLevel": "debug",
}  # fmt: skip
_MODULES = frozenset((
    "algorithms", "autograd", "checkpoint", "device_mesh", "distributed_c10d", "elastic", "fsdp", "nn", "optim", "rpc", "run",
    "tensor", "utils", "_functional_collectives", "_composable", "_tensor", "launch",
))  # fmt: skip


def __getattr__(name: str):
    import importlib
    import importlib.util

    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    if name in _MODULES and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "pipelining":
        raise AttributeError(
            f"torch.distributed.{name} does not exist here: collectives, data parallel, sharding and checkpoints do"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Backend", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "GroupMember", "HashStore",
    "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group",
    "gather", "gather_object", "get_backend", "get_backend_config", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "rendezvous", "scatter", "scatter_object_list", "send", "send_object_list", "set_timeout",
]  # fmt: skip
