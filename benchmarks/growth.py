"""How the time of a training step of a language model grows with its depth, its sequence and its batch, beside PyTorch.

In: nothing but options. Out: a table of milliseconds for each size, ours eager and compiled and PyTorch's, and the seconds of the first
compiled call; with `--plot FILE` one SVG with a panel for each of the three, axes logarithmic. All take turns, round by round; each
figure is the best round.

    python benchmarks/growth.py                            depth 2 to 24, sequence 64 to 4096, batch 1 to 64
    python benchmarks/growth.py --only depth --most 8      depths up to 8
    python benchmarks/growth.py --plot docs/images/growth.svg   and the curves
    python benchmarks/growth.py --threads 1 --cpu          one thread, by processor time: for a machine that others use too
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from models import language_model
from stopwatch import libraries

WIDTH, WORDS = 128, 512
SIZES = {"depth": (2, 4, 8, 16, 24), "sequence": (64, 128, 256, 512, 1024, 2048, 4096), "batch": (1, 4, 16, 64)}
USUAL = {"depth": 4, "sequence": 64, "batch": 4}
COLOURS = {"pullback eager": "#1f77b4", "pullback compiled": "#2ca02c", "torch eager": "#d62728"}


def stepping(lib: ModuleType, depth: int, sequence: int, batch: int, compiled: bool) -> Callable:
    """Forward, backward and Adam of a model of this size."""
    lib.manual_seed(0)
    model = language_model(lib, depth, WIDTH, sequence, words=WORDS)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-4)
    words, targets = (lib.randint(0, WORDS, (batch, sequence)) for _ in range(2))
    forward = lib.compile(model) if compiled else model

    def step() -> None:
        forward(words, targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def measure(size: dict[str, int], libs: list[ModuleType], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds a step of each way, and of the first compiled call."""
    steps = {f"{lib.__name__} eager": stepping(lib, **size, compiled=False) for lib in libs}
    steps["pullback compiled"] = stepping(libs[0], **size, compiled=True)
    found: dict[str, float] = dict.fromkeys(steps, math.inf)
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        if name == "pullback compiled":
            found["first compiled call"] = time.perf_counter() - start
    for _ in range(rounds):
        for name, step in steps.items():
            start = clock()
            step()
            found[name] = min(found[name], clock() - start)
    return found


# ------------------------------------------------------------------------------------------------------------ the curves
WIDE, HIGH, TOP = 260, 200, 34  # of a panel


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten between two times."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [t for p in powers for t in (10.0**p, 2 * 10.0**p, 5 * 10.0**p) if low <= t <= high]


def _panel(name: str, rows: dict[int, dict[str, float]], left: int) -> list[str]:
    """One set of curves, axes logarithmic, as SVG."""
    times = [v for row in rows.values() for k, v in row.items() if k in COLOURS]
    low, high = min(times) / 1.2, max(times) * 1.2
    first, last = math.log(min(rows)), math.log(max(rows)) + 1e-9

    def across(n: float) -> float:
        return left + 10 + (math.log(n) - first) / (last - first) * (WIDE - 20)

    def up(t: float) -> float:
        return TOP + HIGH - math.log(t / low) / math.log(high / low) * HIGH

    lines = [f'<text x="{left + WIDE / 2}" y="20" text-anchor="middle" font-weight="bold">ms a step by {name}</text>']
    for t in _ticks(low, high):
        lines.append(f'<line x1="{left}" x2="{left + WIDE}" y1="{up(t):.1f}" y2="{up(t):.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 5}" y="{up(t) + 4:.1f}" text-anchor="end">{t * 1e3:g}</text>')
    lines.append(f'<rect x="{left}" y="{TOP}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#999"/>')
    lines += [f'<text x="{across(n):.1f}" y="{TOP + HIGH + 15}" text-anchor="middle">{n}</text>' for n in rows]
    for way, colour in COLOURS.items():
        points = [(across(n), up(row[way])) for n, row in rows.items() if way in row]
        if points:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
    return lines


def plot(figures: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    lines = []
    for i, (name, rows) in enumerate(figures.items()):
        lines += _panel(name, rows, 50 + 320 * i)
    for i, (way, colour) in enumerate(COLOURS.items()):
        x = 50 + 160 * i
        lines.append(f'<line x1="{x}" x2="{x + 22}" y1="276" y2="276" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{x + 28}" y="280">{way.replace("torch", "PyTorch")}</text>')
    size = 50 + 320 * len(figures)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} 294" font-family="sans-serif" font-size="11">'
    path.write_text(
        "\n".join([head, f'<rect width="{size}" height="294" fill="#fff"/>', *lines, "</svg>", ""]), encoding="utf-8"
    )


def show(name: str, rows: dict[int, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    headings = list(next(iter(rows.values())))
    table = Table(title=f"milliseconds a step by {name}", title_justify="left", box=None, pad_edge=False)
    for heading in (name, *headings):
        table.add_column(heading, justify="right")
    for n, row in rows.items():
        table.add_row(str(n), *[f"{row[h] * 1e3:.1f}" for h in headings])
    Console(highlight=False, width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, default=1 << 30, help="no size above this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--plot", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    clock = time.process_time if options.cpu else time.perf_counter
    libs = libraries()
    for lib in libs if options.threads else ():
        lib.set_num_threads(options.threads)
    figures = {}
    for name, sizes in SIZES.items():
        if options.only in name:
            wanted = [n for n in sizes if n <= options.most]
            figures[name] = {n: measure({**USUAL, name: n}, libs, options.rounds, clock) for n in wanted}
            show(name, figures[name])
    if options.plot:
        plot(figures, Path(options.plot))
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
