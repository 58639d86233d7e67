"""Packages' own tests, counted on pullback and on PyTorch.

    python benchmarks/own_tests.py --python ENV/bin/python --reference REFERENCE/bin/python NAME=FOLDER ...

In: two interpreters with the same packages (one with `pullback alias`, one with PyTorch), and for each package the folder of its
tests (of an installed wheel, or of its sources). Out: a row for each package: how many tests pass on PyTorch, how many of those
pass on pullback, and which do not. Tests that PyTorch does not pass here count for nothing. `--results FILE` keeps what was
counted, so that a run can be continued package by package; `--table` prints what is kept. With `--by-file` each file of a folder is
a run of its own, so that one over the time limit takes no others with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path


def passed(python: str, folder: Path, timeout: float, options: list[str]) -> set[str]:
    """The tests of a folder that pass under an interpreter; a file that cannot be read counts as no test."""
    with tempfile.TemporaryDirectory() as empty:
        report = Path(empty) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
        command += ["--continue-on-collection-errors", f"--junitxml={report}", *options, str(folder)]
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        try:
            subprocess.run(command, cwd=empty, env=env, capture_output=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            print(f"{folder}: over {timeout:.0f} s under {python}", file=sys.stderr)
        if not report.exists():
            return set()
        cases = list(ET.parse(report).getroot().iter("testcase"))
    bad = {"skipped", "failure", "error"}
    return {f"{c.get('classname')}::{c.get('name')}" for c in cases if not bad & {child.tag for child in c}}


def count(folders: list[Path], args: argparse.Namespace) -> dict:
    """What both interpreters pass, folder by folder (or file by file, where files are named)."""
    both, lost, reference = 0, [], 0
    for folder in folders:
        want = passed(args.reference, folder, args.timeout, args.pytest)
        got = passed(args.python, folder, args.timeout, args.pytest) if want else set()
        reference += len(want)
        both += len(want & got)
        lost += sorted(want - got)
        print(f"{folder.name:50} {len(want & got):5} of {len(want):5}", flush=True)
    return {"torch": reference, "pullback": both, "lost": lost}


def files_of(folder: Path) -> list[Path]:
    """The files of tests in a folder (by pytest's names), or the file itself."""
    if folder.is_file():
        return [folder]
    return sorted({*folder.rglob("test_*.py"), *folder.rglob("*_test.py")})


def table(results: dict[str, dict]) -> str:
    rows = ["| package | PyTorch passes | of these, pullback | |", "| - | - | - | - |"]
    for name, found in sorted(results.items()):
        share = 100 * found["pullback"] / max(1, found["torch"])
        rows.append(f"| {name} | {found['torch']} | {found['pullback']} | {share:.1f}% |")
    return "\n".join(rows)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("packages", nargs="*", help="NAME=FOLDER[,FOLDER|FILE...]")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--reference")
    p.add_argument("--timeout", type=float, default=3600, help="seconds for one folder of tests")
    p.add_argument("--results", type=Path)
    p.add_argument("--pytest", action="append", default=[], help="an option for pytest, such as -kword")
    p.add_argument("--by-file", action="store_true")
    p.add_argument("--table", action="store_true")
    args = p.parse_args()
    results = json.loads(args.results.read_text()) if args.results and args.results.exists() else {}
    for package in args.packages:
        name, _, folders = package.partition("=")
        paths = [Path(f).resolve() for f in folders.split(",")]
        results[name] = count([file for path in paths for file in files_of(path)] if args.by_file else paths, args)
        if args.results:
            args.results.write_text(json.dumps(results, indent=1) + "\n")
        for lost in results[name]["lost"]:
            print(f"  only PyTorch passes {lost}")
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
