"""Profiles over steps: schedules, handlers, files."""

import json
import warnings

import pytest

import pullback as torch
from pullback.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

N, W, R, S = ProfilerAction


def test_schedule():
    steps = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [steps(i) for i in range(10)] == [N, N, W, R, S, N, W, R, S, N]
    assert schedule(wait=2, warmup=1, active=1, skip_first_wait=1)(0) is W
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_each_cycle_gives_a_trace():
    seen = []

    def ready(p):
        seen.append((p.step_num, [e.name for e in p.events()], [e.trace_name for e in p.events()]))

    with profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=ready) as p:
        for _ in range(6):
            torch.ones(2)
            p.step()
    assert [step for step, *_ in seen] == [3, 6]
    assert seen[0][1] == ["ProfilerStep*", "aten::ones"] and seen[0][2][0] == "ProfilerStep#2"
    assert p.key_averages().total_average().count == 2


def test_events_of_several_cycles_can_be_kept():
    with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True) as p:
        for _ in range(4):
            torch.ones(2)
            p.step()
    assert [e.name for e in p.events()].count("aten::ones") == 2


def test_without_a_schedule_all_is_one_trace(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me")) as p:
        p.add_metadata("who", "me")
        p.add_metadata_json("what", "[1, 2]")
        torch.ones(2)
        p.step()
        torch.zeros(2)
    assert [e.name for e in p.events()] == ["aten::ones", "aten::zeros"]
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json")
    trace = json.loads(path.read_text())
    assert trace["who"] == "me" and trace["what"] == [1, 2] and trace["trace_id"] == p.get_trace_id()


def test_incorrect_schedules_warn():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(schedule=[R, N, N].__getitem__) as p:
            p.step()
    assert ["RECORD followed by NONE" in str(w.message) for w in caught] == [True]


def test_activities():
    assert supported_activities() == {ProfilerActivity.CPU}
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(AssertionError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile(activities=[ProfilerActivity.CUDA])


def test_what_is_absent_says_so():
    with pytest.raises(NotImplementedError, match="execution traces"):
        ExecutionTraceObserver().register_callback("x")
    with pytest.raises(NotImplementedError, match="memory is counted per call"):
        profile().export_memory_timeline("x")
    with pytest.raises(AssertionError, match="no step was recorded"):
        profile().events()
