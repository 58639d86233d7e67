"""Python numbers and tensors without dimensions in half precision: which stay unrounded, and that results are rounded once.

The law: a result is what float32 gives for the same operands, rounded once; a number enters that computation as it is
where the operator says so (`wide=`, and every attribute that is no operand), else rounded to the dtype first. The
recorded cases are PyTorch's.
"""

from __future__ import annotations

import math

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, compile_graph
from pullback.core.arrays import LARGE
from pullback.runtime.build import NoCompiler, compiler

F = torch.nn.functional
HALVES = [torch.float16, torch.bfloat16]
NUMBERS = [70000.0, 0.1, -1.7, 1 / 3, 1e-5, 100001, 7]


def _in_place(name: str, **kwargs):
    return lambda x, y, n: getattr(x.clone(), name)(n, **kwargs)


WIDE = {
    "mul": lambda x, y, n: x * n,
    "mul_": _in_place("mul_"),
    "div": lambda x, y, n: x / n,
    "div_": _in_place("div_"),
    "floor_divide": lambda x, y, n: x // n,
    "div floor": lambda x, y, n: torch.div(x, n, rounding_mode="floor"),
    "div_ trunc": _in_place("div_", rounding_mode="trunc"),
    "_foreach_mul": lambda x, y, n: torch._foreach_mul([x], n)[0],
    "_foreach_div": lambda x, y, n: torch._foreach_div([x], [n])[0],
    "lerp": lambda x, y, n: torch.lerp(x, y, n),
    "addcmul": lambda x, y, n: torch.addcmul(x, y, y, value=n),
    "leaky_relu": lambda x, y, n: F.leaky_relu(x, n),
    "elu": lambda x, y, n: F.elu(x, n),
    "times a tensor": lambda x, y, n: x * torch.tensor(n, dtype=torch.float64),
    "over a tensor": lambda x, y, n: x / torch.tensor(n, dtype=torch.float32),
}
ROUNDED = {
    "add": lambda x, y, n: x + n,
    "add_": _in_place("add_"),
    "sub": lambda x, y, n: x - n,
    "rsub": lambda x, y, n: n - x,
    "fmod": lambda x, y, n: torch.fmod(x, n),
    "remainder": lambda x, y, n: x % n,
    "remainder_": _in_place("remainder_"),
    "eq": lambda x, y, n: x == n,
    "ne_": _in_place("ne_"),
    "lt": lambda x, y, n: x < n,
    "ge": lambda x, y, n: x >= n,
    "plus a tensor": lambda x, y, n: x + torch.tensor(n, dtype=torch.float32),
    "a tensor times": lambda x, y, n: torch.tensor(n, dtype=torch.float64) * x,
    "where": lambda x, y, n: torch.where(x > 0, x, n),
}
FITTING = {  # rounded, and refused where the dtype cannot hold the number
    "add alpha": lambda x, y, n: torch.add(x, y, alpha=n),
    "sub_ alpha": lambda x, y, n: x.clone().sub_(y, alpha=n),
    "rsub alpha": lambda x, y, n: torch.rsub(x, y, alpha=n),
    "pow": lambda x, y, n: x.abs() ** n,
    "clamp": lambda x, y, n: x.clamp(max=n),
    "hardtanh": lambda x, y, n: F.hardtanh(x, -abs(n), abs(n)),
    "hardshrink": lambda x, y, n: F.hardshrink(x, abs(n)),
    "threshold": lambda x, y, n: F.threshold(x, 0.0, n),
}
LAW = {**WIDE, **ROUNDED, **FITTING}


def operands(d, n, size: int = 64):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(size, generator=generator) * 20 - 10
    y = torch.rand(size, generator=generator) * 4 - 2
    x[0] = n  # where rounding decides a comparison or a remainder
    return x.to(d), y.to(d)


def by_law(name: str, x, y, n):
    """Float32, rounded once; the number rounded first where the operator says so."""
    d = x.dtype
    number = n if name in WIDE else torch.tensor(float(n)).to(d).item()
    result = LAW[name](x.float(), y.float(), number)
    return result.to(d)


def same(a, b) -> bool:
    return torch.equal(torch.nan_to_num(a.float(), nan=4321.0), torch.nan_to_num(b.float(), nan=4321.0))


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize("name", LAW)
def test_float32_rounded_once(name: str, d) -> None:
    for n in NUMBERS:
        if name in FITTING and abs(n) > torch.finfo(d).max:
            continue
        x, y = operands(d, n)
        got, wanted = LAW[name](x, y, n), by_law(name, x, y, n)
        assert got.dtype is (torch.bool if name in ("eq", "lt", "ge") else d)
        assert same(got, wanted), f"{name} with {n}"


@pytest.mark.parametrize("name", ["mul", "div", "mul_", "add", "lt", "add alpha"])
def test_large_tensors(name: str) -> None:
    x, y = operands(torch.float16, 0.1, LARGE + 5)
    assert same(LAW[name](x, y, 0.1), by_law(name, x, y, 0.1))


@pytest.mark.parametrize("d", HALVES)
@pytest.mark.parametrize("name", [k for k in LAW if not k.partition(" ")[0].endswith("_")])
def test_native_code_follows_the_same_law(name: str, d) -> None:
    try:
        compiler()
    except NoCompiler:
        pytest.skip("no C compiler")
    for n in (0.1, -1.7, 7):
        x, y = operands(d, n)
        result = compile_graph(make_fx(lambda x, y, n=n: LAW[name](x, y, n), tracing_mode="fake")(x, y))
        assert isinstance(result, Native)
        assert same(result(x, y), LAW[name](x, y, n)), f"{name} with {n}"


