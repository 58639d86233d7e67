"""Processes that begin anew under the alias."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch
import torch.multiprocessing as mp

def total(queue):
    queue.put((torch.Tensor is __import__("pullback").Tensor, float(torch.ones(3).sum())))

if __name__ == "__main__":
    context = mp.get_context("{method}")
    queue = context.Queue()
    child = context.Process(target=total, args=(queue,))
    child.start()
    child.join(60)
    print(child.exitcode, *queue.get(timeout=10))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_torch_is_pullback_in_them(tmp_path, method):
    if method == "forkserver" and sys.platform == "win32":
        pytest.skip("there is no forkserver on Windows")
    (tmp_path / "program.py").write_text(PROGRAM.format(method=method))
    command = [sys.executable, "-m", "pullback", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "True", "3.0"], done.stderr
