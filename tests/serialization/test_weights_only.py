"""The safe loader: hostile pickles are refused, and nothing of them runs."""

import builtins
import io
import os
import pickle
import random
import subprocess
import zipfile
from pickle import UnpicklingError

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.serialization import weights_only


def archive(text: bytes, storage: bytes = b"\0" * 16) -> io.BytesIO:
    """A file whose pickle is `text`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, data in (("data.pkl", text), ("byteorder", b"little"), ("data/0", storage), ("version", b"3\n")):
            z.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


class Calls:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


HOSTILE = [
    (os.system, "echo hacked"), (builtins.eval, "1+1"), (builtins.exec, "x=1"), (builtins.getattr, "x", "upper"),
    (builtins.__import__, "os"), (subprocess.check_output, "ls"), (os.popen, "ls"), (pickle.loads, b"N."),
    (torch.load, "x"), (torch.save, 1, "x"), (nn.Linear, 1, 1), (torch.ones, 3),
]  # fmt: skip


@pytest.mark.parametrize("function, args", [(f, a) for f, *a in HOSTILE], ids=[f.__name__ for f, *_ in HOSTILE])
@pytest.mark.parametrize("protocol", [2, 4])
def test_calls_are_refused(function, args, protocol):
    text = pickle.dumps(Calls(function, *args), protocol)
    with pytest.raises(UnpicklingError, match="Weights only load failed"):
        torch.load(archive(text))


@pytest.mark.parametrize(
    "text",
    [
        b"cposix\nsystem\n(S'echo hacked'\ntR.",
        b"(S'echo hacked'\nios\nsystem\n.",
        b"\x80\x02ctorch\nload\n.",
        b"\x80\x02ctorch._utils\n_import_dotted_name\nX\x09\x00\x00\x00os.system\x85R.",
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(c__builtin__\nset\nctorch\nTensor\n)NtR.",
        b"\x80\x02ctorch\nTensor\nK\x03\x85R.",
        b"\x80\x02ctorch\nTensor\n)\x81.",
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
        b"\x80\x02c_codecs\nencode\n}X\x08\x00\x00\x00__code__K\x01sb.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02(K\x01K\x02tQ.",
        b"\x80\x02X\x01\x00\x00\x00aQ.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02h\x05.",
        b"\x80\x02R.",
        b"\x80\x02\x86.",
        b"\x80\x02}]K\x01s.",
        b"\x80\x02K\x01K\x02a.",
        b"\x80\x09N.",
    ],
)
def test_bad_pickles_are_refused(text):
    with pytest.raises(UnpicklingError):
        torch.load(archive(text))


def tensor_pickle(offset: str, size: str, stride: str) -> bytes:
    """A float32 tensor on a storage of four elements, with any geometry."""
    names = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    storage = b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
    value = lambda v: pickle.dumps(v, 2)[2:-1]
    return names + storage + value(offset) + value(size) + value(stride) + b"\x89ccollections\nOrderedDict\n)RtR."


@pytest.mark.parametrize(
    "offset, size, stride",
    [
        (0, (5,), (1,)), (4, (1,), (1,)), (-1, (1,), (1,)), (0, (2,), (-1,)), (1 << 62, (1,), (1,)), (0, (-2,), (1,)),
        (0, (1 << 62, 4), (1, 1)), (0, (2, 2), (1,)), (0, (2.5,), (1,)), (0, ("a",), (1,)), (0, (2,), (1 << 62,)),
    ],
)  # fmt: skip
def test_tensors_outside_their_storage_are_refused(offset, size, stride):
    with pytest.raises((RuntimeError, UnpicklingError)):
        torch.load(archive(tensor_pickle(offset, size, stride)))


def test_tensors_inside_their_storage_are_made():
    assert torch.load(archive(tensor_pickle(1, (2, 2), (0, 1)))).shape == (2, 2)


def test_sparse_indices_are_checked():
    t = torch.eye(3).to_sparse()
    t._indices()[0, 0] = 99
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    with pytest.raises(RuntimeError):
        torch.load(file)


def test_damaged_pickles_never_run_code(monkeypatch):
    """Random changes to a good pickle: a value, or one of the errors of a bad file."""
    file = io.BytesIO()
    torch.save(
        {"a": torch.ones(4), "b": nn.Parameter(torch.ones(2)), "s": torch.eye(2).to_sparse(), "n": [1, "x"]}, file
    )
    with zipfile.ZipFile(file) as z:
        text = z.read("archive/data.pkl")
        storages = {n: z.read(n) for n in z.namelist() if "/data/" in n}
    assert storages
    for name in ("system", "popen", "remove"):
        monkeypatch.setattr(os, name, lambda *a: pytest.fail("code was run"))
    draw = random.Random(0)
    face = torch.ones(64).untyped_storage()
    persistent = lambda entry: torch.TypedStorage(wrap_storage=face, dtype=torch.float32)
    for _ in range(3000):
        changed = bytearray(text)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        try:
            weights_only.load_safe(io.BytesIO(bytes(changed)), persistent)
        except (UnpicklingError, RuntimeError, NotImplementedError, MemoryError):
            pass


# ---- what a program allows
class Point:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("y",)


def saved(value) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_safe_globals():
    file = saved(Point(3))
    with pytest.raises(
        UnpicklingError, match=r"Unsupported global: GLOBAL .*Point was not an allowed global by default"
    ):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Point]):
        assert torch.load(file).x == 3 and torch.serialization.get_safe_globals() == [Point]
    assert torch.serialization.get_safe_globals() == []
    slotted = Slotted()
    slotted.y = 4
    torch.serialization.add_safe_globals([Slotted])
    try:
        assert torch.load(saved(slotted)).y == 4
    finally:
        torch.serialization.clear_safe_globals()


def test_modules_can_be_allowed():
    with torch.serialization.safe_globals([nn.Linear]):
        assert type(torch.load(saved(nn.Linear(2, 3)))) is nn.Linear


def test_allowed_under_another_name():
    with torch.serialization.safe_globals([(Point, "old.place.Point")]):
        text = b"\x80\x02cold.place\nPoint\nK\x05\x85R."
        assert torch.load(archive(text)).x == 5


def test_numpy_scalars():
    file = saved(np.float64(2.5))
    with pytest.raises(UnpicklingError, match="numpy._core.multiarray.scalar"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([np._core.multiarray.scalar, np.dtype, np.dtypes.Float64DType]):
        assert torch.load(file) == 2.5
    file.seek(0)
    assert torch.load(file, weights_only=False) == 2.5


def test_blocked_modules_cannot_be_allowed():
    with torch.serialization.safe_globals([os.system]):
        with pytest.raises(UnpicklingError, match="whose module posix is blocked"):
            torch.load(saved(Calls(os.system, "true")))


def test_unsafe_names_are_listed():
    found = torch.serialization.get_unsafe_globals_in_checkpoint(saved([Point(1), Calls(os.system, "true")]))
    assert found == ["posix.system", f"{Point.__module__}.Point"]
    assert torch.serialization.get_unsafe_globals_in_checkpoint(saved(torch.ones(1))) == []
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"xx"))


def test_choice_of_reader(monkeypatch):
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module"):
        torch.load(saved(1), pickle_module=pickle, weights_only=True)
    assert torch.load(saved(Point(1)), pickle_module=pickle).x == 1
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert torch.load(saved(Point(1))).x == 1
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(saved(1))


def test_errors_of_the_program_pass_through():
    def where(storage, tag):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.load(saved(torch.ones(1)), map_location=where)


def _loaded(program: bytes):
    return weights_only.load_safe(io.BytesIO(program), lambda entry: entry)


def test_what_is_refused_is_named_by_its_kind():
    with pytest.raises(UnpicklingError, match="storage is allowed, but got <class 'int'>"):
        _loaded(b"\x80\x02K*\x85Q.")
    for code, word in ((b"]K\x01K\x02s.", "SETITEM"), (b"](K\x01K\x02u.", "SETITEMS")):
        with pytest.raises(UnpicklingError, match=f"Can only {word} for dict, collections.OrderedDict"):
            _loaded(b"\x80\x02" + code)


class Zone:
    """As `zoneinfo.ZoneInfo`: its pickle names a method of the class."""

    @classmethod
    def _unpickle(cls, key):
        result = cls()
        result.key = key
        return result

    @classmethod
    def _other(cls, key):
        raise AssertionError("not to be called")


def test_methods_are_trusted_one_by_one():
    def program(name):
        module = __name__.encode()
        return (
            b"\x80\x02cbuiltins\ngetattr\n(c" + module + b"\nZone\nX" + len(name).to_bytes(4, "little") + name
            + b"tR(X\x03\x00\x00\x00UTCtR."
        )  # fmt: skip

    with torch.serialization.safe_globals([getattr, Zone, Zone._unpickle]):
        assert _loaded(program(b"_unpickle")).key == "UTC"
        with pytest.raises(UnpicklingError, match="_other of .*Zone"):
            _loaded(program(b"_other"))
