"""The table of a profile: events in, text out, in PyTorch's columns."""

from __future__ import annotations

from collections.abc import Callable

from .events import DeviceType, FunctionEventAvg
from .times import UNITS, format_memory, format_share, format_time_in

SORTABLE = (
    "cpu_time", "cuda_time", "xpu_time", "cpu_time_total", "cuda_time_total", "xpu_time_total", "cpu_memory_usage",
    "cuda_memory_usage", "xpu_memory_usage", "self_cpu_memory_usage", "self_cuda_memory_usage",
    "self_xpu_memory_usage", "count", "self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
    "device_time", "device_time_total", "device_memory_usage", "self_device_time_total", "self_device_memory_usage",
    "flops",
)  # fmt: skip
_SPACE = "  "


class Column:
    """A heading, a width, and what to write for an event."""

    def __init__(self, title: str, width: int, cell: Callable):
        self.title, self.width, self.cell = title, width, cell


def build_table(events, *, sort_by, row_limit, header, top_level_only, time_unit, widths, memory, flops) -> str:
    """The text of the table; "" for no events."""
    if not len(events):
        return ""
    if time_unit is not None and time_unit not in dict(UNITS):
        raise ValueError(f"time_unit should be one of {[u for u, _ in UNITS]}, got {time_unit!r}")
    events = _sorted(events, sort_by)
    total = _self_total(events)
    columns = _columns(events, total, widths, time_unit, memory, flops)
    rule = _SPACE.join("-" * c.width for c in columns) + _SPACE
    lines = ["=" * len(rule), header] if header is not None else []
    if top_level_only:
        lines += ["=" * len(rule), "This report only display top-level ops statistics"]
    lines += [rule, _row(columns, [c.title for c in columns]), rule]
    shown = [e for e in events if not (top_level_only and e.cpu_parent is not None)]
    for e in shown if row_limit < 0 else shown[:row_limit]:
        lines.append(_row(columns, [c.cell(e) for c in columns]))
    lines += [rule, f"Self CPU time total: {format_time_in(total, time_unit)}"]
    return "\n".join(lines) + "\n"


def _sorted(events, sort_by: str | None) -> list:
    if sort_by is None:
        return list(events)
    if sort_by not in SORTABLE:
        raise AttributeError(f"sort_by should be one of {', '.join(SORTABLE)}, got {sort_by!r}")
    name = sort_by.replace("cuda", "device").replace("xpu", "device")
    return sorted(events, key=lambda e: getattr(e, name) or 0, reverse=True)


def _self_total(events) -> float:
    return sum(e.self_cpu_time_total for e in events if e.device_type == DeviceType.CPU)


def _columns(events, total: float, widths: tuple, unit: str | None, memory: bool, flops: bool) -> list[Column]:
    time = lambda us: format_time_in(us, unit)  # noqa: E731
    name_width, shapes_width, source_width = widths
    names = min(max(len(e.key) for e in events) + 4, name_width)
    columns = [Column("Name", names, lambda e: _cut(e.key, name_width))]
    if any(e.overload_name and isinstance(e, FunctionEventAvg) for e in events):  # grouped by it
        columns.append(
            Column("Overload Name", max(len(e.overload_name) for e in events) + 4, lambda e: e.overload_name)
        )
    columns += [
        Column("Self CPU %", 12, lambda e: format_share(e.self_cpu_time_total, total)),
        Column("Self CPU", 12, lambda e: time(e.self_cpu_time_total)),
        Column("CPU total %", 12, lambda e: format_share(0 if e.is_async else e.cpu_time_total, total)),
        Column("CPU total", 12, lambda e: time(e.cpu_time_total)),
        Column("CPU time avg", 12, lambda e: time(e.cpu_time)),
    ]
    if memory:
        columns.append(Column("CPU Mem", 12, lambda e: format_memory(e.cpu_memory_usage)))
        columns.append(Column("Self CPU Mem", 12, lambda e: format_memory(e.self_cpu_memory_usage)))
    columns.append(Column("# of Calls", 12, lambda e: str(e.count)))
    if any(e.input_shapes for e in events):
        width = min(max(len(str(e.input_shapes)) for e in events) + 4, shapes_width)
        columns.append(Column("Input Shapes", width, lambda e: _cut(str(e.input_shapes), width)))
    if any(e.stack for e in events):
        width = min(max(len(s) for e in events for s in e.stack) + 4, source_width)
        columns.append(Column("Source Location", width, lambda e: _cut_left(e.stack[0], width) if e.stack else ""))
    if flops:
        columns.append(Column("Total FLOPs", 12, lambda e: f"{e.flops:.3f}" if e.flops else "--"))
    return columns


def _row(columns: list[Column], cells: list[str]) -> str:
    return _SPACE.join(cell.rjust(c.width) for c, cell in zip(columns, cells)) + _SPACE


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _cut_left(text: str, width: int) -> str:
    """A path keeps its end, which says more than its beginning."""
    return text if len(text) <= width else "..." + text[-(width - 3) :]
