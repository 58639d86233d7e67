"""`torch.distributed.distributed_c10d`: the names that programs import from there."""

from __future__ import annotations

from typing import Any, NewType

from ..core.device import device
from . import groups as _groups
from .collectives import *  # noqa: F403
from .collectives import Works as _CoalescingManager  # noqa: F401
from .groups import (  # noqa: F401
    _check_ranks,
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
    group_by_name,
    init_process_group,
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
from .objects import (  # noqa: F401
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)  # fmt: skip
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, monitored_barrier, recv, send  # noqa: F401
from .process_group import Backend, GroupMember, ProcessGroup  # noqa: F401
from .process_group import group as group
from .reduce_op import ReduceOp  # noqa: F401
from .stores import PrefixStore, Store
from .work import Work  # noqa: F401

GroupName = NewType("GroupName", str)


def _get_default_group() -> ProcessGroup:
    """The world."""
    return _groups.world_or_raise()


def _get_default_store() -> Store | None:
    """The store that ranks of this job share, where there is one."""
    return _groups.world_or_raise().store


def _rank_not_in_group(pg: Any) -> bool:
    return pg is GroupMember.NON_GROUP_MEMBER


def _resolve_process_group(group_name: str) -> ProcessGroup:
    return _groups.group_by_name(group_name)


def _get_process_group_store(pg: ProcessGroup) -> PrefixStore | None:
    return pg.store


def _get_group_size(pg: Any = None) -> int:
    return get_world_size(pg)


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def _get_pg_default_device(pg: Any = None) -> Any:
    """The device that a group's object collectives use."""
    return device((pg or _groups.world_or_raise()).channel.device)
