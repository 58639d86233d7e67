"""Custom functions inside vmap whose own methods are run on batched tensors."""

import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.func import vjp, vmap
from pullback.func.custom import reduced_gradient


class Repeated(Function):
    """Four times the same row; the gradient is that of the rows, which whoever asked for it adds up."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.expand(4, 3).clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_broadcast_examples_are_summed_example_by_example(size, dim):
    x, w = torch.randn(size, 3), torch.randn(size, 4, 3)
    given = x.movedim(0, dim).clone().requires_grad_()
    vmap(Repeated.apply, in_dims=dim)(given).mul(w).sum().backward()
    torch.testing.assert_close(given.grad, w.sum(1).movedim(0, dim))
    torch.testing.assert_close(vmap(lambda x, w: vjp(Repeated.apply, x)[1](w)[0])(x, w), w.sum(1))


def test_dimensions_of_one_element_are_summed_too():
    x, w = torch.randn(5, 1, requires_grad=True), torch.randn(5, 4, 3)
    vmap(Repeated.apply)(x).mul(w).sum().backward()
    torch.testing.assert_close(x.grad, w.sum((1, 2)).unsqueeze(1))


class Wrong(Repeated):
    @staticmethod
    def backward(ctx, g):
        return torch.ones(2)


def test_a_gradient_of_no_fitting_shape_is_refused():
    x = torch.randn(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"gave an invalid gradient: of shape \[2\] for each example"):
        vmap(Wrong.apply)(x).sum().backward()


def test_gradients_go_where_the_batch_of_the_argument_is():
    assert reduced_gradient(None, None, 0, 2) is None
    g = torch.randn(3, 2, 4)
    torch.testing.assert_close(reduced_gradient(g, 1, None, 2), g.sum(1))
    torch.testing.assert_close(reduced_gradient(g, 1, 0, 2), g.movedim(1, 0))
    g = torch.randn(3, 4)
    torch.testing.assert_close(reduced_gradient(g, None, 1, 2), g.view(3, 1, 4).expand(3, 2, 4))
    torch.testing.assert_close(reduced_gradient(g, None, 1, 2, (4,)), g.view(3, 4, 1).expand(3, 4, 2).sum(0))
    g = torch.randn(3, 4, 5, 2)
    torch.testing.assert_close(reduced_gradient(g, 3, 0, 2, (5,)), g.movedim(-1, 2).sum(0).sum(0))
