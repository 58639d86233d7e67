"""Complex numbers: conjugate views, angles, numbers made of parts."""

import math

import pytest

import pullback as torch
from pullback.ops.elementwise.complex_numbers import set_conj, set_neg

Z = [1 + 2j, -3j, 0j]


def test_conj_is_a_view_with_a_bit():
    z = torch.tensor(Z)
    c = z.conj()
    assert c.is_conj() and not z.is_conj() and not c.conj().is_conj()
    assert c.data_ptr() == z.data_ptr() and c.tolist() == [v.conjugate() for v in Z]
    assert (c * z).tolist() == [5 + 0j, 9 + 0j, 0j]
    z[0] = 7 + 1j
    assert c[0].item() == 7 - 1j
    c[0] = 2 + 3j
    assert z[0].item() == 2 - 3j
    real = torch.ones(2)
    assert real.conj() is real


def test_bits_are_carried_out_on_demand():
    c = torch.tensor(Z).conj()
    assert not c.resolve_conj().is_conj() and c.resolve_conj().tolist() == c.tolist()
    assert c.imag.is_neg() and c.imag.tolist() == [-2, 3, 0] and not c.imag.resolve_neg().is_neg()
    assert torch.conj_physical(c).tolist() == Z and not torch.conj_physical(torch.tensor(Z)).is_conj()
    w = torch.tensor(Z)
    assert w.conj_physical_() is w and w.tolist() == [v.conjugate() for v in Z]


def test_gradients_through_conj():
    z = torch.tensor(Z, requires_grad=True)
    (g,) = torch.autograd.grad((z * z.conj()).real.sum(), z)
    assert g.tolist() == [2 * v for v in Z]
    assert z.conj().grad_fn.name() == "ConjBackward0"


def test_angles():
    assert torch.angle(torch.tensor([1j, -1 + 0j])).tolist() == pytest.approx([math.pi / 2, math.pi])
    assert torch.angle(torch.tensor([1.0, -1.0])).tolist() == pytest.approx([0, math.pi])
    assert torch.angle(torch.tensor([-1])).dtype is torch.float32
    z = torch.tensor([0j, 1 + 0j], requires_grad=True)
    (g,) = torch.autograd.grad(z.angle().sum(), z)
    assert g.tolist() == [0j, 1j]


def test_parts():
    z = torch.complex(torch.tensor([1.0, math.inf]), torch.tensor([2.0, 0.0]))
    assert z.dtype is torch.complex64 and z.tolist() == [1 + 2j, complex(math.inf, 0)]
    assert torch.polar(torch.tensor([2.0]), torch.tensor([math.pi / 2])).imag.item() == pytest.approx(2)
    r, a = (torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in (2.0, 0.5))
    gr, ga = torch.autograd.grad(torch.polar(r, a).real.sum(), [r, a])
    assert gr.item() == pytest.approx(math.cos(0.5)) and ga.item() == pytest.approx(-2 * math.sin(0.5))
    with pytest.raises(RuntimeError, match="Half, Float or Double tensors but got Long and Long"):
        torch.complex(torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="scalar type Float but got scalar type Double for second argument"):
        torch.complex(torch.ones(1), torch.ones(1).double())


def test_conj_physical_in_place_is_a_write_of_real_numbers_too():
    x = torch.ones(2)
    x.conj_physical_()
    assert x._version == 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(2, requires_grad=True).conj_physical_()


def test_the_angle_of_a_real_number_has_no_slope_whatever_the_gradient():
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(x.angle(), x, torch.tensor([float("nan"), float("inf")]))
    assert slope.tolist() == [0.0, 0.0]


def test_the_bits_of_a_tensor_can_be_set():
    x = torch.tensor([1 + 2j, 3 - 1j])
    set_conj(x, True)
    assert x.is_conj() and x.resolve_conj().tolist() == [1 - 2j, 3 + 1j]
    set_conj(x, False)
    set_neg(x, True)
    assert x.is_neg() and (x + 0).tolist() == [-1 - 2j, -3 + 1j]
    with pytest.raises(RuntimeError, match="only complex tensors"):
        set_conj(torch.ones(1), True)


def test_polar_of_negative_sizes_has_the_derivative_of_its_formula():
    size = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    angle = torch.tensor([0.3, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.polar, (size, angle), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(torch.polar, (size, angle))
    _, t = torch.func.jvp(lambda s: torch.polar(s, angle.detach()), (size.detach(),), (torch.ones(3).double(),))
    assert torch.allclose(t, torch.polar(torch.ones(3).double(), angle.detach()))


def test_powers_of_zero_are_exponentials_of_its_logarithm():
    zeros = torch.zeros(2, dtype=torch.complex128)
    for n in (-1, -2, -0.5, -3, -1 + 1j):
        for found in (zeros**n, torch.pow(zeros, torch.tensor(n, dtype=torch.complex128)), torch.float_power(zeros, n)):
            assert found.real.tolist() == [math.inf] * 2 and found.imag.isnan().all()
    assert (zeros**2).tolist() == [0j, 0j] and (torch.pow(zeros, zeros)).real.isnan().all()


def test_a_negated_mask_has_no_numbers():
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        torch._neg_view(torch.tensor([True])).clone()


@pytest.mark.parametrize("part", [0, 1])
def test_tangents_of_one_part_are_of_the_shape_of_the_number(part) -> None:
    x, other = torch.ones(3, 1), torch.ones(2, 3, 4)
    number = lambda v: torch.complex(v, other) if part == 0 else torch.complex(other, v)
    tangent = torch.func.jvp(number, (x,), (torch.full((3, 1), float("inf")),))[1]
    parts = torch.view_as_real(tangent)
    assert tangent.shape == (2, 3, 4) and parts[..., part].isinf().all() and (parts[..., 1 - part] == 0).all()


@pytest.mark.parametrize("write", ["lt_", "eq_", "logical_or_"])
def test_truths_are_written_to_negative_views(write) -> None:
    base = torch.tensor([1 + 2j, 0.5j, 3 - 1j], dtype=torch.complex128).conj()
    expected = getattr(base.imag.clone(), write)(torch.tensor([-2.0, 0.5, 0.0]))
    view = base.imag
    assert view.is_neg()
    getattr(view, write)(torch.tensor([-2.0, 0.5, 0.0]))
    assert torch.equal(view.resolve_neg(), expected) and torch.equal(base.resolve_conj().imag, expected)
