"""Calls that are one look-up and their launches, on an emulated device: what comes back, what is recorded, what is not plain."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as torch
from pullback.codegen.cuda import calls, elements, operators
from pullback.core.tensor import assemble
from pullback.ops.system.dispatch import autograd_layer as real_autograd_layer
from pullback.ops.system.operator import find

pytestmark = pytest.mark.skipif(
    calls.native is None or shutil.which("g++") is None, reason="needs the extension and a C++ compiler"
)


_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_uint
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, *[_COUNT] * 7, _POINTER, _POINTER, _POINTER)


@pytest.fixture
def emulated(monkeypatch):
    """Tensors of the CPU in the place of a device's: `call(name, *args)` goes the way that a call on a device goes."""
    from tests.codegen.cuda.emulator import EmulatedMachine, EmulatedSegment

    machine = EmulatedMachine()
    launches: dict[int, Any] = {}  # by kernel: the launch of the library that it is in

    @LAUNCH
    def launch(kernel, *rest):
        return launches[kernel](kernel, *rest)

    def function(text, name):
        found = EmulatedMachine.function(machine, text, name)
        launches[found.ptr] = LAUNCH(found.launch)
        return found

    monkeypatch.setattr(machine, "function", function)
    monkeypatch.setattr(elements, "on_device", lambda where: machine)
    for name in ("_calls", "_functions", "_texts"):
        monkeypatch.setattr(elements, name, type(getattr(elements, name))())
    monkeypatch.setattr(operators, "segment_class", EmulatedSegment)
    monkeypatch.setattr(operators, "_programs", type(operators._programs)())
    monkeypatch.setattr(calls, "ready", lambda: True)
    monkeypatch.setattr(operators, "ready", lambda: True)
    calls.setup(lambda: 0, np.empty, lambda a: a.ctypes.data, 0, ctypes.cast(launch, ctypes.c_void_p).value)

    def execute(op, args):
        return (elements if op.family is elements.POINTWISE else operators).run(op, args, op.tensors(args)[0].device)

    monkeypatch.setattr(calls, "autograd_layer", lambda op, args: recorded(op, execute(op, args), args))

    def recorded(op, result, args):
        if any(t.requires_grad for t in op.tensors(args)):
            op.record(result, *args)
        return result

    def call(name, *args):
        op = find(name)
        return calls.run_plain(op, op.bind(args, {}))

    yield call
    calls.native.setup(*_nobody())


def _nobody():
    return (torch.Tensor, torch.nn.Parameter, bool, int, int, None, set(), int, int, 0, 0, ())


def check(got, want):
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            check(g, w)
        return
    if want is None:
        assert got is None
        return
    assert got.dtype is want.dtype and got.shape == want.shape and got.stride() == want.stride()
    assert torch.allclose(got.double(), want.double(), rtol=1e-5, atol=1e-6), (got, want)


