"""gradcheck finds wrong derivatives of every kind, in both modes; anomaly mode and forward mode by hand."""

import warnings

import pytest

import pullback as torch
import pullback.autograd.forward_ad as forward_ad
from pullback.autograd import Function, gradcheck, gradgradcheck
from pullback.autograd.gradcheck import GradcheckError

MODES = pytest.mark.parametrize("fast", [True, False])


def leaf(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


class Scaled(Function):
    """Twice its input, with derivatives that may be wrong."""

    @staticmethod
    def forward(ctx, x, back, push):
        ctx.back, ctx.push = back, push
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return ctx.back(g), None, None

    @staticmethod
    def jvp(ctx, t, *_):
        return ctx.push(t)


def right(g):
    return g * 2


@MODES
def test_right_derivatives_pass(fast):
    every = dict(fast_mode=fast, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradcheck(lambda x, y: (x * y, x.sin()), (leaf(2, 3), leaf(3)), **every)
    assert gradcheck(lambda z: (z * z, z.abs()), leaf(3, dtype=torch.complex128), fast_mode=fast)
    assert gradgradcheck(lambda x: x**3, leaf(3), fast_mode=fast, check_fwd_over_rev=True)
    assert gradcheck(lambda x: (), leaf(2), fast_mode=fast)


@MODES
@pytest.mark.parametrize(
    ("back", "push", "words"),
    [
        (lambda g: g * 3, right, "Jacobian mismatch for output 0 with respect to input 0"),
        (right, lambda t: t * 3, "Jacobian computed with forward mode mismatch for output 0"),
        (lambda g: g * 2 * (1 + 1e-6 * torch.rand((), dtype=torch.float64)), right, "Backward is not reentrant"),
        (lambda g: g * 2 + 1e-9, right, "backward not multiplied by grad_output"),
    ],
)
def test_wrong_derivatives_are_found(fast, back, push, words):
    fn = lambda x: Scaled.apply(x, back, push)  # noqa: E731
    with pytest.raises(GradcheckError, match=words):
        gradcheck(fn, leaf(3), check_forward_ad=True, fast_mode=fast)
    assert not gradcheck(fn, leaf(3), check_forward_ad=True, fast_mode=fast, raise_exception=False)


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, torch.ones(1))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(torch.sin, leaf(1).expand(3))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(torch.sin, torch.ones(1, requires_grad=True), atol=1e-1)
    with pytest.raises(AssertionError, match="Expected at least one of"):
        gradcheck(torch.sin, leaf(1), check_backward_ad=False)
    with pytest.raises(AssertionError, match="same shape when inputs are perturbed"):
        gradcheck(lambda x: torch.cat([x, x]) if (x >= 1).all() else x, torch.ones(1, dtype=torch.float64, requires_grad=True))  # fmt: skip


def test_constant_outputs_must_be_constant():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(2))


# ---- anomaly mode
class MakesNan(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * float("nan")


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_names_the_forward_call():
    x = leaf(2)
    with pytest.raises(RuntimeError, match="Function 'MakesNanBackward' returned nan values in its 0th output"):
        with pytest.warns(UserWarning, match=r"Error detected in MakesNanBackward(.|\n)*MakesNan.apply"):
            with torch.autograd.detect_anomaly():
                MakesNan.apply(x).sum().backward()
    with warnings.catch_warnings(record=True), torch.autograd.detect_anomaly(check_nan=False):
        MakesNan.apply(x).sum().backward()
    out = MakesNan.apply(x).sum()
    with pytest.raises(RuntimeError), pytest.warns(UserWarning, match="No forward pass information available"):
        with torch.autograd.set_detect_anomaly(True):
            out.backward()


# ---- forward mode by hand
def test_dual_tensors():
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        primal, tangent = forward_ad.unpack_dual(dual * dual)
        assert primal.tolist() == [1.0, 4.0] and tangent.tolist() == [2.0, 0.0]
        assert forward_ad.unpack_dual(dual).tangent is t and forward_ad.unpack_dual(x).tangent is None
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            forward_ad.make_dual(dual, t)
        with pytest.raises(RuntimeError, match="different size than that of the original"):
            forward_ad.make_dual(x, torch.ones(3))
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            forward_ad.make_dual(torch.ones(2, dtype=torch.int64), t)
    assert forward_ad.unpack_dual(dual).tangent is None
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, t)
    with pytest.raises(RuntimeError, match="not the last one that was created"):
        forward_ad.exit_dual_level()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_names_writes_in_place_too():
    x = torch.tensor([-1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
        with pytest.warns(UserWarning, match=r"Error detected in SqrtBackward0. Traceback(.|\n)*sqrt_"):
            with torch.autograd.detect_anomaly():
                x.clone().sqrt_().sum().backward()


DENSE = torch.tensor([[1.0, 0, 2, 0], [0, 3, 0, 0]], dtype=torch.float64)
SPARSE = [
    DENSE.to_sparse(layout=layout, blocksize=(2, 1) if "bs" in str(layout) else None)
    for layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
] + [
    DENSE.expand(3, 2, 4).to_sparse_csr(),
    DENSE[:, :, None].expand(2, 4, 2).to_sparse_csc(dense_dim=1),
    DENSE[:, :, None].expand(2, 4, 2).to_sparse(dense_dim=1),
]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("given", SPARSE, ids=lambda x: f"{x.layout}{list(x.shape)}")
def test_entries_of_sparse_inputs_with_batches_blocks_and_dense_dimensions(given, fast):
    x = given.detach().clone().requires_grad_()
    weights = torch.arange(1.0, 1 + x.numel(), dtype=torch.float64).reshape(x.shape)
    assert torch.autograd.gradcheck(lambda x: x.to_dense(masked_grad=True) * weights, x, masked=True, fast_mode=fast)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("function", [torch.Tensor.to_dense, torch.Tensor.values], ids=lambda f: f.__name__)
@pytest.mark.parametrize("given", SPARSE[:4], ids=lambda x: str(x.layout))
def test_sparse_inputs_by_dense_leaves(given, function, masked):
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    assert check(function, given.detach().clone().requires_grad_(), masked=masked)
