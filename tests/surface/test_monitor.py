"""`torch.monitor`: events reach handlers, and statistics are logged when their window is over. Numbers are PyTorch's."""

from datetime import datetime, timedelta

import pytest
from pullback.monitor import Aggregation, Event, Stat, TensorboardEventHandler

from pullback import monitor


@pytest.fixture
def events():
    seen: list[Event] = []
    handle = monitor.register_event_handler(seen.append)
    yield seen
    monitor.unregister_event_handler(handle)


def test_handlers(events):
    event = Event("loss", datetime.now(), {"step": 1, "loss": 2.5, "run": "a"})
    monitor.log_event(event)
    handle = monitor.register_event_handler(events.append)
    monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.unregister_event_handler(handle)
    assert events == [event] * 3
    with pytest.raises(TypeError, match="'a' is a list"):
        Event("loss", datetime.now(), {"a": [1]})


def test_full_window(events):
    stat = Stat("x", list(Aggregation), timedelta(hours=1), 2)
    stat.add(1)
    assert stat.count == 1 and set(stat.get().values()) == {0.0}
    stat.add(5.5)
    assert stat.count == 0 and stat.get()[Aggregation.MEAN] == 3.25
    expected = {"x.value": 5.5, "x.mean": 3.25, "x.count": 2.0, "x.sum": 6.5, "x.max": 5.5, "x.min": 1.0}
    assert [(e.name, dict(e.data)) for e in events] == [("torch.monitor.Stat", expected)]


def test_what_is_added_to_a_full_window_counts_nowhere(events):
    stat = Stat("y", [Aggregation.SUM, Aggregation.COUNT], timedelta(hours=1), 5)
    for number in range(10):
        stat.add(number)
    assert stat.count == 0
    assert [dict(e.data) for e in events] == [{"y.sum": 10.0, "y.count": 5.0}]


def test_windows_over(events):
    stat = Stat("e", [Aggregation.SUM], timedelta(0))
    stat.add(1)
    stat.add(2)
    assert [e.data for e in events] == [{"e.sum": 1.0}]
    del stat  # what is left is logged
    assert [e.data for e in events] == [{"e.sum": 1.0}, {"e.sum": 2.0}]


def test_scalars_of_tensorboard():
    class Writer:
        rows: list = []

        def add_scalar(self, name, value, walltime):
            self.rows.append((name, value, walltime))

    handler, moment = TensorboardEventHandler(Writer()), datetime(2026, 1, 1)
    handler(Event("torch.monitor.Stat", moment, {"x.sum": 3.0}))
    handler(Event("loss", moment, {"y": 1.0}))
    assert Writer.rows == [("x.sum", 3.0, moment.timestamp())]
