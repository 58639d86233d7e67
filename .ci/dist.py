"""Build what is distributed, try it, and say how large it is and how long it takes to import.

    python .ci/dist.py                          an sdist, and a wheel for this interpreter, into dist/
    python .ci/dist.py --python python3.12 …    wheels for these interpreters too
    python .ci/dist.py --try                    each installed into an empty environment, where the demo must learn;
                                                the sdist with an empty PATH, where there is no compiler
    python .ci/dist.py --report                 build nothing: the size and the import time of what is installed

Wheels for other machines are built by cibuildwheel (its settings are in pyproject.toml): `pipx run cibuildwheel --platform linux`
for x86-64 and aarch64, `--platform macos` on a Mac.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = ["demo", "--plain"]  # its status says whether the model learned: a few steps would not do


def build(folder: Path, interpreters: list[str]) -> list[Path]:
    """The sdist, and a wheel of it for each interpreter."""
    folder.mkdir(exist_ok=True)
    made = "import sys, setuptools.build_meta as b; print(b.build_sdist(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", made, str(folder)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    sdist = max(folder.glob("*.tar.gz"), key=os.path.getmtime)
    for interpreter in interpreters:
        command = [interpreter, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sdist)]
        subprocess.run(command, check=True)
    return [sdist, *sorted(folder.glob("*.whl"))]


def tried(file: Path, interpreter: str, environment: dict[str, str]) -> str:
    """What became of installing a file into an empty environment and running the demo there."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        for command in (["-m", "pip", "install", "--quiet", str(file)], ["-m", "pullback", *DEMO]):
            done = subprocess.run([python, *command], env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines()[-1:]
                return f"FAILED at {' '.join(command[:3])} with status {done.returncode}: {' '.join(said)}"
    return "installs, and the demo runs"


def report() -> str:
    """The size of the installed package and its import time, best of five fresh interpreters."""
    where = subprocess.run(
        [sys.executable, "-P", "-c", "import pullback; print(pullback.__path__[0])"], capture_output=True, text=True, check=True
    )  # fmt: skip
    package = Path(where.stdout.strip())
    size = sum(f.stat().st_size for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    lines = sum(f.read_bytes().count(b"\n") for f in package.rglob("*.py"))
    best = {"import pullback": 9.0, "import numpy": 9.0}
    for _ in range(5):
        for statement in best:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-P", "-c", statement], check=True)
            best[statement] = min(best[statement], time.perf_counter() - start)
    pullback, numpy = best.values()
    return f"package: {size / 2**20:.1f} MiB, {lines:,} lines; import {pullback:.2f} s (of numpy alone {numpy:.2f} s)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="*", default=[], metavar="INTERPRETER")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    parser.add_argument("--try", dest="attempt", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        print(report())
        return 0
    interpreters = [sys.executable, *options.python]
    files = build(options.folder, interpreters)
    failed = False
    for file in files:
        print(f"{file.name}: {file.stat().st_size / 2**20:.1f} MiB")
    if options.attempt:
        for interpreter in interpreters:
            result = tried(files[0], interpreter, {**os.environ, "PATH": "", "CC": ""})
            failed |= result.startswith("FAILED")
            print(f"sdist, {interpreter}, no compiler: {result}")
        for file in files[1:]:
            tag = file.name.split("-")[2]  # cp312
            fits = [i for i in interpreters if tag == _tag(i)]
            result = tried(file, fits[0], dict(os.environ)) if fits else "no interpreter to try it with"
            failed |= result.startswith("FAILED")
            print(f"{file.name}: {result}")
    return int(failed)


def _tag(interpreter: str) -> str:
    code = "import sys; print('cp%d%d' % sys.version_info[:2])"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
