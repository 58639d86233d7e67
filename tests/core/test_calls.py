"""What calls ask of their arguments: the functions in C say what the ones in Python say."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

import pullback as torch
from pullback.core import calls
from pullback.core.size import Size

x, y = torch.ones(2), torch.nn.Parameter(torch.ones(2))


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return "taken"


sub = torch.ones(2).as_subclass(Sub)
meta = torch.empty(2, device="meta")


def test_history():
    assert calls.history((x, 1, None)) is False
    assert calls.history((x, y)) is True
    assert calls.history((1, (x, y))) is True
    assert calls.history(([x, x], "mean")) is False
    assert calls.history((x, meta)) is None
    assert calls.history(((x, meta),)) is None


def test_simple():
    assert calls.simple((x, y, 1, 2.0, None, "a", True, torch.float32, [1, (x,)]))
    assert calls.simple((x,), {"dim": 1})
    assert not calls.simple((x, sub))
    assert not calls.simple(([sub],))
    assert not calls.simple((x,), {"other": sub})
    assert not calls.simple((object(),))


def test_arrays_of():
    assert calls.arrays_of((x, 3, None))[0] is x._array
    found = calls.arrays_of((1, (x, None), (1, 2)))
    assert found[1][0] is x._array and found[1][1] is None and found[2] == (1, 2)


def test_a_plan_binds_arguments_by_position_name_and_default():
    def listed(value):
        return (value,) if isinstance(value, int) else tuple(value)

    places = ((0, None, None, None, None), (None, "axis", None, listed, 1), (None, None, False, None, None))
    plans = {
        calls.plan_key("f", (x,), {"axis": 1}): ("op", places),
        calls.plan_key("f", (x,), {"axis": [1]}): ("op", places),
    }
    assert calls.choose(plans, "f", (x,), {"axis": 1}) == ("op", (x, (1,), False))
    assert calls.choose(plans, "f", (x,), {"axis": [0, 1]}) == ("op", (x, (0, 1), False))
    assert calls.choose(plans, "f", (x,), {"axis": []}) is None  # an empty list may be one of anything
    assert calls.choose(plans, "f", (x,), {"axis": [1.5]}) is None
    assert calls.choose(plans, "f", (x,), {"dim": 1}) is None
    assert calls.choose(plans, "g", (x,), {"axis": 1}) is None


def test_sizes_give_sizes():
    shape = torch.ones(2, 3, 4).shape
    assert type(shape) is Size and type(shape[1:]) is Size and shape[1] == 3 and shape[1:] == (3, 4)
    with pytest.raises(IndexError):
        shape[3]
    assert torch.ones(()).ndim == 0 and meta.shape == (2,) and meta.ndim == 1


def test_overrides_are_asked_in_functions_over_several_signatures():
    assert torch.max(sub) == torch.max(x, sub) == torch.sum(sub, (0,)) == torch.nn.functional.one_hot(sub) == "taken"


@pytest.mark.skipif(importlib.util.find_spec("pullback.core._calls") is None, reason="the extension is not built")
def test_the_same_holds_without_the_extension():
    if os.environ.get("PULLBACK_NATIVE") == "0":
        return
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "PULLBACK_NATIVE": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
