"""complex32: stored as pairs of halves, computed in complex64, rounded once."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import pullback as torch
from pullback.core import dtype as dtypes

pytestmark = pytest.mark.skipif(dtypes.complex32.numpy is None, reason="ml_dtypes before 0.6 has no complex32")

VALUES = [1 + 2j, 3 - 1j, -2.5 + 0.5j, 0.125j]


def halves() -> torch.Tensor:
    return torch.tensor(VALUES, dtype=torch.complex32)


def test_numbers_come_back_as_they_went_in():
    x = halves()
    assert x.tolist() == VALUES and x[0].item() == 1 + 2j and complex(x[1]) == 3 - 1j
    assert (x.element_size(), x.nbytes, x.type()) == (4, 16, "torch.ComplexHalfTensor")
    assert repr(x[:2]) == "tensor([1.+2.j, 3.-1.j], dtype=torch.complex32)"
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.to_sparse().to_dense()):
        assert other.dtype is torch.complex32 and other.tolist() == VALUES
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    assert torch.load(buffer).tolist() == VALUES
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        x.numpy()


def test_views_share_memory():
    x = halves()
    assert x.real.dtype is torch.float16 and x.imag.tolist() == [2, -1, 0.5, 0.125]
    x.real.fill_(9)
    assert x.tolist() == [9 + 2j, 9 - 1j, 9 + 0.5j, 9 + 0.125j]
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).half()
    together = torch.view_as_complex(pairs)
    together.mul_(1j)
    assert pairs.tolist() == [[-2, 1], [-4, 3]] and torch.equal(torch.view_as_real(together), pairs)
    assert x.conj().imag.tolist() == [-2, 1, -0.5, -0.125]
    assert x.view(torch.float16).shape == (8,)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_casts():
    x = halves()
    assert x.float().tolist() == [1, 3, -2.5, 0]
    assert x.bool().tolist() == [True] * 4 and torch.arange(2).chalf().tolist() == [0, 1]
    assert torch.tensor([1 + 1e-4j]).chalf().imag.item() == torch.tensor(1e-4).half().item()
    assert torch.complex(torch.ones(1).half(), torch.ones(1).half()).dtype is torch.complex32
    assert x.to("meta").mul(2).dtype is torch.complex32


@pytest.mark.parametrize(
    "other, dtype",
    [
        (2, torch.complex32), (2.5, torch.complex32), (1j, torch.complex32), (torch.ones(4).half(), torch.complex32),
        (torch.tensor(2.0), torch.complex32), (torch.arange(4), torch.complex32), (torch.ones(4).bfloat16(), torch.complex64),
        (torch.ones(4), torch.complex64), (torch.ones(4).double(), torch.complex128), (torch.tensor(VALUES), torch.complex64),
    ],
)  # fmt: skip
def test_results_are_those_of_complex64_rounded_once(other, dtype):
    x = halves()
    wide = x.cfloat()
    for function in (torch.add, torch.mul, torch.div, torch.sub):
        result = function(x, other)
        assert result.dtype is dtype
        assert torch.equal(result, function(wide, other).to(dtype))


@pytest.mark.parametrize(
    "function",
    [
        torch.exp, torch.abs, torch.angle, torch.sum, torch.mean, torch.prod, torch.sgn, torch.reciprocal, torch.isfinite,
        lambda x: x.cumsum(0), lambda x: x.reshape(2, 2) @ x.reshape(2, 2), lambda x: torch.cat([x, x]).flip(0),
        lambda x: x[[0, 2]], lambda x: x.reshape(2, 2).t().contiguous(), lambda x: x == x.clone(), lambda x: x.nonzero(),
        lambda x: x.sum(dtype=torch.complex64), lambda x: torch.zeros_like(x).index_put_((torch.tensor([1]),), x[:1]),
    ],
)  # fmt: skip
def test_operators_agree_with_complex64(function):
    result, wide = function(halves()), function(halves().cfloat())
    kept = {torch.complex64: torch.complex32, torch.float32: torch.float16}
    if result.dtype is not torch.complex64:  # asked for
        assert result.dtype is kept.get(wide.dtype, wide.dtype)
    assert torch.equal(result, wide.to(result.dtype))


def test_writes_and_factories():
    x = halves()
    x.add_(1)
    x[0] = 7
    x[1:3].fill_(1)
    assert x.tolist() == [7, 1, 1, 1 + 0.125j]
    assert torch.full((1,), 1 + 1j, dtype=torch.chalf).tolist() == [1 + 1j]
    torch.manual_seed(0)
    drawn = torch.randn(20, dtype=torch.chalf)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.randn(20, dtype=torch.cfloat).chalf())


def test_gradients_and_compiled_code():
    def function(x):
        return torch.view_as_real(x * x.conj() + 2j * x)

    x, y = halves().requires_grad_(), halves().requires_grad_()
    function(x).sum().backward()
    compiled = torch.compile(function)(y)
    compiled.sum().backward()
    assert x.grad.dtype is torch.complex32 and torch.equal(x.grad, y.grad)
    assert torch.equal(function(x), compiled)
    wide = halves().cfloat().requires_grad_()
    function(wide).sum().backward()
    assert torch.allclose(x.grad.cfloat(), wide.grad, rtol=2e-3)
    assert torch.equal(torch.vmap(lambda v: v * 2)(halves()), halves() * 2)


def test_finite_resolution_is_a_power_of_ten():
    found = {d.name: torch.finfo(d).resolution for d in (torch.half, torch.bfloat16, torch.float, torch.float8_e5m2)}
    assert found == {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float8_e5m2": 1.0}


def test_coordinates_and_factorisations_take_complex_halves():
    s = torch.sparse_coo_tensor([[0, 0, 2]], halves()[:3], (3,))
    assert s.dtype is torch.complex32 and s.to_dense().tolist() == [4 + 1j, 0, -2.5 + 0.5j]
    m = torch.tensor([[1 + 2j, 3 - 1j], [0.5, 2j]], dtype=torch.complex32)
    det = torch.linalg.det(m)
    assert det.dtype is torch.complex32 and det.item() == -5.5 + 2.5j
