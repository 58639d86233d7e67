"""Backends by name: options are settings of native code, and what is asked for and not given is said and counted."""

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.front.backends import BACKENDS, lookup_backend, why_no_cuda_graph
from pullback.capture.front.compile import counters
from pullback.capture.front.config import native


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    counters.clear()


def f(x):
    return (x * 2).sin()


def test_options_are_settings_while_a_graph_is_compiled():
    seen = []
    options = {"max_fusion": False, "post_grad_custom_pre_pass": lambda graph: seen.append(native.max_fusion)}
    x = torch.ones(3, requires_grad=True)
    torch.compile(f, backend="inductor", options=options)(x).sum().backward()
    assert set(seen) == {False} and native.max_fusion and native.post_grad_custom_pre_pass is None
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).cos())


def test_a_misspelt_option_raises():
    with pytest.raises(AttributeError, match="no setting 'max_fusio'; did you mean 'max_fusion'"):
        torch.compile(f, backend="inductor", options={"max_fusio": False})(torch.ones(3))


def test_graphs_of_the_cpu_are_counted_as_without_a_cuda_graph(recwarn):
    with native.patch("triton.cudagraphs", True):
        torch.compile(f, backend="inductor")(torch.ones(3))
    torch.compile(f, backend="inductor", dynamic=True)(torch.ones(3))
    assert counters["inductor"]["cudagraph_skips"] == 1


def test_why_there_is_no_cuda_graph():
    here = torch.empty(3)
    module = type("Module", (), {"graph": type("Graph", (), {"nodes": []})})
    with FakeTensorMode():
        there = torch.empty(3, device="cuda")
    assert why_no_cuda_graph(module, [there, 3]) is None
    assert "on the CPU" in why_no_cuda_graph(module, [there, here])
    assert "nothing of it" in why_no_cuda_graph(module, [here])
    with native.patch("cuda.graphs", False):
        assert "turned off" in why_no_cuda_graph(module, [there])


def test_unknown_backends_raise():
    with pytest.raises(ValueError, match="Invalid backend: 'nothing'"):
        lookup_backend("nothing")


def test_without_a_name_graphs_become_native_code(monkeypatch):
    compiled = []
    monkeypatch.setitem(BACKENDS, "inductor", lambda module, inputs, options=None: compiled.append(options) or module)
    torch.compile(f)(torch.ones(3))
    torch.compile(f, mode="reduce-overhead")(torch.ones(3))
    torch.compile(f, mode="max-autotune", backend="eager")(torch.ones(3))
    assert compiled == [None, {"triton.cudagraphs": True}]


def test_what_a_mode_asks_for_in_vain_is_said():
    native._warned.discard("max_autotune")
    with pytest.warns(UserWarning, match="max_autotune has no effect here"):
        torch.compile(f, mode="max-autotune-no-cudagraphs")(torch.ones(3))
