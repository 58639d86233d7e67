"""`pullback bench`: how fast training steps are on this machine, beside PyTorch and JAX where they are installed.

In: the words to choose cases by. Out: a table of times and ratios, and a picture of the ratios as an SVG file. Every library
runs in a process of its own, all are asked in turns, and each figure is the best of its rounds: a busy machine is busy for
all of them.
"""

from __future__ import annotations

import html
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .bench_work import CASES, JAX_CASES

WORK = Path(__file__).with_name("bench_work.py")
WAYS = {"pullback": ("eager", "compiled", "whole step"), "torch": ("eager", "compiled"), "jax": ("whole step",)}
TITLES = {"pullback": "pullback", "torch": "PyTorch", "jax": "JAX"}
ROW, BAR, LABEL = 22, 420, 230  # of the picture


def installed() -> list[str]:
    """The libraries that can be compared here: pullback, and of the others those that are really installed."""
    found = ["pullback"]
    for name in ("torch", "jax"):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if "pullback" not in version:  # the alias
            found.append(name)
    return found


class Library:
    """A process that times one library."""

    def __init__(self, name: str, threads: int):
        self.name = name
        command = [sys.executable, "-P", str(WORK), name, str(threads)]  # -P: modules beside it are not to be imported
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
        )  # fmt: skip
        self.version = self._read()["version"]

    def _read(self) -> dict:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{TITLES[self.name]} ended with status {self.process.wait()} while it was timed")
        return json.loads(line)

    def ask(self, case: str, way: str, seconds: float) -> dict:
        assert self.process.stdin is not None
        print(json.dumps({"case": case, "way": way, "seconds": seconds}), file=self.process.stdin, flush=True)
        return self._read()

    def close(self) -> None:
        self.process.communicate()


@dataclass
class Row:
    """The best times of a case by (library, way), in seconds, and what could not run."""

    case: str
    best: dict[tuple[str, str], float] = field(default_factory=dict)
    first: dict[tuple[str, str], float] = field(default_factory=dict)
    errors: dict[tuple[str, str], str] = field(default_factory=dict)

    def peer(self) -> float | None:
        """The best time of another library."""
        return min((t for (library, _), t in self.best.items() if library != "pullback"), default=None)

    def ratio(self) -> float | None:
        """Our best way to the best way of the others; below 1 is ahead."""
        ours = min((t for (library, _), t in self.best.items() if library == "pullback"), default=None)
        peer = self.peer()
        return None if ours is None or peer is None else ours / peer


def measure(row: Row, libraries: Iterable[Library], rounds: int, seconds: float) -> None:
    """Fill a row, the libraries in turns."""
    for _ in range(rounds):
        for library in libraries:
            if library.name == "jax" and row.case not in JAX_CASES:
                continue
            for way in WAYS[library.name]:
                key = (library.name, way)
                if key in row.errors:
                    continue
                found = library.ask(row.case, way, seconds)
                if "error" in found:
                    row.errors[key] = found["error"]
                    continue
                row.first.setdefault(key, found.get("first", 0.0))
                row.best[key] = min(found["seconds"], row.best.get(key, float("inf")))


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _columns(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, way) for name in names for way in WAYS[name]]


def table(rows: list[Row], names: list[str]) -> Any:
    """The table for the terminal."""
    from rich.table import Table

    shown = Table(title="time of a training step, best of the rounds", title_justify="left")
    shown.add_column("")
    for name, way in _columns(names):
        shown.add_column(f"{TITLES[name]}\n{way}", justify="right")
    if len(names) > 1:
        shown.add_column("best to\nbest peer", justify="right")
    for row in rows:
        cells = [_time(row.best.get(key)) for key in _columns(names)]
        if len(names) > 1:
            cells.append("-" if (ratio := row.ratio()) is None else f"{ratio:.2f}")
        shown.add_row(row.case, *cells)
    return shown


def picture(rows: list[Row], names: list[str]) -> str:
    """Bars: every way of every library against PyTorch's eager mode, or ours where PyTorch is not here; shorter is faster."""
    base = ("torch", "eager") if "torch" in names else ("pullback", "eager")
    colours = dict(zip(_columns(names), ("#f4a582", "#d6604d", "#b2182b", "#92c5de", "#4393c3", "#888888")))
    keys = _columns(names)
    height = 40 + len(rows) * (ROW + 8 * len(keys)) + 20 * len(keys)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + BAR + 60} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{LABEL + BAR + 60}" height="{height}" fill="white"/>',
        f'<text x="8" y="18">time of a training step; the line is {TITLES[base[0]]}, {base[1]}</text>',
    ]
    y = 32
    for row in rows:
        parts.append(f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end">{html.escape(row.case)}</text>')
        for key in keys:
            if key in row.best and base in row.best:
                ratio = row.best[key] / row.best[base]
                width = min(ratio, 2.0) * BAR / 2
                parts.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="7" fill="{colours[key]}"/>')
                parts.append(f'<text x="{LABEL + width + 3:.1f}" y="{y + 7}" font-size="8">{ratio:.2f}</text>')
            y += 8
        y += ROW
    parts.append(f'<path d="M{LABEL + BAR / 2} 26V{y - 10}" stroke="#444" stroke-dasharray="3 3"/>')
    for key in keys:
        parts.append(f'<rect x="{LABEL}" y="{y - 4}" width="10" height="10" fill="{colours[key]}"/>')
        parts.append(f'<text x="{LABEL + 16}" y="{y + 5}">{TITLES[key[0]]}, {key[1]}</text>')
        y += 18
    return "\n".join([*parts, "</svg>", ""])


def bench(only: str, threads: int, rounds: int, seconds: float, picture_file: str | None, json_file: str | None) -> int:
    """Time the cases and show them."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console()
    cases = [case for case in CASES if only.lower() in case.lower()]
    if not cases:
        console.print(f"no case has {only!r} in its name; the cases are: {', '.join(CASES)}", style="red")
        return 2
    names = installed()
    libraries = [Library(name, threads) for name in names]
    rows = [Row(case) for case in cases]
    try:
        with Progress(console=console, transient=True) as progress:
            for row in progress.track(rows, description="timing"):
                measure(row, libraries, rounds, seconds)
    finally:
        for library in libraries:
            library.close()
    console.print(table(rows, names))
    versions = ", ".join(f"{TITLES[lib.name]} {lib.version}" for lib in libraries)
    console.print(f"{versions}; {threads} thread{'s' * (threads > 1)}")
    for name in ("torch", "jax"):
        if name not in names:
            console.print(f"{TITLES[name]} is not installed here; with it, its columns appear")
    for row in rows:
        for (name, way), words in row.errors.items():
            console.print(f"{TITLES[name]}, {way}, cannot run {row.case}: {words}")
    if picture_file:
        Path(picture_file).write_text(picture(rows, names), encoding="utf-8")
        console.print(f"the picture is in {picture_file}")
    if json_file:
        data = [
            {"case": r.case, "times": {f"{n}, {w}": t for (n, w), t in r.best.items()}, "ratio": r.ratio()}
            for r in rows
        ]
        Path(json_file).write_text(json.dumps(data, indent=1), encoding="utf-8")
    return 0