x, y = torch.rand(6, 40) + 0.5, torch.rand(6, 40)
CALLS = {
    "mul.Tensor": (x, y),
    "add.Tensor": (x, y),
    "exp.default": (x.t(),),
    "_softmax.default": (x, -1, False),
    "sum.dim_IntList": (x, (0,), True, None),
    "native_layer_norm.default": (x, (40,), y[0].clone(), y[1].clone(), 1e-5),
    "mm.default": (x, y.t().contiguous()),
    "max.dim": (x, 1, False),
    "var_mean.correction": (x, (1,)),
    "cat.default": ([x, y, x[:, :7]], 1),
    "stack.default": ((x, y), 0),
    "index.Tensor": (x, [None, torch.tensor([3, 1, 39])]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call_gives_what_the_operator_gives(emulated, name):
    args = CALLS[name]
    want = find(name)(*args)
    for _ in range(3):
        check(emulated(name, *args), want)
    op = find(name)
    assert calls.native.found(op, op.bind(args, {})) is not None


def test_numbers_travel_and_other_signatures_are_other_calls(emulated):
    for number in (2.0, 3.5, -0.0):
        check(emulated("mul.Tensor", x, number), x * number)
    check(emulated("mul.Tensor", x[:, ::2], 2.0), x[:, ::2] * 2.0)
    check(emulated("mul.Tensor", x[:, ::2], 4.0), x[:, ::2] * 4.0)
    half = x.half()
    for _ in range(2):
        check(emulated("mul.Tensor", half, 1.1), half * 1.1)


def test_a_second_call_is_recorded(emulated):
    for _ in range(2):
        a = x.clone().requires_grad_()
        result = emulated("mul.Tensor", a, y)
        assert result.requires_grad and not emulated("mul.Tensor", x, y).requires_grad
        result.sum().backward()
        check(a.grad, y)


def test_arguments_that_are_converted_are_recorded_as_the_operator_wants_them(emulated):
    for _ in range(2):
        a = x.clone().requires_grad_()
        result = emulated("sum.dim_IntList", a, [1], False, None)
        check(result.detach(), x.sum(1))
        result.backward(torch.ones(6))
        check(a.grad, torch.ones_like(x))


COMPOSITES = {
    "softmax.int": (-1,),
    "log_softmax.int": (0,),
    "layer_norm.default": ([6],),
    "max_pool2d.default": ([2, 2],),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_composite_that_is_one_call_is_looked_up_at_once(emulated, name):
    op, rest = find(name), COMPOSITES[name]
    x = torch.randn(2, 3, 4, 6, requires_grad=True)
    args = op.bind((x, *rest), {})
    assert emulated(name, x, *rest) is None  # the first goes the long way
    for _ in range(3):
        check(emulated(name, x, *rest), op(x, *rest))
    got = calls.native.plain(op, args, 1)
    want = op(x, *rest)
    check(got, want)
    assert type(got.grad_fn).__name__ == type(want.grad_fn).__name__
    g = torch.randn_like(want)
    check(torch.autograd.grad(got, x, g)[0], torch.autograd.grad(want, x, g)[0])
    with torch.no_grad():
        assert calls.native.plain(op, args, 0).grad_fn is None


def test_tensors_in_lists_are_recorded_as_the_operator_wants_them(emulated):
    for _ in range(3):
        a = x.clone().requires_grad_()
        result = emulated("cat.default", [y, a], 0)
        check(result.detach(), torch.cat([y, x]))
        result.backward(torch.cat([x, y]))
        check(a.grad, y)
    check(emulated("cat.default", [y, x, y], 0), torch.cat([y, x, y]))  # another signature
    check(emulated("cat.default", [y, x], 0), torch.cat([y, x]))  # and nothing is left of tensors before


def test_conversions_are_calls_where_they_stay_on_the_device(emulated):
    op = find("_to_copy.default")
    convert = lambda t, d, where=None: (t, d, None, where, None, False, None)
    for d in (torch.bfloat16, torch.float64, torch.bfloat16, torch.int32):
        got = calls.run_plain(op, convert(x, d))
        assert got.dtype is d and torch.equal(got, x.to(d))
    assert calls.native.found(op, convert(x, torch.bfloat16)) is not None
    assert calls.native.found(op, convert(x, torch.float16)) is None
    check(calls.run_plain(op, convert(x, torch.float16, x.device)), x.half())
    elsewhere = convert(x, torch.float32, torch.device("meta"))
    assert operators.run(op, elsewhere, x.device) is None and calls.run_plain(op, elsewhere) is None


def test_what_is_not_plain_is_left_to_others(emulated):
    emulated("mul.Tensor", x, y)
    assert emulated("detach.default", x) is None  # what history it has is not its geometry's matter
    with torch.autograd.forward_ad.dual_level():
        assert emulated("mul.Tensor", x, y) is None


class Memory(NamedTuple):
    """What arrays of a device have as `data`: an address to which distances are added."""

    ptr: int

    def __add__(self, distance):
        return Memory(self.ptr + distance)


class Array(np.ndarray):
    data = property(lambda self: Memory(self.ctypes.data))


def window(shape, dtype, data, strides):
    size = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(data.ptr), 0, strides).view(Array)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("view.default", [(3, 80)]),
        ("t.default", []),
        ("select.int", [0, 2]),
        ("slice.Tensor", [1, 3, 30, 2]),
        ("expand.default", [(2, 6, 40), False]),
        ("unsqueeze.default", [1]),
    ],
)
def test_views(emulated, monkeypatch, name, rest, live):
    monkeypatch.setattr(calls, "autograd_layer", real_autograd_layer)
    calls.setup(lambda: 0, window, None, 0, 0)
    base = assemble(torch.Tensor, x.numpy().copy().view(Array), x.dtype, x.device, 0, None, [0], None, 0)
    source, known = (t.requires_grad_() if live else t for t in (base, x.clone()))
    op = find(name)
    want = emulated(name, known, *rest)  # the first call of a signature
    assert want._is_view() and calls.native.found(op, op.bind((known, *rest), {})) is not None
    for _ in range(2):
        got = emulated(name, source, *rest)
        check(got.detach(), want.detach())
        assert got.storage_offset() == want.storage_offset() and got._is_view() and got._base is base
        assert got.requires_grad == live and got._version == base._version
    if live:
        got.backward(torch.ones(got.shape))
        want.backward(torch.ones(got.shape))
        check(source.grad, known.grad)


