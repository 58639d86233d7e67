"""Softmax and the norms: values, statistics, running statistics, third derivatives, large inputs."""

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F


def random(*shape, seed=0, dtype=np.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def softmax(a, axis):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(1,), (8,), (3, 40), (2, 3, 4), (300, 500)])
def test_softmax(shape, dtype):
    t = random(*shape, dtype=dtype)
    tolerance = {np.float64: 1e-13, np.float32: 2e-6, np.float16: 2e-3}[dtype]
    for d in range(t.ndim):
        want = softmax(t.double().numpy(), d)
        np.testing.assert_allclose(F.softmax(t, d).double().numpy(), want, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            t.log_softmax(d).double().numpy(), np.log(want), rtol=tolerance * 4, atol=tolerance * 4
        )


def test_softmax_of_infinities():
    inf = float("inf")
    assert F.softmax(torch.tensor([-inf, 1.0]), 0).tolist() == [0, 1]
    assert F.softmax(torch.tensor([-inf, -inf]), 0).isnan().all()
    assert torch.ops.aten._safe_softmax(torch.tensor([[-inf, -inf], [0.0, 0.0]]), 1).tolist() == [[0, 0], [0.5, 0.5]]


def test_softmax_forms():
    t = random(2, 3)
    assert F.softmax(t, dim=-1, dtype=torch.float32).dtype is torch.float32
    assert torch.equal(F.softmin(t, 1), torch.softmax(-t, 1))
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert F.softmax(t).shape == (2, 3)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        F.softmax(torch.arange(3), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(t, 2)


def test_public_functions_are_open_to_overrides():
    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    t = random(2, 3).as_subclass(Mine)
    assert F.softmax(t, 1) is F.softmax and torch.softmax(t, 1) is torch.softmax
    assert F.layer_norm(t, (3,)) is F.layer_norm and t.sum() is torch.Tensor.sum


@pytest.mark.parametrize("shape", [(4, 8), (2, 3, 5), (300, 600)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layer_norm(shape, dtype):
    t, w, b = (
        random(*shape, dtype=dtype) + 5,
        random(shape[-1], seed=1, dtype=dtype),
        random(shape[-1], seed=2, dtype=dtype),
    )
    x = t.double().numpy()
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w.numpy() + b.numpy()
    np.testing.assert_allclose(
        F.layer_norm(t, (shape[-1],), w, b).numpy(), want, atol=1e-4 if dtype is np.float32 else 1e-12
    )
    out, mean, rstd = torch.native_layer_norm(t, [shape[-1]], None, None, 1e-5)
    assert mean.shape == rstd.shape == (*shape[:-1], 1)


def test_layer_norm_gradients_where_kernels_are_native():
    t, w, b = (random(*s, seed=i).requires_grad_() for i, s in enumerate([(3, 4, 5), (4, 5), (4, 5)]))
    assert torch.autograd.gradcheck(lambda *a: F.layer_norm(a[0], (4, 5), *a[1:]), (t, w, b))
    assert torch.autograd.gradgradcheck(lambda *a: F.layer_norm(a[0], (4, 5), *a[1:]), (t, w, b))


@pytest.mark.parametrize(
    "norm", [lambda x: F.layer_norm(x, (4,)), lambda x: F.batch_norm(x, None, None, training=True)]
)
def test_third_derivatives(norm):
    x = random(3, 4).requires_grad_()

    def second(x):
        (g,) = torch.autograd.grad(norm(x).pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(g.pow(2).sum(), x, create_graph=True)[0]

    assert torch.autograd.gradcheck(second, (x,), atol=1e-4)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5), (64, 33, 90)])
def test_batch_norm_and_its_running_statistics(shape):
    t = random(*shape) + 3
    axes = (0, *range(2, len(shape)))
    mean, var = torch.zeros(shape[1], dtype=torch.float64), torch.ones(shape[1], dtype=torch.float64)
    x, n = t.numpy(), t.numel() // shape[1]
    per = (1, -1, *(1,) * (len(shape) - 2))
    want = (x - x.mean(axes).reshape(per)) / np.sqrt(x.var(axes).reshape(per) + 1e-5)
    np.testing.assert_allclose(F.batch_norm(t, mean, var, training=True).numpy(), want, atol=1e-10)
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.mean(axes))
    np.testing.assert_allclose(var.numpy(), 0.9 + 0.1 * x.var(axes) * n / (n - 1))
    want = (x - mean.numpy().reshape(per)) / np.sqrt(var.numpy().reshape(per) + 1e-5)
    np.testing.assert_allclose(F.batch_norm(t, mean, var).numpy(), want, atol=1e-10)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_gradients(training):
    given = (random(3, 2, 4), random(2, seed=1), random(2, seed=2))
    stats = (torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64))

    def norm(x, w, b):
        return F.batch_norm(x, *(s.clone() for s in stats), w, b, training)

    assert torch.autograd.gradcheck(norm, tuple(t.requires_grad_() for t in given))
    assert torch.autograd.gradgradcheck(norm, given)


