"""`pullback alias` in an environment of its own: every process sees it, pip's records know it, and it goes without a trace."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path):
    """A bare virtual environment that sees this checkout and the packages of the one that runs the tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    site = Path(ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    (site / "seen.pth").write_text(f"{ROOT}\n" + "\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n")
    if {"COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"} & os.environ.keys():  # what it runs is measured too
        (site / "seen_coverage.pth").write_text("import coverage; coverage.process_startup()\n")
    return python


def ask(python, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout.strip()


def alias(python, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([python, "-m", "pullback", "alias", *words], capture_output=True, text=True, cwd="/")


def files(python) -> set[str]:
    site = Path(ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    return {p.name for p in site.iterdir()} | {p.name for p in Path(python).parents[1].iterdir()}


def test_it_is_made_seen_and_removed(environment):
    before = files(environment)
    assert alias(environment, "--status").returncode == 1
    result = alias(environment)
    assert result.returncode == 0, result.stderr
    assert alias(environment, "--status").returncode == 0
    code = (
        "import importlib.metadata as m, torch, torch.nn as nn, functorch; "
        "print(m.version('torch'), torch.__name__, torch.__version__ >= (2, 4), torch.Tensor, nn.Linear.__module__, "
        "functorch.__name__)"
    )
    assert ask(environment, code).split("\n")[-1] == (
        "2.13.0+pullback torch True <class 'torch.Tensor'> torch.nn.modules.linear functorch"
    )
    child = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', 'import torch; print(torch.ones(2).sum().item())']).decode())"
    assert ask(environment, child) == "2.0"
    assert alias(environment, "--remove").returncode == 0
    assert files(environment) == before


def test_what_pip_reads_is_whole(environment):
    alias(environment)
    code = (
        "import base64, hashlib, importlib.metadata as m, pathlib\n"
        "for f in m.distribution('torch').files:\n"
        "    path = pathlib.Path(f.locate())\n"
        "    assert path.exists(), f\n"
        "    if f.hash is not None:\n"
        "        found = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b'=').decode()\n"
        "        assert f.hash.value == found and f.size == path.stat().st_size, f\n"
        "print(sorted({str(f).split('/')[0] for f in m.distribution('torch').files if not str(f).startswith('..')}))"
    )
    assert ask(environment, code) == "['functorch', 'torch', 'torch-2.13.0+pullback.dist-info']"


def test_another_torch_is_left_alone(environment):
    site = Path(ask(environment, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    (site / "torch-2.5.0.dist-info").mkdir()
    (site / "torch-2.5.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.0\n")
    for words, answer in (((), "PyTorch 2.5.0 is installed"), (("--remove",), "there is no alias here to remove")):
        refused = alias(environment, *words)
        assert refused.returncode == 1 and answer in refused.stderr
    assert not (site / "torch").exists() and sysconfig.get_path("purelib")
