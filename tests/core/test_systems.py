"""Other systems than Linux lack parts of the standard library: what needs them says so, and the rest works."""

import subprocess
import sys

PROGRAM = """
import os, sys, tempfile
for name in ("fcntl", "resource", "termios", "pwd"):
    sys.modules[name] = None  # as where there is none
del os.sched_getaffinity
os.environ.pop("OMP_NUM_THREADS", None)
import pullback as torch
import pullback.distributed as dist

net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(8, 4)).pow(2).mean().backward()
optimizer.step()
print(torch.get_num_threads() >= 1, len(list(torch.utils.data.DataLoader(range(4), batch_size=2))))
try:
    dist.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1).set("a", "b")
except dist.DistStoreError as error:
    print(error)
"""


def test_without_what_only_some_systems_have_programs_train():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True 2", "FileStore: files cannot be locked on this system (there is no fcntl); use TCPStore"
    ]  # fmt: skip
