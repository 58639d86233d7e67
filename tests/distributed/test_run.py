"""torchrun's command line."""

import pytest

from pullback.distributed import run


def test_arguments_reach_the_launcher(monkeypatch):
    calls = []
    monkeypatch.setattr(run, "launch", lambda *given: calls.append(given) or 0)
    words = "--standalone --nproc_per_node=2 --rdzv-backend c10d --max-restarts 3 train.py --lr 0.1 -n 4".split()
    assert run.main(words) == 0
    command, ranks, hostfile, restarts = calls[0]
    assert command[1:] == ["-m", "pullback.cli.worker", "train.py", "--lr", "0.1", "-n", "4"]
    assert (ranks, hostfile, restarts) == (2, None, 3)


def test_nodes_need_a_hostfile():
    with pytest.raises(SystemExit, match="--nnodes 2: more than one node needs --hostfile"):
        run.main(["--nnodes", "2", "train.py"])


@pytest.mark.parametrize("word", ["0", "-1", "many"])
def test_numbers_of_ranks_that_are_none(word):
    with pytest.raises(ValueError, match="expected a number above zero, cpu, gpu or auto"):
        run.ranks_per_node(word)
