"""Convolutions of captured graphs in channels-last order: what is turned, what comes out, and how it is taken back."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front.layouts import turned
from pullback.codegen.cuda import lower
from pullback.runtime import cudnn

nn, F = torch.nn, torch.nn.functional
CHANNELS_LAST = torch.channels_last


def captured(f, *args):
    found = []

    def backend(module, inputs):
        found.append((module, inputs))
        return module

    torch.compile(f, backend=backend)(*args)
    return found[0]


def images(seed=0):
    torch.manual_seed(seed)
    return torch.randn(2, 3, 8, 8)


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1))


def test_between_convolutions_all_is_channels_last():
    module, inputs = captured(model(), images())
    fresh = lambda: [
        torch.ones(t.shape, dtype=t.dtype) if t.ndim < 2 else torch.sin(torch.arange(t.numel()) / 7).view(t.shape)
        for t in inputs
    ]
    (want,), before = module(*fresh()), module.code
    change = turned(module, "cpu")
    seen = {}

    class Watching(torch.fx.Interpreter):
        def run_node(self, node):
            seen[node.name] = super().run_node(node)
            return seen[node.name]

    (got,) = Watching(module).run(*fresh())
    turns = ("contiguous_default", "conv2d", "batch_norm", "relu", "max_pool2d", "contiguous_default_1", "conv2d_1")
    assert all(seen[n].is_contiguous(memory_format=CHANNELS_LAST) for n in turns), {n: seen[n].stride() for n in turns}
    assert seen["contiguous_default_1"] is seen["max_pool2d"]  # it was already
    assert got.is_contiguous() and torch.allclose(got, want, atol=1e-6)
    change.undo()
    assert module.code == before


def test_one_convolution_is_left_as_it_is():
    module, _ = captured(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), images())
    before = module.code
    assert turned(module, "cpu") is None and turned(module) is None and module.code == before


@pytest.mark.parametrize("groups, transposed", [(3, False), (1, True)])
def test_other_convolutions_do_not_count(groups, transposed):
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    module, _ = captured(nn.Sequential(*[kind(3, 3, 3, groups=groups) for _ in range(3)]), images())
    assert turned(module, "cpu") is None


def test_graphs_that_name_memory_are_left_as_they_are():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))
    module, _ = captured(lambda x: net(x).as_strided((2, 2), (1, 2)), images())
    assert turned(module, "cpu") is None


@pytest.fixture
def on_the_cpu(monkeypatch):
    """`compile` turns graphs of the CPU as it would those of a device; gives the changes that were made."""
    changes = []
    from pullback.capture.front import backends

    def turn(module):
        changes.append(turned(module, "cpu"))
        return changes[-1]

    monkeypatch.setattr(backends, "turned", turn)
    return changes


def trained(net, x, f):
    for p in net.parameters():
        p.grad = None
    out = f(x)
    out.square().sum().backward()
    return [out.detach(), *[p.grad for p in net.parameters()]]


@pytest.mark.parametrize("last", [lambda y: y, lambda y: y.flatten(1), lambda y: y.mean((2, 3))])
def test_training_is_the_same(on_the_cpu, last):
    net, x = model(), images()
    f = lambda x: last(net(x))
    want = trained(net, x, f)
    net.load_state_dict(model().state_dict())
    got = trained(net, x, torch.compile(f))
    assert on_the_cpu[0] is not None and on_the_cpu[0].nodes
    for a, b in zip(got, want, strict=True):
        assert a.is_contiguous() and b.is_contiguous() and torch.allclose(a, b, atol=2e-5), (a, b)


def test_a_view_that_needs_row_major_memory_takes_it_back(on_the_cpu):
    net, x = model(), images()
    f = lambda x: net(x).view(2, -1)
    want = trained(net, x, f)
    net.load_state_dict(model().state_dict())
    got = trained(net, x, torch.compile(f, fullgraph=True))
    assert on_the_cpu[0] is None
    assert all(torch.allclose(a, b, atol=2e-5) for a, b in zip(got, want, strict=True))


def test_the_setting_turns_it_off(on_the_cpu):
    net = model()
    torch.compile(net, options={"layout_optimization": False})(images())
    assert not on_the_cpu


def test_a_gradient_of_weights_is_turned_to_their_order(monkeypatch):
    """Where x is channels-last and w is not, the library writes beside, and a loop turns it."""
    from pullback.ops.lowering.loops import Compute, Convolved, Value

    monkeypatch.setattr(cudnn, "prepared", lambda form, geometry, index: (form, geometry))
    lowering = lower.CudaLowering()
    lowering.outputs = torch.empty(1, device="meta")
    blank = lambda shape, strides: Value(lowering.buffer(torch.float32, 4096), shape, strides)
    last = lambda *s: torch.empty(*s, device="meta").to(memory_format=CHANNELS_LAST).stride()
    x, y = blank((2, 4, 6, 6), last(2, 4, 6, 6)), blank((2, 8, 4, 4), last(2, 8, 4, 4))
    w = blank((8, 4, 3, 3), (36, 9, 3, 1))
    assert lowering.convolved(cudnn.TO_WEIGHT, w, x, w, y, ((1, 1), (0, 0), (1, 1), 1)) is w
    call, turn = lowering.steps
    assert isinstance(call, Convolved) and isinstance(turn, Compute) and turn.buffer is w.buffer
    assert call.target.strides == tuple(last(8, 4, 3, 3)) and call.first is x and call.second is y
