"""CUDA graphs: what captures and replays do with streams, memory and random numbers (without a device), and real ones (with)."""

from __future__ import annotations

import contextlib
import copy
import types

import pytest

import pullback as torch
from pullback import nn
from pullback.core import random_philox
from pullback.core.modes import process
from pullback.cuda import absent, graphed, graphs
from pullback.nn import functional as F


class FakeStream:
    """As much of CuPy's stream as captures use; its graphs count their launches."""

    def __init__(self, ptr: int):
        self.ptr, self.mode = ptr, None

    def begin_capture(self, mode) -> None:
        self.mode = mode

    def end_capture(self):
        self.mode = None
        return types.SimpleNamespace(launches=0, launch=lambda stream: launched.append(stream))

    def is_capturing(self) -> bool:
        return self.mode is not None


launched: list = []


class FakeGenerator:
    """A generator that is on no device."""

    capture = None

    def __init__(self) -> None:
        self.offset = 100

    def advance_for(self, draws) -> None:
        draws.began = self.offset
        self.offset += draws.count


@pytest.fixture
def stand_in(monkeypatch):
    """CuPy's part of a capture, on no device."""
    launched.clear()
    state = types.SimpleNamespace(stream=FakeStream(1), allocators=[], generator=FakeGenerator())

    @contextlib.contextmanager
    def using_allocator(malloc):
        state.allocators.append(malloc)
        yield
        state.allocators.pop()

    class MemoryPool:
        def malloc(self, size):
            raise AssertionError("nothing is allocated here")

    cuda = types.SimpleNamespace(
        get_current_stream=lambda: state.stream, Stream=types.SimpleNamespace(null=FakeStream(0)), MemoryPool=MemoryPool,
        using_allocator=using_allocator, runtime=types.SimpleNamespace(streamCaptureModeRelaxed=2),
    )  # fmt: skip
    monkeypatch.setattr(absent, "device_count", lambda: 1)
    monkeypatch.setattr(graphs, "require_device", lambda: types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(graphs, "generator_of", lambda where: state.generator)
    monkeypatch.setattr(random_philox, "CapturedDraws", lambda: types.SimpleNamespace(count=0))
    return state


def test_a_capture_uses_the_pool_and_ends_with_a_graph(stand_in):
    g = graphs.CUDAGraph()
    with pytest.raises(RuntimeError, match="replay without a preceding successful capture"):
        g.replay()
    g.capture_begin()
    assert stand_in.stream.mode == 2 and process.cuda_captures == 1 and len(stand_in.allocators) == 1
    assert stand_in.generator.capture is not None
    g.capture_end()
    assert stand_in.stream.mode is None and process.cuda_captures == 0 and not stand_in.allocators
    assert stand_in.generator.capture is None
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        g.capture_begin()
    g.replay()
    assert launched == [stand_in.stream]
    other = graphs.CUDAGraph()
    other.capture_begin(pool=g.pool())
    other.capture_end()
    assert other._pool is g._pool
    g.reset()
    with pytest.raises(RuntimeError):
        g.pool()


def test_each_replay_draws_further_on(stand_in):
    g = graphs.CUDAGraph()
    g.capture_begin()
    stand_in.generator.capture.count += 7
    g.capture_end()
    (_, draws) = g._draws[0]
    for expected in (100, 107, 114):
        g.replay()
        assert draws.began == expected


def test_the_default_stream_and_unknown_modes_are_refused(stand_in):
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        graphs.CUDAGraph().capture_begin(capture_error_mode="never")
    stand_in.stream = FakeStream(0)
    with pytest.raises(RuntimeError, match="non-default stream"):
        graphs.CUDAGraph().capture_begin()
    assert process.cuda_captures == 0


def test_steps_whose_numbers_would_be_baked_in_are_refused(monkeypatch):
    p = nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    monkeypatch.setattr(process, "cuda_captures", 1)
    with pytest.raises(
        RuntimeError, match="CUDA graph capture of step.. for an instance of Adam but param_groups' capturable"
    ):
        torch.optim.Adam([p]).step()
    with pytest.raises(RuntimeError, match="RMSprop, which cannot be captured"):
        torch.optim.RMSprop([p], capturable=True).step()
    torch.optim.SGD([p], 0.5).step()
    assert p.tolist() == [0.5] * 3


def rerun(function, pool):
    """A stand-in of a capture: the replay runs the function again and copies what it gives to where it lay."""
    first = function()
    kept = [t for t in graphed.tree.tree_leaves(first) if isinstance(t, torch.Tensor)]

    def replay():
        for old, new in zip(kept, graphed.tree.tree_leaves(function()), strict=True):
            old.detach().copy_(new.detach())

    return first, replay


@pytest.fixture
def no_device(monkeypatch):
    backward = graphed.Graphed.backward

    def from_the_start(self, outs, gradients, allow_unused):
        """What a device finds in captured memory, the last forward's values, is computed again here."""
        with torch.enable_grad():
            outs = graphed.tree.tree_leaves(self.function(*self.args))
        return backward(self, outs, gradients, allow_unused)

    monkeypatch.setattr(graphed.Graphed, "backward", from_the_start)
    monkeypatch.setattr(graphs, "captured", rerun)
    monkeypatch.setattr(graphs, "side_stream", lambda function: function())


def test_graphed_modules_train_as_before(no_device):
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    theirs = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    theirs.load_state_dict(ours.state_dict())
    result = graphed.make_graphed_callables(ours, (torch.randn(5, 4, requires_grad=True),), 1)
    assert result is ours
    for _ in range(3):
        x = torch.randn(5, 4)
        values = []
        for model in (ours, theirs):
            given = x.clone().requires_grad_()
            model.zero_grad()
            loss = F.mse_loss(model(given), torch.ones(5, 2))
            loss.backward()
            values.append((loss.item(), given.grad, *[p.grad.clone() for p in model.parameters()]))
            torch.optim.SGD(model.parameters(), 0.1).step()
        assert values[0][0] == pytest.approx(values[1][0])
        for a, b in zip(values[0][1:], values[1][1:], strict=True):
            assert torch.allclose(a, b, atol=1e-6)
    ours.eval()
    assert torch.allclose(ours(x), theirs(x))


def test_graphed_functions_in_order(no_device):
    first, second = graphed.make_graphed_callables(
        (lambda x: x * 2, lambda x, y: (x + y, x * y)),
        ((torch.ones(3),), (torch.ones(3), torch.ones(3, requires_grad=True))),
        1,
    )
    assert first(torch.arange(3.0)).tolist() == [0, 2, 4]
    y = torch.full((3,), 5.0, requires_grad=True)
    total, product = second(torch.arange(3.0), y)
    (total.sum() + product.sum()).backward()
    assert y.grad.tolist() == [1, 2, 3] and product.tolist() == [0, 5, 10]
    with pytest.raises(TypeError, match="must contain only Tensors"):
        graphed.make_graphed_callables(lambda x, n: x * n, (torch.ones(3), 2))


# ---- on a device
def test_a_replay_computes_on_new_inputs(cuda):
    x = torch.zeros(4, device=cuda)
    work = torch.cuda.Stream()
    with torch.cuda.stream(work):
        x * 2 + 1  # builds kernels
    work.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2 + 1
    x.copy_(torch.arange(4.0))
    g.replay()
    assert y.tolist() == [1, 3, 5, 7] and not torch.cuda.is_current_stream_capturing()


def test_random_numbers_of_replays(cuda):
    torch.rand(8, device=cuda)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = torch.rand(8, device=cuda)
    torch.cuda.manual_seed(3)
    drawn = []
    for _ in range(2):
        g.replay()
        drawn.append(y.clone())
    torch.cuda.manual_seed(3)
    assert all(d.equal(torch.rand(8, device=cuda)) for d in drawn)


def test_a_training_step_is_replayed(cuda):
    """Embedding, loss and optimizer in one graph: what it computes is what steps on the CPU compute."""
    torch.manual_seed(0)
    ours = torch.nn.Sequential(torch.nn.Embedding(11, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 5))
    theirs = copy.deepcopy(ours).to(cuda)
    x, y = torch.arange(6), torch.tensor([0, 1, -100, 3, 4, 0])
    far = x.to(cuda), y.to(cuda)
    optimizers = [torch.optim.AdamW(m.parameters(), 0.05, capturable=m is theirs) for m in (ours, theirs)]

    def step(model, optimizer, x, y):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step(theirs, optimizers[1], *far)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(theirs, optimizers[1], *far)
    for _ in range(3):
        graph.replay()
    for _ in range(4):
        step(ours, optimizers[0], x, y)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b.cpu(), rtol=1e-4, atol=1e-5)
