"""PyTorch's files, record by record."""

import io

import pytest

import pullback as torch
from pullback.serialization.file_reader import PyTorchFileReader
from pullback.serialization.file_writer import PyTorchFileWriter

RECORDS = {"a": b"12039810", "b": "text", "c/d": torch.arange(4, dtype=torch.uint8).untyped_storage()}


@pytest.mark.parametrize("by_name", [True, False])
def test_records_are_read_as_they_were_written(tmp_path, by_name):
    file = str(tmp_path / "records.pt") if by_name else io.BytesIO()
    with PyTorchFileWriter(file) as writer:
        for name, data in RECORDS.items():
            writer.write_record(name, data, 4)
        assert writer.get_all_written_records() == list(RECORDS)
        assert writer.archive_name() == ("records" if by_name else "archive")
        with pytest.raises(RuntimeError, match="Tried to serialize file twice: a"):
            writer.write_record("a", b"", 0)
    if not by_name:
        file.seek(0)
    reader = PyTorchFileReader(file)
    assert [reader.get_record(name) for name in RECORDS] == [b"1203", b"text", bytes(range(4))]
    assert reader.has_record("version") and reader.serialization_id()


def test_records_that_are_filled_in_later(tmp_path):
    """The pickle of a file, and places for its storages."""
    whole, parts = tmp_path / "whole.pt", tmp_path / "parts.pt"
    value = {"w": torch.arange(3.0)}
    torch.save(value, whole)
    text = PyTorchFileReader(whole).get_record("data.pkl")
    with PyTorchFileWriter(parts) as writer:
        writer.write_record("data.pkl", text, len(text))
        writer.write_record_metadata("data/0", 12)
    assert torch.load(parts)["w"].tolist() == [0, 0, 0]
    with open(parts, "r+b") as file:
        file.seek(PyTorchFileReader(parts).get_record_offset("data/0"))
        file.write(value["w"].numpy().tobytes())
    assert torch.load(parts)["w"].tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="the end of the file was written already"):
        writer.write_record("more", b"", 0)
