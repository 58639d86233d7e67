"""The groups of this process: the world, groups of some of its ranks, and who is who in them.

In: the arguments of `init_process_group`, the environment that a launcher has set. Out: `ProcessGroup`s. All ranks make
groups in the same order. One rank needs no MPI; more are those that an MPI launcher started together.
"""

from __future__ import annotations

import datetime
import itertools
import os
import warnings
from collections.abc import Sequence
from typing import Any

from . import faults, mpi
from .channel import Alone, Channel
from .process_group import Backend, GroupMember, ProcessGroup, make_checker
from .rendezvous import Place, place_of
from .standing import Board
from .stores import PrefixStore, Store
from .work import progress, seconds

default_pg_timeout = datetime.timedelta(minutes=30)
NO_WORLD = "Default process group has not been initialized, please make sure to call init_process_group."


class State:
    """What this process knows of groups."""

    def __init__(self) -> None:
        self.world: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}
        self.numbers = itertools.count()
        self.board = Board()


state = State()


def is_available() -> bool:
    """Whether processes can talk to each other here: they can."""
    return True


def is_initialized() -> bool:
    """Whether the world exists."""
    return state.world is not None


def is_mpi_available() -> bool:
    """Whether mpi4py and an MPI library are installed."""
    return mpi.is_installed()


def is_gloo_available() -> bool:
    """`gloo` is a name under which MPI answers, and one rank needs neither."""
    return True


def is_nccl_available() -> bool:
    """Whether NCCL is there."""
    from .nccl import is_installed

    return is_installed()


def is_ucc_available() -> bool:
    """Whether UCC is there: it is not built."""
    return False


def is_xccl_available() -> bool:
    """Whether XCCL is there: it is not built."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher of ours (or torchrun) started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend: str) -> bool:
    """Whether an engine can be used here."""
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return known.get(backend.lower(), lambda: False)()


# ---- the world
def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1,
    rank: int = -1, store: Store | None = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Make the world: all ranks that were started together, or this process alone."""
    if state.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if init_method is not None and store is not None:
        raise ValueError("Cannot specify both init_method and store.")
    name = backend_name(backend)
    place = place_of(init_method, world_size, rank, store, needs_env=name != "mpi")
    limit = seconds(timeout if timeout is not None else default_pg_timeout)
    channel = _world_channel(place, name, limit)
    state.board, state.numbers = Board(channel if channel.size > 1 else None), itertools.count(1)
    state.world = ProcessGroup(
        "0",
        list(range(channel.size)),
        channel,
        name,
        limit,
        state.board,
        checker=make_checker(channel),
        store=place.store,
    )
    state.world.bound_device_id = device_id
    state.groups = {"0": state.world}
    if channel.size > 1:
        faults.watch(channel)


def backend_name(backend: str | None) -> str:
    """The backend of CPU tensors, of a name or of several by device ("cpu:gloo,cuda:nccl")."""
    if backend is None:
        return Backend.GLOO
    if ":" in backend:
        pairs = dict(pair.split(":", 1) for pair in backend.split(","))
        backend = pairs.get("cpu") or next(iter(pairs.values()))
    return str(Backend(backend))


def _world_channel(place: Place, backend: str, limit: float) -> Channel:
    """The channel of the world, for this process's place in it."""
    if backend == "nccl":
        from .nccl import NcclChannel

        return NcclChannel.of(_host_channel(place, limit))
    return _host_channel(place, limit)


def _host_channel(place: Place, limit: float) -> Channel:
    if not mpi.launched():
        if place.size <= 1:
            return Alone()
        mpi.join(place.meeting_point(), place.rank, place.size, limit)
    comm = mpi.library().COMM_WORLD
    if place.size not in (-1, comm.Get_size()):
        raise ValueError(f"world_size is {place.size}, but the launcher started {comm.Get_size()} ranks")
    if comm.Get_size() == 1:
        return Alone()
    rank = comm.Get_rank() if place.rank < 0 else place.rank
    return mpi.MpiChannel(comm.Split(0, rank))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group; without one, all groups and the world."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if state.world is None and group is None:
        raise ValueError("Invalid process group specified or has been destroyed.")
    if group is not None and group is not state.world:
        if state.groups.pop(group.group_name, None) is None:
            raise ValueError("Invalid process group specified or has been destroyed.")
        return
    progress.stop()
    state.world, state.groups = None, {}


