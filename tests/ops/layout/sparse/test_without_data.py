"""Sparse tensors on device meta and sparse fakes: shapes, layouts, dtypes and devices without numbers."""

from __future__ import annotations

import contextlib

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode


def coo() -> torch.Tensor:
    return torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0]), (3, 4)
    ).coalesce()


def facts(t) -> tuple:
    return tuple(t.shape), t.layout, t.dtype


CALLS = {
    "zeros_like": torch.zeros_like,
    "empty_like double": lambda s: torch.empty_like(s, dtype=torch.float64),
    "zeros_like strided": lambda s: torch.zeros_like(s, layout=torch.strided),
    "clone": lambda s: s.clone(),
    "to double": lambda s: s.double(),
    "dense": lambda s: s.to_dense(),
    "transpose": lambda s: s.t(),
    "twice": lambda s: s * 2,
    "sum": lambda s: s + s,
    "intersection": lambda s: s * s,
    "sin": lambda s: s.sin(),
    "to dense one": lambda s: s.new_zeros((), layout=torch.strided) + s.sum(),
    "product": lambda s: torch.sparse.mm(s, torch.ones(4, 2, device=s.device)),
    "reduced": lambda s: torch.sparse.sum(s, 0),
    "cat": lambda s: torch.cat([s, s]),
    "select": lambda s: s[0],
    "unbind": lambda s: s.unbind(1)[3],
    "unsqueeze": lambda s: s.unsqueeze(1),
    "rows": lambda s: s.to_sparse_csr(),
    "columns": lambda s: s.to_sparse_csc(),
    "rows to coordinates": lambda s: s.to_sparse_csr().to_sparse(),
    "blocks": lambda s: s.to_dense().to_sparse_bsr((3, 2)),
    "rows by number": lambda s: s.to_sparse_csr() * 3,
    "new rows": lambda s: s.to_sparse_csr().new_zeros(2, 5),
    "new": lambda s: s.new_empty(2, 5),
    "in place": lambda s: s.mul_(2),
    "cleared": lambda s: s.zero_(),
    "softmax": lambda s: torch.sparse.softmax(s, 1),
    "mask": lambda s: torch.ones(3, 4, device=s.device).sparse_mask(s),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_without_data_look_like_results_with_data(name):
    call, real = CALLS[name], CALLS[name](coo())
    meta = call(coo().to("meta"))
    assert facts(meta) == facts(real)
    assert meta.device.type == "meta"
    mode = FakeTensorMode()
    fake_input = mode.from_tensor(coo())
    for context in (contextlib.nullcontext(), mode):  # outside the mode and inside
        if context is not mode and ("product" in name or "mask" in name):
            continue  # these make a dense tensor of their own, which is a fake inside only
        with context:
            fake = call(fake_input)
        assert facts(fake) == facts(real)
        assert fake.device.type == "cpu" and fake.fake_mode is mode


def test_a_tensor_moved_to_meta_has_no_elements_and_one_of_parts_has_theirs():
    assert coo().to("meta")._nnz() == 0
    parts = torch.zeros(2, 3, dtype=torch.int64, device="meta"), torch.zeros(3, device="meta")
    t = torch.sparse_coo_tensor(*parts, (4, 4))
    assert t._nnz() == 3 and t._values().device.type == "meta" and not t.is_coalesced()
    assert t.coalesce()._nnz() == 3 and (t * 2)._values().shape == (3,)


def test_nothing_is_copied_out_of_meta():
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        coo().to("meta").to("cpu")


def test_like_factories_put_the_result_where_they_are_told():
    assert torch.empty_like(coo().to("meta"), device="cpu").device.type == "cpu"
    assert torch.zeros_like(coo(), device="meta").device.type == "meta"
    assert torch.zeros_like(coo().to("meta"), layout=torch.strided).device.type == "meta"


def test_new_tensors_have_the_layout_of_the_sparse_tensor():
    assert coo().new_zeros(2, 3).layout is torch.sparse_coo
    assert coo().to_sparse_csr().new_empty(2, 3).layout is torch.sparse_csr
    assert coo().new_zeros(2, layout=torch.strided).layout is torch.strided
    assert torch.ones(2).new_zeros(2, 2, layout=torch.sparse_coo).layout is torch.sparse_coo
    with pytest.raises(NotImplementedError, match="new_ones"):
        coo().new_ones(2)


def test_compressed_tensors_are_filled_in_their_places():
    rows = torch.eye(3).to_sparse_csr()
    assert torch.equal(torch.ones_like(rows).to_dense(), torch.eye(3))
    assert torch.equal(torch.full_like(rows, 2.0).to_dense(), 2 * torch.eye(3))


def test_sparse_tensors_made_inside_the_mode_are_fakes():
    with FakeTensorMode() as mode:
        made = [
            torch.zeros(2, 3, layout=torch.sparse_coo),
            torch.empty(2, 3, layout=torch.sparse_csr),
            torch.sparse_coo_tensor((2, 3)),
        ]
    assert all(t.fake_mode is mode and t.device.type == "cpu" for t in made)


def test_sparse_tensors_have_no_strides():
    assert coo().stride() == (0, 0) and not coo().is_contiguous()


def test_texts_say_sizes_in_the_place_of_numbers():
    assert str(coo().to("meta")) == (
        "tensor(indices=tensor(..., size=(2, 0)),\n       values=tensor(..., size=(0,)),\n"
        "       device='meta', size=(3, 4), layout=torch.sparse_coo)"
    )
    assert str(FakeTensorMode().from_tensor(torch.eye(2).to_sparse_csr())).startswith(
        "FakeTensor(crow_indices=tensor(..."
    )
