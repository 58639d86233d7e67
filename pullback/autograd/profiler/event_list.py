"""`EventList`: the events of a profile in the order in which they began, as a tree, grouped, printed or exported."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from .events import DeviceType, FunctionEvent, FunctionEventAvg
from .table import build_table
from .trace import write_chrome_trace, write_stacks


class EventList(list):
    """A list of `FunctionEvent`s, or of their sums. Printing it gives the table."""

    def __init__(
        self, *args, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False, **unused
    ):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    # ---- the tree
    def _build_tree(self) -> None:
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """Make each event the child of the innermost one, on its thread, that contains it."""
        ours = [e for e in self if not e.is_async and e.device_type == DeviceType.CPU]
        for _, events in groupby(
            sorted(ours, key=lambda e: (e.thread, e.node_id)), key=lambda e: (e.thread, e.node_id)
        ):
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and not _contains(around[-1], event):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self) -> None:
        """A call that does nothing but call itself again (a transform that hands it down) counts once."""
        dropped = set()
        for event in self:
            parent = event.cpu_parent
            if event.is_user_annotation or parent is None or parent.name != event.name:
                continue  # an annotated function that calls itself stays as it is
            if parent.cpu_children == [event]:
                dropped.add(id(event))
                parent.cpu_children = event.cpu_children
                parent.kernels += event.kernels
                for child in event.cpu_children:
                    child.set_cpu_parent(parent)
        if dropped:
            self[:] = [e for e in self if id(e) not in dropped]

    def _set_backward_stacktraces(self) -> None:
        """Backward nodes were called from wherever the forward call was: show that stack, not the engine's."""
        stacks = {
            (e.sequence_nr, e.thread): e.stack for e in self if e.stack and not e.fwd_thread and e.sequence_nr >= 0
        }
        for event in self:
            if event.fwd_thread and event.sequence_nr >= 0:
                event.stack = stacks.get((event.sequence_nr, event.fwd_thread), [])

    # ---- sums
    @property
    def self_cpu_time_total(self) -> float:
        """The time of all calls, each counted without its children."""
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums of the events of one name (and of one input shape, stack or overload, if asked)."""
        sums: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for e in self:
            shapes = str(e.input_shapes) if group_by_input_shapes else ""
            stack = tuple(e.stack[:group_by_stack_n])
            overload = e.overload_name if group_by_overload_name else ""
            sums[e.key, e.node_id, e.device_type, e.is_legacy, e.is_user_annotation, shapes, stack, overload].add(e)
        result = EventList(
            sums.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )
        for total in result:
            total.stack = total.stack[:group_by_stack_n]
            total.input_shapes = total.input_shapes if group_by_input_shapes else ""
            total.overload_name = total.overload_name if group_by_overload_name else ""
        return result

    def total_average(self) -> FunctionEventAvg:
        """The sum of everything."""
        total = FunctionEventAvg()
        for e in self:
            total.key = None
            total.add(e)
        total.key = "Total"
        return total

    # ---- out
    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as text, sorted by a column (`self_cpu_time_total`, `count`, ...), largest first."""
        return build_table(
            self, sort_by=sort_by, row_limit=row_limit, header=header, top_level_only=top_level_events_only,
            time_unit=time_unit, widths=(max_name_column_width, max_shapes_column_width, max_src_column_width),
            memory=self._profile_memory, flops=self._with_flops,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace that chrome://tracing and Perfetto show."""
        write_chrome_trace(self, path)

    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks with their times, for flame graphs; the profile must have been made `with_stack=True`."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        write_stacks(self, path, "self_cpu_time_total" if metric == "self_cpu_time_total" else "self_device_time_total")


def _contains(outer: FunctionEvent, inner: FunctionEvent) -> bool:
    return inner.time_range.start < outer.time_range.end and inner.time_range.end <= outer.time_range.end
