"""Custom functions of lists of tensors."""

import pytest

import pullback as torch
from pullback.library.tensor_lists import supports_tensorlist


@supports_tensorlist
class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, scale):
        ctx.scale = scale
        return [x * scale for x in xs], sum(xs)

    @staticmethod
    def backward(ctx, grads, total):
        assert ctx.needs_input_grad == ([True, True], False)
        return [g * ctx.scale + total for g in grads], None


def test_lists_of_arguments_and_results():
    xs = [torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)]
    parts, total = Weighted.apply(xs, 3)
    assert [p.item() for p in parts] == [3, 6] and total.item() == 3
    (parts[0] + 2 * total).backward()
    assert [x.grad.item() for x in xs] == [5, 2]


def test_called_by_hand():
    with pytest.raises(NotImplementedError, match="Function.forward directly"):
        Weighted.forward(None, [torch.ones(1)], 1)
    with pytest.raises(NotImplementedError, match="Function.backward directly"):
        Weighted.backward(None, torch.ones(1))


def test_a_backward_of_another_shape():
    @supports_tensorlist
    class Short(torch.autograd.Function):
        @staticmethod
        def forward(ctx, xs):
            return sum(xs)

        @staticmethod
        def backward(ctx, grad):
            return [grad]

    out = Short.apply([torch.ones(1, requires_grad=True), torch.ones(1)])
    with pytest.raises(RuntimeError, match="same structure as the inputs"):
        out.backward()
