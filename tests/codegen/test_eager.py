"""Printed loops of eager operators: up to date, equal to the kernels they were printed from, on any memory."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pullback as torch
from pullback.codegen import eager
from pullback.core.elements import table, update
from pullback.ops.eager.kernels import kernel_of
from pullback.ops.elementwise.updates import UPDATES
from pullback.ops.family.pointwise import call_kernel
from pullback.ops.system.operator import find

built = pytest.mark.skipif(not table, reason="the extension is not built")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 20.0, -20.0, 90.0, -110.0, 1e-30, np.inf, -np.inf, np.nan]
CANCELS = {"gelu_backward.default:tanh": 2e-5}  # 1 + tanh, where tanh is nearly -1
OF_POSITIVE = ("log", "rsqrt", "sqrt", "logit", "binary_cross_entropy_slope")


def test_the_file_is_up_to_date():
    assert eager.main(["--check"]) == 0, "run `python -m pullback.codegen.eager`"


KERNELS = {(k.name, k.types): k for k in eager.kernels() if k.name not in UPDATES}


def operands(kernel, n: int, rng) -> list[np.ndarray]:
    arrays = [
        rng.random(n) < 0.5 if b.dtype is torch.bool else (rng.standard_normal(n) * 3).astype(b.dtype.numpy)
        for b in kernel.arrays
    ]
    if len(arrays) == 1:
        arrays[0][: len(SPECIAL)] = SPECIAL
    if any(word in kernel.name for word in OF_POSITIVE):
        arrays = [np.abs(a) % 1 if a.dtype.kind == "f" else a for a in arrays]
    return arrays


def values_of(op, kernel, arrays: list, numbers: list) -> list:
    """Arguments in schema order."""
    words, rest, given = kernel.name.split(":")[1:], list(arrays), list(numbers)
    out = []
    for a in op.schema.arguments:
        is_number = not a.is_tensor and a.base in eager.NUMBERS
        word = "*" if (a.is_tensor or is_number) and not a.optional else words.pop(0)
        if word != "*":
            out.append({"None": None, "True": True, "False": False}.get(word, word))
        else:
            out.append(given.pop(0) if is_number else rest.pop(0))
    return out


@built
@pytest.mark.parametrize("key", KERNELS, ids=":".join)
def test_a_loop_gives_what_its_kernel_gives(key):
    kernel = KERNELS[key]
    op = find(kernel.name.split(":")[0])
    rng = np.random.default_rng(0)
    for numbers in ([0.3, 1.7, 0.9], [2, 1, 3]):
        arrays = operands(kernel, 1000, rng)
        values = values_of(op, kernel, arrays, numbers[: len(kernel.numbers)])
        with np.errstate(all="ignore"):
            rule = getattr(np, op.declared.ufunc) if op.kernel is None else functools.partial(op.kernel, np)
            wanted = np.asarray(rule(*values))
        result = call_kernel(op, np, values)
        single = arrays[0].dtype == np.float32
        assert result.dtype == wanted.dtype
        atol = CANCELS.get(kernel.name, 4e-6) if single else 1e-14
        np.testing.assert_allclose(result, wanted, rtol=4e-6 if single else 1e-13, atol=atol)


@built
@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 256, 257, 1000])
def test_one_value_for_all_beside_any_memory(n):
    """A broadcast operand first, last or both, beside arrays that lie densely, apart or backwards, and into each of them."""
    rng = np.random.default_rng(0)
    kernel = kernel_of(find("gelu_backward.default"))
    one, many = rng.standard_normal(1).astype(np.float32), rng.standard_normal(3 * n).astype(np.float32)
    for x in (many[:n].copy(), many[::3], many[::-3]):
        spread = np.full(n, one[0], np.float32)
        for a, b, c, d in ((one, x, spread, x), (x, one, x, spread), (one, one, spread, spread)):
            np.testing.assert_array_equal(
                np.broadcast_to(kernel(np, a, b, "none"), n), kernel(np, c.copy(), d.copy(), "none")
            )
        wanted, target = kernel(np, one, x, "none"), many.copy()
        out = target[:n] if x.flags.c_contiguous else target[:: x.strides[0] // 4]
        kernel(np, one, out if not x.flags.c_contiguous else x, "none", out=out)
        np.testing.assert_array_equal(out, wanted)


ALONE = [
    "atan",
    "atan2",
    "asinh",
    "atanh",
    "cosh",
    "exp2",
    "expm1",
    "log1p",
    "log2",
    "sinh",
]  # one ufunc of the array library


@built
@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("n", [3, 300, 1 << 18])
def test_every_form_of_an_operator_rounds_alike(name, n):
    torch.manual_seed(0)
    x, others = torch.rand(n) * 0.9, (torch.rand(n),) if name == "atan2" else ()
    wanted = getattr(torch, name)(x, *others)
    apart, shifted = torch.empty(2 * n)[::2], torch.empty(n + 3)[3:]
    for target in (torch.empty(n), apart, shifted):
        assert torch.equal(getattr(target.copy_(x), f"{name}_")(*others), wanted)
        assert torch.equal(getattr(torch, name)(x, *others, out=target), wanted)


@built
def test_any_memory_and_any_length():
    rng = np.random.default_rng(0)
    kernel = kernel_of(find("gelu_backward.default"))
    g, x = (rng.standard_normal((37, 1030)).astype(np.float32) for _ in range(2))
    wanted = kernel(np, g, x, "none")
    np.testing.assert_array_equal(kernel(np, g.T, x.T, "none"), wanted.T)
    np.testing.assert_array_equal(kernel(np, g[::-2, ::3], x[::-2, ::3], "none"), wanted[::-2, ::3])
    np.testing.assert_array_equal(
        kernel(np, g[:1], x, "none"), kernel(np, np.broadcast_to(g[:1], x.shape).copy(), x, "none")
    )
    unaligned = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    np.testing.assert_array_equal(kernel(np, g, unaligned, "none"), wanted)
    for n in (0, 1, 2, 7, 31):
        np.testing.assert_array_equal(kernel(np, g[0, :n], x[0, :n], "none"), wanted[0, :n])


@built
@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_updates(name, kind):
    rule, arrays, numbers = UPDATES[name]
    rng = np.random.default_rng(0)
    given = [rng.random((5, 200)).astype(kind) + 0.5 for _ in range(arrays)]
    values = tuple(rng.random(numbers) + 0.5)
    wanted = rule(np, *given, *values)
    assert update(name, tuple(given), values)
    for result, expected in zip(given, wanted):
        np.testing.assert_allclose(result, expected, rtol=1e-5 if kind == "float32" else 1e-12, atol=1e-5)


@built
def test_updates_refuse_what_does_not_fit():
    p, g = np.ones((4, 6), np.float32), np.ones((4, 6), np.float32)
    for arrays in ((p[:, ::2], g[:, ::2]), (p, g[:2]), (p, g.astype(np.float64)), (p,), (p.astype(np.int32), g)):
        assert not update("sgd", arrays, (0.0, 1.0))
    assert not update("sgd", (p, g), (0.0,)) and (p == 1).all()
    assert not update("nothing", (p, g), (0.0, 1.0))