def test_an_operator_has_a_bounded_number_of_programs(emulated, monkeypatch):
    monkeypatch.setattr(operators, "MOST_PROGRAMS", 1)
    check(emulated("_softmax.default", x, -1, False), x.softmax(-1))
    assert emulated("_softmax.default", y[:3], -1, False) is None
    check(emulated("_softmax.default", x, -1, False), x.softmax(-1))


def test_a_small_graph_is_one_call(emulated):
    from pullback.capture.trace.make_fx import make_fx
    from tests.codegen.cuda.emulator import EmulatedSegment

    f = lambda x, y: ((x * y).relu(), (x + y).sum(1))
    whole = make_fx(f, tracing_mode="fake")(x, y).graph
    nodes = [n for n in whole.nodes if n.op == "call_function"]
    segment = EmulatedSegment(nodes, list(next(n for n in whole.nodes if n.op == "output").args[0]))
    segment.build()
    call = segment.native_call((0, 1), (0, 1))
    check(calls.native.run(call, [x, y]), f(x, y))
    cut = torch.rand(241)[1:].view(6, 40)
    assert calls.native.run(call, [cut, y]) is NotImplemented  # it begins between vectors
    assert segment.native_call(tuple(range(30)), (0, 1)) is None  # more tensors than a call may have
    with pytest.raises(TypeError, match="call, list of tensors"):
        calls.native.run(call, (x, y))


def test_copies_travel_with_the_launch():
    """Rows of addresses to write and to read, and bytes; what is large is left for a copy of its own."""
    from pullback.core import cuda_copies

    here = contextlib.nullcontext()
    arrays = [SimpleNamespace(data=SimpleNamespace(ptr=16 * k), nbytes=8 * k, device=here) for k in range(1, 400)]
    pairs = list(zip(arrays[:180], arrays[180:360], strict=True))
    large = SimpleNamespace(data=SimpleNamespace(ptr=7), nbytes=cuda_copies.SMALL + 1, device=here)
    launched = []
    kernel = lambda grid, block, arguments: launched.append((grid, arguments[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_copies, "_kernel", lambda: kernel)
        assert cuda_copies.copy_together([*pairs, (large, large)]) == [(large, large)]
    assert [grid for grid, _ in launched] == [(cuda_copies.MOST,), (20,)]
    assert launched[1][1].size == 1 and launched[1][1].nbytes <= 4096
    table = np.frombuffer(launched[1][1].tobytes(), np.int64).reshape(3, -1)
    assert not table[:, 20:].any()
    first = pairs[cuda_copies.MOST]
    assert table[:, 0].tolist() == [first[0].data.ptr, first[1].data.ptr, first[0].nbytes]
