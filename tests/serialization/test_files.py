"""Files: what PyTorch wrote is read, what is written is read back, and damage is told."""

import copy
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import pytest

import pullback as torch
from pullback import nn
from pullback.serialization.legacy import MAGIC_NUMBER

RECORDED = Path(__file__).parent / "recorded"
DTYPES = [d for d in torch.serialization.names.dtypes.ALL if d.numpy is not None]


def round_trip(value, weights_only=True, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return torch.load(file, weights_only=weights_only)


@pytest.fixture(scope="module")
def recorded():
    return torch.load(RECORDED / "tensors.pt")


def test_recorded_dtypes(recorded):
    for name, t in recorded["dtypes"].items():
        assert t.dtype is getattr(torch, name)
        assert t.double().tolist()[1:] == [1.0, 1.0 if name == "bool" else 2.0] if not t.is_complex() else True


def test_recorded_views_share_memory(recorded):
    base = recorded["base"]
    assert base.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert recorded["transposed"].stride() == (1, 4) and recorded["strided"].tolist() == [[0, 2], [4, 6], [8, 10]]
    assert recorded["row"].storage_offset() == 4
    assert all(recorded[k].untyped_storage() == base.untyped_storage() for k in ("transposed", "row", "strided"))


def test_recorded_kinds(recorded):
    assert recorded["grad"].requires_grad and recorded["grad"].is_leaf
    assert recorded["conj"].tolist() == [1 - 2j] and recorded["neg"].tolist() == [-2]
    assert type(recorded["parameter"]) is nn.Parameter and not recorded["frozen"].requires_grad
    assert recorded["with_state"].tag == "mine" and recorded["attribute"].note == 7
    assert recorded["meta"].is_meta and recorded["meta"].shape == (2, 3)
    for name in ("coo", "csr", "csc", "bsr"):
        assert recorded[name].to_dense().tolist() == torch.eye(len(recorded[name].to_dense())).tolist()
    assert recorded["device"] == torch.device("cuda", 1) and recorded["layout"] is torch.sparse_csr
    assert recorded["size"] == torch.Size([2, 3]) and recorded["dtype"] is torch.bfloat16
    assert recorded["plain"] == [1, -5, 1 << 70, 2.5, None, True, "x", b"ab", {1, 2}, 1j, (1, 2, 3, 4)]


def test_recorded_module_computes_the_same():
    trained = torch.load(RECORDED / "training.pt")
    module = torch.load(RECORDED / "module.pt", weights_only=False)
    assert torch.allclose(module(trained["x"]), trained["y"], atol=1e-6)
    assert trained["state"]._metadata[""]["version"] == 1
    encoder = torch.load(RECORDED / "encoder.pt", weights_only=False)
    assert torch.allclose(encoder["model"](encoder["x"]), encoder["y"], atol=1e-5)


def test_recorded_optimizer_goes_on():
    trained = torch.load(RECORDED / "training.pt")
    module = torch.load(RECORDED / "module.pt", weights_only=False).train()
    opt = torch.optim.Adam(module.parameters(), lr=0.01)
    opt.load_state_dict(trained["opt"])
    module(trained["x"]).square().sum().backward()
    opt.step()
    assert opt.state_dict()["state"][0]["step"] == 4


def test_recorded_stream():
    got = torch.load(RECORDED / "stream.pt")
    assert got["base"].untyped_storage() == got["row"].untyped_storage() and got["row"].tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("zipped", [True, False])
def test_every_dtype(dtype, zipped):
    t = torch.tensor([1, 0, 1]).to(dtype)
    got = round_trip(t, _use_new_zipfile_serialization=zipped)
    assert got.dtype is dtype and got._array.tobytes() == t._array.tobytes()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol):
    base = torch.arange(6.0).view(2, 3)
    value = {"a": base, "b": base.t(), "s": {1}, "n": [None, True, -3, 1 << 80, 0.5, "é", b"\xff", (1,)]}
    got = round_trip(value, pickle_protocol=protocol)
    got["a"][0, 1] = 9
    assert got["b"][1, 0] == 9 and got["n"] == value["n"] and got["s"] == {1}


def test_whole_modules_under_pytorch_names():
    model = nn.ModuleDict(
        {"a": nn.LSTM(2, 3), "b": nn.Sequential(nn.Linear(2, 2), nn.InstanceNorm1d(2)), "c": nn.Embedding(2, 2)}
    )
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    assert unsafe == [
        "torch.nn.modules.container.ModuleDict", "torch.nn.modules.container.Sequential",
        "torch.nn.modules.instancenorm.InstanceNorm1d", "torch.nn.modules.linear.Linear", "torch.nn.modules.rnn.LSTM",
        "torch.nn.modules.sparse.Embedding",
    ]  # fmt: skip
    file.seek(0)
    got = torch.load(file, weights_only=False)
    x = torch.ones(1, 1, 2)
    assert torch.equal(got["a"](x)[0], model["a"](x)[0])


