"""What timing a statement gave: the times of runs, and the numbers that describe them.

In: seconds that runs of `number_per_run` calls took, and what was measured. Out: seconds per call. What always holds: a
measurement never changes; `merge` makes new ones.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable
from typing import Any

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured, as tables name it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{self.stmt}"

    def setup_str(self) -> str:
        return "" if self.setup == "pass" or not self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        sections = [
            self.title,
            self.description or "",
            self.setup_str(),
            f"global_setup: {self.global_setup}" if self.global_setup else "",
        ]
        return "\n".join(s for s in sections if s)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times of a statement."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str):
        """What was measured: `title`, `stmt`, `label`, `num_threads`, ..."""
        if name != "task_spec" and hasattr(TaskSpec, name) or name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds per call of each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the first and the third quartile."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many digits of the median the spread of the runs leaves: at least one, at most five."""
        n = len(self.times)
        if n < 2:
            return 1
        width = 1.645 * math.sqrt(math.pi / 2) * (self.iqr / 1.349) / math.sqrt(n)  # of 90% intervals, by quartiles
        if not width:
            return 5
        return min(max(math.floor(math.log10(self.median / width)), 1), 5)

    @property
    def has_warnings(self) -> bool:
        """Whether runs differ so much that their median says little."""
        return bool(self.median) and self.iqr / self.median > 0.25

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task as one each."""
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            grouped.setdefault(m.task_spec, []).append(m)
        return [
            Measurement(1, [t for m in group for t in m.times], spec, None) if len(group) > 1 else group[0]
            for spec, group in grouped.items()
        ]

    def __repr__(self) -> str:
        scale, unit = unit_of(self.median)
        lines = [super().__repr__(), self.task_spec.summarize()]
        name = "Median" if len(self.times) > 1 else "Time"
        lines.append(f"{name}: {self.median / scale:.2f} {unit}")
        if len(self.times) > 1:
            lines.append(f"IQR: {self.iqr / scale:.2f} {unit}")
            lines.append(f"{len(self.times)} measurements, {self.number_per_run} runs per measurement")
        else:
            lines.append(f"1 measurement, {self.number_per_run} runs")
        threads = self.task_spec.num_threads
        lines.append(f"{threads} thread{'s' if threads > 1 else ''}")
        if self.has_warnings:
            lines.append(f"WARNING: the interquartile range is {self.iqr / self.median:.0%} of the median")
        return "\n".join(lines)


def unit_of(seconds: float) -> tuple[float, str]:
    """The largest unit that leaves a number above 1: (its seconds, its name)."""
    return next(((s, name) for s, name in _UNITS if seconds >= s), _UNITS[-1])
