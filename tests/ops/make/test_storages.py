"""Storages through a dtype, the old classes by name, and what changes the memory under tensors."""

from __future__ import annotations

import copy
import pickle
import weakref

import pytest

import pullback as torch


def test_the_old_classes_make_typed_storages():
    s = torch.IntStorage([-1, 0, 2])
    assert (
        isinstance(s, torch.TypedStorage) and isinstance(s, torch.IntStorage) and not isinstance(s, torch.FloatStorage)
    )
    assert s.type() == "torch.IntStorage" and s.dtype is torch.int32 and s.tolist() == [-1, 0, 2]
    assert (
        s.float().type() == "torch.FloatStorage" and s.byte().tolist() == [255, 0, 2] and s.bool().tolist() == [1, 0, 1]
    )
    assert torch.ComplexFloatStorage([1j]).tolist() == [1j]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (dict(device="cpu"), RuntimeError, "'device' cannot be specified"),
        (dict(dtype=torch.float), RuntimeError, "'dtype' cannot be specified"),
        (dict(other=1), TypeError, "unexpected keyword"),
        (dict(wrap_storage=3), TypeError, "must be UntypedStorage"),
    ],
)
def test_what_a_class_by_dtype_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        torch.FloatStorage(**arguments)
    with pytest.raises(TypeError, match="Argument type not recognized"):
        torch.FloatStorage(torch.ones(1))


def test_a_tensor_and_its_storage_are_one_memory():
    t = torch.arange(4.0)
    s = t.storage()
    s[1] = 7
    assert t.tolist() == [0, 7, 2, 3] and list(s) == [0, 7, 2, 3] and s.size() == 4
    s.fill_(1)
    assert t.tolist() == [1] * 4
    with pytest.raises(RuntimeError, match="cannot set item"):
        s.fill_(s)
    assert copy.deepcopy(s).tolist() == pickle.loads(pickle.dumps(s)).tolist() == s.tolist()


def test_elements_from_a_buffer():
    data = bytearray([1, 2, 3, 4])
    assert torch.ByteStorage.from_buffer(data).tolist() == [1, 2, 3, 4]
    assert torch.ShortStorage.from_buffer(data, "big").tolist() == [258, 772]
    assert torch.IntStorage.from_buffer(data, "little").tolist() == [67305985]
    assert torch.BoolStorage.from_buffer(bytearray([0, 2]), "big").tolist() == [False, True]
    with pytest.raises(TypeError, match="byte_order"):
        torch.IntStorage.from_buffer(data)


def test_one_storage_has_one_face():
    t = torch.ones(2)
    face = t.untyped_storage()
    assert t.untyped_storage() is face and t[1:].untyped_storage() is face


def test_memory_that_was_resized_away_comes_back_under_every_view():
    t = torch.arange(16.0).reshape(4, 4)
    part, columns, storage = t[1:3], t.t(), t.untyped_storage()
    storage.resize_(0)
    assert t.stride() == (4, 1) and columns.stride() == (1, 4)
    storage.resize_(64)
    t.copy_(torch.arange(16.0).reshape(4, 4))
    assert part.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]] and columns[1].tolist() == [1, 5, 9, 13]


def test_two_storages_exchange_their_memory():
    x, y = torch.arange(4.0), torch.full((4,), 9.0)
    part = x[1:]
    x.untyped_storage()._swap_data_ptr_(y.untyped_storage())
    assert x.tolist() == [9] * 4 and part.tolist() == [9] * 3 and y.tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="same nbytes"):
        x.untyped_storage()._swap_data_ptr_(torch.ones(8).untyped_storage())


def test_bytes_are_swapped_within_elements():
    s = torch.TypedStorage(list(range(8)), dtype=torch.uint8).untyped()
    s.byteswap(torch.int32)
    assert s.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    s.byteswap(torch.complex64)
    assert s.tolist() == list(range(8))


def test_a_storage_is_one_object_for_as_long_as_a_tensor_lives_on_it():
    class Mine(torch.UntypedStorage):
        pass

    storage = Mine(4)
    storage.fill_(0)
    storage.note = "kept"
    t = torch.tensor(storage, dtype=torch.int32)
    seen = weakref.ref(storage)
    del storage
    assert t.untyped_storage() is seen() and t.untyped_storage().note == "kept"
    t.untyped_storage()[0] = 5
    assert t.tolist() == [5]
    del t
    assert seen() is None
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        torch.StorageBase()


def test_tensor_of_a_typed_storage():
    s = torch.FloatStorage([1, 2])
    t = torch.tensor(s)
    s[0] = 7
    assert t.tolist() == [7, 2] and t.dtype is torch.float32
    with pytest.raises(RuntimeError, match="Expected a Storage of type Double"):
        torch.tensor(s, dtype=torch.float64)


def test_memory_that_numpy_sees_is_not_resized():
    t = torch.ones(2)
    t.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(5)


def test_bytes_of_a_buffer():
    s = torch.UntypedStorage.from_buffer(b"abcd", count=2, offset=1)
    assert s.tolist() == [98, 99]
    swapped = torch.UntypedStorage.from_buffer(b"ab", torch.int16, "big")
    assert torch.tensor(swapped, dtype=torch.int16).tolist() == [int.from_bytes(b"ab", "big")]


def test_bytes_are_cast_one_by_one():
    storage = torch.UntypedStorage([7, 2])
    assert storage.float().tolist() == [7.0, 2.0]
    assert storage.double().nbytes() == 16
    assert storage.is_cuda is False


def test_cuda_classes_refuse_memory_of_the_host():
    cls = torch.cuda.FloatStorage
    assert not isinstance(torch.FloatStorage(2), cls) and isinstance(torch.FloatStorage(2), torch.FloatStorage)
    with pytest.raises(RuntimeError, match="from_buffer: Not available for CUDA storage"):
        cls.from_buffer(b"1234")


def test_storages_without_data_say_so():
    s = torch.TypedStorage([1, 2, 3], dtype=torch.float32, device="meta")
    untyped = s.untyped()
    assert s.device.type == untyped.device.type == "meta" and s.size() == 3 and s.data_ptr() == 0
    s[0], untyped[0] = 1, 1  # writes go nowhere, as those of tensors
    s.fill_(2), untyped.fill_(2), s.copy_(torch.FloatStorage(3))
    assert s.double().nbytes() == 24 and s.double().device.type == "meta"
    for read in (lambda: s[0], lambda: untyped[0], s.tolist, untyped.tolist, lambda: list(s)):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            read()
    for copy_out in (
        s.cpu,
        untyped.cpu,
        lambda: torch.FloatStorage(3).copy_(s),
        lambda: torch.UntypedStorage(12).copy_(untyped),
    ):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            copy_out()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        s.share_memory_()
