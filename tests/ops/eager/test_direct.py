"""The plain case that every operator has: taken by plain arguments, and only by them; nothing is lost on the way."""

from __future__ import annotations

import linecache

import pytest

import pullback as torch
from pullback.ops.eager.direct import MARK, as_tuple
from pullback.ops.system import general

CALLS = {
    "a kernel": lambda x: torch.trace(x),
    "a kernel that is a view of its input": lambda x: torch.diagonal_copy(x),
    "several results": lambda x: torch.frexp(x.detach()).mantissa,
    "a reduction": lambda x: torch.amax(x, 1),
    "along a dimension": lambda x: torch.cumsum(x, 0),
    "an element-wise kernel": lambda x: torch.erf(x),
    "a result of another dtype": lambda x: torch.isneginf(x.detach()),
    "a composite": lambda x: torch.logdet(x @ x.mT + torch.eye(3, dtype=x.dtype)),
    "lists of tensors": lambda x: torch.block_diag(x, x),
    "a list of numbers": lambda x: torch.flip(x, (0, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_and_records_what_the_dispatcher_gives(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    direct = CALLS[name](x)
    with torch.autograd.forward_ad.dual_level():  # something listens: no call goes past the dispatcher
        expected = CALLS[name](x)
    assert direct.dtype is expected.dtype
    assert direct.stride() == expected.stride()
    assert torch.equal(direct, expected)
    assert type(direct.grad_fn) is type(expected.grad_fn)
    if direct.requires_grad:
        g, h = (torch.autograd.grad(out.sum(), x)[0] for out in (direct, expected))
        assert torch.equal(g, h)


def test_plain_calls_go_past_the_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(3, 3)
    torch.trace(x)
    assert any(MARK in line for line in linecache.getlines("<pullback: torch.trace>"))
    monkeypatch.setattr(general, "dispatch", None)
    assert torch.trace(x).item() == pytest.approx(sum(x[i, i].item() for i in range(3)))
    assert torch.trace(torch.nn.Parameter(x)).requires_grad


def test_a_result_never_shares_memory_with_an_argument() -> None:
    for d in (torch.float32, torch.float64):
        x = torch.arange(4.0, dtype=d)
        for call in (torch.nan_to_num, torch.frac, torch.erf, lambda v: torch.nn.functional.threshold(v, -1.0, 0.0)):
            out = call(x)
            out.fill_(9)
            assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_other_arguments_take_the_general_path() -> None:
    x = torch.randn(3, 4)
    assert torch.flip(x, [torch.tensor(0)]).tolist() == x.flip(0).tolist()  # a tensor for an integer
    with pytest.raises(TypeError, match="must be int, not bool"):
        torch.tril(x, diagonal=True)
    with pytest.raises(TypeError, match="argument 'diagonal'"):
        torch.tril(x, "x")
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        torch.trace([1.0])


@pytest.mark.parametrize(
    ("value", "size", "expected"),
    [((1, 2), None, (1, 2)), ([], None, ()), (3, 2, (3, 3)), (3, None, None), ([1, True], None, None), ("12", None, None), (torch.Size([4]), None, (4,))],
)  # fmt: skip
def test_lists_are_tuples_of_one_type(value, size, expected) -> None:
    assert as_tuple(value, int, size) == expected


def test_operators_of_a_family_with_rules_of_its_own_run_by_them():
    with pytest.raises(RuntimeError, match="Long, Int"):
        torch.nn.functional.embedding(torch.ones(2), torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="Long, Int"):
        torch.ops.aten.embedding.default(torch.ones(2, 2), torch.ones(2))
