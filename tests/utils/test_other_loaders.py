"""What loaders of other packages build on: passes, errors that travel, processes that are watched, chains of pipes."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

import pytest

import pullback as torch
from pullback.utils.data import IterDataPipe, graph_settings, pinning, signals, worker
from pullback.utils.data.dataloader import DataLoaderIterator
from pullback.utils.data.datapipes import SentIterDataPipe


def test_a_pass_of_another_package():
    class Twice(DataLoaderIterator):
        def _next_data(self):
            return [2 * i for i in self._next_index()]

    loader = torch.utils.data.DataLoader(range(4), batch_size=2)
    one = Twice(loader)
    assert list(one) == [[0, 2], [4, 6]] and one._num_yielded == 2
    one._reset(loader, first_iter=True)
    assert next(one) == [0, 2] and one._num_yielded == 1
    assert (one._num_workers, one._timeout, one._drop_last, one._world_size, one._rank) == (0, 0, False, 1, 0)


def test_the_information_that_another_loader_sets_is_found(monkeypatch):
    info = worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=None)
    monkeypatch.setattr(worker, "_worker_info", info)
    assert torch.utils.data.get_worker_info() is info


def test_an_error_of_another_thread_travels_with_its_words():
    try:
        raise ValueError("out of range")
    except ValueError:
        travelling = worker.Failure(where="in thread 3")
    assert travelling.exc_type is ValueError and "out of range" in travelling.exc_msg
    with pytest.raises(ValueError, match=r"Caught ValueError in thread 3"):
        travelling.reraise()
    assert worker.Failure((KeyError, KeyError("k"), None)).where == "in background"


def test_a_thread_that_pins():
    arriving, leaving, done = queue.Queue(), queue.Queue(), threading.Event()
    thread = threading.Thread(target=pinning.pin_all, args=(arriving, leaving, 0, done), daemon=True)
    thread.start()
    failure = worker.Failure((ValueError, ValueError("bad"), None))
    arriving.put((0, ["text"]))
    arriving.put((1, failure))
    assert leaving.get(timeout=10) == (0, ["text"]) and leaving.get(timeout=10) == (1, failure)
    done.set()
    arriving.put((2, []))
    thread.join(10)
    assert not thread.is_alive()


def ended(code: str) -> subprocess.Popen:
    """A child that has ended, and that nobody has waited for."""
    child = subprocess.Popen([sys.executable, "-c", code])
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.01)
    return child


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "is killed by signal: Killed"),
        ("raise SystemExit(3)", "exited unexpectedly with exit code 3"),
    ],
)
def test_watched_processes_that_end_badly(code, words):
    child = ended(code)
    signals.watch(7, (child.pid,))
    with pytest.raises(RuntimeError, match=words):
        signals.raise_for_dead_workers()
    signals.raise_for_dead_workers()  # said once
    signals.forget(7)
    assert child.wait() != 0
    with pytest.raises(ValueError, match="no workers of loader 7"):
        signals.forget(7)


def test_processes_that_end_well_say_nothing():
    child = ended("pass")
    signals.watch(8, (child.pid,))
    signals.raise_for_dead_workers()
    with pytest.raises(ValueError, match="already watched"):
        signals.watch(8, ())
    signals.forget(8)
    assert child.wait() == 0


def test_the_handler_looks_and_hands_on(monkeypatch):
    heard = []
    before = signal.signal(signal.SIGCHLD, lambda *_: heard.append("before"))
    monkeypatch.setattr(signals, "_handling", False)
    try:
        signals.handle_ended_children()
        signal.getsignal(signal.SIGCHLD)(signal.SIGCHLD, None)
        assert heard == ["before"]
    finally:
        signal.signal(signal.SIGCHLD, before)
    signals.prepare_worker()
    assert worker.ParentWatch().is_alive()


class Source(IterDataPipe):
    def __init__(self, n):
        self.n, self.shards = n, (1, 0)

    def apply_sharding(self, count, which):
        self.shards = count, which

    def __iter__(self):
        count, which = self.shards
        return iter(range(which, self.n, count))


class Shuffled(IterDataPipe):
    def __init__(self, source):
        self.sources, self.on, self.seed = [source], None, None

    def set_shuffle(self, on):
        self.on = on
        return self

    def set_seed(self, seed):
        self.seed = seed
        return self

    def __iter__(self):
        return iter(self.sources[0])


def test_settings_reach_every_pipe_of_a_chain():
    source = Source(6)
    chain = Shuffled(Shuffled(source))
    assert graph_settings.get_all_graph_pipes(chain) == [chain, chain.sources[0], source]
    graph_settings.apply_shuffle_settings(chain, shuffle=False)
    assert chain.on is False and chain.sources[0].on is False
    graph_settings.apply_random_seed(chain, torch.Generator().manual_seed(0))
    assert chain.seed is not None and chain.seed != chain.sources[0].seed
    assert list(graph_settings.apply_sharding(chain, 3, 1)) == [1, 4]
    assert graph_settings.apply_shuffle_settings(source) is source


def test_a_chain_is_sharded_once():
    outer = Shuffled(Source(4))
    outer.apply_sharding = lambda count, which: None
    with pytest.raises(RuntimeError, match="Sharding twice"):
        graph_settings.apply_sharding(outer, 2, 0)


def test_a_worker_takes_its_part_of_a_pipe(monkeypatch):
    source, started = Source(8), []
    monkeypatch.setattr(worker, "_worker_info", worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=source))
    graph_settings.shard_and_start(started.append, 2, 0, 1)
    assert source.shards == (4, 2) and started == [1]


def test_pipes_travel():
    import pickle

    there = pickle.loads(pickle.dumps(SentIterDataPipe(Source(3))))
    assert list(there) == [0, 1, 2]
