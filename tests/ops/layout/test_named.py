"""Named dimensions: where names go, what refuses them, and that they change no number."""

import pytest

import pullback as torch


def named(*names, requires_grad=False):
    sizes = {"N": 2, "C": 3, "H": 4, "W": 5}
    t = torch.rand([sizes.get(n, 6) for n in names], requires_grad=requires_grad)
    return t.refine_names(*names)


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda x: x.sin() + 1, ("N", "C")),
        (lambda x: x * torch.rand(3), ("N", "C")),
        (lambda x: torch.rand(3).refine_names("C") * x, ("N", "C")),
        (lambda x: x.sum("C"), ("N",)),
        (lambda x: x.mean(("N", "C")), ()),
        (lambda x: x.sum(0), ("C",)),
        (lambda x: x.sum("N", keepdim=True), ("N", "C")),
        (lambda x: x.max("C").values, ("N",)),
        (lambda x: x.cumsum(1), ("N", "C")),
        (lambda x: x.t(), ("C", "N")),
        (lambda x: x.transpose(0, 1), ("C", "N")),
        (lambda x: x.permute(1, 0), ("C", "N")),
        (lambda x: x[0], ("C",)),
        (lambda x: x[:, 1:], ("N", "C")),
        (lambda x: x.unbind(0)[1], ("C",)),
        (lambda x: x.split(1)[0], ("N", "C")),
        (lambda x: x.expand(4, 2, 3), (None, "N", "C")),
        (lambda x: x[:1].squeeze(), ("C",)),
        (lambda x: x.mm(torch.rand(3, 4).refine_names("C", "D")), ("N", "D")),
        (lambda x: torch.cat([x, x]), ("N", "C")),
        (lambda x: torch.zeros_like(x), ("N", "C")),
        (lambda x: x.double().clone().detach(), ("N", "C")),
        (lambda x: x > 0.5, ("N", "C")),
        (lambda x: torch.zeros(2, 3).add_(x), ("N", "C")),
        (lambda x: torch.complex(x, x).conj().real, ("N", "C")),
    ],
)
def test_names_follow(call, names):
    x = named("N", "C")
    assert call(x).names == names
    assert x.names == ("N", "C")


def test_names_change_no_number():
    plain = torch.rand(2, 3)
    x = plain.refine_names("N", "C")
    assert torch.equal(x.sum("C").rename(None), plain.sum(1))
    assert torch.equal((x.t() @ x).rename(None), plain.t() @ plain)
    assert torch.equal((x * x[0]).rename(None), plain * plain[0])


def test_renaming():
    x = named("N", "C")
    assert x.rename("A", "B").names == ("A", "B") and x.rename(N="batch").names == ("batch", "C")
    assert x.rename(None).names == (None, None) and not x.rename(None).has_names() and x.has_names()
    assert named("N", "C", "H").rename("A", "...").names == ("A", "C", "H")
    assert torch.rand(2, 3, 4).refine_names("...", "C").names == (None, None, "C")
    y = torch.rand(2, 3)
    assert y.rename_("N", "C") is y and y.names == ("N", "C")
    y.names = None
    assert y.names == (None, None)
    view = x.rename("A", "B")
    view.zero_()
    assert x.rename(None).eq(0).all(), "a renamed tensor is on the same memory"


