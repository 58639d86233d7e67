"""Gradients of each sample are those of a batch of one."""

import pytest

import pullback as torch
from pullback import nn
from pullback.nn.utils.per_sample import call_for_per_sample_grads
from pullback.testing import assert_close


def expected(model, x, loss):
    rows = []
    for i in range(x.shape[0]):
        gradients = torch.autograd.grad(loss(model(x[i : i + 1])), list(model.parameters()))
        rows.append(gradients)
    return [torch.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: (nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), torch.randn(5, 4)),
        lambda: (nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten()), torch.randn(3, 1, 5, 5)),
        lambda: (nn.Sequential(nn.Embedding(6, 4), nn.LayerNorm(4)), torch.tensor([[0, 1], [2, 2], [5, 0]])),
    ],
)
def test_as_sample_by_sample(make, reduction):
    torch.manual_seed(0)
    model, x = make()
    loss = lambda y: (y * y).sum()  # noqa: E731
    wanted = expected(model, x, loss)
    y = call_for_per_sample_grads(model, loss_reduction=reduction)(x)
    assert_close(y, model(x))
    (loss(y) / (x.shape[0] if reduction == "mean" else 1)).backward()
    assert_close([p.grad_sample for p in model.parameters()], wanted, atol=1e-5, rtol=1e-4)
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(RuntimeError, match="set the grad_sample of"):
        call_for_per_sample_grads(model)


def test_gradients_reach_the_input_and_frozen_parameters_have_none():
    model, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    model.bias.requires_grad_(False)
    call_for_per_sample_grads(model)(x).sum().backward()
    assert_close(x.grad, model.weight.detach().sum(0).expand(4, 3))
    assert model.weight.grad_sample.shape == (4, 2, 3) and not hasattr(model.bias, "grad_sample")


def test_batches_in_the_second_dimension():
    model, x = nn.Linear(3, 2), torch.randn(5, 4, 3)
    y = call_for_per_sample_grads(model, batch_first=False)(x)
    assert_close(y, model(x))
    y.sum().backward()
    assert_close(model.weight.grad_sample, x.sum(0).unsqueeze(1).expand(4, 2, 3))


def test_what_is_refused():
    layer = nn.Linear(2, 2)
    for call, words in (
        (lambda: call_for_per_sample_grads(len), "must be nn.Module"),
        (lambda: call_for_per_sample_grads(layer, batch_size=0), "must be positive"),
        (lambda: call_for_per_sample_grads(layer, loss_reduction="max"), "sum or mean"),
        (lambda: call_for_per_sample_grads(layer)(3), "Unable to find a tensor"),
        (lambda: call_for_per_sample_grads(nn.Bilinear(2, 2, 2))(torch.ones(3, 2), torch.ones(4, 2)), "batch size 3"),
        (lambda: call_for_per_sample_grads(nn.BatchNorm1d(2))(torch.ones(3, 2)), "."),
    ):
        with pytest.raises((RuntimeError, ValueError), match=words):
            call()


def test_tensors_inside_of_what_is_no_argument_are_refused():
    class Holder:
        def __init__(self, held):
            self.held = held

    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(5, 5)

        def forward(self, holder, other):
            return self.linear(holder.held)

    with pytest.raises(RuntimeError, match="Expected ExpandedWeights to have batch size matching input"):
        call_for_per_sample_grads(Reads())(Holder(torch.randn(4, 5)), torch.randn(5))
