"""grad, vjp, jvp, Jacobians and Hessians as function transforms, alone and inside each other."""

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


def f(x):
    return (x.sin() * x.exp()).sum()


def exact_gradient(x):
    return x.sin() * x.exp() + x.cos() * x.exp()


def exact_hessian(x):
    return torch.diag(2 * x.cos() * x.exp())


@pytest.fixture
def x():
    return torch.tensor([0.3, -1.2, 0.7], dtype=torch.float64)


def close(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)
    assert not a.requires_grad


def test_grad_and_value(x):
    g, value = grad_and_value(f)(x)
    close(g, exact_gradient(x))
    close(value, f(x))


def test_grad_with_aux(x):
    g, aux = grad(lambda a: (f(a), a * 2), has_aux=True)(x)
    close(g, exact_gradient(x))
    close(aux, x * 2)


def test_grad_of_chosen_arguments(x):
    ga, gb = grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x + 1)
    close(ga, x + 1)
    close(gb, x)


def test_grad_refuses_results_that_are_no_scalar(x):
    with pytest.raises(RuntimeError, match="Expected f\\(\\*args\\) to return a scalar Tensor, got tensor with 1 dims"):
        grad(lambda a: a * 2)(x)


def test_grad_keeps_what_it_does_not_differentiate_differentiable(x):
    w = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    g = grad(lambda a: (a * a * w).sum())(x)
    assert g.requires_grad
    g.sum().backward()
    np.testing.assert_allclose(w.grad.item(), (2 * x).sum().item())


@pytest.mark.parametrize("outer, inner", list(itertools.product([jacrev, jacfwd], [jacrev, jacfwd])))
def test_second_derivatives_agree_in_every_mode(outer, inner, x):
    close(outer(inner(f))(x), exact_hessian(x))


def test_hessian_under_vmap(x):
    xs = torch.stack([x, x + 1, -x])
    got = vmap(hessian(f))(xs)
    for k in range(3):
        close(got[k], exact_hessian(xs[k]))


def test_vmap_of_grad_gives_one_gradient_per_example_of_a_shared_argument(x):
    rows = torch.stack([x, x * 2])
    got = vmap(grad(lambda w, row: (w * row).sum()), in_dims=(None, 0))(x, rows)
    close(got, rows)


def test_jvp_of_grad_and_grad_of_jvp(x):
    v = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    _, forward_over_reverse = jvp(grad(f), (x,), (v,))
    reverse_over_forward = grad(lambda a: jvp(f, (a,), (v,))[1])(x)
    close(forward_over_reverse, exact_hessian(x) @ v)
    close(reverse_over_forward, exact_hessian(x) @ v)


def test_nested_forward_levels_do_not_mix():
    one = torch.tensor(1.0, dtype=torch.float64)
    _, outer = jvp(lambda a: a * jvp(lambda b: a * b, (one,), (one,))[1], (one * 3,), (one,))
    assert outer.item() == 6.0  # d/da (a * a)


def test_vjp_and_linearize_are_transposes(x):
    out, pull = vjp(lambda a: a.sin(), x)
    same_out, push = linearize(lambda a: a.sin(), x)
    c, t = torch.ones(3, dtype=torch.float64), x * 2
    close(out, same_out)
    left, right = (push(t) * c).sum(), (pull(c)[0] * t).sum()
    np.testing.assert_allclose(left.item(), right.item())
    assert not push(t).requires_grad


def test_vjp_checks_the_structure_of_cotangents(x):
    _, pull = vjp(lambda a: (a, a), x)
    with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents"):
        pull(x)


def test_jacrev_in_chunks(x):
    close(jacrev(lambda a: a.sin(), chunk_size=2)(x), torch.diag(x.cos()))


def _written(a, b):
    c = a.clone()
    c.mul_(b)
    return c


def _element_set(a, b):
    c = torch.zeros(3, dtype=torch.float64)
    c[0] = b[1] * a[2]
    return c


def _cumulated(a, b):
    c = (a * b).reshape(1, 3).expand(2, 3).t().clone()
    c.cumsum_(1)
    return (c**3).sum(1)


@pytest.mark.parametrize("function", [_written, _element_set, _cumulated])
def test_new_tensors_written_with_the_argument(function):
    x, y = torch.arange(1.0, 4.0, dtype=torch.float64), torch.arange(2.0, 5.0, dtype=torch.float64)
    assert torch.allclose(jacfwd(function, argnums=1)(x, y), jacrev(function, argnums=1)(x, y))
    total = lambda a, b: function(a, b).sum()
    assert torch.allclose(hessian(total, argnums=1)(x, y), jacrev(jacrev(total, argnums=1), argnums=1)(x, y))


def test_forward_over_forward_of_a_convolution():
    kernel = torch.arange(6.0, dtype=torch.float64).view(1, 2, 3) / 7
    signal = torch.arange(10.0, dtype=torch.float64).view(1, 2, 5) / 3
    energy = lambda s: (torch.nn.functional.conv1d(s, kernel) ** 2).sum()
    assert torch.allclose(jacfwd(jacfwd(energy))(signal), jacrev(jacrev(energy))(signal))


