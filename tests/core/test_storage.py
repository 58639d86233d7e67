"""Storages: bytes that tensors share."""

from __future__ import annotations

import pytest

import pullback as torch


def test_views_share_one_storage_and_copies_do_not() -> None:
    t = torch.arange(6.0)
    assert t.untyped_storage().data_ptr() == t[2:].untyped_storage().data_ptr()
    assert t.untyped_storage().data_ptr() != t.clone().untyped_storage().data_ptr()
    assert t[2:].storage_offset() == 2 and t.untyped_storage().nbytes() == 24


def test_a_storage_written_is_a_tensor_written() -> None:
    t = torch.zeros(4, dtype=torch.uint8)
    t.untyped_storage()[1] = 7
    assert t.tolist() == [0, 7, 0, 0]
    t.untyped_storage().fill_(3)
    assert t[1:].tolist() == [3, 3, 3]


def test_resizing_keeps_what_fits_and_every_tensor_sees_it() -> None:
    t = torch.arange(4.0)
    view = t[1:3]
    t.resize_(6)
    assert t[:4].tolist() == [0, 1, 2, 3] and t.shape == (6,)
    t[1] = 9
    assert view[0] == 9


def test_memory_of_numpy_is_shared_both_ways() -> None:
    import numpy as np

    a = np.arange(3.0)
    t = torch.from_numpy(a)
    t[0] = 5
    a[1] = 7
    assert a[0] == 5 and t[1] == 7 and t.numpy() is not None


def test_windows_outside_the_storage_are_refused() -> None:
    t = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size"):
        t.as_strided((3, 3), (3, 1))
    with pytest.raises(RuntimeError):
        t.as_strided((2,), (-1,))


def test_tensors_of_pairs_of_halves_are_resized_from_nothing() -> None:
    empty = torch.zeros(0, dtype=torch.complex32)
    assert torch.complex(torch.ones(2).half(), torch.ones(2).half(), out=empty).tolist() == [1 + 1j, 1 + 1j]
    assert torch.zeros(0, dtype=torch.complex32).resize_(2, 0).stride() == (1, 1)
