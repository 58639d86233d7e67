"""What cuDNN is told of convolutions, and what of its answers is used: by a library that checks what it is called with."""

from __future__ import annotations

import ctypes

import pytest

import pullback as torch
from pullback.runtime import cudnn
from pullback.runtime.cudnn import FORWARD, KINDS, TO_INPUT, TO_WEIGHT, Convolutions, Refused

OF_CONVOLUTIONS = ctypes.CFUNCTYPE(ctypes.c_int)


def numbers(array, count):
    return tuple(array[:count])


class Library:
    """cuDNN as far as it is called. `algorithms` are (number, status, memory, whether the bits are always the same)."""

    def __init__(self, algorithms=((1, 0, 64, 1),), refuses=()):
        self.algorithms, self.refuses, self.alive, self.calls = algorithms, refuses, {}, []
        self.cudnnSetStream = OF_CONVOLUTIONS(lambda: 0)
        for name in ("Forward", "BackwardData", "BackwardFilter"):
            setattr(self, f"cudnnConvolution{name}", OF_CONVOLUTIONS(lambda: 0))

    def __getattr__(self, name):
        if not name.startswith("cudnn"):
            raise AttributeError(name)
        return lambda *args: 3 if name in self.refuses else self.answer(name, *args)

    def answer(self, name, *args):
        self.calls.append(name)
        if name == "cudnnGetVersion":
            return 91900
        if name == "cudnnCreate" or "Create" in name:
            args[0]._obj.value = len(self.calls)
            self.alive[len(self.calls)] = name.removeprefix("cudnnCreate")
        elif "Destroy" in name:
            assert self.alive.pop(args[0].value) == name.removeprefix("cudnnDestroy")
        elif "Algorithm" in name:
            self.choose(*args)
        else:
            self.describe(name, *args)
        return 0

    def describe(self, name, place, *args):
        kind = self.alive[place.value]
        if name == "cudnnSetTensorNdDescriptor":
            self.alive[place.value] = ("tensor", args[0], numbers(args[2], args[1]), numbers(args[3], args[1]))
        elif name == "cudnnSetFilterNdDescriptor":
            self.alive[place.value] = ("filter", args[0], args[1], numbers(args[3], args[2]))
        elif name == "cudnnSetConvolutionNdDescriptor":
            self.convolution = [numbers(a, args[0]) for a in args[1:4]] + list(args[4:])
        elif name == "cudnnSetConvolutionGroupCount":
            self.groups = args[0]
        elif name == "cudnnSetConvolutionMathType":
            self.math = args[0]
        else:
            pytest.fail(f"{name} of {kind}")

    def choose(self, handle, first, second, how, result, most, count, found):
        self.order = [self.alive[d.value][0] for d in (first, second, result)]
        assert most >= len(self.algorithms) and handle.value
        for k, (number, status, memory, fixed) in enumerate(self.algorithms):
            found[k] = cudnn.Performance(algorithm=number, status=status, memory=memory, determinism=fixed, math=k)
        count._obj.value = len(self.algorithms)


@pytest.fixture
def using(monkeypatch):
    def use(*args, **kwargs):
        library = Library(*args, **kwargs)
        monkeypatch.setattr(cudnn, "library", lambda: library)
        monkeypatch.setattr(cudnn, "_of_thread", type("Empty", (), {})())
        cudnn._prepared.cache_clear()
        return library

    yield use
    cudnn._prepared.cache_clear()


