"""torchrun's command line."""

import re
import subprocess
import sys

import pytest

from pullback.distributed import launcher, nodes, run

from .ranks import PROGRAMS, finish
from .test_pmi import environment, free_port, needs_mpich


def test_arguments_reach_the_launcher(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "launch", lambda *given: calls.append(given) or 0)
    words = "--standalone --nproc_per_node=2 --rdzv-backend c10d --max-restarts 3 train.py --lr 0.1 -n 4".split()
    assert run.main(words) == 0
    command, ranks, hostfile, restarts = calls[0]
    assert command[1:] == ["-m", "pullback.cli.worker", "train.py", "--lr", "0.1", "-n", "4"]
    assert (ranks, hostfile, restarts) == (2, None, 3)


def test_nodes_need_a_place_to_meet():
    with pytest.raises(SystemExit, match="--nnodes 2: where several nodes meet must be said"):
        run.main(["--nnodes", "2", "train.py"])
    with pytest.raises(ValueError, match="--node-rank: expected a number from 0 to 1, got 2"):
        run.main("--nnodes 2 --node-rank 2 --master-addr host train.py".split())


def test_arguments_say_which_node_this_is(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "launch_node", lambda *given: calls.append(given) or 0)
    run.main("--nnodes 2 --node_rank 1 --master_addr a --master_port 77 --nproc-per-node 3 train.py".split())
    run.main("--nnodes 1:4 --rdzv-backend static --rdzv-endpoint b:88 --node-rank 3 train.py".split())
    assert [(ranks, n.rank, n.count, n.host, n.port) for _, ranks, n, _ in calls] == [
        (3, 1, 2, "a", 77),
        (1, 3, 4, "b", 88),
    ]


def test_ranks_of_a_node_are_named_as_torchrun_names_them():
    env = nodes.variables(2, nodes.Node(1, 3, "host", 99), "folder", 0, 1)
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT".split()
    assert [env[n] for n in names] == ["3", "6", "1", "2", "1", "host", "99"]


def start_nodes(ranks, *words):
    return [
        subprocess.Popen(
            [sys.executable, "-m", "pullback", "run", "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", str(ranks),
             *[w.replace("NODE", str(n)) for w in words]],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )
        for n in range(2)
    ]  # fmt: skip


@needs_mpich
@pytest.mark.parametrize("how", ["static", "endpoint"])
def test_two_nodes_that_start_themselves(how):
    port = free_port()
    words = ["--rdzv-endpoint", f"localhost:{port}"]
    if how == "static":
        words = ["--master-addr", "127.0.0.1", "--master-port", port, "--node-rank", "NODE"]
    jobs = start_nodes(1, *words, str(PROGRAMS / "hosts.py"))
    said = [finish(job) for job in jobs]
    assert [code for code, *_ in said] == [0, 0], said
    assert sorted(out for _, out, _ in said) == ["rank 0 of 2 on node 0: sum 3.0\n", "rank 1 of 2 on node 1: sum 3.0\n"]


@needs_mpich
def test_a_rank_that_fails_ends_all_nodes():
    words = ["--master-addr", "127.0.0.1", "--master-port", free_port(), "--node-rank", "NODE"]
    said = [finish(job) for job in start_nodes(1, *words, str(PROGRAMS / "faults.py"), "raise")]
    assert all(code for code, *_ in said)
    assert "rank 1 failed first" in said[1][2] and "ValueError: no such file of samples" in said[1][2]


@needs_mpich
def test_a_hostfile(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# two names of one machine\nlocalhost:1\n127.0.0.1:1\n")
    command = [
        sys.executable,
        "-m",
        "pullback",
        "launch",
        "-n",
        "2",
        "--hostfile",
        str(hosts),
        str(PROGRAMS / "hosts.py"),
    ]
    env = environment() | {"HYDRA_LAUNCHER": "fork"}  # in the place of ssh
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"rank \d of \d", done.stdout)  # ranks may share a line
    assert sorted(said) == ["rank 0 of 2", "rank 1 of 2"]
    assert launcher.environment(2, str(hosts), "folder", 0)["MASTER_ADDR"] == "localhost"
    hosts.write_text("# none\n")
    with pytest.raises(RuntimeError, match="it names no host"):
        launcher.first_host(str(hosts))


@pytest.mark.parametrize("word", ["0", "-1", "many"])
def test_numbers_of_ranks_that_are_none(word):
    with pytest.raises(ValueError, match="expected a number above zero, cpu, gpu or auto"):
        run.ranks_per_node(word)