@pytest.mark.parametrize("name", FITTING)
def test_a_number_that_half_precision_cannot_hold(name: str) -> None:
    x, y = operands(torch.float16, 1.0)
    with pytest.raises(RuntimeError, match="value cannot be converted to type c10::Half without overflow"):
        FITTING[name](x, y, 70000.0)


def test_gradients() -> None:
    x = torch.tensor([100.0]).half().requires_grad_()
    (x / 70000.0).sum().backward()
    assert x.grad.item() == torch.tensor(1 / 70000.0).half().item() != 0


RECORDED = [
    (
        "x / 70000.",
        [0.0014286041259765625, 1.430511474609375e-06, -4.488229751586914e-05, 0.00010001659393310547],
        [0.00142669677734375, 1.430511474609375e-06, -4.482269287109375e-05, 0.00010013580322265625],
    ),
    ("x * 70000.", [math.inf, 7000.0, -math.inf, math.inf], [7012352.0, 7008.0, -220160.0, 489472.0]),
    (
        "x * 0.1",
        [10.0, 0.0099945068359375, -0.31396484375, 0.7001953125],
        [10.0, 0.010009765625, -0.314453125, 0.69921875],
    ),
    ("70000. / x", [700.0, math.inf, -22288.0, 10000.0], [700.0, 700416.0, -22272.0, 9984.0]),
    ("x // 0.1", [999.0, 0.0, -32.0, 69.0], [1000.0, 1.0, -32.0, 69.0]),
    ("x % 0.1", [0.0244140625, 0.0, 0.05859375, 0.001708984375], [0.00244140625, 0.0, 0.0625, 0.09326171875]),
    ("x + 0.1", [100.125, 0.199951171875, -3.041015625, 7.1015625], [100.0, 0.2001953125, -3.046875, 7.09375]),
    ("0.1 - x", [-99.875, 0.0, 3.240234375, -6.8984375], [-100.0, 0.0, 3.234375, -6.90625]),
    (
        "torch.fmod(x, 0.3)",
        [0.083740234375, 0.0999755859375, -0.14013671875, 0.098876953125],
        [0.140625, 0.10009765625, -0.1328125, 0.08203125],
    ),
    ("x.abs() ** 0.3", [3.982421875, 0.5009765625, 1.41015625, 1.79296875], [4.0, 0.5, 1.4140625, 1.796875]),
    ("x == 0.1", [False, True, False, False], [False, True, False, False]),
    ("x < 0.1", [False, False, True, False], [False, False, True, False]),
    ("x >= -3.14", [True, True, True, True], [True, True, True, True]),
    (
        "x * torch.tensor(0.1, dtype=torch.float64)",
        [10.0, 0.0099945068359375, -0.31396484375, 0.7001953125],
        [10.0, 0.010009765625, -0.314453125, 0.69921875],
    ),
    (
        "torch.tensor(0.1, dtype=torch.float64) * x",
        [10.0, 0.0099945068359375, -0.31396484375, 0.69970703125],
        [10.0, 0.010009765625, -0.314453125, 0.69921875],
    ),
    (
        "x + torch.tensor(0.1)",
        [100.125, 0.199951171875, -3.041015625, 7.1015625],
        [100.0, 0.2001953125, -3.046875, 7.09375],
    ),
    (
        "torch.lerp(x, x.flip(0), 0.1)",
        [90.6875, -0.22412109375, -2.81640625, 16.296875],
        [90.5, -0.2236328125, -2.8125, 16.25],
    ),
    (
        "torch.addcmul(x, x, x, value=0.1)",
        [1100.0, 0.1009521484375, -2.154296875, 11.8984375],
        [1104.0, 0.10107421875, -2.15625, 11.875],
    ),
    (
        "x.clone().mul_(0.3)",
        [30.0, 0.029998779296875, -0.9423828125, 2.099609375],
        [30.0, 0.030029296875, -0.94140625, 2.09375],
    ),
    ("x.clone().div_(0.3)", [333.25, 0.333251953125, -10.46875, 23.328125], [334.0, 0.333984375, -10.5, 23.375]),
    (
        "torch._foreach_div([x], 0.3)[0]",
        [333.25, 0.333251953125, -10.46875, 23.328125],
        [334.0, 0.333984375, -10.5, 23.375],
    ),
    (
        "torch._foreach_mul([x], [0.3])[0]",
        [30.0, 0.029998779296875, -0.9423828125, 2.099609375],
        [30.0, 0.030029296875, -0.94140625, 2.09375],
    ),
    ("F.leaky_relu(x, 0.3)", [100.0, 0.0999755859375, -0.9423828125, 7.0], [100.0, 0.10009765625, -0.94140625, 7.0]),
    (
        "torch.where(x > 0, x, 0.3)",
        [100.0, 0.0999755859375, 0.300048828125, 7.0],
        [100.0, 0.10009765625, 0.30078125, 7.0],
    ),
    ("torch.div(x, 0.3, rounding_mode='trunc')", [333.0, 0.0, -10.0, 23.0], [332.0, 0.0, -10.0, 23.0]),
]


@pytest.mark.parametrize(("text", "half", "brain"), RECORDED)
def test_recorded(text: str, half: list, brain: list) -> None:
    for d, wanted in zip(HALVES, (half, brain), strict=True):
        x = torch.tensor([100.0, 0.1, -3.14, 7.0]).to(d)
        assert eval(text, {"torch": torch, "F": F, "x": x}).tolist() == wanted, f"{d}: {text}"
