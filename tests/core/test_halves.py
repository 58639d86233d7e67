"""bfloat16 and float16 in C: casts and loops give what the array library gives, bit for bit where it rounds once."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core import halves, small
from pullback.ops.system.operator import registry

if halves._elements is None:
    pytest.skip("the extension is not built", allow_module_level=True)

BF16, F16, F32 = torch.bfloat16.numpy, np.dtype(np.float16), np.dtype(np.float32)
KINDS = pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
SIZES = (512, 513, 1000, 40_001, 200_003)
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.39e38, 1e-40, 1.00390625, 1.01171875, 1.0039063)


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def singles(n: int, seed: int = 0) -> np.ndarray:
    """Numbers of every size, and what is special."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, size=n, dtype=np.uint32)
    values = bits.view(np.float32).copy()
    values[: len(SPECIAL)] = SPECIAL
    return values


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    nan = np.isnan(expected.astype(np.float32))
    if not np.array_equal(np.isnan(found.astype(np.float32)), nan):
        return False
    return found.dtype == expected.dtype and np.array_equal(found[~nan].view("u2"), expected[~nan].view("u2"))


@KINDS
@pytest.mark.parametrize("n", SIZES)
def test_casts(n: int, kind, threads: int):
    x = singles(n)
    x[n // 2 :] = np.random.default_rng(1).standard_normal(n - n // 2) * 10.0 ** np.random.default_rng(2).integers(
        -9, 6, n - n // 2
    )
    with np.errstate(all="ignore"):
        expected = x.astype(kind.numpy)
    narrow = halves.cast(x, kind.numpy)
    assert same(narrow, expected)
    wide = halves.cast(narrow, F32)
    np.testing.assert_array_equal(wide, narrow.astype(F32))
    t = torch.from_numpy(x).to(kind)
    assert same(t._array, expected) and t._array.base is None
    np.testing.assert_array_equal(t.to(torch.float32).numpy(), narrow.astype(F32))


@KINDS
@pytest.mark.parametrize("beside", [0, 7])
def test_every_number_comes_back(kind, beside: int):
    every = np.arange((1 << 16) - beside, dtype=np.uint16).view(kind.numpy)
    wide = halves.cast(every, F32)
    np.testing.assert_array_equal(wide, every.astype(F32))
    assert same(halves.cast(wide, kind.numpy), every)


def test_float16_is_rounded_to_the_even_one_of_two():
    every = np.arange(0x7C00, dtype=np.uint16).view(F16).astype(np.float64)
    between = ((every[:-1] + every[1:]) / 2).astype(F32)
    x = np.concatenate(
        [between, np.nextafter(between, F32.type(0)), np.nextafter(between, F32.type(np.inf)), [65519, 65520, 65536]]
    ).astype(F32)
    with np.errstate(all="ignore"):
        for sign in (x, -x):
            assert same(halves.cast(sign, F16), sign.astype(F16))


def test_casts_that_are_left_to_the_array_library():
    x = singles(4096).reshape(64, 64)
    f32 = np.dtype(np.float32)
    for array, target in (
        (x.T, BF16),
        (x[:, ::2], BF16),
        (x[:2, :3], BF16),
        (x.astype(np.float64), BF16),
        (x, f32),
        (x.astype(np.int32), BF16),
    ):
        assert halves.cast(array, target) is None
    for t in (torch.from_numpy(x).t(), torch.from_numpy(x)[:, ::2], torch.from_numpy(x).flip(0)):
        assert same(np.ascontiguousarray(t.to(torch.bfloat16)._array), np.ascontiguousarray(t._array).astype(BF16))
    assert torch.from_numpy(x).t().to(torch.bfloat16).stride() == (1, 64)