# ---- other groups
def new_group(
    ranks: Sequence[int] | None = None, timeout: Any = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None,
) -> ProcessGroup | int:  # fmt: skip
    """A group of some ranks. All ranks of the world call it; those outside get `GroupMember.NON_GROUP_MEMBER`."""
    world = world_or_raise()
    wanted = list(range(world.size())) if ranks is None else [int(r) for r in ranks]
    _check_ranks(wanted, world.size())
    number = next(state.numbers)
    if use_local_synchronization and world.rank() not in wanted:
        return GroupMember.NON_GROUP_MEMBER
    channel = _channel_among(world.channel, wanted, use_local_synchronization)
    if channel is None:
        return GroupMember.NON_GROUP_MEMBER
    # Ranks outside of a group made by its members alone do not count it: then its ranks name it.
    name = "of " + "-".join(map(str, wanted)) if use_local_synchronization else str(number)
    result = ProcessGroup(
        name, wanted, channel, backend_name(backend) if backend else world.backend,
        seconds(timeout) if timeout is not None else world.timeout, state.board, group_desc, make_checker(channel),
        PrefixStore(name, world.store) if world.store is not None else None,
    )  # fmt: skip
    state.groups[name] = result
    return result


def _check_ranks(ranks: list[int], size: int) -> None:
    if len(ranks) > size or not ranks:
        raise ValueError(
            f"the new group's world size should be between 1 and the world size {size}, got {len(ranks)} ranks"
        )
    if any(not 0 <= r < size for r in ranks):
        raise ValueError(
            f"The new group's rank should be within the world_size set by init_process_group: {ranks} of {size}"
        )
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks of a group must differ, got {ranks}")


def _channel_among(channel: Channel, ranks: list[int], only_they: bool) -> Channel | None:
    if isinstance(channel, Alone):
        return Alone()
    if not only_they:
        return channel.split(ranks)  # type: ignore[attr-defined]
    return channel.among(ranks, 1 + ranks[0])  # type: ignore[attr-defined]


def new_subgroups(
    group_size: int | None = None, group: ProcessGroup | None = None, timeout: Any = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[ProcessGroup, list]:  # fmt: skip
    """Groups of `group_size` neighbours; gives (this rank's, all)."""
    size = get_world_size()
    group_size = size if group_size is None else group_size
    if group_size <= 0 or size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    lists = [list(range(i, i + group_size)) for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]], timeout: Any = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list]:  # fmt: skip
    """Groups of the listed ranks; gives (this rank's, all)."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len(set(every)) != len(every):
        raise ValueError(f"a rank is in two subgroups: {ranks_per_subgroup_list}")
    result = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list
    ]
    mine = next((g for g in result if isinstance(g, ProcessGroup)), None)
    return mine, result  # type: ignore[return-value]


# ---- who is who
def world_or_raise() -> ProcessGroup:
    if state.world is None:
        raise ValueError(NO_WORLD)
    return state.world


def group_or_world(group: Any) -> ProcessGroup | None:
    """The group that a call is for; None, with a warning, where this rank is not in it."""
    if group is None:
        return world_or_raise()
    if group is GroupMember.NON_GROUP_MEMBER:
        warnings.warn(
            f"Running a collective on global rank {get_rank()} which does not belong to the given group.", stacklevel=4
        )
        return None
    if isinstance(group, str):
        return group_by_name(group)
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"group: expected a ProcessGroup or None, got {type(group).__name__}")
    return group


def group_by_name(name: str) -> ProcessGroup:
    """The group of a name, as graphs hold it."""
    if name not in state.groups:
        raise ValueError(f"no process group has the name {name!r}: it was destroyed, or made in another process")
    return state.groups[name]


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's rank in a group; -1 where it is not in it."""
    world = world_or_raise()
    if group is GroupMember.NON_GROUP_MEMBER:
        return -1
    return world.rank() if group is None else group.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks in a group; -1 where this process is not in it."""
    world = world_or_raise()
    if group is GroupMember.NON_GROUP_MEMBER:
        return -1
    return world.size() if group is None else group.size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of the engine of a group: "gloo", "mpi" or "nccl"."""
    found = world_or_raise() if group is None else group
    if found is GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return Backend(found.backend)


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The engines of a group by kind of device, as text."""
    name = get_backend(group)
    return f"cpu:{name},cuda:{name}"


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the whole world of a rank of a group."""
    if group is None or group is state.world:
        return group_rank
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a rank of the world."""
    if group is None or group is state.world:
        return global_rank
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of the world that are in a group."""
    return list((group or world_or_raise()).ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among those of this machine, as the launcher said it."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank.")


def get_pg_count() -> int:
    """How many groups there are."""
    return len(state.groups)


def set_timeout(timeout: Any, group: ProcessGroup | None = None) -> None:
    """Change how long calls of a group may take."""
    (group or world_or_raise()).timeout = seconds(timeout)
