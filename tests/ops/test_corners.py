"""Derivatives, batches and compiled loops where the table of operators cannot go: at ties, zeros and infinities, where
difference quotients mean nothing, with some results unused, and with some arguments batched."""

from __future__ import annotations

import math

import pytest

import pullback as torch
import pullback.nn.functional as F

INF = math.inf


def _double(*values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def _slopes(f, *tensors) -> list:
    return [g.tolist() for g in torch.autograd.grad(f(*tensors).sum(), tensors)]


# ---- gradients
def test_powers_of_zero_are_flat_where_the_exponent_is_not_negative():
    assert _slopes(lambda y: torch.pow(0, y), _double(0.0, 1.5, 2.0)) == [[0, 0, 0]]
    assert _slopes(lambda y: torch.pow(0, y), _double(-1.0, 3.0)) == [[-INF, 0]]
    assert _slopes(torch.pow, _double(0.0, 0.0), _double(0.5, 2.0))[1] == [0, 0]
    assert _slopes(torch.pow, _double(0.0, 2.0), _double(-1.0, 1.0))[1] == [-INF, 2 * math.log(2)]
    turned = torch.tensor([1 + 1j, 2 - 1j], dtype=torch.complex128, requires_grad=True)
    for base in (0, torch.zeros(2, dtype=torch.complex128)):
        (g,) = torch.autograd.grad(torch.pow(base, turned).abs().sum(), turned)
        assert g.tolist() == [0, 0]
    under = torch.tensor([-1 + 1j, 1 - 1j], dtype=torch.complex128, requires_grad=True)
    (g,) = torch.autograd.grad(torch.pow(torch.zeros(2, dtype=torch.complex128), under).real.sum(), under)
    assert not torch.isfinite(torch.view_as_real(g)[0]).all() and g[1].item() == 0


def test_no_gradient_passes_what_a_number_took_the_place_of():
    assert _slopes(torch.nan_to_num, _double(1.0, INF, math.nan, -INF)) == [[1, 0, 0, 0]]
    assert _slopes(lambda x: torch.copysign(x, -1.0), _double(2.0, 0.0, -3.0)) == [[-1, 0, 1]]
    assert _slopes(lambda x: torch.logcumsumexp(x, 0), _double(-INF)[0].detach().requires_grad_()) == [0]


def test_equals_share_the_gradient_of_an_extreme():
    x = torch.tensor([[2.0, 2.0, 1.0], [0.0, 3.0, 3.0]], dtype=torch.float64, requires_grad=True)
    assert _slopes(lambda t: t.amax(1), x) == [[[0.5, 0.5, 0], [0, 0.5, 0.5]]]
    assert _slopes(lambda t: (-t).amin(1), x) == [[[-0.5, -0.5, 0], [0, -0.5, -0.5]]]
    assert _slopes(torch.max, x) == [[[0, 0, 0], [0, 0.5, 0.5]]]
    assert _slopes(lambda t: torch.min(-t), x) == [[[0, 0, 0], [0, -0.5, -0.5]]]
    narrow = x.detach().half().requires_grad_()
    assert _slopes(lambda t: t.amax(1), narrow) == [[[0.5, 0.5, 0], [0, 0.5, 0.5]]]


def test_pieces_that_nobody_used_have_no_gradient():
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    assert _slopes(lambda t: t.unbind(1)[1] * 2, x) == [[[0, 2, 0], [0, 2, 0]]]
    assert _slopes(lambda t: t.unbind(0)[1] * 2, x) == [[[0, 0, 0], [2, 2, 2]]]


def test_eigenvalues_alone():
    a = torch.tensor([[2.0, 1.0], [1.0, 5.0]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, 3.0], dtype=torch.float64)
    values, vectors = torch.linalg.eigh(a)
    (g,) = torch.autograd.grad((values * weight).sum(), a)
    assert torch.allclose(g, (vectors * weight) @ vectors.mT)


def test_eigenvalues_alone_of_a_matrix_that_is_not_symmetric():
    a = torch.tensor([[2.0, 1.0], [0.5, 5.0]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, 3.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda t: (torch.linalg.eig(t)[0].real.sort()[0] * weight).sum(), a)


def test_the_first_factor_alone_of_a_wide_matrix():
    a = torch.tensor([[1.0, 2.0, 3.0], [4.0, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.linalg.qr(t)[0], a)


# ---- batches
def test_a_triangle_for_all_examples_and_one_for_each():
    a = torch.tensor([[2.0, 0.0], [1.0, 3.0]], dtype=torch.float64)
    many = torch.stack([a, a + torch.eye(2, dtype=torch.float64), 2 * a])
    b = torch.arange(12.0, dtype=torch.float64).reshape(3, 2, 2)
    solve = lambda x, y: torch.linalg.solve_triangular(x, y, upper=False)
    assert torch.equal(torch.func.vmap(solve, (None, 0))(a, b), torch.stack([solve(a, y) for y in b]))
    assert torch.equal(torch.func.vmap(solve, (0, None))(many, b[0]), torch.stack([solve(x, b[0]) for x in many]))


def test_statistics_that_examples_share_move_once():
    x, weights = torch.randn(4, 3), torch.randn(2, 3)
    mean, var = torch.zeros(3), torch.ones(3)
    norm = lambda w, m, v: torch.native_batch_norm(x, w, None, m, v, True, 0.1, 1e-5)[0]
    found = torch.func.vmap(lambda w: norm(w, mean, var))(weights)
    for weight, out in zip(weights, found, strict=True):
        expected, once, spread = norm(weight, m := torch.zeros(3), v := torch.ones(3)), m, v
        torch.testing.assert_close(out, expected)
    torch.testing.assert_close(mean, once)
    torch.testing.assert_close(var, spread)
    with pytest.raises(RuntimeError, match="vmap"):
        torch.func.vmap(lambda t: torch.native_batch_norm(t, None, None, mean, var, True, 0.1, 1e-5)[0])(
            torch.randn(2, 4, 3)
        )


def test_each_matrix_has_its_own_tolerance():
    a = torch.diag(torch.tensor([1.0, 0.1], dtype=torch.float64)).expand(3, 2, 2)
    limits = torch.tensor([0.01, 0.5, 2.0], dtype=torch.float64)
    inverse = lambda x, t: torch.linalg.pinv(x, atol=t)
    expected = torch.stack([inverse(x, t) for x, t in zip(a, limits, strict=True)])
    assert torch.allclose(torch.func.vmap(inverse)(a, limits), expected)
    assert expected.diagonal(0, 1, 2).count_nonzero(1).tolist() == [2, 1, 0]


# ---- compiled loops
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_among_numbers_that_are_none(name):
    x = torch.arange(3000.0, dtype=torch.float64).reshape(2, 1500).sin()
    x[0, 7] = x[0, 90] = math.nan
    f = getattr(torch, name)
    for call in (f, lambda t: f(t, 1)[0], lambda t: f(t, 1)[1]):
        torch.testing.assert_close(torch.compile(call)(x), call(x), equal_nan=True)


def test_the_mode_of_many():
    x = torch.arange(9000).reshape(3, 3000) * 7919 % 101
    x[:, ::17] = 5
    for compiled, expected in zip(torch.compile(lambda t: t.mode(1))(x), x.mode(1), strict=True):
        assert torch.equal(compiled, expected)


def test_rows_of_nothing_are_zero():
    x = torch.tensor([[0.5, -INF, 1.0], [-INF, -INF, -INF]], dtype=torch.float64)
    out = torch.compile(lambda t: torch.ops.aten._safe_softmax(t, 1))(x)
    torch.testing.assert_close(out, torch.ops.aten._safe_softmax(x, 1))
    assert out[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_compiled_reductions_by_index_round_narrow_floats_as_operators_do(reduce):
    x, source = torch.rand(3, 4) + 0.5, torch.rand(9, 4) + 0.5
    at = torch.tensor([0, 1, 1, 2, 1, 1, 0, 1, 1])
    call = lambda a, b: a.index_reduce(0, at, b, reduce)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        given = (x.to(dtype), source.to(dtype))
        found, expected = torch.compile(call)(*given), call(*given)
        assert torch.equal(found, expected) if dtype.itemsize == 2 else torch.allclose(found, expected)


def test_compiled_choices_among_equals_are_those_of_operators():
    for shape in ((40,), (3, 40), (2, 300), (1, 20_000)):
        x = torch.arange(math.prod(shape)).reshape(shape) * 7919 % 5
        for k in (1, 2, 5, 16):
            call = lambda t, k=k: (*t.topk(k, -1), *t.kthvalue(k, -1))
            for found, expected in zip(torch.compile(call)(x), call(x), strict=True):
                assert torch.equal(found, expected)


def test_compiled_pools_with_a_border_and_gaps():
    x = torch.randn(2, 3, 9, 8)
    for padding, dilation in ((1, 2), (1, 1), (0, 2), ((1, 0), (1, 2))):
        call = lambda t, p=padding, d=dilation: F.max_pool2d(t, 3, 1, p, d, return_indices=True)
        for found, expected in zip(torch.compile(call)(x), call(x), strict=True):
            assert torch.equal(found, expected)


def test_compiled_transposed_convolutions_add_their_bias_once():
    def run(x, weight, bias, n, groups, stride, dilation):
        return getattr(F, f"conv_transpose{n}d")(x, weight, bias, stride, 0, 0, groups, dilation)

    for n in (1, 2, 3):
        for groups, stride, dilation in ((1, 1, 1), (2, 2, 1), (1, 2, 2)):
            given = (torch.randn(2, 4, *[5] * n), torch.randn(4, 3, *[2] * n), torch.arange(1.0, 3 * groups + 1))
            rest = (n, groups, stride, dilation)
            found = torch.compile(lambda *t, rest=rest: run(*t, *rest))(*given)
            torch.testing.assert_close(found, run(*given, *rest), rtol=1e-5, atol=1e-5)


def test_compiled_convolutions_add_their_bias_without_the_library():
    from pullback.capture.front.config import native
    from pullback.ops.window.conv_lowering import Convolution

    x, bias = torch.randn(2, 4, 5, 5), torch.arange(1.0, 4.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Convolution, "by_library", lambda *_: None)
        patch.setattr(native, "raise_rule_errors", True)
        for name, shape in (("conv2d", (3, 4, 2, 2)), ("conv_transpose2d", (4, 3, 2, 2))):
            weight = torch.randn(shape)
            found = torch.compile(lambda x, w, b, n=name: getattr(F, n)(x, w, b))(x, weight, bias)
            torch.testing.assert_close(found, getattr(F, name)(x, weight, bias), rtol=1e-5, atol=1e-5)


def test_compiled_products_keep_their_factors():
    for dtype, room in ((torch.float32, 1e-5), (torch.bfloat16, 0.05)):
        bias, x, y = (torch.randn(shape, dtype=dtype) for shape in ((16,), (12, 8), (8, 16)))
        for alpha, beta in ((1, 1), (2, 2), (3, 1), (1, 3), (0.5, 0)):
            run = lambda *t, a=alpha, b=beta: torch.addmm(*t, alpha=a, beta=b)
            expected = beta * bias.float() + alpha * (x.float() @ y.float())
            torch.testing.assert_close(torch.compile(run)(bias, x, y).float(), expected, rtol=room, atol=room)


def test_compiled_norms_overflow_no_sooner_than_their_result():
    for size in (1e19, 1e30, 1e-30):
        x = torch.tensor([3 * size, 4 * size])
        found = torch.compile(torch.linalg.vector_norm)(x)
        torch.testing.assert_close(found, torch.tensor(5 * size), rtol=1e-6, atol=0.0)


def test_compiled_convolutions_lie_as_those_of_operators_do():
    last = torch.channels_last
    x, weight = torch.randn(2, 4, 6, 6).to(memory_format=last), torch.randn(3, 4, 3, 3)
    for w in (weight, weight.to(memory_format=last)):
        for name, kernel in (("conv2d", w), ("conv_transpose2d", w.transpose(0, 1))):
            run = getattr(F, name)
            found, expected = torch.compile(lambda x, w, f=run: f(x, w) * 1)(x, kernel), run(x, kernel) * 1
            assert found.stride() == expected.stride()
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
