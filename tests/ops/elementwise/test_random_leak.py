"""The randomised leak: PyTorch's slopes, the noise that keeps them, and gradients through both forms."""

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.func import grad

aten = torch.ops.aten
X = [-2.0, -1.0, 0.0, 1.0, 2.0]
DRAWN = [0.2940, 0.2416, 0.1919, 1.0, 1.0]  # PyTorch's slopes in [0.1, 0.3) after manual_seed(0)


def test_slopes_are_pytorchs():
    x = torch.tensor([[-1.0, 2, -3], [4, -5, -6]], requires_grad=True)
    torch.manual_seed(0)
    y = F.rrelu(x, training=True)
    want = [-0.3271, 2.0, -0.8174, 4.0, -1.1035, -1.9009]
    assert y.reshape(-1).tolist() == pytest.approx(want, abs=1e-4)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.reshape(-1).tolist() == pytest.approx([0.3271, 1, 0.2725, 1, 0.2207, 0.3168], abs=1e-4)
    assert F.rrelu(x)[0, 0].item() == pytest.approx(-(1 / 8 + 1 / 3) / 2)


@pytest.mark.parametrize("inplace", [False, True])
def test_equal_bounds_draw_as_many_numbers_as_others(inplace):
    for lower, upper in ((0.1, 0.3), (0.2, 0.2)):
        torch.manual_seed(0)
        F.rrelu(torch.tensor(X), lower, upper, True, inplace)
        assert torch.rand(1).item() == pytest.approx(0.4901, abs=1e-4)  # PyTorch's
    torch.manual_seed(0)
    assert F.rrelu(torch.tensor(X), 0.1, 0.3, False, inplace).tolist() == pytest.approx([-0.4, -0.2, 0, 1, 2])
    assert torch.rand(1).item() == pytest.approx(0.4963, abs=1e-4)


def test_narrow_slopes_are_rounded_once():
    torch.manual_seed(0)
    found = F.rrelu(torch.tensor(X).bfloat16(), 0.1, 0.3, True)
    assert found.tolist() == [-0.58984375, -0.2412109375, 0.0, 1.0, 2.0]  # PyTorch's


FORMS = {
    "new": lambda x, noise, *rest: (aten.rrelu_with_noise(x, noise, *rest), noise),
    "in place": lambda x, noise, *rest: (aten.rrelu_with_noise_(x * 1, noise, *rest), noise),
    "functional": lambda x, noise, *rest: aten.rrelu_with_noise_functional(x, noise, *rest),
}


@pytest.mark.parametrize("form", FORMS)
def test_noise_is_where_slopes_are_kept_and_never_read(form):
    x, given = torch.tensor(X, requires_grad=True), torch.full((5,), 9.0)
    torch.manual_seed(0)
    result, noise = FORMS[form](x, given, 0.1, 0.3, True)
    assert noise.tolist() == pytest.approx(DRAWN, abs=1e-4)
    assert result.tolist() == pytest.approx([a * b for a, b in zip(X, DRAWN, strict=True)], abs=1e-3)
    assert torch.equal(torch.autograd.grad(result.sum(), x)[0], noise)
    assert given.tolist() == ([9.0] * 5 if form == "functional" else noise.tolist())


@pytest.mark.parametrize("form", FORMS)
def test_without_training_noise_stays_as_it_was(form):
    x, given = torch.tensor(X, requires_grad=True), torch.full((5,), 9.0)
    result, noise = FORMS[form](x, given, 0.1, 0.3, False)
    assert result.tolist() == pytest.approx([-0.4, -0.2, 0, 1, 2]) and noise.tolist() == [9.0] * 5
    assert torch.autograd.grad(result.sum(), x)[0].tolist() == pytest.approx([0.2, 0.2, 0.2, 1, 1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("training", [False, True])
def test_noise_that_does_not_fit_is_refused(form, training):
    x = torch.tensor(X, requires_grad=True)
    for shape in ((4,), (1,), (5, 1)):
        with pytest.raises(RuntimeError, match="noise tensor shape must match self tensor shape"):
            FORMS[form](x, torch.zeros(shape), 0.1, 0.3, training)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'noise'"):
        FORMS[form](x, torch.zeros(5, requires_grad=True), 0.1, 0.3, training)
    if training:
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
            FORMS[form](x, torch.zeros(5, dtype=torch.float64), 0.1, 0.3, True)
        with pytest.raises(RuntimeError, match="Lower bound should be less"):
            FORMS[form](x, torch.zeros(5), 0.3, 0.1, True)


def test_backward_by_noise_or_by_the_mean_slope():
    x, noise = torch.tensor(X), torch.tensor(DRAWN)
    assert torch.equal(aten.rrelu_with_noise_backward(x, x, noise, 0.1, 0.3, True, False), x * noise)
    assert aten.rrelu_with_noise_backward(x, x, noise, 0.1, 0.3, False, False).tolist() == pytest.approx(
        [-0.4, -0.2, 0, 1, 2]
    )


def test_noise_that_is_a_view_is_written_where_it_lies():
    x, room = torch.arange(-6.0, 0).reshape(2, 3), torch.zeros(3, 4)
    result = aten.rrelu_with_noise(x, room[:, ::2].t(), 0.1, 0.3, True)
    assert torch.equal(result, x * room[:, ::2].t()) and not room[:, 1::2].any()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_noise_is_written_too(backend):
    def run(x, noise):
        return aten.rrelu_with_noise(x * 2, noise, 0.1, 0.3, True)

    x, noise = torch.tensor(X, requires_grad=True), torch.zeros(5)
    result = torch.compile(run, backend=backend)(x, noise)
    assert torch.equal(result, x * 2 * noise) and bool(((noise[:3] >= 0.1) & (noise[:3] < 0.3)).all())
    assert torch.equal(torch.autograd.grad(result.sum(), x)[0], 2 * noise)


def test_slopes_of_a_transformed_function_are_those_that_were_applied():
    noise = torch.zeros(5)
    found = grad(lambda x: aten.rrelu_with_noise(x, noise, 0.1, 0.3, True).sum())(torch.tensor(X))
    assert torch.equal(found, noise)
