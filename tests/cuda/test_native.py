"""Compiled code with kernels of our own on a CUDA device gives what operators give on the CPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.front.config import native
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, compile_graph
from pullback.codegen.cuda import elements
from pullback.codegen.stages import WORTH_CODE
from pullback.ops.system.operator import find
from pullback.runtime.cuda import machine
from tests.codegen.cuda.programs import PROGRAMS, loss, loss_arguments, same
from tests.codegen.test_landing import OPTIMIZERS, image, perceptron, words


@pytest.fixture
def kernels(cuda):
    with native.patch({"cuda.native": True}):
        yield cuda


def moved(t, where):
    """A tensor on another device, with its strides."""
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=where).copy_(t)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(kernels, name):
    f, args = PROGRAMS[name]()
    there = [moved(t, kernels) for t in args]
    compiled = compile_graph(make_fx(f, tracing_mode="fake")(*there))
    assert compiled.native, compiled.reasons
    for _ in range(2):
        got = compiled(*there)
        assert all(t.is_cuda for t in got)
        same([moved(t, "cpu") for t in got], f(*args))


def test_a_training_step(kernels):
    x, target, *weights = loss_arguments()
    there = [w.detach().to(kernels).requires_grad_() for w in weights]
    compiled = torch.compile(loss)
    for _ in range(3):
        value = compiled(x.to(kernels), target.to(kernels), *there)
        grads = torch.autograd.grad(value, there)
    expected = loss(x, target, *weights)
    same([t.cpu() for t in (value, *grads)], [expected, *torch.autograd.grad(expected, weights)])


def test_an_index_out_of_bounds_is_raised_when_numbers_are_read(kernels):
    table = torch.randn(4, 6, device=kernels)
    compiled = compile_graph(make_fx(F.embedding, tracing_mode="fake")(torch.tensor([0, 3], device=kernels), table))
    result = compiled(torch.tensor([0, 9], device=kernels), table)
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        result.cpu()
    assert compiled(torch.tensor([0, 1], device=kernels), table).equal(table[:2])


def test_compiled_work_can_be_captured(kernels):
    x = torch.randn(64, 64, device=kernels)
    compiled = torch.compile(lambda x: F.softmax(x @ x, -1) * 2)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        compiled(x)
    side.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = compiled(x)
    x.copy_(torch.randn(64, 64))
    g.replay()
    assert torch.allclose(y.cpu(), F.softmax(x.cpu() @ x.cpu(), -1) * 2, atol=1e-5)


def test_runs_that_come_again_are_launched_as_graphs(kernels):
    """What is freed is allocated again: the addresses of a loop come again, and so does the graph."""

    def f(x, w):
        for _ in range(4):
            x = F.softmax(x @ w, -1)
        return x

    x, w = torch.randn(32, 32), torch.randn(32, 32)
    there = [moved(t, kernels) for t in (x, w)]
    compiled = compile_graph(make_fx(f, tracing_mode="fake")(*there))
    gc.collect()  # what others left behind would be given back in between, and move what is allocated next
    for k in range(12):
        there[0].copy_(x * (k % 4))
        same([compiled(*there).cpu()], [f(x * (k % 4), w)])
    replays = compiled.segments[0].program.replays
    assert replays.reason is None and replays.graphs
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        result = [compiled(*there) for _ in range(3)][-1]
    side.synchronize()
    same([result.cpu()], [f(x * 3, w)])


def test_operators_by_printed_kernels(kernels):
    from tests.codegen.cuda.test_cuda_elements import CALLS

    for name, make in CALLS.items():
        args = make()
        there = [moved(a, kernels) if isinstance(a, torch.Tensor) else a for a in args]
        op = find(name)
        assert elements.run(op, op.bind(tuple(there), {}), kernels) is not None, name
        same([moved(op(*there), "cpu")], [op(*args)])


def test_tf32_is_used_where_it_is_asked_for(kernels):
    a, b = torch.randn(256, 256, device=kernels), torch.randn(256, 256, device=kernels)
    compiled = compile_graph(make_fx(lambda a, b: a @ b, tracing_mode="fake")(a, b))
    exact = (a.double() @ b.double()).float()
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")
        fine = (compiled(a, b) - exact).abs().max().item()
        torch.set_float32_matmul_precision("high")
        rough = (compiled(a, b) - exact).abs().max().item()
    finally:
        torch.set_float32_matmul_precision(before)
    assert fine < 1e-3 and (rough > 2 * fine or machine(0).architecture < "sm_80")


@pytest.mark.parametrize("make", [perceptron, words, image])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_whole_step_is_one_program(kernels, make, optimizer, monkeypatch):
    """Parameters and state are written where they are, counters of the host travel along."""
    made: list[Native] = []
    build = Native.build
    monkeypatch.setattr(Native, "build", lambda self: (made.append(self), build(self))[1])
    found = []
    for whole in (False, True):
        torch.manual_seed(0)
        model, loss = make()
        model.to(kernels)
        cells = {c: loss.__code__.co_freevars.index(c) for c in ("x", "y") if c in loss.__code__.co_freevars}
        for at in cells.values():
            cell = loss.__closure__[at]
            cell.cell_contents = cell.cell_contents.to(kernels)
        updates = OPTIMIZERS[optimizer](model.parameters())

        def step(loss=loss, updates=updates):
            updates.zero_grad()
            value = loss()
            value.backward()
            updates.step()
            return value

        run = torch.compile(step) if whole else step
        values = [float(run().detach()) for _ in range(5)]
        found.append([*values, *[p.detach().cpu().numpy() for p in model.parameters()]])
    for got, want in zip(*found[::-1], strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4)
    assert len(made[-1].fallbacks) < WORTH_CODE and made[-1].segments[-1].source.landed


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_real_spectra_of_windows(cuda, offset):
    x = torch.randn(3 * 8 + offset)
    found = torch.fft.rfft(x.to(cuda)[offset:].view(3, 8)).cpu()
    torch.testing.assert_close(found, torch.fft.rfft(x[offset:].view(3, 8)), rtol=1e-4, atol=1e-5)