PAIRS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@KINDS
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("n", SIZES)
def test_operators_of_two(name: str, n: int, kind, threads: int):
    with np.errstate(all="ignore"):
        x, y = (singles(n, seed).astype(kind.numpy) for seed in (1, 2))
        expected = PAIRS[name](x, y)
    t, u = (torch.from_numpy(a.view("u2")).view(kind) for a in (x, y))
    assert same(getattr(torch, name)(t, u)._array, expected)
    rows = getattr(torch, name)(t[: n // 2 * 2].reshape(2, -1), u[: n // 2])
    assert same(rows._array.reshape(-1)[: n // 2], expected[: n // 2])
    into = t.clone()
    assert same(getattr(into, name + "_")(u)._array, expected)


@KINDS
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_of_zeros_do_not_depend_on_how_many_there_are(name: str, kind):
    found = {
        n: [
            getattr(torch, name)(x, -x).signbit().unique().tolist()
            for x in (torch.zeros(n, dtype=kind), -torch.zeros(n, dtype=kind))
        ]
        for n in (1, 5, 600)
    }
    assert found[1] == found[5] == found[600]


@KINDS
@pytest.mark.parametrize("n", SIZES)
def test_numbers_and_comparisons(n: int, kind, threads: int):
    with np.errstate(all="ignore"):
        x, y = (singles(n, seed).astype(kind.numpy) for seed in (1, 2))
        tripled = (x.astype(F32) * F32.type(3.3)).astype(kind.numpy)
    t, u = (torch.from_numpy(a.view("u2")).view(kind) for a in (x, y))
    assert same((t * 3.3)._array, tripled) and same(t.clone().mul_(3.3)._array, tripled)
    for name, expected in (("lt", x < y), ("isnan", np.isnan(x)), ("eq", x == x)):
        others = {"lt": (u,), "eq": (t,)}.get(name, ())
        np.testing.assert_array_equal(getattr(torch, name)(t, *others).numpy(), expected)


@KINDS
@pytest.mark.parametrize("n", SIZES)
def test_functions_of_one(n: int, kind, threads: int):
    x = torch.randn(n).mul(10).to(kind)
    x[:3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    for name in ("exp", "reciprocal", "sin", "sqrt", "log1p", "floor", "round"):
        wide = getattr(x.to(torch.float64), name)().to(kind)
        found = getattr(x, name)()
        assert found.dtype is kind
        atol = 1e-38 if kind is torch.bfloat16 else 2**-24
        np.testing.assert_allclose(
            found.to(torch.float64).numpy(), wide.to(torch.float64).numpy(), rtol=2**-8, atol=atol
        )


# ---- products
def has_pairs() -> bool:
    """Whether the processor multiplies pairs of bfloat16."""
    x = torch.ones(2, 2, dtype=torch.bfloat16)
    return "mm.default" in small.table and small.table["mm.default"]((x, x)) is not None


SHAPES = (
    (1, 1, 1),
    (2, 3, 5),
    (8, 8, 8),
    (7, 64, 65),
    (13, 1, 130),
    (6, 128, 64),
    (100, 33, 70),
    (257, 300, 129),
    (400, 530, 20),
)


def turned(a: torch.Tensor) -> torch.Tensor:
    """The same numbers, which run down the columns."""
    return a.transpose(-1, -2).contiguous().transpose(-1, -2)


LAYOUTS = {
    "rows": lambda a, b: (a, b), "b turned": lambda a, b: (a, turned(b)), "a turned": lambda a, b: (turned(a), b),
    "both turned": lambda a, b: (turned(a), turned(b)),
    "a in a wider one": lambda a, b: (torch.cat([a, a], -1)[..., : a.shape[-1]], b),
    "b in a wider one": lambda a, b: (a, torch.cat([b, b], -1)[..., : b.shape[-1]]),
}  # fmt: skip


@pytest.mark.skipif(not has_pairs(), reason="the processor does not multiply pairs of bfloat16")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_products(layout: str, batch: int, threads: int):
    torch.manual_seed(0)
    key, lead = ("bmm.default", (batch,)) if batch else ("mm.default", ())
    for m, k, n in SHAPES:
        a, b = torch.randn(*lead, m, k).to(torch.bfloat16), torch.randn(*lead, k, n).to(torch.bfloat16)
        a, b = LAYOUTS[layout](a, b)
        found = small.table[key]((a, b))
        expected = a.to(torch.float64) @ b.to(torch.float64)
        assert found.dtype is torch.bfloat16 and found.shape == expected.shape and found.is_contiguous()
        size = a.to(torch.float64).abs() @ b.to(torch.float64).abs()  # what single precision rounds
        allowed = expected.abs() * 2**-8 + size * 1e-6
        assert ((found.to(torch.float64) - expected).abs() <= allowed).all()
        assert torch.equal(found, torch.matmul(a, b))


@pytest.mark.skipif(not has_pairs(), reason="the processor does not multiply pairs of bfloat16")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_with_a_bias(layout: str, threads: int):
    """It is added before the sum is rounded."""
    torch.manual_seed(0)
    for m, k, n in SHAPES:
        a, b = LAYOUTS[layout](torch.randn(m, k).to(torch.bfloat16), torch.randn(k, n).to(torch.bfloat16))
        bias = torch.randn(n).mul(100).to(torch.bfloat16)
        found = small.table["addmm.default"]((bias, a, b, 1, 1))
        exact = a.double() @ b.double() + bias.double()
        size = a.double().abs() @ b.double().abs() + bias.double().abs()
        assert ((found.double() - exact).abs() <= exact.abs() * 2**-8 + size * 1e-6).all()
        assert torch.equal(found, torch.nn.functional.linear(a, b.t(), bias))


@pytest.mark.skipif(not has_pairs(), reason="the processor does not multiply pairs of bfloat16")
def test_products_with_a_bias_that_are_left_to_the_rules():
    addmm, x, bias = small.table["addmm.default"], torch.ones(4, 4).bfloat16(), torch.ones(4).bfloat16()
    for args in (
        (bias, x, x, 2, 1),
        (bias, x, x, 1, 0.5),
        (bias[:1], x, x, 1, 1),
        (x, x, x, 1, 1),
        (bias.float(), x, x, 1, 1),
    ):
        assert addmm(args) is None
    ones = torch.ones(1, 257).bfloat16()
    assert addmm((torch.ones(1).bfloat16(), ones, ones.t(), 1, 1)).item() == 258  # 257 alone would be rounded to 256
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0]).bfloat16()
    found = addmm((special, x, x, 1, 1))
    assert found[:, 0].isnan().all() and found[:, 1:].unique().tolist() == [-float("inf"), 4.0, float("inf")]


@pytest.mark.skipif(not has_pairs(), reason="the processor does not multiply pairs of bfloat16")
def test_products_that_are_left_to_the_rules():
    mm, x = small.table["mm.default"], torch.ones(4, 4, dtype=torch.bfloat16)
    for a, b in (
        (torch.ones(8, 8).bfloat16()[::2, ::2], x),
        (x, x[:3]),
        (x.float(), x),
        (x, x.half()),
        (x[:0], x),
        (x[0], x),
    ):
        assert mm((a, b)) is None
    a = torch.full((4, 4), float("nan"), dtype=torch.bfloat16)
    assert torch.isnan(mm((a, x))).all() and torch.isinf(mm((x, x * float("inf")))).all()
    torch.use_deterministic_algorithms(True)
    try:
        assert mm((x, x)) is None
    finally:
        torch.use_deterministic_algorithms(False)
    y = x.clone().requires_grad_()
    (y @ x).sum().backward()
    assert torch.equal(y.grad, torch.full((4, 4), 4.0, dtype=torch.bfloat16))


ROWS = {
    "sum.default": [(None,)],
    "mean.default": [(None,)],
    "sum.dim_IntList": [((0,), False, None), ((-1,), True, None), ((1,), False, None)],
    "mean.dim": [((0,), True, None), ((-1,), False, None)],
    "_softmax.default": [(-1, False)],
    "_log_softmax.default": [(-1, False)],
}


def near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether numbers are those expected, or next to them."""
    f, e = found.float().numpy(), expected.float().numpy()
    same = (f == e) | (np.isnan(f) & np.isnan(e))
    with np.errstate(all="ignore"):
        least = 2**-24 if found.dtype is torch.float16 else 0  # the smallest number
        return bool((same | (np.abs(f - e) <= np.maximum(np.abs(e), 1e-38) * 2**-7 + least)).all())


def rows(shape: tuple, special: bool, kind=torch.bfloat16) -> torch.Tensor:
    rng = np.random.default_rng(len(shape) + shape[0])
    values = rng.normal(size=shape)
    if special:
        values = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf, -0.0], size=shape), values)
    return torch.from_numpy(values.astype(np.float32)).to(kind)


@KINDS
@pytest.mark.parametrize("key", sorted(ROWS))
def test_rows(key: str, kind, threads: int):
    op = registry[key]
    for shape in ((5,), (3, 7), (2, 40, 3), (1, 1), (300, 1024)):
        for special in (False, True):
            x = rows(shape, special, kind)
            for rest in ROWS[key]:
                if len(shape) == 1 and rest[0] == (1,):
                    continue
                found, expected = small.table[key]((x, *rest)), op.family.execute(op, (x, *rest))
                assert found is not None or x.numel() > 1 << 16 and "dim" in key, (shape, rest)
                if found is not None:
                    assert (found.dtype, found.shape, found.stride()) == (
                        expected.dtype,
                        expected.shape,
                        expected.stride(),
                    )
                    assert near(found, expected), (shape, rest, special)


@KINDS
@pytest.mark.parametrize("weighted", [False, True])
def test_layer_norm(weighted: bool, kind, threads: int):
    op, call = registry["native_layer_norm.default"], small.table["native_layer_norm.default"]
    for shape, normal in (((3, 5), (5,)), ((2, 3, 4), (3, 4)), ((7,), (7,)), ((200, 1000), (1000,))):
        x, w = rows(shape, False, kind), rows(normal, False, kind) if weighted else None
        args = (x, normal, w, None if w is None else w + 1, 1e-5)
        for found, expected in zip(call(args), op.family.execute(op, args), strict=True):
            assert (found.dtype, found.shape, found.stride()) == (expected.dtype, expected.shape, expected.stride())
            torch.testing.assert_close(found.float(), expected.float(), rtol=2**-7, atol=2**-7)
    x = rows((3, 5), False, kind)
    assert call((x, (5,), torch.ones(5), None, 1e-5)) is None  # statistics are of the parameters' dtype then
    assert call((x, (3,), None, None, 1e-5)) is None and call((x.t(), (3,), None, None, 1e-5)) is None


def test_small_casts_are_taken_and_others_left():
    call = small.table["_to_copy.default"]
    x = torch.from_numpy(singles(30).reshape(5, 6))
    rest = (None, None, None, False, None)
    narrow = call((x, torch.bfloat16, *rest))
    assert same(narrow._array, x.numpy().astype(BF16)) and narrow.dtype is torch.bfloat16
    np.testing.assert_array_equal(call((narrow, torch.float32, *rest)).numpy(), narrow._array.astype(np.float32))
    np.testing.assert_array_equal(call((narrow.t(), torch.float32, *rest)).numpy(), narrow._array.T.astype(np.float32))
    assert call((narrow, torch.float64, *rest)) is None
    assert call((narrow, torch.float32, None, None, None, False, torch.contiguous_format)) is None
    y = x.clone().requires_grad_().to(torch.bfloat16)
    assert y.grad_fn is not None