@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(affine):
    t = random(2, 6, 5)
    w, b = (random(6, seed=1), random(6, seed=2)) if affine else (None, None)
    x = t.numpy().reshape(2, 3, 10)
    want = ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)).reshape(2, 6, 5)
    want = want * w.numpy()[:, None] + b.numpy()[:, None] if affine else want
    np.testing.assert_allclose(F.group_norm(t, 3, w, b).numpy(), want, atol=1e-12)
    inputs = [v.requires_grad_() for v in (t, w, b) if v is not None]
    assert torch.autograd.gradcheck(lambda x, *p: F.group_norm(x, 3, *p), inputs)


def test_instance_and_rms_and_local_response_norm():
    t = random(2, 3, 5)
    x = t.numpy()
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(F.instance_norm(t).numpy(), want)
    eps = np.finfo(np.float64).eps
    np.testing.assert_allclose(F.rms_norm(t, (5,)).numpy(), x / np.sqrt((x**2).mean(-1, keepdims=True) + eps))
    assert F.local_response_norm(t, 2).shape == t.shape
    np.testing.assert_allclose(F.normalize(t, dim=2).norm(dim=2).numpy(), np.ones((2, 3)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.layer_norm(torch.ones(2, 3), (4,)), RuntimeError, r"expected input with shape \[\*, 4\]"),
        (
            lambda: F.batch_norm(torch.ones(1, 3), None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel",
        ),
        (
            lambda: F.batch_norm(torch.ones(2, 3), torch.ones(2), torch.ones(2)),
            RuntimeError,
            "should contain 3 elements not 2",
        ),
        (lambda: F.group_norm(torch.ones(1, 4, 2), 3), RuntimeError, "divisible by num_groups"),
        (lambda: F.instance_norm(torch.ones(2, 3, 1)), ValueError, "more than 1 spatial element"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_statistics_of_narrow_inputs():
    half = torch.ones(2, 3, dtype=torch.float16)
    assert torch.native_layer_norm(half, (3,), None, None, 1e-5)[1].dtype is torch.float16
    assert torch.native_layer_norm(half, (3,), torch.ones(3), None, 1e-5)[1].dtype is torch.float32


def test_synchronised_batch_norm_is_batch_norm_of_the_whole():
    t = random(6, 3, 2)
    parts = t.split(2)
    stats = [torch.batch_norm_stats(p, 1e-5) for p in parts]
    counts = torch.full((3,), 4)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        t, torch.stack([s[0] for s in stats]), torch.stack([s[1] for s in stats]), None, None, 0.1, 1e-5, counts
    )
    out = torch.cat([torch.batch_norm_elemt(p, None, None, mean, invstd, 1e-5) for p in parts])
    np.testing.assert_allclose(out.numpy(), F.batch_norm(t, None, None, training=True).numpy())


def test_batch_norm_is_channels_last_where_axes_of_one_element_have_no_say():
    images = torch.arange(6.0).reshape(1, 3, 2, 1).permute(0, 2, 1, 3)
    layer = torch.nn.BatchNorm2d(2)
    assert layer(images).stride() == (6, 1, 2, 2) and layer.eval()(images).stride() == (6, 1, 2, 2)
    torch.testing.assert_close(layer(images), layer(images.contiguous()))


def test_instance_norm_keeps_statistics_of_another_dtype():
    layer = torch.nn.InstanceNorm2d(2, track_running_stats=True, dtype=torch.bfloat16)
    out = layer(torch.randn(3, 2, 4, 4))
    assert out.dtype is torch.float32 and layer.running_mean.dtype is torch.bfloat16
    assert layer.running_mean.any() and layer.eval()(torch.randn(3, 2, 4, 4)).dtype is torch.float32


def test_statistics_of_nothing_are_refused():
    with pytest.raises(RuntimeError, match=r"at least one element, but got input_sizes = \[0, 1\]"):
        torch.batch_norm_update_stats(torch.rand(0, 1), torch.rand(1), torch.rand(1), 0.1)


def test_statistics_with_tangents_are_refused():
    """They would be lost: results say nothing of how they move with running statistics."""
    x, mean, variance = torch.randn(3, 2), torch.zeros(2), torch.ones(2)
    for at in ((mean,), (x, mean)):
        with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
            torch.func.jvp(lambda *a: F.batch_norm(x if len(a) == 1 else a[0], a[-1], variance), at, at)
    torch.func.jvp(lambda x: F.batch_norm(x, mean, variance), (x,), (x,))


def test_batch_norm_looks_for_channels_of_elements_alone():
    nothing = torch.zeros(0, requires_grad=True)
    assert F.batch_norm(nothing, torch.zeros(0), torch.zeros(0), training=True).shape == (0,)
    with pytest.raises(IndexError, match="out of range"):
        F.batch_norm(torch.ones(3), None, None, training=True)


def test_statistics_that_are_only_read_are_not_written() -> None:
    x, mean, var = torch.arange(12.0).reshape(2, 3, 2), torch.zeros(3), torch.ones(3)
    torch.nn.functional.instance_norm(x, mean, var, use_input_stats=False)
    assert mean._version == var._version == 0
    torch.nn.functional.instance_norm(x, mean, var, use_input_stats=True)
    assert mean._version == var._version == 1
