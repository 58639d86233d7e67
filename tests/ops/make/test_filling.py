"""Writes of numbers and tensors: into any order of memory, and what recording hears of them."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch

PLACES = {
    "rows": lambda t: t,
    "columns": lambda t: t.t(),
    "gaps": lambda t: t[::2, 1::3],
    "a row": lambda t: t[2],
    "one element": lambda t: t[1, 1],
    "a diagonal": lambda t: t.diagonal(),
}
WRITES = {
    "zero_": lambda v: v.zero_(),
    "fill_": lambda v: v.fill_(2),
    "fill_ with what is rounded": lambda v: v.fill_(0.1),
    "copy_": lambda v: v.copy_(torch.arange(v.numel(), dtype=v.dtype).view(v.shape)),
    "copy_ of one number": lambda v: v.copy_(torch.tensor(3.0, dtype=v.dtype)),
    "copy_ of another dtype": lambda v: v.copy_(torch.full(v.shape, 3)),
    "add_": lambda v: v.add_(torch.ones(v.shape, dtype=v.dtype)),
    "mul_ of a number": lambda v: v.mul_(0.5),
    "sqrt_": lambda v: v.sqrt_(),
    "add_ of itself": lambda v: v.add_(v),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_view_is_one_to_its_elements_alone(write: str, place: str, dtype) -> None:
    base = torch.arange(64, dtype=dtype).view(8, 8)
    view, expected = PLACES[place](base), base.float().numpy().copy()
    expected_view = PLACES[place](torch.from_numpy(expected)).numpy()
    alone = view.clone(memory_format=torch.contiguous_format)
    expected_view[...] = WRITES[write](alone).float().numpy()
    version = base._version
    assert WRITES[write](view) is view and base._version == version + 1
    assert np.array_equal(base.float().numpy(), expected)


def test_recording_hears_of_writes_to_views_of_what_it_knows() -> None:
    base = torch.ones(2, 3)
    view, written = base.t(), base[0]
    base.requires_grad_()
    for write in (lambda: view.zero_(), lambda: view.add_(torch.ones(3, 2)), lambda: written.fill_(2)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            write()
    plain = torch.ones(2, 3)
    view = plain.t()
    view.copy_(torch.ones(3, 2, requires_grad=True) * 2)
    assert plain.requires_grad and view.grad_fn is not None
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1).expand(3).copy_(torch.ones(3))


def test_new_tensors_like_another_lie_as_it_does() -> None:
    x = torch.zeros(4, 6)
    for t in (
        x.t(),
        x[::2, ::2],
        x.t()[::2],
        x[:1].t(),
        x.expand(2, 4, 6).permute(2, 0, 1),
        x.bfloat16().t(),
        x.bool().t(),
    ):
        meta = t.to("meta")
        for call in (torch.zeros_like, torch.ones_like, torch.clone, lambda t: torch.full_like(t, 1)):
            assert call(t).stride() == call(meta).stride() and call(t).dtype is t.dtype


@pytest.mark.parametrize(("value", "wrapped"), [(300.7, 44), (-3.5, 253), (3 + 1j, 3)])
def test_a_tensor_is_filled_in_as_it_is_copied(value, wrapped):
    x, value = torch.zeros(2, dtype=torch.uint8), torch.tensor(value)
    assert x.fill_(value).tolist() == [wrapped] * 2 == torch.zeros_like(x).copy_(value).tolist()
    z = torch.tensor(1 + 2j).conj()
    assert torch.zeros(2, dtype=torch.complex64).fill_(z).tolist() == [1 - 2j] * 2


@pytest.mark.parametrize("value", [300.7, float("nan"), 1e30])
def test_a_number_that_a_tensor_holds_must_fit_where_elements_are_chosen(value):
    x, value, mask = torch.zeros(2, dtype=torch.uint8), torch.tensor(value), torch.tensor([True, False])
    for call in (
        lambda: x.masked_fill(mask, value),
        lambda: x.masked_fill_(mask, value),
        lambda: x.index_fill(0, torch.tensor([0]), value),
        lambda: x.index_fill_(0, torch.tensor([0]), value),
    ):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            call()
    assert x.tolist() == [0, 0]
    assert x.bool().masked_fill(mask, torch.tensor(2j)).tolist() == [True, False]
