"""`torch.PyTorchFileReader`, and storages by their old names."""

import pickle

import pytest

import pullback as torch
from pullback.serialization.file_reader import PyTorchFileReader, open_file_like, starts_archive


@pytest.fixture
def reader(tmp_path):
    torch.save({"a": torch.arange(6.0).reshape(2, 3)}, tmp_path / "x.pt")
    return torch.PyTorchFileReader(str(tmp_path / "x.pt"))


def test_records(reader):
    assert {"data.pkl", "byteorder", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.has_record("data/0") and not reader.has_record("data/1")
    assert pickle.loads(b"N.") is None and reader.get_record("data.pkl")[:2] == b"\x80\x02"
    assert reader.get_record_offset("data/0") % 64 == 0
    with pytest.raises(RuntimeError, match="locating file data/1: file not found"):
        reader.get_record("data/1")


def test_a_record_as_numbers(reader):
    assert reader.get_storage_from_record("data/0", 6, torch.float32).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    flat = reader.get_storage_from_record("data/0", 24, torch.UntypedStorage)
    assert flat.dtype is torch.uint8 and flat._typed_storage()._untyped_storage.nbytes() == 24
    with pytest.raises(RuntimeError, match="data/0 has 24 bytes, but 5 elements of torch.float32"):
        reader.get_storage_from_record("data/0", 5, torch.float32)


def test_old_names_of_storages():
    storage = torch.IntStorage([1, 2, 3])
    assert isinstance(storage, torch.IntStorage) and isinstance(storage, torch.TypedStorage)
    assert not isinstance(storage, torch.FloatStorage)
    assert storage.tolist() == [1, 2, 3] and torch.IntStorage.dtype is torch.int32
    assert torch.ByteStorage._from_buffer(b"\x01\x02").tolist() == [1, 2]
    with pytest.raises(ValueError, match="3 bytes are no whole number of elements of torch.int32"):
        torch.IntStorage._from_buffer(b"abc")


def test_storages_without_data():
    storage = torch.TypedStorage(dtype=torch.float32, device="meta")
    assert storage.device.type == "meta"
    with pytest.raises(NotImplementedError):
        storage.untyped().tolist()


def test_opened_by_name_or_as_they_are(tmp_path):
    path = tmp_path / "t.pt"
    torch.save({"a": torch.arange(3)}, path)
    with open_file_like(path, "rb") as file:
        assert starts_archive(file) and file.tell() == 0
        with PyTorchFileReader(file) as reader:
            assert reader.has_record("data/0")
            offset = reader.get_record_offset("data/0")
    assert file.closed
    loaded = torch.load(path, map_location="meta")["a"]
    assert loaded.untyped_storage()._checkpoint_offset == offset
