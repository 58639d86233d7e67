"""Storages on shared pages and on files."""

import sys

import pytest

import pullback as torch


def test_sharing_keeps_views_and_values():
    base = torch.arange(6.0)
    view = base[2:]
    base.share_memory_()
    view[0] = 20.0
    assert base.tolist() == [0, 1, 20, 3, 4, 5] and view.is_shared()
    assert base.share_memory_() is base


def test_files(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(range(8)))
    private = torch.UntypedStorage.from_file(str(path), shared=False, nbytes=8)
    private[0] = 9
    assert private.tolist()[:2] == [9, 1] and path.read_bytes()[0] == 0
    shared = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=16)
    shared[15] = 7
    assert path.stat().st_size == 16 and path.read_bytes()[15] == 7 and shared.is_shared()
    with pytest.raises(RuntimeError, match="unable to map 99 bytes"):
        torch.UntypedStorage.from_file(str(path), nbytes=99)
    assert sys.getsizeof(shared) >= 16


def test_shared_files_have_a_name(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(16))
    shared, own = (torch.from_file(str(path), shared=s, size=4) for s in (True, False))
    assert shared.untyped_storage().filename == str(path) and own.untyped_storage().filename is None
    assert torch.ones(2).untyped_storage().filename is None
