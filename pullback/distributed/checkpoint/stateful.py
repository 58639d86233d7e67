"""Objects that a checkpoint saves and loads by their own words: `torch.distributed.checkpoint.stateful`."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """Whatever has `state_dict()` and `load_state_dict(state)`: modules, optimizers, loaders."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


__all__ = ["Stateful"]
