"""Stacks that are remembered without their frames."""

import pickle

from pullback.utils.tracebacks import CapturedTraceback, gather_traceback, symbolize_tracebacks


def inner():
    return gather_traceback(python=True), CapturedTraceback.extract(), CapturedTraceback.extract(skip=1)


def test_frames_are_named():
    gathered, captured, outside = inner()
    (frames,) = symbolize_tracebacks([gathered])
    assert [frame["name"] for frame in frames[:2]] == ["inner", "test_frames_are_named"]
    assert frames[0]["filename"] == __file__ and frames[0]["line"] == inner.__code__.co_firstlineno + 1
    assert symbolize_tracebacks([gather_traceback(python=False)]) == [[]]
    assert [frame.name for frame in captured.summary()[-2:]] == ["test_frames_are_named", "inner"]
    assert outside.summary()[-1].name == "test_frames_are_named"
    assert "CapturedTraceback.extract()" in captured.format()[-1]
    assert CapturedTraceback.format_all([None, outside]) == [[], outside.format()]


def test_stacks_are_forgotten():
    _, captured, _ = inner()
    assert pickle.loads(pickle.dumps(captured)).format() == []
    captured.cleanup()
    assert captured.format() == []
