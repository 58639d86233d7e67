"""Who writes and reads what of a checkpoint: `torch.distributed.checkpoint.planner` and `default_planner`.

There is one plan here: ranks write what they have (of common parts the first does) and read what overlaps with their
parts. `DefaultSavePlanner` and `DefaultLoadPlanner` say it with options; a planner with methods of its own is refused by
`save` and `load`, which would not call them.
"""

from __future__ import annotations

from typing import Any


class SavePlanner:
    """The base of planners for saving."""


class LoadPlanner:
    """The base of planners for loading."""


class DefaultSavePlanner(SavePlanner):
    """What `save` does. Names are always those of flattened state, and parts that several ranks have are written once."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ):  # fmt: skip
        if not flatten_state_dict:
            raise NotImplementedError("DefaultSavePlanner: flatten_state_dict=False: checkpoints hold flattened state")


class DefaultLoadPlanner(LoadPlanner):
    """What `load` does. With `allow_partial_load`, names that the checkpoint does not have keep their values."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ):
        if not flatten_state_dict:
            raise NotImplementedError("DefaultLoadPlanner: flatten_state_dict=False: checkpoints hold flattened state")
        self.allow_partial_load = allow_partial_load


def checked(planner: Any, kind: type, where: str) -> Any:
    """A planner of the default kind; NotImplementedError for others, whose methods nothing would call."""
    if planner is not None and type(planner) is not kind:
        raise NotImplementedError(
            f"{where}: planner must be None or a {kind.__name__}, got {type(planner).__name__}: methods of planners are not "
            "called here; ranks write what they have, and read what overlaps with their parts"
        )
    return planner


__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "LoadPlanner", "SavePlanner"]
