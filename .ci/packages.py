"""What the packages of PyPI that were tried on pullback gave: `pullback/cli/tried_packages.py` and the table of
`docs/ecosystem.md`, written from the results of the harness that runs them.

    ../shared/packages/run --python ENV/bin/python | tee results.txt
    python .ci/packages.py results.txt --cases ../shared/packages/cases --python ENV/bin/python

In: lines `pass NAME ...` and `FAIL NAME ...  why`, one for each case; the cases, whose first line names their packages; and the
Python of the environment, which is asked for versions.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "pullback" / "cli" / "tried_packages.py"
PAGE = ROOT / "docs" / "ecosystem.md"
BEGIN, END = "<!-- packages: written by .ci/packages.py -->", "<!-- end of packages -->"
LINE = re.compile(r"^(pass|FAIL)\s+(\S+)\s+[\d.]+ s\s*(.*)$")


def read_results(text: str) -> dict[str, str]:
    """{case: "" or what went wrong}."""
    found = (LINE.match(line) for line in text.splitlines())
    return {m[2]: "" if m[1] == "pass" else m[3].strip() or "failed" for m in found if m}


def packages_of(case: Path) -> list[str]:
    """The packages that a case needs, by their normalised names without conditions on versions."""
    needs = case.read_text().splitlines()[0].removeprefix("# needs:").split()
    return [re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~]", need)[0]).lower() for need in needs]


def versions(python: str, names: list[str]) -> dict[str, str]:
    code = "import importlib.metadata as m, sys\nfor n in sys.argv[1:]: print(n, m.version(n))"
    done = subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def table(cases: dict[str, tuple[list[str], str]], known: dict[str, str]) -> str:
    rows = ["| case | packages | result |", "| - | - | - |"]
    for name, (packages, error) in sorted(cases.items()):
        listed = ", ".join(f"{p} {known[p]}" for p in packages)
        rows.append(f"| {name} | {listed} | {error or 'as PyTorch'} |")
    return "\n".join(rows)


def module(cases: dict[str, tuple[list[str], str]], known: dict[str, str]) -> str:
    tried: dict[str, tuple[str, str]] = {}
    for packages, error in cases.values():
        for package in packages:
            before = tried.get(package, ("", ""))[1]
            tried[package] = (known[package], before or error)
    rows = "".join(f"    {name!r}: {entry!r},\n" for name, entry in sorted(tried.items())).replace("'", '"')
    return (
        '"""Packages of PyPI that were run on pullback and compared with PyTorch; written by `.ci/packages.py`."""\n\n'
        "# distribution: (version, what went wrong)\n"
        f"TRIED: dict[str, tuple[str, str]] = {{\n{rows}}}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--python", required=True)
    args = parser.parse_args()
    results = read_results(args.results.read_text())
    cases = {name: (packages_of(args.cases / f"with_{name}.py"), error) for name, error in results.items()}
    known = versions(args.python, sorted({p for packages, _ in cases.values() for p in packages}))
    MODULE.write_text(module(cases, known))
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(cases, known)}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
