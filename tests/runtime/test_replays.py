"""Runs that come again get graphs; few are kept."""

from pullback.runtime import replays
from pullback.runtime.replays import Replays


def test_a_run_gets_a_graph_when_it_comes_again():
    kept, made = Replays(), []
    make = lambda: made.append(len(made)) or f"graph {len(made)}"
    assert kept.find("a", make) is None and kept.find("b", make) is None and not made
    assert kept.find("a", make) == "graph 1" == kept.find("a", make)
    assert kept.find("b", make) == "graph 2" and len(made) == 2


def test_the_latest_used_are_kept():
    kept = Replays()
    for name in range(replays.KEPT):
        kept.find(name, object), kept.find(name, object)
    first = kept.graphs[0]
    assert kept.find(0, object) is first
    kept.find("new", object), kept.find("new", object)
    assert kept.find(0, object) is first and 1 not in kept.graphs and len(kept.graphs) == replays.KEPT
    for name in range(1000, 1000 + 2 * replays.REMEMBERED):
        kept.find(name, object)
    assert len(kept.once) == replays.REMEMBERED


def test_what_cannot_be_captured_is_not_tried_again():
    kept, tried = Replays(), []

    def fails():
        tried.append(1)
        raise RuntimeError("cudaErrorStreamCaptureUnsupported")

    assert [kept.find("a", fails) for _ in range(4)] == [None] * 4
    assert len(tried) == 1 and "CaptureUnsupported" in kept.reason