def test_derivatives_of_single_numbers():
    x = torch.tensor(2.0)
    assert jacrev(torch.square)(x).item() == jacfwd(torch.square)(x).item() == 4
    assert hessian(lambda a: a**3)(x).item() == 12


def test_a_gradient_of_an_infinite_value_is_no_nan():
    assert grad(lambda a: 1 / a)(torch.tensor(0.0)).item() == -float("inf")
    assert grad(lambda a: torch.tensor(float("inf")))(torch.tensor(0.0)).item() == 0


@pytest.mark.parametrize(
    "argnums, words",
    [
        ((0, 0), "argnums elements must be unique"),
        ((0, -2), "argnums elements must be unique"),
        ((), "argnums must be non-empty"),
        ([0], "argnums must be int or Tuple"),
        ((0.0,), "argnum must be int"),
        (2, "Got argnum=2, but only 2 positional inputs"),
    ],
)
@pytest.mark.parametrize("transform", [grad, jacrev, jacfwd, hessian])
def test_argnums_are_checked(transform, argnums, words):
    with pytest.raises(RuntimeError, match=words):
        transform(lambda a, b: a * b, argnums=argnums)(torch.tensor(1.0), torch.tensor(1.0))


def test_what_is_no_tensor_or_not_real_is_refused():
    one = torch.tensor(1.0)
    with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got <class 'float'>"):
        grad(lambda a: a)(1.0)
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype"):
        grad(lambda a: a)(torch.tensor(1))
    with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type <class 'int'>"):
        grad(lambda a: (a, 1), has_aux=True)(one)
    with pytest.raises(RuntimeError, match="non-empty output"):
        vjp(lambda a: None, one)
    with pytest.raises(RuntimeError, match="All outputs of f must be floating-point or complex Tensors"):
        vjp(lambda a: a > 0, one)
    with pytest.raises(RuntimeError, match="jacrev: Expected all inputs to be real"):
        jacrev(lambda a: a)(torch.tensor(1j))
    with pytest.raises(RuntimeError, match="Expected tangents to contain at least one Tensor|to only contain Tensors"):
        jvp(lambda a: a, (one,), (1.0,))


def test_jvp_may_insist_that_outputs_depend_on_inputs(x):
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda a: torch.zeros(2), (x,), (x,), strict=True)


@pytest.mark.parametrize("f", [lambda x: x.isfinite().sum(), lambda x: x.argmax(), lambda x: (x > 0).all()])
def test_the_gradient_of_a_whole_number_is_zero(f):
    x = torch.rand(3)
    assert torch.equal(torch.func.grad(f)(x), torch.zeros(3))
    assert torch.equal(torch.vmap(torch.func.grad(f))(x[None]), torch.zeros(1, 3))


