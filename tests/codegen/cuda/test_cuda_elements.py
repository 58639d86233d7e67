"""Element-wise operators by printed kernels give what the array library gives: on an emulated device."""

from __future__ import annotations

import shutil

import pytest

import pullback as torch
from pullback.codegen.cuda import elements
from pullback.core.device import cpu
from pullback.ops.system.operator import find


@pytest.fixture
def emulated(monkeypatch):
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    from tests.codegen.cuda.emulator import EmulatedMachine

    machine = EmulatedMachine()
    monkeypatch.setattr(elements, "on_device", lambda where: machine)
    for name in ("_calls", "_functions", "_texts"):
        monkeypatch.setattr(elements, name, type(getattr(elements, name))())
    monkeypatch.setattr(elements, "_baked", set(elements._baked))

    def call(name, *args, target=None):
        op = find(name)
        return elements.run(op, op.bind(args, {}), cpu, target)

    return call


def check(got, want):
    assert got is not None and got.dtype is want.dtype and got.shape == want.shape and got.stride() == want.stride()
    tolerance = 1e-2 if want.dtype in (torch.bfloat16, torch.float16) else 1e-5
    assert torch.allclose(got.double(), want.double(), rtol=tolerance, atol=1e-6, equal_nan=True), (got, want)


def random(*shape, dtype=torch.float32):
    return (torch.rand(*shape) * 3 + 0.1).to(dtype)


CALLS = {
    "mul.Tensor": lambda: (random(37), random(37)),
    "add.Tensor": lambda: (random(5, 8), random(8)),  # repeated along rows
    "sub.Tensor": lambda: (random(4, 6).t(), random(6, 4)),  # two orders
    "div.Tensor": lambda: (random(3, 1, 4), random(5, 1)),
    "exp.default": lambda: (random(1030, dtype=torch.bfloat16),),
    "gelu.default": lambda: (random(300, dtype=torch.float16),),
    "tanh.default": lambda: (random(66).double(),),
    "gt.Tensor": lambda: (random(40), random(40)),
    "where.self": lambda: (random(4, 5) > 1, random(4, 5), random(5)),
    "clamp.default": lambda: (random(50), 0.5, 1.5),
    "threshold_backward.default": lambda: (random(33), random(33), 1.0),
    "lerp.Scalar": lambda: (random(9), random(9), 0.25),
    "pow.Tensor_Scalar": lambda: (random(21), 2),
    "addcmul.default": lambda: (random(4, 3), random(4, 3), random(1, 3)),
    "silu.default": lambda: (random(2, 3, 4, 5).to(memory_format=torch.channels_last),),
    "bitwise_and.Tensor": lambda: (torch.arange(40), torch.arange(40) * 3),
    "logical_not.default": lambda: (torch.arange(9) > 4,),
}


@pytest.mark.parametrize("name", CALLS)
def test_operators(emulated, name):
    torch.manual_seed(0)
    args = CALLS[name]()
    check(emulated(name, *args), find(name)(*args))


def test_dtypes_meet(emulated):
    a, b = random(12, dtype=torch.bfloat16), random(12)
    check(emulated("mul.Tensor", a, b), a * b)
    check(emulated("mul.Tensor", torch.arange(12), b), torch.arange(12) * b)


def test_numbers_travel_with_the_launch(emulated):
    x = random(10)
    for value in (2.0, 3.5, 7, 1e-3):
        check(emulated("mul.Tensor", x, value), x * value)
    assert len(elements._functions) == 1
    for value in (2, 3):
        check(emulated("pow.Tensor_Scalar", x, value), x**value)
    assert len(elements._functions) == 3  # the rule for a power depends on it
    narrow = random(10, dtype=torch.bfloat16)
    check(emulated("mul.Tensor", narrow, 1.1), narrow * 1.1)
    big = random(4).double()
    check(emulated("mul.Tensor", big, 1e300), big * 1e300)


def test_sizes_share_a_kernel(emulated):
    for shape in ((5,), (1000,), (3, 7), (2, 3, 4)):
        x, y = random(*shape), random(*shape)
        check(emulated("add.Tensor", x, y), x + y)
    assert len(elements._functions) == 1


def test_addresses_that_vectors_cannot_be_read_from(emulated):
    x = random(41)
    check(emulated("exp.default", x[1:]), x[1:].exp())
    check(emulated("mul.Tensor", x[1:], x[:-1]), x[1:] * x[:-1])
    check(emulated("mul.Tensor", x[::2], x[:21]), x[::2] * x[:21])


def test_results_in_place(emulated):
    x, y = random(6, 5), random(6, 5)
    want = x * y
    assert emulated("mul.Tensor", x, y, target=x) is x and torch.allclose(x, want)
    line = random(20)
    assert (
        emulated("mul.Tensor", line[:-1], line[1:], target=line[:-1]) is None
    )  # memory that is read after it was written
    assert emulated("mul.Tensor", x, random(5), target=random(5)) is None
    assert emulated("gt.Tensor", x, y, target=x) is None


def test_what_has_no_kernel(emulated):
    assert emulated("mul.Tensor", random(4).to(torch.complex64), random(4)) is None
    assert emulated("mul.Tensor", random(0), random(0)) is None
    assert emulated("mul.Tensor", torch.arange(4), 3) is None  # integers of any size do not travel as floats
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        emulated("mul.Tensor", random(4), random(3))


def test_each_call_draws_on_its_own_floats(emulated):
    x = random(8)
    for slope in (0.1, 0.7, 0.0):  # the number travels: one kernel for all
        check(emulated("leaky_relu.default", x - 1, slope), torch.nn.functional.leaky_relu(x - 1, slope))
    assert len(elements._functions) == 1
