"""safetensors files: all dtypes in and out, atomic, and refusals."""

import pytest

import pullback as torch
from pullback import nn
from pullback.serialization import safetensors


@pytest.mark.parametrize("dtype", safetensors._NAMES.values(), ids=str)
def test_every_dtype(dtype, tmp_path):
    t = torch.tensor([[1, 2], [1, 1]]).to(dtype)
    safetensors.save_file({"t": t, "scalar": t[0, 0].clone(), "empty": torch.empty(0, 3, dtype=dtype)}, tmp_path / "a")
    got = safetensors.load_file(tmp_path / "a")
    assert got["t"].dtype is dtype and got["t"]._array.tobytes() == t._array.tobytes()
    assert got["scalar"].shape == () and got["empty"].shape == (0, 3)


def test_models_and_metadata(tmp_path):
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    safetensors.save_file(model.state_dict(), tmp_path / "m", {"format": "pt"})
    other.load_state_dict(safetensors.load_file(tmp_path / "m"))
    assert torch.equal(other.weight, model.weight) and safetensors.load_metadata(tmp_path / "m") == {"format": "pt"}
    got = safetensors.load(safetensors.save({"t": torch.arange(6.0).view(2, 3).t()}))
    got["t"][0, 0] = 9
    assert got["t"].tolist() == [[9, 3], [1, 4], [2, 5]]
    assert safetensors.load_file(tmp_path / "m", device="meta")["weight"].is_meta


def test_refusals(tmp_path):
    t = torch.ones(4)
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        safetensors.save({"a": t, "b": t[1:]})
    safetensors.save({"a": t[:2], "b": t[2:]})  # side by side: nothing is shared
    with pytest.raises(ValueError, match="expected torch.Tensor"):
        safetensors.save({"a": 1})
    with pytest.raises(ValueError, match="complex128"):
        safetensors.save({"a": t.to(torch.complex128)})
    with pytest.raises(ValueError, match="layout"):
        safetensors.save({"a": torch.eye(2).to_sparse()})


def test_damage_is_told_and_failure_keeps_the_old_file(tmp_path):
    path = tmp_path / "a"
    safetensors.save_file({"a": torch.ones(4)}, path)
    with pytest.raises(ValueError):
        safetensors.save_file({"a": 1}, path)
    whole = path.read_bytes()
    for n in (0, 5, 20, len(whole) - 1):
        path.write_bytes(whole[:n])
        with pytest.raises(RuntimeError, match="damaged"):
            safetensors.load_file(path)
        with pytest.raises(RuntimeError, match="damaged"):
            safetensors.load(whole[:n])
