"""Batch norm in training by one kernel is what the rules of the operator compute, forward and backward; whoever listens hears of it."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core import native
from pullback.ops.network import batch_normalization
from pullback.ops.system.overrides import TorchDispatchMode

pytestmark = pytest.mark.skipif(not native.available, reason="the extension is not built")
F = torch.nn.functional
SHAPES = [
    (4, 3, 5),
    (16, 7, 4, 4),
    (3, 5, 9, 7),
    (2, 3, 70, 70),
    (2, 130, 3, 2, 2),
    (5, 2, 2),
    (1, 3, 33),
    (150, 2, 31),
]


def by_rules(monkeypatch, f):
    """f() without the kernel and its plain case."""
    with monkeypatch.context() as patch:
        patch.setattr(batch_normalization.shortcuts, "batch_norm", lambda *args: None)
        patch.setattr(batch_normalization.shortcuts, "backward", lambda *args: None)
        for name in ("batch_norm", "moments", "scale_shift", "standardize_backward"):
            patch.setattr(native, name, lambda *args, **kwargs: None)
        return f()


def run(shape, dtype, affine: bool, tracked: bool, wanted: tuple = (True, True, True)):
    """Result, running statistics, gradients."""
    rng = np.random.default_rng(0)
    x, g = (torch.from_numpy(rng.standard_normal(shape) * 2 + 3).to(dtype) for _ in range(2))
    each = [torch.from_numpy(rng.standard_normal(shape[1]) + 2).to(dtype) for _ in range(4)]
    weight, bias = each[:2] if affine else (None, None)
    running = each[2:] if tracked else [None, None]
    live = [t.requires_grad_() for t, w in zip((x, weight, bias), wanted, strict=True) if t is not None and w]
    out = F.batch_norm(x, *running, weight, bias, True, 0.3, 1e-3)
    return [out.detach(), *[r for r in running if r is not None], *torch.autograd.grad(out, live, g)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("tracked", [True, False])
def test_values(monkeypatch, shape, dtype, affine, tracked):
    found = run(shape, dtype, affine, tracked)
    expected = by_rules(monkeypatch, lambda: run(shape, dtype, affine, tracked))
    tolerance = 2e-5 if dtype is torch.float32 else 1e-10  # the rules add many numbers up one by one
    for a, b in zip(found, expected, strict=True):
        assert a.dtype is b.dtype and a.stride() == b.stride()
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=tolerance * max(1, b.abs().max().item()))


@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True), (False, True, True)]
)
def test_some_gradients(monkeypatch, wanted):
    found = run((8, 6, 5, 5), torch.float64, True, True, wanted)
    expected = by_rules(monkeypatch, lambda: run((8, 6, 5, 5), torch.float64, True, True, wanted))
    assert len(found) == len(expected) == 3 + sum(wanted)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_one_channel_that_is_not_finite(value):
    x = torch.randn(4, 3, 6, 6, dtype=torch.float64)
    clean = F.batch_norm(x, None, None, training=True)
    x[1, 1, 2, 3] = value
    mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    out = F.batch_norm(x, mean, var, training=True)
    assert out[:, 1].isnan().all() and not mean[1].isfinite() and var[1].isnan()
    assert torch.equal(out[:, ::2], clean[:, ::2]) and mean[::2].isfinite().all()


def test_threads_change_nothing():
    before = torch.get_num_threads()
    results = []
    for n in (1, 2, 3):
        torch.set_num_threads(n)
        results.append(run((16, 37, 20, 20), torch.float32, True, True))
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_orders_of_memory_and_dtypes_that_differ():
    x = torch.randn(4, 6, 5, 5)
    expected = F.batch_norm(x, None, None, training=True)
    turned = F.batch_norm(x.to(memory_format=torch.channels_last), None, None, training=True)
    assert turned.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(turned, expected)
    every_other = torch.zeros(4, 6, 5, 10)
    every_other[..., ::2] = x
    torch.testing.assert_close(F.batch_norm(every_other[..., ::2], None, None, training=True), expected)
    mean = torch.zeros(12)
    F.batch_norm(x, mean[::2], torch.ones(6), training=True)
    assert (mean[::2] != 0).all() and (mean[1::2] == 0).all()
    half = F.batch_norm(x.bfloat16(), torch.zeros(6), torch.ones(6), torch.ones(6), torch.zeros(6), training=True)
    assert half.dtype is torch.bfloat16
    torch.testing.assert_close(half.float(), expected, rtol=2e-2, atol=2e-2)


def test_errors():
    x = torch.randn(4, 6, 5, 5)
    with pytest.raises(RuntimeError, match="running_mean should contain 6 elements not 5"):
        F.batch_norm(x, torch.zeros(5), torch.ones(6), training=True)
    with pytest.raises(RuntimeError, match="weight should contain 6 elements not 7"):
        F.batch_norm(x, None, None, torch.ones(7), training=True)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(torch.ones(1, 6, 1, 1), None, None, training=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument .running_mean."):
        F.batch_norm(x, torch.zeros(6, requires_grad=True), torch.ones(6), training=True)


def test_listeners():
    class Heard(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    heard: list[str] = []
    x = torch.randn(2, 3, 4, requires_grad=True)
    with Heard():
        F.batch_norm(x, None, None, training=True).sum().backward()
    assert "aten::native_batch_norm" in heard and "aten::native_batch_norm_backward" in heard


def test_history():
    m = torch.nn.BatchNorm1d(3, dtype=torch.float64)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    out = m(x)
    assert type(out.grad_fn).__name__ == "NativeBatchNormBackward0" and out.grad_fn._saved_training
    assert m.num_batches_tracked == 1 and m.num_batches_tracked.dtype is torch.int64
    f = lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)
    inputs = (x, m.weight, m.bias)
    assert torch.autograd.gradcheck(f, inputs) and torch.autograd.gradgradcheck(f, inputs)
    with torch.no_grad():
        assert m(x).grad_fn is None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_counts(dtype):
    """Integers and a number that all of them hold; others wrap, or decide the dtype."""
    x = torch.tensor([1, 100], dtype=dtype)
    assert (x + 27).tolist() == [28, 127] and (x + 27).dtype is dtype
    assert x.add_(1) is x and x.tolist() == [2, 101] and x._version == 1
    assert (x + 1.5).dtype is torch.float32 and (x + True).dtype is dtype
    assert (x - 2).tolist() == [0, 99] and (x * 0).tolist() == [0, 0] and (x == 2).tolist() == [True, False]
    assert (x + 300).dtype is dtype and (x / 2).dtype is torch.float32
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        x // 0
