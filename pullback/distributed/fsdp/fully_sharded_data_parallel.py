"""FSDP's first interface, a wrapper around a module: not built. `fully_shard` is the one that is here; making this one raises.

The class exists because libraries ask whether a module is an instance of it; no module is. What it is told is in `api`.
"""

from __future__ import annotations

from typing import Any

from ...nn.module import Module
from .api import *  # noqa: F403 - PyTorch has these names in this module too


def _not_built(what: str) -> NotImplementedError:
    return NotImplementedError(f"{what} is not implemented: use torch.distributed.fsdp.fully_shard(module)")


class FullyShardedDataParallel(Module):
    """Would shard a module by wrapping it."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise _not_built("FullyShardedDataParallel")

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Module]:
        """The wrapped modules in a module: there are none."""
        return []

    @staticmethod
    def state_dict_type(module: Module, *args: Any, **kwargs: Any):
        raise _not_built("FullyShardedDataParallel.state_dict_type")

    @staticmethod
    def set_state_dict_type(module: Module, *args: Any, **kwargs: Any):
        raise _not_built("FullyShardedDataParallel.set_state_dict_type")

    @staticmethod
    def optim_state_dict(model: Module, *args: Any, **kwargs: Any):
        raise _not_built("FullyShardedDataParallel.optim_state_dict")

    @staticmethod
    def optim_state_dict_to_load(model: Module, *args: Any, **kwargs: Any):
        raise _not_built("FullyShardedDataParallel.optim_state_dict_to_load")

    @staticmethod
    def summon_full_params(module: Module, *args: Any, **kwargs: Any):
        raise _not_built("FullyShardedDataParallel.summon_full_params")


class FlatParameter:
    """A parameter that holds many, as `FullyShardedDataParallel` would make them: there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _not_built("FlatParameter")
