"""Settings of saving and loading, and what they do to files."""

import contextlib
import io
import zipfile

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode
from pullback.serialization.file_reader import PyTorchFileReader
from pullback.serialization.options import skip_data
from pullback.utils.serialization import config

VALUE = {"w": torch.arange(6.0).view(2, 3)}


def saved(value=VALUE):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_files_without_checksums():
    try:
        torch.serialization.set_crc32_options(False)
        assert config.save.compute_crc32 is torch.serialization.get_crc32_options() is False
        file = saved()
    finally:
        torch.serialization.set_crc32_options(True)
    assert torch.load(file)["w"].equal(VALUE["w"])
    assert zipfile.ZipFile(file).testzip() is not None
    assert zipfile.ZipFile(saved()).testzip() is None


def test_storages_are_aligned_as_asked():
    with config.patch("save.storage_alignment", 4096):
        file = saved()
    assert PyTorchFileReader(file).get_record_offset("data/0") % 4096 == 0
    assert PyTorchFileReader(file).get_record(".storage_alignment") == b"4096"
    file.seek(0)
    assert torch.load(file)["w"].equal(VALUE["w"])
    with config.patch("save.storage_alignment", 1 << 20), pytest.raises(ValueError, match="storage_alignment must be"):
        saved()


def test_files_are_mapped_where_nothing_else_is_said(tmp_path):
    torch.save(VALUE, tmp_path / "value.pt")
    with config.patch({"load.mmap": True}):
        assert not torch.load(tmp_path / "value.pt")["w"].untyped_storage().resizable()
        assert torch.load(tmp_path / "value.pt", mmap=False)["w"].untyped_storage().resizable()
        assert torch.load(saved())["w"].equal(VALUE["w"])  # no path, so nothing to map


def test_places_that_are_filled_in_later():
    file = io.BytesIO()
    with skip_data():
        torch.save(VALUE, file)
    file.seek(0)
    start = PyTorchFileReader(file).get_record_offset("data/0")
    file.getbuffer()[start : start + 24] = VALUE["w"].numpy().tobytes()
    file.seek(0)
    assert torch.load(file)["w"].equal(VALUE["w"])


def test_fake_tensors_become_real_ones():
    with FakeTensorMode():
        t = torch.nn.Parameter(torch.randn(2, 3))
        value = {"t": t, "view": t.detach()[1]}
    with pytest.raises(TypeError, match="cannot pickle a fake tensor"):
        saved(value)
    with skip_data(materialize_fake_tensors=True):
        file = saved(value)
    back = torch.load(file)
    assert type(back["t"]) is torch.nn.Parameter and back["t"].shape == (2, 3) and not vars(back["t"])
    assert back["view"].untyped_storage().data_ptr() == back["t"].untyped_storage().data_ptr()
    assert back["view"].storage_offset() == 3


def test_what_has_no_data_to_leave_out():
    with skip_data(), pytest.raises(RuntimeError, match="Cannot serialize nested tensor under skip_data"):
        saved(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    with skip_data(), pytest.warns(UserWarning, match="meta device under skip_data context manager is a no-op"):
        saved(torch.empty(2, device="meta"))


def test_records_lie_where_pytorch_puts_them():
    file = io.BytesIO()
    torch.save(torch.nn.Linear(10, 10).state_dict(), file)
    with zipfile.ZipFile(file) as archive:
        headers = {entry.filename: entry.header_offset for entry in archive.infolist()}
    assert [headers[f"archive/{name}"] for name in ("data.pkl", ".format_version", "byteorder", "data/0", "version")] == [
        0, 370, 594, 726, 1400,
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["meta", "fake"])
def test_loading_without_data_says_where_they_are(how):
    file = io.BytesIO()
    torch.save(torch.nn.Linear(10, 10).state_dict(), file)
    file.seek(0)
    with FakeTensorMode() if how == "fake" else contextlib.nullcontext():
        loaded = torch.load(file, map_location="meta" if how == "meta" else None)
    assert [t.untyped_storage()._checkpoint_offset for t in loaded.values()] == [832, 1344]
    assert loaded["weight"].device.type == ("cpu" if how == "fake" else "meta")
    assert [t.untyped_storage().nbytes() for t in loaded.values()] == [400, 40]
