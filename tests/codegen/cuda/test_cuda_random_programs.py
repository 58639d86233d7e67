"""Random programs, compiled as for a CUDA device and run by the emulator of one, give what operators give."""

from __future__ import annotations

import pytest

from pullback.capture.trace.make_fx import make_fx
from tests.codegen.cuda.random_programs import differs, program, with_gradients


@pytest.fixture
def partly(monkeypatch, emulated):
    """As `emulated`, where some operators may be left as they are."""
    from pullback.codegen import Native

    def compile(f, *args):
        result = Native(make_fx(f, tracing_mode="fake")(*args))
        result.build()
        return result

    return compile


@pytest.mark.parametrize("seed", range(12))
def test_programs_are_what_they_were(partly, seed):
    f, args = program(seed)
    f = with_gradients(f)
    assert (wrong := differs(partly(f, *args)(*args), f(*args))) is None, wrong
