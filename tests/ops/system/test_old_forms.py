"""Deprecated calls with numbers in front of tensors, and flags in the place of dimensions."""

from __future__ import annotations

import inspect
import warnings

import pytest

import pullback as torch
from pullback.core import errors

M, A, V, B = torch.ones(2, 2), torch.full((2, 2), 2.0), torch.ones(2), torch.ones(3, 2, 2)
FORMS = {
    "add": (lambda: torch.add(M, 2, A), lambda: torch.add(M, A, alpha=2)),
    "add of numbers": (lambda: torch.add(M, 2, 3), lambda: torch.add(M, 3, alpha=2)),
    "add_": (lambda: M.clone().add_(-0.5, A), lambda: M - 0.5 * A),
    "sub_": (lambda: M.clone().sub_(2, A), lambda: M - 2 * A),
    "addcmul_": (lambda: M.clone().addcmul_(2, A, A), lambda: M + 2 * A * A),
    "addcdiv": (lambda: torch.addcdiv(M, 2, A, A), lambda: M + 2 * A / A),
    "addmm": (lambda: torch.addmm(2, M, 3, A, A), lambda: 2 * M + 3 * (A @ A)),
    "addmm with beta": (lambda: torch.addmm(2, M, A, A), lambda: 2 * M + A @ A),
    "addmm_ of a method": (lambda: M.clone().addmm_(2, 3, A, A), lambda: 2 * M + 3 * (A @ A)),
    "addmv": (lambda: torch.addmv(2, V, 3, M, V), lambda: 2 * V + 3 * (M @ V)),
    "addr": (lambda: torch.addr(2, M, 3, V, V), lambda: 2 * M + 3 * torch.outer(V, V)),
    "baddbmm": (lambda: torch.baddbmm(2, B, 3, B, B), lambda: 2 * B + 3 * (B @ B)),
    "addbmm": (lambda: torch.addbmm(2, M, 3, B, B), lambda: 2 * M + 3 * (B @ B).sum(0)),
}


@pytest.mark.parametrize("name", FORMS)
def test_an_old_form_gives_what_the_new_one_gives(name):
    old, new = FORMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(old(), new())


def test_a_warning_says_once_how_to_write_it():
    errors._warned.clear()
    with pytest.warns(UserWarning, match="This overload of add_ is deprecated"):
        M.clone().add_(2, A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        M.clone().add_(2, A)


def test_gradients_and_out_go_through_an_old_form():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.add(x, 3, y).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    out = torch.empty(2)
    assert torch.add(x.detach(), 3, y.detach(), out=out) is out and out.tolist() == [4.0, 4.0]


def test_rsub_takes_its_factor_by_position_beside_a_number():
    errors._warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that is no old form
        for other in (3, 3.0, torch.tensor(3.0)):
            assert torch.rsub(A, other, 2).tolist() == (3 - 2 * A).tolist()
    with pytest.raises(TypeError, match="positional arguments but 4"):
        torch.rsub(A, 3, 2, 1)


@pytest.mark.parametrize(
    "call",
    [lambda: M.add(A, A), lambda: torch.addmm(M, A, A, A), lambda: M.addcmul_(A, A, 2), lambda: torch.rsub(A, A, 2)],
)
def test_what_was_never_a_form_is_refused(call):
    with pytest.raises(TypeError, match="positional arguments but"):
        call()


def test_signatures_show_the_form_of_today():
    assert list(inspect.signature(torch.add).parameters) == ["input", "other", "alpha", "out"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: M.topk(1, True), lambda: M.softmax(True), lambda: M.unsqueeze(True), lambda: M.cumsum(True),
        lambda: M.expand(True, 2, 2), lambda: M.permute(True, False), lambda: torch.cat([M, M], True),
        lambda: torch.roll(M, True, 0), lambda: M.index_select(True, torch.tensor([0])), lambda: M.amax(True),
    ],
)  # fmt: skip
def test_a_flag_is_no_dimension(call):
    with pytest.raises(TypeError, match="must be (int|tuple of ints)"):
        call()


def test_operators_of_libraries_take_flags_for_integers():
    with torch.library._scoped_library("old_forms", "DEF") as library:
        library.define("times(Tensor x, int n) -> Tensor")
        library.impl("times", lambda x, n: x * n, "CompositeExplicitAutograd")
        assert torch.equal(torch.ops.old_forms.times(M, True), M)


def test_the_factor_of_an_old_sum_may_be_a_tensor_of_one_number():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.add(torch.tensor(1.0), torch.tensor(2.0), 2).item() == 5
        assert torch.sub(torch.tensor(1.0), torch.tensor(2.0), 2).item() == -3
        with pytest.raises(TypeError, match="positional arguments"):
            torch.add(torch.ones(2), torch.ones(2), 2)
