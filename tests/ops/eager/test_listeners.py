"""Function modes, dispatch modes and subclasses hear of every call that has a plain case."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from pullback.ops.eager import functions
from pullback.ops.system.operator import registry
from pullback.ops.system.overrides import TorchFunctionMode
from tests.ops.eager.reach import Watch, reached, sampled_calls

PLAIN = sorted(key for key in functions.past() if key in registry)


class Heard(BaseException):
    """Raised by the overrides here."""


class Listen(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise Heard


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise Heard


def _hears(call) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Heard:
        return True
    return False


def _public_calls() -> list:
    """Calls by public names (an overload `ops.aten.*` stands below functions), of operators with a plain case."""
    calls = {id(call): (name, call) for key in PLAIN for name, call in reached().get(key, ())}
    return [(name, call) for name, call in calls.values() if not name.startswith("ops.")]


def test_a_function_mode_hears_of_every_call() -> None:
    missed = []
    for name, call in _public_calls():
        with Listen():
            if not _hears(call):
                missed.append(name)
    assert not missed


def test_a_dispatch_mode_hears_of_every_operator_again_and_again() -> None:
    """Not only before the plain case was first taken."""
    missed = []
    for key in PLAIN:
        for name, call in reached().get(key, ()):
            watch = Watch()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
                with watch:
                    call()
            if registry[key].body is None and registry[key] not in watch.seen:
                missed.append((name, key))
    assert not missed


def test_a_subclass_in_the_place_of_any_tensor_hears_of_the_call() -> None:
    missed = []
    for name, call in sampled_calls():
        if name.startswith("ops.") or not hasattr(call, "args") or not _works(call):
            continue
        for i, value in enumerate(call.args):
            if type(value) is torch.Tensor and not value._keys:
                given = (*call.args[:i], value.as_subclass(Loud), *call.args[i + 1 :])
                if not _hears(lambda given=given, call=call: call.func(*given, **call.keywords)):
                    missed.append((name, i))
    assert not missed


def _works(call) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize("index", [0, slice(1), (0, 0), torch.tensor([0])])
def test_a_subclass_hears_of_indexing(index) -> None:
    x = torch.ones(2, 2).as_subclass(Loud)
    assert _hears(lambda: x[index])
    assert _hears(lambda: x.__setitem__(index, 1.0))
    if isinstance(index, torch.Tensor):
        assert _hears(lambda: torch.ones(2, 2)[index.as_subclass(Loud)])
