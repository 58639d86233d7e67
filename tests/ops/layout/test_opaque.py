"""The layout `_mkldnn`: what goes in comes out, what is not in its table raises."""

import pytest

import pullback as torch
from pullback.nn import functional as F


def test_there_and_back():
    x = torch.rand(2, 3, requires_grad=True)
    m = x.to_mkldnn()
    assert m.is_mkldnn and m.layout is torch._mkldnn and m.shape == (2, 3) and not x.is_mkldnn
    assert m.grad_fn.name() == "ToMkldnnBackward0" and torch.equal(m.to_dense(), x)
    (m.to_dense() * torch.arange(6.0).view(2, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 1, 2], [3, 4, 5]] and x.grad.layout is torch.strided
    assert "layout=torch._mkldnn" in repr(m)


def test_a_leaf_keeps_a_gradient_of_its_layout():
    leaf = torch.rand(3).to_mkldnn().requires_grad_()
    for _ in range(2):
        (leaf.to_dense() * 2).sum().backward()
    assert leaf.grad.is_mkldnn and leaf.grad.to_dense().tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x,
        lambda x: x * x,
        lambda x: x * 2,
        lambda x: x.relu(),
        lambda x: x.sigmoid(),
        lambda x: x.tanh(),
        lambda x: F.gelu(x),
        lambda x: x.softmax(-1),
        lambda x: x.reshape(3, 2),
        lambda x: x.transpose(0, 1),
        lambda x: x.clone(),
    ],
)
def test_operators_and_their_gradients(call):
    dense = torch.randn(2, 3, requires_grad=True)
    other = dense.detach().clone().requires_grad_()
    expected, result = call(dense), call(other.to_mkldnn())
    assert result.is_mkldnn and torch.allclose(result.to_dense(), expected)
    g = torch.randn(expected.shape)
    expected.backward(g)
    result.to_dense().backward(g)
    assert torch.allclose(other.grad, dense.grad)


def test_layers_run():
    x, image = torch.rand(2, 3), torch.rand(1, 2, 4, 4)
    weight, kernel = torch.rand(4, 3), torch.rand(3, 2, 3, 3)
    assert torch.allclose(F.linear(x.to_mkldnn(), weight).to_dense(), F.linear(x, weight))
    assert torch.allclose(F.conv2d(image.to_mkldnn(), kernel).to_dense(), F.conv2d(image, kernel))
    assert torch.equal(F.max_pool2d(image.to_mkldnn(), 2).to_dense(), F.max_pool2d(image, 2))


def test_writing():
    x = torch.ones(3).to_mkldnn()
    assert x.add_(x) is x and x.mul_(3).to_dense().tolist() == [6, 6, 6]
    assert x.zero_().to_dense().tolist() == [0, 0, 0] and x._version == 3


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda m: m.sin(), RuntimeError, "unsupported tensor layout: Mkldnn"),
        (
            lambda m: m.sum(),
            NotImplementedError,
            "Could not run 'aten::sum' with arguments from the 'MkldnnCPU' backend",
        ),
        (lambda m: m.view(6), RuntimeError, "does not support view. Change to use reshape instead"),
        (lambda m: m + torch.ones(2, 3), RuntimeError, "itensor_from_mkldnn expects MKL-DNN tensor input"),
        (lambda m: m.numpy(), TypeError, "can't convert Mkldnn layout tensor to numpy"),
        (lambda m: m.data_ptr(), RuntimeError, "doesn't have storage"),
        (lambda m: m.to_mkldnn(), NotImplementedError, "aten::to_mkldnn"),
        (lambda m: torch.rand(2, dtype=torch.float64).to_mkldnn(), RuntimeError, "dense_to_mkldnn expects float"),
        (
            lambda m: F.linear(m.detach().requires_grad_(), torch.rand(4, 3)),
            NotImplementedError,
            "derivative for MKL-DNN",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.rand(2, 3).to_mkldnn())
