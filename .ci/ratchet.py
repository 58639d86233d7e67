#!/usr/bin/env python3
"""Hold what agreed before: the reference suites, the recorded results and the programs beside the checkout.

In: `tests/conformance/passing.txt` (one `suite::test` a line) and `tests/conformance/floors.json` (for each check the
least counts it must reach). Out: one line a check; exit status 1 when a listed test no longer passes or a count lies
below its floor. A check without a floor, or a suite without a listed test, is not run. Nothing here ever lowers a
record: `--update` adds what passes now, and a record that must go is taken out by hand, in sight of a reviewer.

    .ci/ratchet.py                 the check, as CI runs it
    .ci/ratchet.py --update        the same, then raise the records to what was measured
    .ci/ratchet.py --update --add aot vectors    take up a suite or a check that had no record
    .ci/ratchet.py --listed        only the listed tests of each suite: quicker, but it cannot see what is new
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
PASSING = ROOT / "tests" / "conformance" / "passing.txt"
FLOORS = ROOT / "tests" / "conformance" / "floors.json"

SUITES = ("autograd", "autograd-ca", "compiled", "compiled-2024", "aot", "hops")
# A check: the command under shared/, and for each of its counts the pattern whose first group is the number.
CHECKS: dict[str, tuple[list[str], dict[str, str]]] = {
    "vectors": (
        ["vectors/check", "-q"],
        {"operators": r"(\d+) of \d+ operators agree", "cases": r"(\d+) of \d+ cases agree"},
    ),
    "compiled vectors": (
        ["vectors/check", "-q", "--compile"],
        {"operators": r"(\d+) of \d+ operators agree", "cases": r"(\d+) of \d+ cases agree"},
    ),
    "expressions": (["vectors/check-expressions", "-q"], {"agree": r"(\d+) of \d+ agree"}),
    "random": (["vectors/check-expressions", "-q", "random.json"], {"agree": r"(\d+) of \d+ agree"}),
    "modules": (
        ["vectors/check-modules"],
        {what: rf"(\d+) of \d+ {what} agree" for what in ("modules", "optimizers", "schedulers")},
    ),
    "programs": (["programs/run"], {"passed": r"(\d+) passed"}),
    "compiled programs": (["programs/run", "--compile"], {"passed": r"(\d+) passed"}),
    "names": (["api/coverage"], {"names": r"(\d+) of \d+ names"}),
}


def run(command: list[str]) -> str:
    """What a command of shared/ prints, with this interpreter and this checkout.

    Thousands of small graphs, each built by a C compiler, would take half an hour: those of the vectors run as operators here
    (an empty CC is no compiler), and `tests/ops/test_compiled.py` holds native code to them.
    """
    env = os.environ | ({"CC": ""} if command[0] == "vectors/check" and "--compile" in command else {})
    done = subprocess.run(
        [sys.executable, str(SHARED / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, env=env
    )
    return done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------------------- suites
def read_passing() -> set[str]:
    """The tests on record."""
    lines = PASSING.read_text().splitlines() if PASSING.exists() else []
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def outcomes(suites: Iterable[str], only: Iterable[str] | None = None) -> dict[str, str]:
    """Run suites, or only some of their tests; a name that stands for several tests has the worst of their outcomes."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        command = ["conformance/run", *suites, "-q", "--timeout", "60", "--json", str(log)]
        if only is not None:
            wanted = Path(folder, "wanted.jsonl")
            wanted.write_text("".join(json.dumps({"test": name, "outcome": "fail"}) + "\n" for name in only))
            command += ["--failed-in", str(wanted)]
        printed = run(command)
        if not log.exists():
            print(printed[-2000:])
            return {}
        found: dict[str, str] = {}
        for row in map(json.loads, log.read_text().splitlines()):
            if found.get(row["test"], "pass") in ("pass", "skip"):
                found[row["test"]] = row["outcome"]
        return found


def check_suite(suite: str, record: set[str], listed_only: bool) -> tuple[set[str], list[str]]:
    """The tests of one suite that pass now, and those on record that no longer do, each tried twice."""
    began = time.time()
    found = outcomes([suite], record if listed_only else None)
    lost = {name for name in record if found.get(name) != "pass"}
    if lost:  # a busy machine can make a test run out of time once
        found.update(outcomes([suite], lost))
        lost = {name for name in lost if found.get(name) != "pass"}
    passing = {name for name, outcome in found.items() if outcome == "pass"}
    more = len(passing - record)
    print(f"{suite:14} {len(passing)} of {len(found)} pass, {more} more than on record, {len(lost)} lost", end="")
    print(f"   ({time.time() - began:.0f} s)", flush=True)
    return passing, [f"{name}: {found.get(name, 'not there')}" for name in sorted(lost)]


# ------------------------------------------------------------------------------------------------------------- counts
def check_counts(name: str, floors: dict[str, int]) -> tuple[dict[str, int], list[str]]:
    """The counts of one check, and what lies below its floor."""
    began = time.time()
    command, patterns = CHECKS[name]
    printed = run(command)
    counts, lost = {}, []
    for what, pattern in patterns.items():
        match = re.search(pattern, printed)
        counts[what] = int(match.group(1)) if match else 0
        if counts[what] < floors.get(what, 0):
            lost.append(f"{name}: {what} {counts[what]}, was {floors[what]}")
    said = ", ".join(f"{what} {n} (floor {floors.get(what, 0)})" for what, n in counts.items())
    print(f"{name:14} {said}   ({time.time() - began:.0f} s)", flush=True)
    if lost:
        print(printed[-2000:])
    return counts, lost


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="raise the records to what was measured")
    parser.add_argument("--add", nargs="+", default=[], choices=[*SUITES, *CHECKS], metavar="NAME")
    parser.add_argument("--listed", action="store_true", help="run only the tests on record")
    args = parser.parse_args()
    if not SHARED.is_dir():
        print("no reference material beside the checkout: nothing to hold")
        return 0
    record = read_passing()
    floors = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}
    lost: list[str] = []
    for name in CHECKS:
        if name in floors or name in args.add:
            counts, below = check_counts(name, floors.get(name, {}))
            lost += below
            floors[name] = {what: max(n, floors.get(name, {}).get(what, 0)) for what, n in counts.items()}
    for suite in SUITES:
        listed = {name for name in record if name.startswith(f"{suite}::")}
        if listed or suite in args.add:
            passing, gone = check_suite(suite, listed, args.listed)
            lost += gone
            record |= passing
    if args.update:
        PASSING.write_text("".join(f"{name}\n" for name in sorted(record)))
        FLOORS.write_text(json.dumps(floors, indent=2, sort_keys=True) + "\n")
    for line in lost:
        print(f"lost  {line}")
    print("ratchet: " + (f"{len(lost)} lost" if lost else "nothing lost"))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
