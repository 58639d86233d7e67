"""When collectives ran, beside what a program computed: a trace file and a picture.

In: a group whose calls are recorded (`with recording(group) as line`), and spans that the program marks. Out: `line.works`;
`write_trace` writes the format of chrome://tracing and Perfetto, `picture` an SVG, `volume` the bytes on the wire per rank.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

from .process_group import ProcessGroup
from .work import Work

# What a rank sends for each byte of the whole, by the algorithms that are optimal in bandwidth, of N ranks.
SENT = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather_into_tensor": lambda n: (n - 1) / n,
    "reduce_scatter_tensor": lambda n: (n - 1) / n,
}


class Timeline:
    """Calls of a group and spans of a program, on one clock."""

    def __init__(self, group: ProcessGroup):
        self.group, self.works, self.spans = group, [], []  # type: ignore[var-annotated]

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Mark what the program does inside."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spans.append((name, began, time.perf_counter()))

    def events(self) -> list[tuple[str, str, float, float]]:
        """(row, name, begin, end) of everything, in seconds from the first."""
        found = [("compute", name, a, b) for name, a, b in self.spans]
        found += [("communication", w.name, w.started, w.ended) for w in self.works]
        start = min((a for _, _, a, _ in found), default=0.0)
        return [(row, name, a - start, b - start) for row, name, a, b in found]

    def overlap(self, name: str) -> float:
        """The part of the time of collectives that lies inside a span of the program, from 0 to 1."""
        inside = total = 0.0
        spans = [(a, b) for n, a, b in self.spans if n == name]
        for w in self.works:
            total += w.ended - w.started
            inside += sum(max(0.0, min(b, w.ended) - max(a, w.started)) for a, b in spans)
        return inside / total if total else 0.0

    def volume(self) -> float:
        """The bytes that each rank sends for the recorded calls."""
        n = self.group.size()
        return sum(w.nbytes * SENT[w.name](n) for w in self.works if w.name in SENT)

    def write_trace(self, path: str) -> None:
        """A file for chrome://tracing or Perfetto."""
        rank = self.group.ranks[self.group.rank()]
        events = [
            {"name": name, "ph": "X", "ts": a * 1e6, "dur": (b - a) * 1e6, "pid": rank, "tid": row}
            for row, name, a, b in self.events()
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": events}, file)

    def picture(self, path: str, width: int = 900) -> None:
        """An SVG with one row for what is computed and one for what is sent."""
        events = self.events()
        last = max((b for *_, b in events), default=1.0)
        rows = {"compute": (20, "#4878a8"), "communication": (70, "#d08030")}
        boxes = []
        for row, name, a, b in events:
            y, colour = rows[row]
            x, w = 120 + a / last * (width - 140), max(1.0, (b - a) / last * (width - 140))
            boxes.append(
                f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="34" fill="{colour}" fill-opacity="0.6" stroke="{colour}">'
                f"<title>{name} {1e3 * (b - a):.2f} ms</title></rect>"
            )
        labels = [
            f'<text x="4" y="{y + 22}" font-family="sans-serif" font-size="13">{row}</text>'
            for row, (y, _) in rows.items()
        ]
        text = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="130">{"".join(labels + boxes)}'
        with open(path, "w") as file:
            file.write(
                f'{text}<text x="120" y="124" font-family="sans-serif" font-size="12">0 to {1e3 * last:.1f} ms</text></svg>\n'
            )


@contextlib.contextmanager
def recording(group: ProcessGroup) -> Iterator[Timeline]:
    """Record the calls of a group that end inside."""
    line = Timeline(group)
    before: list[Work] | None = group.log
    group.log = line.works
    try:
        yield line
    finally:
        group.log = before