def test_aligning():
    x = named("N", "C", "H")
    assert x.align_to("H", "N", "C").shape == (4, 2, 3)
    assert x.align_to("...", "N").names == ("C", "H", "N")
    result = x.align_to("C", "W", "N", "H")
    assert result.names == ("C", "W", "N", "H") and result.shape == (3, 1, 2, 4)
    small, large = torch.align_tensors(named("C"), named("N", "C"))
    assert small.shape == (1, 3) and small.names == large.names == ("N", "C")


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda x: x + named("N", "D").rename(None)[:, :3].refine_names("N", "D"),
            "dim 'C' and dim 'D' are at the same",
        ),
        (lambda x: torch.rand(2, 2).refine_names("C", None) + torch.rand(2).refine_names("C"), "Misaligned dims"),
        (lambda x: x.sum("Q"), "Name 'Q' not found in Tensor"),
        (lambda x: x.view(6), "aten::view is not yet supported with named tensors"),
        (lambda x: x.flip(0), "is not yet supported with named tensors"),
        (lambda x: torch.view_as_complex(x.t()[:2].t()), "view_as_complex is not yet supported with named tensors"),
        (lambda x: x.refine_names("N", "D"), "cannot coerce .* because 'C' is different from 'D' at index 1"),
        (lambda x: x.rename("A"), "Number of names"),
        (lambda x: x.rename("A", "A"), "duplicate names"),
        (lambda x: x.rename("A", "1"), "Invalid name"),
        (lambda x: x.rename(Q="A"), "dim 'Q' does not exist"),
        (lambda x: x.align_to("C"), "Cannot find dim 'N'"),
        (lambda x: torch.rand(2).align_to("C"), "All input dims must be named"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(named("N", "C"))


def test_gradients_have_no_names():
    leaf = torch.rand(2, 3, requires_grad=True)
    x = leaf.refine_names("N", "C")
    (x * x.exp()).sum("C").sum().backward()
    expected = leaf.detach()
    assert leaf.grad.names == (None, None)
    assert torch.allclose(leaf.grad, (1 + expected) * expected.exp())


def test_a_parameter_made_of_a_named_tensor_has_no_names():
    parameter = torch.nn.Parameter(named("N", "C"))
    assert parameter.names == (None, None) and parameter.flip(0).shape == (2, 3)


def test_names_are_printed():
    assert repr(torch.zeros(1).refine_names("N")) == "tensor([0.], names=('N',))"


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: torch.zeros(2, 3, **k),
        lambda **k: torch.ones(2, 3, **k),
        lambda **k: torch.empty(2, 3, **k),
        lambda **k: torch.full((2, 3), 1.0, **k),
        lambda **k: torch.rand(2, 3, **k),
        lambda **k: torch.randn(2, 3, **k),
        lambda **k: torch.tensor([[1.0, 2.0, 3.0]] * 2, **k),
        lambda **k: torch.ones(1).new_zeros(2, 3, **k),
    ],
)
def test_factories_name_dimensions(make):
    t = make(names=("N", None), requires_grad=True)
    assert t.names == ("N", None) and t.shape == (2, 3) and t.is_leaf and t.requires_grad
    assert make(names=None).names == (None, None)
    with pytest.raises(RuntimeError, match="Number of names"):
        make(names=("N",))
    with pytest.raises(TypeError, match="'names' must be tuple of Dimnames, not str"):
        make(names="NC")


def test_factories_refuse_what_they_do_not_know():
    with pytest.raises(TypeError, match="beside 'out'"):
        torch.zeros(2, names=("N",), out=torch.empty(2))
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmaes'"):
        torch.ones(1).new_zeros(2, nmaes=("N",))


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda t, out: torch.add(t, t, out=out), ("N", "C")),
        (lambda t, out: torch.mm(t, torch.ones(3, 2, names=("C", "M")), out=out), ("N", "M")),
        (lambda t, out: torch.cat([t, t], out=out), ("N", "C")),
        (lambda t, out: torch.sum(t, "C", out=out), ("N",)),
        (lambda t, out: torch.cumsum(t, "C", out=out), ("N", "C")),
    ],
)
def test_out_takes_on_the_names_of_the_result(call, names):
    t = torch.ones(2, 3, names=("N", "C"))
    assert call(t, torch.empty(0)).names == names
    other = torch.empty(0).reshape([0] * len(names)).rename(*["X"] * 1, *["Y"] * (len(names) - 1))
    with pytest.raises(RuntimeError, match="Name mismatch"):
        call(t, other)
    assert torch.abs(torch.ones(2, 3), out=torch.empty(2, 3)).names == (None, None)
    with pytest.raises(RuntimeError, match="Name mismatch"):
        torch.abs(torch.ones(2, 3), out=torch.empty(2, 3, names=("N", "C")))