def test_optimizers_schedulers_and_generators():
    p = nn.Parameter(torch.ones(2))
    opt = torch.optim.AdamW([p])
    generator = torch.Generator().manual_seed(3)
    got, gen = round_trip([opt, generator], weights_only=False)
    assert type(got) is torch.optim.AdamW and torch.equal(
        torch.rand(3, generator=gen), torch.rand(3, generator=generator)
    )


def test_same_memory_as_different_types_is_refused():
    t = torch.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([t, t.view(torch.int32)], io.BytesIO())


def test_results_that_carry_history_become_leaves():
    got = round_trip(torch.ones(2, requires_grad=True) * 2)
    assert got.requires_grad and got.is_leaf


# ---- where storages go
def test_map_location():
    file = io.BytesIO()
    torch.save(torch.ones(2), file)

    def load(where):
        file.seek(0)
        return torch.load(file, map_location=where)

    assert load("meta").is_meta and load({"cpu": "meta"}).is_meta and load(torch.device("cpu")).tolist() == [1, 1]
    seen = []
    assert load(lambda storage, tag: seen.append((storage.nbytes(), tag))).tolist() == [1, 1] and seen == [(8, "cpu")]
    assert load(lambda storage, tag: storage.fill_(0)).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        load("cuda")
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        load("foo")
    with pytest.raises(TypeError, match="not callable"):
        load(3.5)


def test_mmap(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.arange(5.0), "b": torch.ones(3, dtype=torch.bfloat16)}, path)
    got = torch.load(path, mmap=True)
    got["w"][0] = 7
    assert got["w"].tolist() == [7, 1, 2, 3, 4] and torch.load(path)["w"][0] == 0
    with torch.serialization.set_default_mmap_options(torch.serialization.MAP_SHARED):
        torch.load(path, mmap=True)["w"][0] = 7
    with pytest.raises(ValueError, match="f must be a file path"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)


def test_big_endian():
    file = io.BytesIO()
    t = torch.tensor([1.0, 2.0])
    torch.save(torch.from_numpy(t.numpy().byteswap()), file, _disable_byteorder_record=True)
    before = torch.serialization.get_default_load_endianness()
    try:
        torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
        file.seek(0)
        assert torch.load(file).tolist() == [1, 2]
    finally:
        torch.serialization.set_default_load_endianness(before)


def test_skip_data():
    file = io.BytesIO()
    with torch.serialization.skip_data():
        torch.save(torch.ones(3), file)
    file.seek(0)
    assert torch.load(file).tolist() == [0, 0, 0]


# ---- files
def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.ones(2), path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save([torch.zeros(2), lambda: None], path)
    assert torch.load(path).tolist() == [1, 1] and os.listdir(tmp_path) == ["a.pt"]


def test_permissions_and_links(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    torch.save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    torch.save(2, link)
    assert link.is_symlink() and torch.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640


def test_bad_targets(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, tmp_path / "no" / "a.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        torch.save(1, 3)
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        torch.load(3)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "no.pt")


def test_every_truncation_is_told():
    file = io.BytesIO()
    torch.save({"a": torch.ones(3)}, file)
    whole = file.getvalue()
    for n in range(4, len(whole), 23):
        with pytest.raises(RuntimeError, match="corrupted"):
            torch.load(io.BytesIO(whole[:n]))
    stream = (RECORDED / "stream.pt").read_bytes()
    for n in range(1, len(stream), 17):
        with pytest.raises(RuntimeError):
            torch.load(io.BytesIO(stream[:n]))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())


def test_changed_data_are_told():
    file = io.BytesIO()
    torch.save(torch.full((4,), 3.0), file)
    data = bytearray(file.getvalue())
    data[data.index(struct.pack("<4f", 3, 3, 3, 3))] ^= 1
    with pytest.raises(RuntimeError, match="crc32 check failed"):
        torch.load(io.BytesIO(data))


def test_streams_that_do_not_seek():
    class Sink:
        def __init__(self):
            self.data = b""

        def write(self, piece):
            self.data += bytes(piece)
            return len(piece)

    sink = Sink()
    torch.save(torch.ones(2), sink)
    assert torch.load(io.BytesIO(sink.data)).tolist() == [1, 1]


def test_tar(tmp_path):
    """The oldest format, put together by hand."""

    class Key(pickle.Pickler):
        def persistent_id(self, value):
            return str(value.key) if isinstance(value, Reference) else None

    text = io.BytesIO()
    Key(text, 2).dump({"w": Reference(2)})
    storage_type = b"\x80\x02K\x01X\x03\x00\x00\x00cpuctorch\nFloatStorage\n\x87."
    storages = pickle.dumps(1, 2) + storage_type + struct.pack("<q6f", 6, *range(6)) + pickle.dumps([], 2)
    tensor_type = b"\x80\x02K\x02K\x01ctorch\nFloatTensor\n\x87."
    tensors = pickle.dumps(1, 2) + tensor_type + struct.pack("<ii2q2qq", 2, 0, 2, 2, 3, 1, 1)
    path = tmp_path / "old.pt"
    with tarfile.open(path, "w") as tar:
        for name, data in (("storages", storages), ("tensors", tensors), ("pickle", text.getvalue())):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    assert torch.load(path, weights_only=False)["w"].tolist() == [[1, 2], [4, 5]]
    with pytest.raises(RuntimeError, match="legacy .tar format"):
        torch.load(path)


