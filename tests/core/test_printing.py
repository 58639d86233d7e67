"""Texts recorded from PyTorch, and what must hold for any array."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.core import printing
from pullback.core.geometry import Geometry
from pullback.core.modes import process
from pullback.core.printing import (
    format_sparse,
    format_tensor,
    format_wrapper,
    get_printoptions,
    printoptions,
    set_printoptions,
    tensor_repr,
)

nan, inf = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def default_options():
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def text(values, dtype="float32", **keywords):
    array = np.asarray(values, dtype=getattr(ml_dtypes, dtype, None) or dtype)
    return format_tensor(array, f"torch.{dtype}", **keywords)


@pytest.mark.parametrize(
    "values, dtype, expected",
    [
        (3.5, "float32", "tensor(3.5000)"),
        (2.0, "float32", "tensor(2.)"),
        (-0.0, "float32", "tensor(-0.)"),
        (nan, "float32", "tensor(nan)"),
        (7, "int64", "tensor(7)"),
        (True, "bool", "tensor(True)"),
        ([1.0, 2.0, 3.0], "float32", "tensor([1., 2., 3.])"),
        ([1e-5, 1.0], "float32", "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e8, 1.0], "float32", "tensor([1.0000e+08, 1.0000e+00])"),
        ([1.0, 1000.0], "float32", "tensor([   1., 1000.])"),
        ([1.5, 2.25, 3, -1e4], "float32", "tensor([ 1.5000e+00,  2.2500e+00,  3.0000e+00, -1.0000e+04])"),
        ([nan, 1.5], "float32", "tensor([   nan, 1.5000])"),
        ([-inf, 1.0], "float32", "tensor([-inf, 1.])"),
        ([-0.0, 1e9], "float32", "tensor([-0.0000e+00, 1.0000e+09])"),
        ([1.0, 2.0], "float64", "tensor([1., 2.], dtype=torch.float64)"),
        ([0.1, 2.0], "float16", "tensor([0.1000, 2.0000], dtype=torch.float16)"),
        ([0.1, 2.0], "bfloat16", "tensor([0.1001, 2.0000], dtype=torch.bfloat16)"),
        ([0.25, 2, 4], "float8_e8m0fnu", "tensor([0.2500, 2.0000, 4.0000], dtype=torch.float8_e8m0fnu)"),
        ([nan, 4.0], "float8_e8m0fnu", "tensor([   nan, 4.0000], dtype=torch.float8_e8m0fnu)"),
        ([1.0, 448.0], "float8_e4m3fn", "tensor([  1., 448.], dtype=torch.float8_e4m3fn)"),
        ([1, -20], "int64", "tensor([  1, -20])"),
        ([1, 20], "uint8", "tensor([ 1, 20], dtype=torch.uint8)"),
        ([2**63 + 5], "uint64", "tensor([9223372036854775813], dtype=torch.uint64)"),
        ([True, False], "bool", "tensor([ True, False])"),
        (1 + 2j, "complex64", "tensor(1.+2.j)"),
        (
            [complex(nan, 0), 1 - 2.5j, complex(1, -inf), complex(-0.0, -0.0)],
            "complex64",
            "tensor([nan+0.0000j, 1.-2.5000j, 1.-infj, -0.-0.0000j])",
        ),
        ([1 + 1j], "complex128", "tensor([1.+1.j], dtype=torch.complex128)"),
        ([], "float32", "tensor([])"),
        ([], "int64", "tensor([], dtype=torch.int64)"),
        (np.empty((0, 3)), "bool", "tensor([], size=(0, 3), dtype=torch.bool)"),
    ],
)
def test_elements(values, dtype, expected):
    assert text(values, dtype) == expected


def test_brackets_and_blank_lines():
    assert text(np.arange(8).reshape(2, 2, 2), "int64") == (
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"
    )
    assert text(np.zeros((2, 1, 1, 1))) == "tensor([[[[0.]]],\n\n\n        [[[0.]]]])"


def test_wrapping_at_the_line_width():
    lines = text(np.full(30, 0.123)).split("\n")
    assert lines[0] == "tensor([" + "0.1230, " * 8 + "0.1230,"
    assert lines[-1] == "        0.1230, 0.1230, 0.1230])"
    with printoptions(linewidth=10):
        assert text([1.0, 2.0, 300.0]) == "tensor([  1.,\n          2.,\n        300.])"


def test_large_tensors_are_cut_to_their_edges():
    assert text(np.arange(2000), "int64") == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    assert text(np.arange(2000), "float64") == (
        "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n"
        "        1.9990e+03], dtype=torch.float64)"
    )
    with printoptions(edgeitems=1, threshold=3):
        assert text(np.arange(20).reshape(4, 5), "int64") == (
            "tensor([[ 0,  ...,  4],\n        ...,\n        [15,  ..., 19]])"
        )
    with printoptions(edgeitems=0, threshold=3):
        assert text(np.arange(20).reshape(4, 5), "int64") == "tensor([...], size=(4, 5))"


def test_the_format_is_chosen_from_what_is_shown():
    values = np.ones(2000)
    values[1000] = 1e9
    assert text(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_suffixes_break_to_a_new_line_when_they_do_not_fit():
    assert text([1.0], suffixes=["grad_fn=<MulBackward0>"]) == "tensor([1.], grad_fn=<MulBackward0>)"
    assert text(np.full(9, 0.5), "float64", suffixes=["requires_grad=True"]) == (
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n"
        "       dtype=torch.float64, requires_grad=True)"
    )


def test_the_default_dtype_goes_without_saying():
    assert text([1.0], "float64", default_dtype="torch.float64") == "tensor([1.])"
    assert text([1.0], default_dtype="torch.float64") == "tensor([1.], dtype=torch.float32)"
    assert text([1j], "complex128", default_dtype="torch.float64") == "tensor([0.+1.j])"


def test_options():
    with printoptions(precision=2):
        assert text(1.23456) == "tensor(1.23)"
    assert text(1.23456) == "tensor(1.2346)"
    with printoptions(sci_mode=False):
        assert text([1e-5, 1.0]) == "tensor([0.0000, 1.0000])"
    with printoptions(sci_mode=True, precision=0):
        assert text([1.0, -300.0]) == "tensor([ 1e+00, -3e+02])"
        assert text(0.0) == "tensor(0.)"
    set_printoptions(profile="full", precision=7)
    assert get_printoptions() == dict(precision=7, threshold=inf, edgeitems=3, linewidth=80, sci_mode=None)
    set_printoptions(profile="short")
    assert get_printoptions() == dict(precision=2, threshold=1000, edgeitems=2, linewidth=80, sci_mode=None)


def test_a_failing_block_restores_the_options():
    with pytest.raises(KeyError), printoptions(precision=1):
        raise KeyError
    assert get_printoptions()["precision"] == 4


@pytest.mark.parametrize("bad", [{"profile": "loud"}, {"edgeitems": -1}, {"precision": -2}])
def test_options_that_mean_nothing_raise(bad):
    with pytest.raises(ValueError):
        set_printoptions(**bad)
    assert printing._options == printing.PROFILES["default"]


def test_sparse():
    coo = {"indices": np.array([[0, 1], [1, 0]]), "values": np.array([1.0, 2.0])}
    assert format_sparse(coo, "torch.float64", size=(2, 2), nnz=2, layout="torch.sparse_coo") == (
        "tensor(indices=tensor([[0, 1],\n"
        "                       [1, 0]]),\n"
        "       values=tensor([1., 2.]),\n"
        "       size=(2, 2), nnz=2, dtype=torch.float64, layout=torch.sparse_coo)"
    )
    csr = {"crow_indices": np.zeros(4, int), "col_indices": np.zeros(0, int), "values": np.zeros(0, np.float32)}
    assert format_sparse(csr, "torch.float32", size=(3, 4), nnz=0, layout="torch.sparse_csr") == (
        "tensor(crow_indices=tensor([0, 0, 0, 0]),\n"
        "       col_indices=tensor([], size=(0,)),\n"
        "       values=tensor([], size=(0,)), size=(3, 4), nnz=0,\n"
        "       layout=torch.sparse_csr)"
    )


def test_wrappers_indent_what_they_hold():
    assert format_wrapper("BatchedTensor", "tensor([[1.],\n        [1.]])", lvl=1, bdim=0) == (
        "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1.],\n            [1.]])\n)"
    )


class Tensor(SimpleNamespace):
    """Just what the text is read from."""

    def __init__(self, array, dtype="torch.float32", device="cpu", requires_grad=False, grad_fn=None, **rest):
        super().__init__(dtype=dtype, device=device, requires_grad=requires_grad, grad_fn=grad_fn, **rest)
        self._array = array
        self.shape = getattr(self, "shape", None) or array.shape


class Parameter(Tensor):
    pass


class AddBackward0:
    pass


def test_tensor_repr():
    one = np.ones(2, np.float32)
    assert tensor_repr(Tensor(one)) == "tensor([1., 1.])"
    assert tensor_repr(Tensor(one, requires_grad=True)) == "tensor([1., 1.], requires_grad=True)"
    assert tensor_repr(Tensor(one, grad_fn=AddBackward0())) == "tensor([1., 1.], grad_fn=<AddBackward0>)"
    assert tensor_repr(Tensor(one, device="cuda:0")) == "tensor([1., 1.], device='cuda:0')"
    assert tensor_repr(Parameter(one)) == "tensor([1., 1.])"
    assert tensor_repr(type("Sub", (Tensor,), {})(one)) == "Sub([1., 1.])"
    assert tensor_repr(Tensor(one), tangent="tensor([3., 3.])") == "tensor([1., 1.], tangent=tensor([3., 3.]))"
    meta = Tensor(Geometry((2, 3), (3, 1), np.dtype(int)), "torch.int64", "meta")
    assert tensor_repr(meta) == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"


def test_pending_conjugates_and_signs_are_carried_out():
    array = np.array([1 + 2j], np.complex64)
    assert tensor_repr(Tensor(array, "torch.complex64", is_conj=lambda: True)) == "tensor([1.-2.j])"
    assert tensor_repr(Tensor(np.ones(1, np.float32), is_neg=lambda: True)) == "tensor([-1.])"


def test_a_view_that_lost_its_graph_still_prints():
    class Lost(Tensor):
        @property
        def grad_fn(self):
            raise RuntimeError("the view and its base were changed in place")

        @grad_fn.setter
        def grad_fn(self, value):
            pass

    assert tensor_repr(Lost(np.ones(1))) == "Lost([1.], grad_fn=<Invalid>)"


def test_sparse_parts_are_asked_of_the_tensor():
    part = {"_indices": np.array([[0]]), "_values": np.ones(1, np.float32)}
    methods = {name: (lambda array=array: Tensor(array)) for name, array in part.items()}
    t = Tensor(None, layout="torch.sparse_coo", shape=(2,), _nnz=lambda: 1, **methods)
    assert tensor_repr(t).endswith("values=tensor([1.]),\n       size=(2,), nnz=1, layout=torch.sparse_coo)")


def test_tensor_repr_follows_the_default_dtype(monkeypatch):
    monkeypatch.setattr(process, "default_dtype", "torch.float64")
    assert tensor_repr(Tensor(np.ones(1), "torch.float64")) == "tensor([1.])"


class DeviceArray:
    """An array that lives elsewhere: it can be cut down where it is, and only then fetched."""

    def __init__(self, array):
        self.array, self.size, self.ndim, self.shape = array, array.size, array.ndim, array.shape

    def take(self, indices, axis):
        return DeviceArray(self.array.take(indices, axis))

    def get(self):
        assert self.size <= 6
        return self.array


def test_only_the_edges_of_a_device_array_are_fetched():
    assert format_tensor(DeviceArray(np.arange(5000)), "torch.int64") == text(np.arange(5000), "int64")


shapes = st.lists(st.integers(1, 6), max_size=4).map(tuple)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 2**32 - 1), st.integers(-6, 9))
def test_numbers_read_back(shape, seed, scale):
    array = np.random.default_rng(seed).standard_normal(shape) * 10.0**scale
    with printoptions(precision=17, sci_mode=True):
        shown = format_tensor(array, "torch.float32").replace("\n", " ")
    read = np.array(eval(shown, {"tensor": lambda values: values}))
    assert read.shape == shape
    np.testing.assert_array_equal(read, array)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 2**32 - 1), st.integers(40, 120))
def test_lines_fit(shape, seed, linewidth):
    array = np.random.default_rng(seed).integers(-1000, 1000, shape)
    with printoptions(linewidth=linewidth):
        lines = format_tensor(array, "torch.int64").split("\n")
    assert max(map(len, lines)) <= linewidth + len(shape)  # the closing brackets may stand out


def test_a_text_in_the_place_of_numbers():
    assert torch.ones(2, dtype=torch.float64).__repr__(tensor_contents="zz") == "tensor(zz, dtype=torch.float64)"
    assert torch.ones(2, device="meta").__repr__(tensor_contents="zz") == "tensor(zz, device='meta', size=(2,))"


def test_parameters_of_other_classes_say_what_they_are():
    import pullback as torch

    class Own(torch.Tensor):
        pass

    class OwnParameter(torch.nn.Parameter):
        pass

    assert repr(torch.nn.Parameter(Own([1.0]))) == "Parameter(Own([1.], requires_grad=True))"
    assert repr(OwnParameter(torch.ones(1))) == "Parameter containing:\nOwnParameter([1.], requires_grad=True)"
