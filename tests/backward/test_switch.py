"""Compiled autograd on and off: contexts, what is kept, and functions that were compiled with it."""

import threading

import pytest

import pullback as torch
from pullback.backward import switch
from pullback.backward.compiled import disable, enable, reset, set_autograd_compiler
from pullback.capture.front.compile import counters
from pullback.capture.front.config import config
from pullback.core.logs import set_logs


@pytest.fixture(autouse=True)
def fresh():
    reset()
    torch.compiler.reset()
    counters.clear()
    yield
    reset()


def as_it_is(gm):
    return gm


def step(size=3):
    x = torch.ones(size, requires_grad=True)
    x.exp().sum().backward()
    return x.grad


def captures():
    return counters["compiled_autograd"]["captures"]


def test_on_and_off():
    with enable(as_it_is):
        assert switch.compiled_autograd_enabled
        with disable():
            assert not switch.compiled_autograd_enabled
            step()
        assert captures() == 0
        step()
    step()
    assert captures() == 1 and not switch.compiled_autograd_enabled


def test_contexts_end_in_order():
    outer, inner = enable(as_it_is), enable(as_it_is)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(AssertionError, match="must return before their parent context"):
        outer.__exit__(None, None, None)


def test_only_this_thread():
    with enable(as_it_is):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert captures() == 0


def test_the_same_compiler_made_again_is_the_same():
    def make(tag):
        return lambda gm: (gm, tag)[0]

    for tag, expected in (("a", 1), ("a", 1), ("b", 2)):
        with enable(make(tag)):
            step()
        assert captures() == expected


def test_static_sizes_are_captured_again_once():
    for size in (2, 3, 4, 5):
        with enable(as_it_is, dynamic=False):
            assert step(size).shape == (size,)
    assert captures() == 2


def test_reset_of_the_compiler_forgets_graphs():
    for _ in range(2):
        with enable(as_it_is):
            step()
        torch.compiler.reset()
    assert captures() == 2


def test_by_hand():
    assert set_autograd_compiler(as_it_is, True) == (None, False)
    step()
    assert set_autograd_compiler(None, False) == (as_it_is, True)
    step()
    assert captures() == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_functions_compiled_with_the_setting(backend):
    with config.patch(compiled_autograd=True):
        compiled = torch.compile(step, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(), step()) and captures() == 1
    with disable():
        compiled()
    assert captures() == 1


def test_a_backward_inside_a_backward_is_the_engines():
    def hook(g):
        with torch.enable_grad():
            step()

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    with enable(as_it_is):
        x.sum().backward()
        assert switch.compiled_autograd_enabled
    assert captures() == 1


def test_reasons(caplog):
    set_logs(compiled_autograd_verbose=True, compiled_autograd=True)
    try:
        with enable(as_it_is), caplog.at_level("DEBUG"):
            step()
            x = torch.ones(2, requires_grad=True)
            x.sin().sum().backward()
    finally:
        set_logs()
    assert "Cache miss due to new autograd node: SinBackward0 (NodeCall 1)" in caplog.text
    assert "Compiled autograd graph 0" in caplog.text
