"""What each graph that was captured cost and needed: `torch._dynamo.utils.get_compilation_metrics`.

In: the compiler's events. Out: a row for each graph, and for each that was refused. They are collected from the first time on
that somebody asks; the oldest go when there are more than the limit.
"""

from __future__ import annotations

import collections
import dataclasses
import time
from typing import Any

from ...core import events
from .config import config

DEFAULT_COMPILATION_METRICS_LIMIT = 64


@dataclasses.dataclass
class CompilationMetrics:
    """One graph, or what came of the attempt."""

    co_name: str
    compile_id: str
    guard_count: int = 0
    shape_env_guard_count: int = 0
    graph_op_count: int = 0
    restart_reasons: frozenset[str] = frozenset()
    dynamo_time_before_restart_s: float = 0.0
    entire_frame_compile_time_s: float = 0.0
    backend_compile_time_s: float = 0.0
    recompile_reason: str | None = None
    fail_type: str | None = None
    fail_reason: str | None = None
    dynamo_config: str | None = None


_compilation_metrics: collections.deque[CompilationMetrics] = collections.deque(maxlen=None)
_limit = DEFAULT_COMPILATION_METRICS_LIMIT


class Collector:
    """The listener: facts of the graph that is being made, until it is there."""

    def __init__(self) -> None:
        self.count = 0
        self.start_again()

    def start_again(self) -> None:
        self.reasons: list[str] = []
        self.recompiled: str | None = None
        self.error: Exception | None = None
        self.operations, self.seconds, self.begun = 0, {"capture": 0.0, "backend": 0.0}, time.perf_counter()

    def __call__(self, kind: str, facts: dict[str, Any]) -> None:
        if kind == "broke":
            self.reasons.append(facts["reason"])
        elif kind == "recompiled":
            self.start_again()
            self.recompiled = facts["reason"]
        elif kind == "captured":
            self.operations = sum(n.op.startswith("call_") for n in facts["graph"].graph.nodes)
        elif kind == "stage" and facts["name"] in self.seconds:
            self.seconds[facts["name"]] += facts["seconds"]
        elif kind == "refused":
            self.error = facts["error"]
            if not config.suppress_errors:  # else the graph comes, as it is
                self._row(facts)
        elif kind == "entered":
            self._row(facts)

    def _row(self, facts: dict[str, Any]) -> None:
        conditions, error = facts.get("conditions", ()), self.error
        whole = max(time.perf_counter() - self.begun, sum(self.seconds.values()))
        add(
            CompilationMetrics(
                getattr(facts["function"], "name", "?"), f"{self.count}/0", len(conditions),
                sum(".size()" in c or ".shape" in c for c in conditions), self.operations, frozenset(self.reasons),
                whole if self.reasons or error else 0.0, whole, self.seconds["backend"], self.recompiled,
                None if error is None else type(error).__name__, None if error is None else f"{type(error).__name__}: {error}",
                repr(config),
            )
        )  # fmt: skip
        self.count += 1
        self.start_again()


_collector: Collector | None = None


def add(row: CompilationMetrics) -> None:
    _compilation_metrics.append(row)
    while len(_compilation_metrics) > _limit:
        _compilation_metrics.popleft()


def _collect() -> None:
    global _collector
    if _collector is None:
        _collector = Collector()
        events.listeners.append(_collector)


def get_compilation_metrics() -> list[CompilationMetrics]:
    """The rows so far, the oldest first."""
    _collect()
    return list(_compilation_metrics)


def clear_compilation_metrics() -> None:
    """Drop all rows; from here on they are collected."""
    _collect()
    _collector.start_again()  # type: ignore[union-attr]
    _compilation_metrics.clear()


def set_compilation_metrics_limit(limit: int) -> None:
    """Keep so many rows."""
    global _limit
    _limit = limit
    _collect()
