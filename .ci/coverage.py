#!/usr/bin/env python
"""Line coverage of the project's own tests, package by package.

    python .ci/coverage.py [tests...]     runs pytest under coverage (all tests where none are named), then prints the table
    python .ci/coverage.py --report       prints the table of the last run
    python .ci/coverage.py --missing core prints the lines of a package that no test runs

Out: a row for each package under `pullback/` with its lines and the share that tests ran; the exit status is pytest's, or with
`--strict` 1 where a package is under the bar. What is measured, subprocesses and ranks included, and what is left out and why:
`[tool.coverage]` in `pyproject.toml`. From Python 3.12 on (`sys.monitoring`) this costs little; on 3.11 it takes twice the time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BAR = 90  # per cent of the lines of every package


def measure(tests: list[str]) -> int:
    """Run the tests; what subprocesses wrote is put together with the rest."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    coverage("erase")
    done = subprocess.run([sys.executable, "-m", "coverage", "run", "-m", "pytest", *tests], cwd=ROOT, env=environment)
    coverage("combine", "--quiet")
    return done.returncode


def coverage(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False)


def files() -> dict[str, dict]:
    """What coverage says of each file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "coverage.json"
        subprocess.run(
            [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(out)], cwd=ROOT, check=True,
        )  # fmt: skip
        return json.loads(out.read_text())["files"]


def package_of(path: str) -> str:
    """`pullback/core/tensor.py` is of `core`, `pullback/__init__.py` of the root."""
    parts = Path(path).parts
    return parts[1] if len(parts) > 2 else "(root)"


def totals(found: dict[str, dict]) -> dict[str, tuple[int, int]]:
    """{package: (lines, lines that ran)}."""
    result: dict[str, tuple[int, int]] = {}
    for path, facts in found.items():
        lines, ran = result.get(package_of(path), (0, 0))
        summary = facts["summary"]
        result[package_of(path)] = (lines + summary["num_statements"], ran + summary["covered_lines"])
    return result


def table(counts: dict[str, tuple[int, int]]) -> str:
    """The packages, the least covered first, and all together."""
    rows = sorted(counts.items(), key=lambda row: share(row[1]))
    rows.append(("all", (sum(c[0] for c in counts.values()), sum(c[1] for c in counts.values()))))
    lines = [f"{'package':<16}{'lines':>8}{'ran':>8}{'share':>8}"]
    lines += [
        f"{name:<16}{c[0]:>8}{c[1]:>8}{share(c):>7.1f}%{'' if share(c) >= BAR else '  under the bar'}"
        for name, c in rows
    ]
    return "\n".join(lines)


def share(count: tuple[int, int]) -> float:
    """Per cent of the lines that ran."""
    return 100 * count[1] / count[0] if count[0] else 100.0


def under(counts: dict[str, tuple[int, int]]) -> list[str]:
    return [name for name, count in counts.items() if share(count) < BAR]


def missing(found: dict[str, dict], package: str) -> str:
    """The lines of a package that no test runs, the file with most of them first."""
    rows = sorted(
        ((len(f["missing_lines"]), p, f["missing_lines"]) for p, f in found.items() if package_of(p) == package),
        reverse=True,
    )
    return "\n".join(f"{n:5} {path}: {' '.join(map(str, lines))}" for n, path, lines in rows if n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--report", action="store_true", help="measure nothing, print the last table")
    parser.add_argument("--missing", metavar="PACKAGE", help="measure nothing, print the lines that no test runs")
    parser.add_argument("--strict", action="store_true", help="fail where a package is under the bar")
    options = parser.parse_args()
    status = 0 if options.report or options.missing else measure(options.tests)
    found = files()
    if options.missing:
        print(missing(found, options.missing))
        return 0
    counts = totals(found)
    print(table(counts))
    return status or int(options.strict and bool(under(counts)))


if __name__ == "__main__":
    sys.exit(main())
