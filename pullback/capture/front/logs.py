"""Logs of what the compiler does, switched on by name: `set_logs(compiled_autograd=True, dynamo=logging.DEBUG)`."""

from __future__ import annotations

import logging

COMPONENTS = ("dynamo", "aot", "inductor", "dynamic", "fake_tensor")
ARTIFACTS = (
    "graph", "graph_code", "graph_breaks", "guards", "recompiles", "aot_graphs", "aot_joint_graph", "output_code",
    "bytecode", "compiled_autograd", "compiled_autograd_verbose", "trace_source", "cudagraphs", "perf_hints",
)  # fmt: skip
artifacts: dict[str, bool] = dict.fromkeys(ARTIFACTS, False)


def set_logs(*, all: int | None = None, modules: dict | None = None, **named) -> None:
    """Set levels of components (an int) and turn artifacts on or off (a bool); what is not named is off."""
    unknown = sorted(set(named) - set(COMPONENTS) - set(ARTIFACTS))
    if unknown:
        raise ValueError(
            f"set_logs: no component or artifact {unknown[0]!r}; there are {', '.join((*COMPONENTS, *ARTIFACTS))}"
        )
    for name in COMPONENTS:
        logger(name).setLevel(named.get(name, all if all is not None else logging.WARNING))
    for name in ARTIFACTS:
        artifacts[name] = bool(named.get(name, False))
        logger(name).setLevel(logging.DEBUG if artifacts[name] else logging.WARNING)


def logger(name: str) -> logging.Logger:
    """The logger of a component or artifact."""
    return logging.getLogger(f"torch._dynamo.{name}")
