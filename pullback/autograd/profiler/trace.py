"""Traces as files: Chrome's trace format, and folded stacks for flame graphs."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter


def write_chrome_trace(events, path: str, metadata: dict | None = None) -> None:
    """Write events as JSON that chrome://tracing and Perfetto show; a path that ends in .gz is compressed."""
    pid = os.getpid()
    lines: list[dict] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python"}},
        *(_thread_line(pid, thread) for thread in sorted({e.thread for e in events})),
        *(_event_line(pid, e) for e in events),
        *_flow_lines(pid, events),
    ]
    document = {"schemaVersion": 1, "displayTimeUnit": "ms", **(metadata or {}), "traceEvents": lines}
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        json.dump(document, file)


def _thread_line(pid: int, thread: int) -> dict:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "ts": 0, "args": {"name": f"thread {thread}"}}


def _event_line(pid: int, e) -> dict:
    args: dict = {"External id": e.id}
    if e.sequence_nr >= 0:
        args |= {"Sequence number": e.sequence_nr, "Fwd thread id": e.fwd_thread}
    if e.input_shapes:
        args |= {"Input Dims": e.structured_input_shapes, "Input type": e.input_dtypes}
    if e.stack:
        args["Call stack"] = ";".join(e.stack)
    if e.flops:
        args["flops"] = e.flops
    if e.cpu_memory_usage:
        args["Bytes"] = e.cpu_memory_usage
    kind = "user_annotation" if e.is_user_annotation else "cpu_op"
    span = e.time_range
    return {
        "ph": "X",
        "cat": kind,
        "name": e.trace_name,
        "pid": pid,
        "tid": e.thread,
        "ts": span.start,
        "dur": span.elapsed_us(),
        "args": args,
    }


def _flow_lines(pid: int, events) -> list[dict]:
    """Arrows from forward calls to the backward nodes that they recorded."""
    forward = {}
    for e in events:  # the innermost call with a number is the one that recorded the node
        if e.sequence_nr >= 0 and not e.fwd_thread:
            forward[e.sequence_nr] = e
    lines = []
    for e in events:
        start = forward.get(e.sequence_nr) if e.fwd_thread and e.scope == 1 else None
        if start is not None:
            common = {"cat": "fwdbwd", "name": "fwdbwd", "id": e.sequence_nr, "pid": pid}
            lines.append({"ph": "s", "tid": start.thread, "ts": start.time_range.start, **common})
            lines.append({"ph": "f", "bp": "e", "tid": e.thread, "ts": e.time_range.start, **common})
    return lines


def write_stacks(events, path: str, metric: str) -> None:
    """Write `outer;inner time` lines, one for each stack."""
    times: Counter = Counter()
    for e in events:
        value = int(getattr(e, metric))
        if e.stack and value > 0:
            times[";".join(re.sub(r"[; ]", "_", frame) for frame in reversed(e.stack))] += value
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{stack} {value}\n" for stack, value in times.items())