def geometry(last=False, kind="float32", groups=1):
    def side(n, c, h, w):
        return (n, c, h, w), (c * h * w, 1, w * c, c) if last else (c * h * w, h * w, w, 1)

    sides = side(2, 4, 8, 6), side(6, 4 // groups, 3, 3), side(2, 6, 4, 3)
    return cudnn.geometry(sides, kind, (2, 2), (1, 1), (1, 1), groups)


def test_each_form_takes_its_operands_in_its_order(using):
    library = using()
    for form, order in ((FORWARD, "tft"), (TO_INPUT, "ftt"), (TO_WEIGHT, "ttf")):
        made = cudnn.prepared(form, geometry(), 0)
        assert "".join(kind[0] for kind in library.order) == order
        entry = made.entry()
        assert [entry.first, entry.second, entry.result] == [d.place.value for d in made.described]
        assert (entry.algorithm, entry.form, entry.workspace, entry.double) == (1, form, 64, 0)
    assert library.convolution == [(1, 1), (2, 2), (1, 1), 1, 0]
    assert cudnn.prepared(TO_WEIGHT, geometry(), 0) is made  # once for each geometry


def test_layouts_and_kinds_are_told(using):
    library = using()
    made = cudnn.prepared(FORWARD, geometry(last=True, groups=2), 0)
    described = [library.alive[d.place.value] for d in (made.x, made.w, made.y)]
    assert described[0] == ("tensor", KINDS["float32"], (2, 4, 8, 6), (192, 1, 24, 4))
    assert described[1] == ("filter", KINDS["float32"], 1, (6, 2, 3, 3)) and library.groups == 2
    doubles = cudnn.prepared(FORWARD, geometry(kind="float64"), 0)
    assert doubles.entry().double == 1 and library.convolution[-1] == 1
    cudnn._prepared.cache_clear()
    del made, doubles
    assert set(library.alive.values()) == {""}  # the handle stays, what was described is freed


def test_the_first_algorithm_that_may_be_used_is(using):
    huge = cudnn.MOST_WORKSPACE + 1
    library = using([(7, 1, 0, 1), (6, 0, huge, 1), (5, 0, 32, 0), (4, 0, 16, 1)])
    assert cudnn.prepared(FORWARD, geometry(), 0).algorithm == 5 and library.math == 2
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        assert cudnn.prepared(FORWARD, geometry(), 0).algorithm == 4
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        cudnn.prepared(FORWARD, geometry(), 0)
    assert "cudnnFindConvolutionForwardAlgorithm" in library.calls
    with torch.backends.cudnn.flags(enabled=False):
        assert cudnn.prepared(FORWARD, geometry(), 0) is None


@pytest.mark.parametrize(
    "name",
    ["cudnnCreateTensorDescriptor", "cudnnSetFilterNdDescriptor", "cudnnSetConvolutionGroupCount",
     "cudnnSetConvolutionMathType", "cudnnGetConvolutionForwardAlgorithm_v7"],
)  # fmt: skip
def test_what_cudnn_refuses_is_left_to_others(using, name):
    using(refuses=(name,))
    assert cudnn.prepared(FORWARD, geometry(groups=2), 0) is None
    with pytest.raises(Refused):
        cudnn.Convolution(FORWARD, geometry(groups=2), False, False, False, 0)


def test_no_algorithm_fits(using):
    using([(1, 9, 0, 1)])
    assert cudnn.prepared(TO_INPUT, geometry(), 0) is None


def test_a_launcher_is_told_where_everything_is(using):
    library = using()
    found = Convolutions([cudnn.prepared(FORWARD, geometry(), 0), cudnn.prepared(TO_INPUT, geometry(last=True), 0)])
    told = found.told(0, 4096)
    assert told.workspace == 4096 and told.convolutions == ctypes.addressof(found.entries) and told.handle
    assert told.to_input == ctypes.cast(library.cudnnConvolutionBackwardData, ctypes.c_void_p).value
    assert found.workspace == 64


def test_without_the_library_there_is_nothing(monkeypatch):
    monkeypatch.setattr(cudnn, "library", lambda: None)
    monkeypatch.setattr(cudnn, "_of_thread", type("Empty", (), {})())
    assert cudnn.version() is None and cudnn.handle(3) is None and cudnn.prepared(FORWARD, geometry(), 3) is None


def test_the_library_is_looked_for_by_its_names(monkeypatch):
    asked = []

    def load(name):
        asked.append(name)
        if name != "libcudnn.so.8":
            raise OSError(name)
        return Library()

    monkeypatch.setattr(cudnn.ctypes, "CDLL", load)
    found = cudnn.library.__wrapped__()
    assert isinstance(found, Library) and asked[:2] == ["libcudnn.so.9", "libcudnn.so.8"]
    monkeypatch.setattr(cudnn, "library", lambda: found)
    assert cudnn.version() == 91900
