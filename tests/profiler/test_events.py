"""Events: trees, sums, tables, traces."""

import gzip
import json

import pytest

import pullback as torch
from pullback.autograd.profiler import EnforceUnique, KinetoStepTracker, emit_itt, emit_nvtx, profile, record_function
from pullback.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    _format_memory,
    _format_time,
    _format_time_share,
)


def event(number, start, end, thread=0, name="f"):
    return FunctionEvent(id=number, name=name, thread=thread, start_us=start, end_us=end)


@pytest.fixture(scope="module")
def recorded():
    x = torch.randn(4, 4, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
        with record_function("block"):
            y = x @ x
        (y * 2).sum().backward()
    return p


def test_children_are_found_by_time():
    listed = EventList([event(1, 0, 10), event(2, 1, 4), event(3, 2, 3), event(4, 5, 12), event(5, 1, 2, thread=1)])
    listed._populate_cpu_children()
    assert [[c.id for c in e.cpu_children] for e in listed] == [[2], [3], [], [], []]
    assert listed[0].self_cpu_time_total == 7


def test_a_call_inside_itself_counts_once():
    listed = EventList([event(1, 0, 10), event(2, 1, 9), event(3, 2, 3, name="g")])
    listed._build_tree()
    assert [e.id for e in listed] == [1, 3] and listed[0].cpu_children == [listed[1]]


def test_sums():
    total = FunctionEventAvg()
    total.add(event(0, 10, 15)).add(event(1, 20, 30))
    total.add(total)
    assert (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total) == ("f", 4, 30, 30)
    assert total.cpu_time == 7.5 and total.device_time_total == 0
    with pytest.raises(AssertionError):
        total.add(event(2, 0, 1, name="g"))


def test_key_averages_group(recorded):
    by_name = {e.key: e for e in recorded.key_averages()}
    assert by_name["aten::mm"].count == 3  # forward, and both gradients
    by_shape = recorded.key_averages(group_by_input_shape=True)
    assert {str(e.input_shapes) for e in by_shape if e.key == "aten::mul"} == {"[[4, 4], []]"}
    by_overload = recorded.key_averages(group_by_overload_name=True)
    assert {e.overload_name for e in by_overload if e.key == "aten::mul"} == {"Tensor"}
    total = recorded.total_average()
    assert total.key == "Total" and total.count == len(recorded.function_events)
    assert total.self_cpu_time_total == pytest.approx(recorded.self_cpu_time_total)


def test_table(recorded):
    assert str(recorded) == recorded.table()
    text = recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=2, header="HEAD", time_unit="ms")
    lines = text.splitlines()
    assert lines[1] == "HEAD" and lines[-1].startswith("Self CPU time total: ") and lines[-1].endswith("ms")
    assert "# of Calls" in lines[3] and "CPU Mem" in lines[3] and len(lines) == 9
    times = [e.self_cpu_time_total for e in recorded.key_averages()]
    first = next(e for e in recorded.key_averages() if e.self_cpu_time_total == max(times))
    assert first.key[:20] in lines[5]
    top = recorded.table(top_level_events_only=True)
    assert "aten::matmul" not in top and "block" in top
    assert EventList().table() == ""
    with pytest.raises(AttributeError, match="sort_by"):
        recorded.table(sort_by="nonsense")


def test_chrome_trace(recorded, tmp_path):
    recorded.export_chrome_trace(str(tmp_path / "t.json"))
    trace = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    calls = {t["name"]: t for t in trace if t["ph"] == "X"}
    assert calls["block"]["cat"] == "user_annotation" and calls["aten::mm"]["args"]["Input Dims"] == [[4, 4], [4, 4]]
    starts, ends = [[t["id"] for t in trace if t["ph"] == kind] for kind in "sf"]
    assert starts == ends and len(starts) == 3
    recorded.export_chrome_trace(str(tmp_path / "t.json.gz"))
    assert json.loads(gzip.open(tmp_path / "t.json.gz").read())["traceEvents"] == trace


def test_stacks(recorded, tmp_path):
    recorded.export_stacks(str(tmp_path / "s"), "self_cpu_time_total")
    assert "test_events.py" in (tmp_path / "s").read_text()
    with pytest.raises(ValueError, match="metric should be one of"):
        recorded.export_stacks(str(tmp_path / "s"), "time")
    with pytest.raises(AssertionError, match="Expected profiling results"):
        profile().export_stacks(str(tmp_path / "s"))


def test_before_the_end_there_is_nothing():
    p = profile()
    assert str(p) == repr(p) == "<unfinished torch.autograd.profile>"
    assert p.function_events is None and p.table() == "" and p.self_cpu_time_total == 0


def test_formats():
    assert [_format_time(t) for t in (0, 999.99, 1000, 2.5e7)] == ["0.000us", "999.990us", "1.000ms", "25.000s"]
    assert [_format_memory(b) for b in (0, 1024, -2000, 5e6)] == ["0 B", "1.00 KB", "-1.95 KB", "4.77 MB"]
    assert [_format_time_share(*t) for t in ((1, 4), (0, 0), (1, 0))] == ["25.00%", "0.00%", "NaN"]


def test_small_tools():
    unique = EnforceUnique()
    unique.see(1, 2)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see(1, 2)
    for emit in (emit_nvtx, emit_itt):
        with emit(enabled=False):
            pass
        with pytest.raises(RuntimeError, match="not installed"), emit():
            pass
    KinetoStepTracker.init_step_count("a")
    before = KinetoStepTracker.current_step()
    assert KinetoStepTracker.increment_step("a") == before + 1 and KinetoStepTracker.erase_step_count("a")
