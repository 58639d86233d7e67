"""`Compare`: measurements as tables, one for each label, a row for each sub-label and number of threads, a column for each description."""

from __future__ import annotations

from collections.abc import Iterable

from .measurement import Measurement, unit_of


class Compare:
    """Several measurements side by side."""

    def __init__(self, results: Iterable[Measurement]):
        self._results: list[Measurement] = []
        self._trim = self._highlight = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show only digits that the spread of the runs leaves."""
        self._trim = True

    def highlight_warnings(self) -> None:
        """Mark measurements whose runs differ much."""
        self._highlight = True

    def print(self) -> None:
        print(self)

    def __str__(self) -> str:
        groups: dict[str, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            groups.setdefault(m.task_spec.label or m.task_spec.stmt, []).append(m)
        return "\n".join(self._table(title, group) for title, group in groups.items())

    def _table(self, title: str, group: list[Measurement]) -> str:
        scale, unit = unit_of(min(m.median for m in group))
        columns = list(dict.fromkeys(m.task_spec.description or "" for m in group))
        rows: dict[tuple[int, str], dict[str, str]] = {}
        for m in sorted(group, key=lambda m: m.task_spec.num_threads):
            row = rows.setdefault((m.task_spec.num_threads, m.as_row_name), {})
            row[m.task_spec.description or ""] = self._cell(m, scale)
        lines, threads = [["", *columns]], None
        for (n, name), row in rows.items():
            if n != threads:
                lines.append([f"{n} thread{'s' if n > 1 else ''}:", *("" for _ in columns)])
                threads = n
            lines.append([f"  {name}", *(row.get(c, "") for c in columns)])
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns) + 1)]
        body = [
            "  |  ".join(
                [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
            )
            for line in lines
        ]
        width = max(map(len, body))
        return "\n".join([f"[{f' {title} ':-^{max(width - 2, 0)}}]", *body, "", f"Times are in {unit}.", ""])

    def _cell(self, m: Measurement, scale: float) -> str:
        value = m.median / scale
        text = f"{value:.{m.significant_figures}g}" if self._trim else f"{value:.1f}"
        return f"! {text}" if self._highlight and m.has_warnings else text