class Reference:
    def __init__(self, key):
        self.key = key


def test_wrong_magic():
    assert MAGIC_NUMBER == 119547037146038801333356
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(pickle.dumps([1], 2)))


# ---- plain pickles and copies
def test_plain_pickle_keeps_sharing_and_attributes():
    base = torch.arange(4.0)
    base.note = 1
    p = nn.Parameter(torch.ones(2))
    p.tag = "t"
    got, view, param, bits = pickle.loads(pickle.dumps([base, base[1:], p, base[1:2].view(torch.int32)]))
    got[1] = 9
    assert view[0] == 9 and got.note == 1 and param.tag == "t" and param.requires_grad
    assert bits.item() == torch.tensor([9.0]).view(torch.int32).item()


def test_shallow_copy_shares_memory():
    t = torch.zeros(2)
    copy.copy(t)[0] = 5
    assert t[0] == 5


class Marked(torch.Tensor):
    pass


def test_subclasses_keep_class_and_state():
    t = torch.ones(2).as_subclass(Marked)
    t.note = 3
    for got in (pickle.loads(pickle.dumps(t)), round_trip(t, weights_only=False)):
        assert type(got) is Marked and got.note == 3
    with torch.serialization.safe_globals([Marked]):
        assert type(round_trip(t)) is Marked


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested(layout):
    t = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)], layout=layout).requires_grad_()
    got = round_trip(t)
    assert got.layout is layout and got.requires_grad and [c.tolist() for c in got.unbind()] == [[1, 1], [0, 0, 0]]


def test_lazy_modules_stay_lazy():
    lazy = nn.LazyLinear(3)
    got = round_trip(lazy, weights_only=False)
    assert got(torch.ones(2, 4)).shape == (2, 3) and type(got) is nn.Linear


def test_inside_transforms_is_refused():
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        torch.vmap(lambda x: pickle.dumps(x) and x)(torch.ones(2))


def test_old_streams_are_read_into_place():
    class Counting(io.BytesIO):
        calls = 0

        def readinto(self, buffer):
            self.calls += 1
            return super().readinto(buffer)

    file = io.BytesIO()
    torch.save(torch.arange(6.0), file, _use_new_zipfile_serialization=False)
    counting = Counting(file.getvalue())
    assert torch.load(counting).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and counting.calls


def test_parameters_without_data():
    state = round_trip(nn.Linear(3, 2, device="meta").state_dict())
    assert (
        type(state["weight"]) is torch.Tensor
        and state["weight"].device.type == "meta"
        and state["weight"].shape == (2, 3)
    )
    parameter = round_trip(nn.Parameter(torch.ones(2, device="meta")))
    assert type(parameter) is nn.Parameter and type(parameter.detach()) is torch.Tensor


def test_parameters_of_other_layouts():
    parameter = nn.Parameter(torch.eye(2).to_sparse())
    assert type(parameter.detach()) is torch.Tensor and type(parameter.data) is torch.Tensor
    got = round_trip(parameter)
    assert type(got) is nn.Parameter and got.layout is torch.sparse_coo and got.to_dense().tolist() == [[1, 0], [0, 1]]


class Slotted(torch.Tensor):
    __slots__ = ("part",)


def test_slots_of_subclasses():
    t = torch.ones(2).as_subclass(Slotted)
    t.part, t.word = torch.arange(3.0), "more"
    got = round_trip(t, weights_only=False)
    assert (
        type(got) is Slotted and got.part.tolist() == [0.0, 1.0, 2.0] and got.word == "more" and "part" not in vars(got)
    )


def test_safetensors_files_are_known_by_their_names(tmp_path):
    value = {"a": torch.arange(3), "b": torch.ones(2, dtype=torch.bfloat16)}
    torch.serialization.safetensors.save_file(value, tmp_path / "x.safetensors")
    for where in (None, "cpu", torch.device("cpu")):
        back = torch.load(tmp_path / "x.safetensors", map_location=where)
        assert back.keys() == value.keys() and all(back[k].equal(value[k]) for k in value)
    with pytest.raises(RuntimeError, match="with dict map_location is not supported"):
        torch.load(tmp_path / "x.safetensors", map_location={"cuda:0": "cpu"})


def test_the_environment_may_trust_files(tmp_path, monkeypatch):
    torch.save(torch.nn.Linear(1, 1), tmp_path / "m.pt")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(torch.load(tmp_path / "m.pt"), torch.nn.Linear)


def test_names_that_the_program_allows_are_not_unsafe():
    file = io.BytesIO()
    torch.save(torch.nn.Linear(1, 1), file)
    file.seek(0)
    found = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    assert "torch.nn.modules.linear.Linear" in found
    file.seek(0)
    with torch.serialization.safe_globals([torch.nn.Linear]):
        rest = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    assert set(found) - set(rest) == {"torch.nn.modules.linear.Linear"}
