"""`torch.distributed.launcher`: ranks started from a program. Not built: ranks are started from outside, by `torchrun` or
`pullback launch`. `LaunchConfig` holds its words, for programs that make one before they choose; a launch raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LaunchConfig:
    """How many ranks to start, and where."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None


class elastic_launch:
    """Would call an entry point in every rank."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        raise NotImplementedError(
            f"elastic_launch: a program cannot start its ranks here; run it as torchrun --nproc-per-node "
            f"{self._config.nproc_per_node} PROGRAM"
        )


__all__ = ["LaunchConfig", "elastic_launch"]