WRITES = {
    "strided": lambda x: x.as_strided((3,), (4,)).mul_(7),
    "filled": lambda x: x.as_strided((3,), (4,)).fill_(7),
    "diagonal": lambda x: x.fill_diagonal_(7),
    "of a view": lambda x: x[1:].as_strided((2,), (4,), 3).mul_(2),
    "of a transpose": lambda x: x.t().as_strided((3,), (4,)).mul_(2),
    "a selection": lambda x: x[0].mul_(3),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_windows_reach_tangents(name):
    def f(x):
        x = x.clone()
        WRITES[name](x)
        return x

    x = torch.arange(9.0).reshape(3, 3)
    forward, reverse = torch.func.jacfwd(f)(x), torch.func.jacrev(f)(x)
    assert torch.equal(forward, reverse)
    tangent = torch.func.jvp(f, (x,), (torch.ones(3, 3),))[1]
    assert torch.equal(tangent, reverse.sum((-1, -2)))


@pytest.mark.parametrize("p", [2, 3, 1.5])
def test_the_tangent_of_a_norm_at_zero_is_zero(p):
    value, tangent = torch.func.jvp(lambda x: torch.linalg.vector_norm(x, p), (torch.zeros(3),), (torch.ones(3),))
    assert value == 0 and tangent == 0


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_nothing_of_a_tangent_taken_from_a_gradient_is_left(dtype) -> None:
    x = torch.linspace(-1, 1, 4, dtype=getattr(torch, dtype)).reshape(2, 2)
    slope = lambda v: torch.func.jvp(torch.linalg.matrix_exp, (v,), (torch.ones_like(v),))[1]
    assert not slope(x).requires_grad
    result = torch.func.grad(lambda v: slope(v).real.sum())(x)
    assert not result.requires_grad
    turned = torch.func.grad(lambda v: torch.func.grad(lambda u: torch.linalg.matrix_exp(u).real.sum())(v).real.sum())(
        x
    )
    assert torch.allclose(result, turned)


def test_a_tangent_is_of_floating_numbers() -> None:
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: torch.int64"):
        torch.func.jvp(lambda v: v * 2, (torch.ones(2, dtype=torch.int64),), (torch.ones(2),))


def test_tangents_of_real_parts_may_be_conjugated() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    _, tangent = torch.func.jvp(lambda v: torch.view_as_real(v * 2), (z,), (z.conj(),))
    assert tangent.tolist() == [[2, -4], [6, 2]]


def test_tangents_made_in_inference_mode_are_taken() -> None:
    x, w = torch.ones(2, requires_grad=True), torch.full((2,), 0.25 + 0j, requires_grad=True)
    with torch.inference_mode():
        _, tangent = torch.func.jvp(
            lambda v: torch.lerp(torch.zeros(2, dtype=torch.complex64), v, w), (x + 0j,), (torch.ones(2) + 0j,)
        )
    assert tangent.tolist() == [0.25, 0.25]


def _places():
    """What a transform may be given: without history, a leaf, a result of what somebody else differentiates."""
    plain = torch.tensor([0.3, 0.7], dtype=torch.float64)
    leaf = plain.clone().requires_grad_()
    return [plain, leaf, leaf * 1]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("write", [lambda v: v.add_(v * v), lambda v: v[:1].mul_(2), lambda v: v.view(-1).sin_()])
def test_arguments_are_not_written_where_that_would_lose_the_gradient(write, place) -> None:
    def function(v):
        write(v)
        return (v**3).sum()

    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        grad(function)(_places()[place])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        vjp(function, _places()[place])


@pytest.mark.parametrize("place", range(3))
def test_derivatives_where_a_write_to_the_argument_was_not_recorded(place) -> None:
    def function(v):
        v.detach().mul_(2)
        return v.sin().sum()

    twice = torch.tensor([0.6, 1.4], dtype=torch.float64)
    torch.testing.assert_close(grad(function)(_places()[place]).detach(), twice.cos())
    second = grad(lambda u: grad(function)(u).sum())(_places()[place])
    torch.testing.assert_close(second.detach(), -twice.sin())


def test_what_is_pushed_through_a_compiled_linear_function_has_no_history():
    x = torch.tensor([3.0, 4.0])
    for f in (torch.sin, torch.compile(torch.sin)):
        out, push = torch.func.linearize(f, x)
        assert not push(x).requires_grad and torch.allclose(push(x), x.cos() * x)
        assert not torch.func.linearize(grad(lambda v, f=f: f(v).sum()), x)[1](x).requires_grad
    outer = torch.ones(2, requires_grad=True)
    assert torch.func.linearize(grad(lambda v: (v.sin() * outer).sum()), x)[1](x).requires_grad
    assert torch.func.linearize(torch.compile(lambda v: v.sin() * outer), x)[1](x).requires_grad


class Tripled(torch.autograd.Function):
    """A function whose tangents are three times what they should be, so that it is seen by whom they are asked for."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 6


def test_what_is_linearized_runs_as_in_forward_mode():
    seen = []

    def f(v):
        y = v / 4
        seen.append(y.requires_grad)
        if y.requires_grad:
            y.register_hook(lambda g: g * 2)
        return y

    x = torch.tensor([1.0, 2.0])
    for g in (f, vmap(f), torch.compile(f, backend="eager")):
        assert linearize(g, x)[1](torch.ones(2)).tolist() == [0.25, 0.25]
    assert seen == [False] * len(seen)
    assert linearize(Tripled.apply, x)[1](torch.ones(2)).tolist() == [6.0, 6.0]


def test_what_is_linearized_may_write_what_it_is_given():
    def f(v):
        v.mul_(v)
        return v.sin()

    x = torch.tensor([0.5, 2.0], dtype=torch.float64)
    out, push = linearize(f, x.clone())
    torch.testing.assert_close(out, (x * x).sin())
    torch.testing.assert_close(push(torch.ones_like(x)), 2 * x * (x * x).cos())


def test_tangents_of_what_is_linearized_pass_no_grad():
    def f(v):
        with torch.no_grad():
            y = v.sin().unsqueeze(0)
            y[0, 0].mul_(v[1])
            y.t_()
        return y * v.detach()[0]

    x, t = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([1.0, -3.0], dtype=torch.float64)
    expected = jvp(f, (x,), (t,))[1]
    assert torch.equal(linearize(f, x)[1](t), expected) and expected.count_nonzero() == 2
    leaf = x.clone().requires_grad_()
    with torch.no_grad():
        assert not linearize(f, leaf)[1](t).requires_grad
    assert not linearize(torch.no_grad()(torch.sin), leaf)[0].requires_grad


def test_linearized_integers_and_truths_have_no_tangent():
    out, push = linearize(lambda x: {"y": x * 2, "sign": x > 0, "at": x.argmax()}, torch.tensor([1.0, -3.0]))
    assert out["sign"].tolist() == [True, False] and out["at"].item() == 0 and out["y"].tolist() == [2, -6]
    tangents = push(torch.tensor([1.0, 5.0]))
    assert tangents["y"].tolist() == [2, 10] and tangents["sign"].tolist() == [False, False]
    assert tangents["at"].item() == 0 and tangents["at"].dtype is torch.int64
    out, push = linearize(lambda x: x > 0, torch.ones(2))
    assert out.tolist() == [True, True] and push(torch.ones(2)).tolist() == [False, False]
    with pytest.raises(RuntimeError, match="return only tensors"):
        linearize(lambda x: 3, torch.ones(2))
