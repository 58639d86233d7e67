"""Parameters and buffers that ranks have in common: compared, and given from the first rank to all."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.system.operator import public
from ..collectives import broadcast
from ..groups import get_global_rank
from ..objects import all_gather_object
from ..process_group import ProcessGroup


def state_tensors(module: Module, ignored: set[str]) -> list[Tensor]:
    """Parameters and buffers that ranks share."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return [t.detach() for name, t in named if name not in ignored]


def sync_states(tensors: list[Tensor], group: ProcessGroup) -> None:
    """Give all ranks the first one's values: one broadcast for each dtype."""
    kinds: dict[Any, list[Tensor]] = {}
    for t in tensors:
        kinds.setdefault((t.dtype, t.device), []).append(t)
    source = get_global_rank(group, 0)
    for same in kinds.values():
        whole = public("torch", "cat")([t.reshape(-1) for t in same])
        broadcast(whole, source, group)
        for t, part in zip(same, whole.split([t.numel() for t in same]), strict=True):
            t.copy_(part.reshape(t.shape))  # on the first rank too: all ranks run the same program


def verify_shapes(group: ProcessGroup, module: Module, ignored: set[str]) -> None:
    """All ranks must have the same parameters."""
    mine = [(n, tuple(p.shape), str(p.dtype)) for n, p in module.named_parameters() if n not in ignored]
    every: list = [None] * group.size()
    all_gather_object(every, mine, group)
    for rank, theirs in enumerate(every):
        if theirs == every[0]:
            continue
        pair = next(((a, b) for a, b in zip(every[0], theirs, strict=False) if a != b), (len(every[0]), len(theirs)))
        raise RuntimeError(
            f"DDP expects same model across all ranks, but rank {group.ranks[0]} has {pair[0]} and rank {group.ranks[rank]} "
            f"has {pair[1]} (names, shapes and dtypes of parameters, or their number)"
        )
