"""Products of matrices and vectors: values against NumPy, errors in PyTorch's words, layouts of gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.autograd import gradcheck, gradgradcheck

SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((4, 1, 2, 3), (5, 3, 2)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)), ((0, 2, 3), (3, 2)), ((5, 2, 3), (1, 3, 4)),
]  # fmt: skip


def _make(shape, dtype=torch.float64, grad=False):
    t = torch.randn(shape, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    if dtype.category == 1:
        t = (t * 5).round()
    return t.to(dtype).requires_grad_(grad)


@pytest.mark.parametrize("a, b", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128, torch.int64, torch.bfloat16])
def test_matmul_is_numpys_on_every_pair_of_ranks(a, b, dtype):
    x, y = _make(a, dtype), _make(b, dtype)
    got = x @ y
    assert got.dtype is dtype
    wide = torch.float64 if dtype is torch.bfloat16 else dtype
    want = np.matmul(x.to(wide).numpy(), y.to(wide).numpy())
    tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-5
    assert np.allclose(got.to(wide).numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("a, b", SHAPES)
def test_matmul_gives_the_same_recorded_and_not(a, b):
    x, y = _make(a, grad=True), _make(b, grad=True)
    assert torch.allclose(x @ y, x.detach() @ y.detach())
    meta = x.to("meta") @ y.to("meta")
    assert meta.shape == (x @ y).shape


@pytest.mark.parametrize("a, b", [s for s in SHAPES if 0 not in s[0]])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_matmul_gradients(a, b, dtype):
    x, y = _make(a, dtype, True), _make(b, dtype, True)
    assert gradcheck(torch.matmul, (x, y))
    assert gradgradcheck(torch.matmul, (x, y))


@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from([torch.int8, torch.int32, torch.int64])
)
def test_integer_products_wrap_around(n, k, m, dtype):
    limit = 1 << (dtype.itemsize * 8 - 2)
    x, y = torch.randint(-limit, limit, (n, k), dtype=dtype), torch.randint(-limit, limit, (k, m), dtype=dtype)
    assert np.array_equal((x @ y).numpy(), np.matmul(x.numpy(), y.numpy()))


def test_half_precision_is_rounded_once():
    x = torch.full((1, 4096), 0.1, dtype=torch.float16)
    exact = float((x.double() @ x.double().t()).item())
    assert abs(float((x @ x.t()).item()) - exact) < exact * 2**-10


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda o: o(2, 3) @ o(4, 5), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        (lambda o: torch.mm(o(2), o(2, 2)), RuntimeError, "self must be a matrix"),
        (lambda o: torch.mm(o(2, 2), o(2)), RuntimeError, "mat2 must be a matrix"),
        (
            lambda o: torch.mm(o(2, 2), o(2, 2).double()),
            RuntimeError,
            "expected m1 and m2 to have the same dtype, but got: float != double",
        ),
        (
            lambda o: torch.mm(o(2, 2).bool(), o(2, 2).bool()),
            NotImplementedError,
            "\"addmm_impl_cpu_\" not implemented for 'Bool'",
        ),
        (
            lambda o: torch.bmm(o(2, 3, 4), o(2, 5, 5)),
            RuntimeError,
            "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].",
        ),
        (lambda o: o(2, 2).matmul(o(3)), RuntimeError, "size mismatch, got input (2), mat (2x2), vec (3)"),
        (
            lambda o: torch.matmul(o(()), o(3)),
            RuntimeError,
            "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
        ),
        (
            lambda o: torch.matmul(o(2, 3), 2),
            TypeError,
            "matmul(): argument 'other' (position 2) must be Tensor, not int",
        ),
        (
            lambda o: torch.dot(o(2), o(3)),
            RuntimeError,
            "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 "
            "and 3 elements respectively",
        ),
        (
            lambda o: torch.addmm(o(7), o(2, 3), o(3, 5)),
            RuntimeError,
            "The expanded size of the tensor (5) must match the existing size (7) at non-singleton dimension 1.  "
            "Target sizes: [2, 5].  Tensor sizes: [7]",
        ),
        (
            lambda o: torch.addmm(o(2, 5), o(2, 3), o(3, 5), beta=1j),
            RuntimeError,
            "value cannot be converted to type float without overflow",
        ),
        (
            lambda o: torch.tensordot(o(2, 3), o(4, 5), 1),
            RuntimeError,
            "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 4 in dim 0",
        ),
        (lambda o: torch.outer(o(2, 3), o(2)), RuntimeError, "outer: Expected 1-D argument self, but got 2-D"),
        (lambda o: F.linear(o(2, 3), o(4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)"),
        (
            lambda o: F.bilinear(o(2, 3), o(3, 4), o(5, 3, 4)),
            RuntimeError,
            "bilinear(): input batch dimensions do not match at dim 0: got 2 and 3",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error) as raised:
        call(torch.ones)
    assert str(raised.value) == words


def test_beta_zero_does_not_read_the_addend():
    nan = torch.full((2, 2), float("nan"))
    assert torch.equal(torch.addmm(nan, torch.ones(2, 3), torch.ones(3, 2), beta=0), torch.full((2, 2), 3.0))


def test_gradient_of_a_linear_weight_is_contiguous():
    weight = torch.randn(4, 3, requires_grad=True)
    F.linear(torch.randn(5, 3), weight, torch.randn(4, requires_grad=True)).sum().backward()
    assert weight.grad.is_contiguous()


def test_linear_is_recorded_as_transposition_and_addmm():
    x, weight, bias = (torch.randn(s, requires_grad=True) for s in ((2, 3), (4, 3), (4,)))
    node = F.linear(x, weight, bias).grad_fn
    assert node.name() == "AddmmBackward0"
    assert [type(n).__name__ for n, _ in node.next_functions] == ["AccumulateGrad"] * 2 + ["TBackward0"]
    assert (x @ weight.t()).grad_fn.name() == "MmBackward0"
    assert (x[0] @ x[0]).grad_fn.name() == "DotBackward0"


def test_a_weight_changed_in_place_is_noticed():
    weight = torch.randn(4, 3, requires_grad=True)
    out = F.linear(torch.randn(2, 3, requires_grad=True), weight)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_the_result_of_a_product_is_no_view():
    result = torch.randn(2, 3, 4, requires_grad=True) @ torch.randn(4, 5)
    assert not result._is_view()
    result.mul_(2).sum().backward()


@pytest.mark.parametrize(
    "function, shapes",
    [
        (torch.kron, [(2, 3), (3, 1, 2)]),
        (torch.inner, [(2, 3), (4, 3)]),
        (lambda a, b: torch.tensordot(a, b, ([1, 2], [2, 0])), [(2, 3, 4), (4, 2, 3)]),
        (lambda a, b, c: torch.addr(a, b, c, beta=0.5, alpha=2), [(3, 4), (3,), (4,)]),
        (lambda a, b, c: torch.addbmm(a, b, c, beta=0.5, alpha=2), [(3, 2), (2, 3, 4), (2, 4, 2)]),
        (lambda a, b, c: torch.baddbmm(a, b, c, beta=0.5, alpha=2), [(3, 2), (2, 3, 4), (2, 4, 2)]),
        (lambda a, b, c: torch.addmv(a, b, c, beta=0.5, alpha=2), [(3,), (3, 4), (4,)]),
        (torch.vdot, [(4,), (4,)]),
        (F.bilinear, [(2, 3, 4), (2, 3, 5), (6, 4, 5), (6,)]),
    ],
)
def test_gradients_of_the_rest(function, shapes):
    assert gradcheck(function, tuple(_make(s, grad=True) for s in shapes))


def test_kron_and_outer_are_numpys():
    a, b = torch.randn(2, 3), torch.randn(4, 2)
    assert np.allclose(torch.kron(a, b).numpy(), np.kron(a.numpy(), b.numpy()))
    assert np.allclose(torch.outer(a[0], b[:, 0]).numpy(), np.outer(a[0].numpy(), b[:, 0].numpy()))


def test_products_of_bytes_are_summed_in_wide_integers():
    a, b = torch.randint(-128, 127, (5, 300), dtype=torch.int8), torch.randint(-128, 127, (300, 3), dtype=torch.int8)
    result = torch._int_mm(a, b)
    assert result.dtype is torch.int32 and torch.equal(result.long(), a.long() @ b.long())
    with pytest.raises(RuntimeError, match="Expected mat2 dtype to be int8"):
        torch._int_mm(a, b.int())


def test_batches_added_to_a_batch_are_the_sum_whichever_way_they_lie():
    y, a, b = (
        _make((4, 2, 5), torch.float32),
        _make((4, 2, 6), torch.float32)[:, :, :3],
        _make((4, 3, 5), torch.float32),
    )
    whole = y.double() + a.double() @ b.double()
    for addend in (y, y[:1], y[0, 0]):
        expected = addend.double() + a.double() @ b.double()
        assert torch.allclose(torch.baddbmm(addend, a, b).double(), expected, atol=1e-5)
    assert torch.allclose(torch.baddbmm(y.mT.contiguous().mT, a, b).double(), whole, atol=1e-5)
    found = torch.baddbmm(y.requires_grad_(), a, b)
    assert type(found.grad_fn).__name__ == "BaddbmmBackward0" and found.is_contiguous()
    with pytest.raises(RuntimeError, match="Expected size for first two dimensions"):
        torch.baddbmm(y, a, b[:3])


ADDED = {
    "addmm": [(2, 4), (2, 3), (3, 4)],
    "baddbmm": [(2, 2, 4), (2, 2, 3), (2, 3, 4)],
    "addbmm": [(2, 4), (2, 2, 3), (2, 3, 4)],
    "addmv": [(2,), (2, 3), (3,)],
    "addr": [(2, 3), (2,), (3,)],
}
FACTORS = [(1.5, 1), (1, 1.5), (0.5, 0.5), (2.5 + 0j, 1), (3, -2), (0, 2.5), (0.0, 0.5)]
KINDS = [torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.complex64]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ADDED)
def test_examples_of_a_batch_are_added_and_rounded_as_each_alone(name, dtype):
    function, rows = getattr(torch, name), [[_make(s, dtype) for s in ADDED[name]] for _ in range(3)]
    for beta, alpha in FACTORS:
        call = lambda *t, beta=beta, alpha=alpha: function(*t, beta=beta, alpha=alpha)
        if name == "addr" and dtype.category < 2 and (type(beta) is float or type(alpha) is float):
            for form in (call, torch.func.vmap(call)):
                with pytest.raises(RuntimeError, match="must not be a floating point number"):
                    form(*(rows[0] if form is call else [t.unsqueeze(0) for t in rows[0]]))
            continue
        for batched in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):
            given = [torch.stack(t) if i in batched else t[0] for i, t in enumerate(zip(*rows, strict=True))]
            got = torch.func.vmap(call, in_dims=tuple(0 if i in batched else None for i in range(3)))(*given)
            wanted = torch.stack([call(*(r[i] if i in batched else rows[0][i] for i in range(3))) for r in rows])
            assert got.dtype is wanted.dtype is dtype
            exact = dtype not in (torch.float32, torch.complex64)
            assert torch.equal(got, wanted) if exact else torch.allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ADDED)
def test_factors_that_numbers_cannot_be_are_refused_with_and_without_data(name):
    given = [_make(s, torch.float32) for s in ADDED[name]]
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        getattr(torch, name)(*given, alpha=1j)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        getattr(torch, name)(*[t.to("meta") for t in given], beta=1 + 1j)
    for factor in (256, -256, 1e30):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            getattr(torch, name)(*[t.byte() for t in given], alpha=factor if name != "addr" else int(factor))
    compiled = torch.compile(lambda *t: getattr(torch, name)(*t, alpha=2 + 0j))
    assert torch.allclose(compiled(*given), getattr(torch, name)(*given, alpha=2))


def test_truths_are_multiplied_only_where_there_is_nothing_to_multiply() -> None:
    def truths(*shape):
        return torch.ones(shape, dtype=torch.bool)

    empty, flat, batches = truths(2, 0), truths(0, 2), truths(3, 2, 0)
    assert (empty @ flat).tolist() == torch.inner(empty, empty).tolist() == [[False, False]] * 2
    assert (flat @ empty).shape == torch.addmm(truths(0, 0), flat, empty).shape == (0, 0)
    assert torch.addmm(truths(2, 2), empty, flat, beta=0).any().item() is False
    assert (
        torch.bmm(batches, batches.mT).any().item() is False
        and torch.bmm(truths(0, 2, 3), truths(0, 3, 2)).numel() == 0
    )
    assert torch.mv(empty, truths(0)).tolist() == [False, False]
    assert torch.addmv(truths(2), empty, truths(0)).tolist() == [True, True]
    one = truths(1, 0)
    for product in (
        lambda: torch.mm(truths(1, 1), truths(1, 1)),
        lambda: torch.addmm(truths(2, 2), empty, flat),
        lambda: torch.bmm(truths(1, 2, 3), truths(1, 3, 2)),
        lambda: torch.mv(truths(2, 2), truths(2)),
        lambda: torch.dot(truths(0), truths(0)),
        lambda: torch.inner(one, one),
    ):
        with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
            product()
