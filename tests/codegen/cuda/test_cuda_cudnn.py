"""Convolutions of a program follow the switches of cuDNN: without cuDNN, by what stands in for it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pullback as torch
from pullback.runtime import cudnn


class Prepared(SimpleNamespace):
    def entry(self):
        return cudnn.Entry(workspace=self.workspace)


def test_a_switch_prepares_convolutions_again(monkeypatch):
    asked = []

    def prepared(form, geometry, index):
        asked.append((form, geometry, index, cudnn.switches()))
        return None if geometry == "refused" else Prepared(form=form, geometry=geometry, index=index, workspace=64)

    monkeypatch.setattr(cudnn, "prepared", prepared)
    first = [Prepared(form=k, geometry=g, index=0, workspace=8) for k, g in enumerate(("taken", "refused"))]
    found = cudnn.Convolutions(first)
    assert found.workspace == 8 and found.current() == cudnn.switches() and not asked
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        assert found.current() == (False, False, False) == cudnn.switches()
        assert [a[:2] for a in asked] == [(0, "taken"), (1, "refused")] and asked[0][3] == (False, False, False)
        assert found.workspace == 64 and found.found[1] is first[1] and len(found.entries) == 2
        found.current()
        assert len(asked) == 2
    assert found.current()[0] and len(asked) == 4
    assert ctypes.sizeof(cudnn.Entry) == 56  # as `runtime.launcher` lays it out


def test_a_sequence_is_an_image_of_one_row():
    sides = tuple(((n, c, 5), (c * 5, 5, 1)) for n, c in ((2, 3), (4, 3), (2, 4)))
    found = cudnn.geometry(sides, "float32", (2,), (1,), (1,), 1)
    assert found.x == ((2, 3, 1, 5), (15, 5, 5, 1)) and found.stride == (1, 2) and found.padding == (0, 1)
    assert cudnn.geometry(sides, "int32", (2,), (1,), (1,), 1) is None
