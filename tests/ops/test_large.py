"""Functions in C on many elements: what they give is what the rules give, whatever the number of threads.

Shapes are one long row whose length is no multiple of a piece, rows, and columns; dtypes are those of the table, NaN and infinities among
the floating-point numbers. Always holds: one thread and three give the same bits.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import pullback as torch
from pullback.core import elements, small
from pullback.core.threads import native_pool
from tests.ops.test_small import DTYPES, compare, numbers, operator_of

if not small.table:
    pytest.skip("the extensions are not built", allow_module_level=True)

SHAPES = ((200_003,), (401, 500), (3, 70, 700))
# What follows a tensor, for its last dimension or the one before.
FORMS = {
    "count_nonzero.dim_IntList": lambda x, d: ((d,),), "count_nonzero.default": lambda x, d: (d,),
    "prod.dim_int": lambda x, d: (d, False, None), "prod.default": lambda x, d: (None,), "cumprod.default": lambda x, d: (d, None),
    "cummax.default": lambda x, d: (d,), "cummin.default": lambda x, d: (d,), "nansum.default": lambda x, d: ((d,), False, None),
    "sum.dim_IntList": lambda x, d: ((d,), True, None), "sum.default": lambda x, d: (None,),
    "linalg_vector_norm.default": lambda x, d: (2, (d,), False, None),
}  # fmt: skip


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def arguments(key: str, shape: tuple, dtype, special: bool) -> list[tuple]:
    x = numbers(np.random.default_rng(0), shape, dtype, special)
    if "prod" in key and dtype.is_floating_point:
        x = 1 + x / 1000
    return [(x, *FORMS[key](x, d)) for d in range(-min(2, x.ndim), 0)]


@pytest.mark.parametrize("key", sorted(FORMS))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_rules_give_the_same(key: str, shape: tuple, threads):
    op, taken = operator_of(key), 0
    for dtype in DTYPES:
        for special in (False, True)[: 1 + dtype.is_floating_point]:
            for args in arguments(key, shape, dtype, special):
                threads(1)
                found = small.table[key](args)
                if found is None:
                    continue
                threads(3)
                taken += compare(op, args, 1e-4 if dtype is torch.float32 else 1e-9)
                again = small.table[key](args)
                for one, three in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, again)], strict=True):
                    assert one.numpy().tobytes() == three.numpy().tobytes()
    assert taken, f"{key}: no call is taken"


@pytest.mark.parametrize("order", [0, 1, 2, float("inf")])
def test_norms_of_every_order(order: float):
    op = operator_of("linalg_vector_norm.default")
    for dtype in (torch.float32, torch.float64):
        for special in (False, True):
            for shape in SHAPES:
                x = numbers(np.random.default_rng(1), shape, dtype, special)
                for dim in (None, (0,), (x.ndim - 1,)):
                    assert compare(op, (x, order, dim, False, None), 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vectors_with_many_products(dtype):
    rng = np.random.default_rng(2)
    u, v, y = (numbers(rng, shape, dtype, True) for shape in ((301,), (607,), (301, 607)))
    assert compare(operator_of("outer.default"), (u, v))
    assert compare(operator_of("addr.default"), (y, u, v, 1, 2), 1e-5)
    assert compare(operator_of("addr.default"), (y, u, v, 0, 1), 1e-5)


def plain(shape: tuple, dtype=torch.float32):
    return numbers(np.random.default_rng(3), shape, dtype, False)


# ---- elements that are moved
ORDERS = {
    "turned": lambda x: x.t(), "backwards": lambda x: x.flip(0).t(), "steps": lambda x: x.t()[::2, ::3], "rows": lambda x: x[3:, 5:],
    "three": lambda x: x[:400, :500].reshape(20, 20, 500).permute(2, 0, 1), "repeated": lambda x: x[0].expand(401, -1).t(),
    "channels": lambda x: x.reshape(-1)[:192_000].reshape(4, 30, 40, 40).permute(0, 2, 3, 1), "few": lambda x: x[:, :3].t(),
}  # fmt: skip


def as_numpy(x):
    return x.numpy() if x.dtype is not torch.bfloat16 else x.view(torch.int16).numpy()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.bfloat16, torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("n", [1, 3])
def test_copies_between_orders_of_memory(order: str, dtype, n: int, threads):
    threads(n)
    x = ORDERS[order](plain((401, 503), torch.float64).mul(100).to(dtype))
    expected = np.array(as_numpy(x), order="C")
    assert np.array_equal(as_numpy(x.contiguous()), expected) and x.contiguous().is_contiguous()
    y = torch.zeros(x.shape, dtype=dtype)
    assert np.array_equal(as_numpy(y.copy_(x)), expected)
    z = torch.zeros(tuple(reversed(x.shape)), dtype=dtype).permute(*reversed(range(x.ndim)))
    z.copy_(y)
    assert np.array_equal(as_numpy(z), expected)


def test_copies_of_memory_that_is_written():
    x = torch.arange(250_000.0).reshape(500, 500)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x.copy_(x.t())
    assert x[0, 1] == 1
    flat = torch.arange(200_000.0)
    flat[1:].copy_(flat[:-1].clone())
    assert flat[1] == 0 and flat[-1] == 199_998


MOVED = {
    "cat.default": lambda x: ((x, x * 2, x[:3]), 0), "stack.default": lambda x: ((x, x * 2), -1), "hstack.default": lambda x: ((x, x),),
    "flip.default": lambda x: (x, (1,)), "roll.default": lambda x: (x, (-3,), (1,)), "tril.default": lambda x: (x, 3), "triu.default": lambda x: (x, -7),
    "diag_embed.default": lambda x: (x[:2, :300].clone(), 1, -2, -1), "constant_pad_nd.default": lambda x: (x, (1, 2, 0, 3), 0),
    "diagonal_scatter.default": lambda x: (x, x.diagonal(5) * 2, 5, 0, 1),
    "channel_shuffle.default": lambda x: (x[:400, :500].reshape(2, 50, 8, -1), 5), "pixel_shuffle.default": lambda x: (x[:400, :500].reshape(2, 100, 4, -1), 5),
    "pixel_unshuffle.default": lambda x: (x[:400, :500].clone().reshape(2, 2, 100, 500), 5),
    "reflection_pad2d.default": lambda x: (x[:400].reshape(8, 5, 10, -1), (1, 2, 3, 1)), "replication_pad1d.default": lambda x: (x, (4, 0)),
    "as_strided_scatter.default": lambda x: (x, x[:300, :100], (300, 100), (2, 700), None),
    "clone.default": lambda x: (x, None), "complex.default": lambda x: (x, x * 2),
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(MOVED))
@pytest.mark.parametrize("n", [1, 3])
def test_moves(key: str, n: int, threads):
    threads(n)
    taken = 0
    for dtype in (*DTYPES, torch.complex64):
        args = MOVED[key](plain((401, 503), torch.float64).mul(50).to(dtype))
        taken += small.table[key](args) is not None and compare(operator_of(key), args)
    assert taken, f"{key}: no call is taken"


# ---- elements at places
def places(shape: tuple, high: int):
    return torch.tensor(np.random.default_rng(4).integers(0, high, size=shape))


INDEXED = {
    "gather.default": lambda x, i, y, d: (x, d, i, False), "scatter.src": lambda x, i, y, d: (x, d, i, y),
    "scatter_.src": lambda x, i, y, d: (x, d, i, y), "scatter_add.default": lambda x, i, y, d: (x, d, i, y),
    "scatter_add_.default": lambda x, i, y, d: (x, d, i, y),
    **{f"scatter_reduce.two {how}": lambda x, i, y, d, how=how: (x, d, i, y, how, True) for how in ("sum", "prod", "amax", "amin")},
    "index_add.default": lambda x, i, y, d: (x, d, i.select(1 - d, 0), y, 1), "index_add_.default": lambda x, i, y, d: (x, d, i.select(1 - d, 0), y, 1),
    **{f"index_reduce.default {how}": lambda x, i, y, d, how=how: (x, d, i.select(1 - d, 0), y, how, True) for how in ("prod", "amax", "amin")},
    "index_copy.default": lambda x, i, y, d: (x, d, torch.randperm(x.shape[d])[: i.shape[d]], y),
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(INDEXED))
@pytest.mark.parametrize("d", [0, 1])
def test_indices(key: str, d: int, threads):
    name, taken = key.split()[0], 0
    for dtype in (*DTYPES, torch.float32):
        for special in (False, True)[: 1 + dtype.is_floating_point]:
            x = numbers(np.random.default_rng(5), (401, 503), dtype, special)
            shape = (301, 503) if d == 0 else (401, 300)
            index, y = places(shape, x.shape[d]), numbers(np.random.default_rng(6), shape, dtype, special)
            for n in (1, 3):
                threads(n)
                args = INDEXED[key](x.clone(), index.contiguous(), y, d)
                args = tuple(a.contiguous() if isinstance(a, torch.Tensor) else a for a in args)
                taken += compare(operator_of(name), args, 1e-5)
    assert taken, f"{key}: no call is taken"


@pytest.mark.parametrize(
    "key", ["gather.default", "scatter.src", "scatter_.src", "scatter_add_.default", "index_add_.default"]
)
def test_indices_that_are_outside_change_nothing(key: str):
    for bad in (-1, 401, 1 << 40):
        x, y = plain((401, 503)), plain((301, 503))
        index = places((301, 503), 401)
        index[-1, -1] = index[-1, 0] = bad
        before = x.clone()
        assert (
            small.table[key](
                INDEXED[key](x, index, y, 0) if "add" not in key[:9] else (x, 0, index[:, 0].clone(), y, 1)
            )
            is None
        )
        assert torch.equal(x, before) and x._version == 0


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_casts(source, target, threads):
    threads(2)
    for special in (False, True):
        x = (numbers(np.random.default_rng(7), (401, 503), source, special) * 100).to(source)
        assert compare(operator_of("_to_copy.default"), (x, target, None, None, None, False, None)) or special


def test_masked_scatter():
    for dtype in DTYPES:
        x = plain((401, 503), torch.float64).mul(50).to(dtype)
        args = (x, plain((401, 503)) > 0.5, plain((401 * 503,), torch.float64).mul(20).to(dtype))
        assert compare(operator_of("masked_scatter.default"), args)


# ---- loops over rows
PAIRS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
LAYOUTS = {  # (shape, what is done to two arrays of it)
    "a row": ((400, 337), lambda x, y: (x, y[0])), "a column": ((400, 337), lambda x, y: (x, y[:, :1])), "first a row": ((400, 337), lambda x, y: (x[0], y)),
    "apart": ((401, 350), lambda x, y: (x[:, 1:], y[:, :-1])), "backwards": ((401, 350), lambda x, y: (x[::-1], y[:, ::-1])),
    "turned": ((350, 401), lambda x, y: (x.T, y.T[:, ::1])), "one turned": ((400, 400), lambda x, y: (x, y.T)), "steps": ((401, 700), lambda x, y: (x[:, ::2], y[:, 1::2])),
    "short rows": ((30_000, 5), lambda x, y: (x, y[0])), "three": ((20, 30, 300), lambda x, y: (x, y[:1, :, :1])), "a number": ((401, 700), lambda x, y: (x[:, ::2], y[0, 0].reshape(()))),
    "few": ((5, 7), lambda x, y: (x[:, 1:], y[:, :1])), "outer": ((400, 400), lambda x, y: (x[0], y[:, :1])),
    "one number everywhere": ((401, 337), lambda x, y: (np.broadcast_to(x[0, 0], x.shape), y)), "long rows": ((3, 50_021), lambda x, y: (x, y[:, :1])),
    "every second": ((1, 90_001), lambda x, y: (x[:, ::2], y[:, 1::2][:, :1])),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3])
def test_rows_of_arrays_that_broadcast_or_lie_apart(layout: str, name: str, dtype, n: int, threads):
    threads(n)
    shape, arrange = LAYOUTS[layout]
    x, y = arrange(
        *[numbers(np.random.default_rng(k), shape, torch.float64, True).numpy().astype(dtype) for k in (8, 9)]
    )
    expected = PAIRS[name](x, y)
    out = np.full(expected.shape, 7, dtype)
    assert elements.over_rows(f"rows:{name}", x, y, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("few", "short rows", "outer", "three")])
def test_the_rows_of_large_arrays_are_shared_by_threads_though_they_be_one(layout: str, threads):
    """A gradient that is one number everywhere, say: arrays that are gone through in equal steps are one row."""
    threads(3)
    shape, arrange = LAYOUTS[layout]
    x, y = arrange(*np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32))
    seen = []

    @ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_long
    )
    def pool(body, begin, end, grain, given, count):
        seen.append((end - begin) // grain)
        run = ctypes.CFUNCTYPE(None, ctypes.c_long, ctypes.c_long, ctypes.c_void_p)(body)
        for first in reversed(range(begin, end, grain)):
            run(first, min(first + grain, end), given)

    out = np.full(np.broadcast_shapes(x.shape, y.shape), 7, np.float32)
    elements._elements.use_pool(ctypes.cast(pool, ctypes.c_void_p).value)
    try:
        assert elements.over_rows("rows:multiply", x, y, out)
    finally:
        elements._elements.use_pool(native_pool())
    np.testing.assert_array_equal(out, x * y)
    assert len(seen) == 1 and seen[0] >= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_number_fills_arrays_of_any_order(dtype, threads):
    threads(2)
    whole = np.empty((300, 401), dtype)
    for value in (0.0, -2.5, float("nan"), float("inf")):
        for array in (whole, whole.T, whole[:, 1:], whole[::2], whole[:0], whole[0]):
            whole[...] = 7
            elements.fill(array, value)
            assert np.array_equal(array, np.full(array.shape, value, dtype), equal_nan=True)
            assert (whole == 7).sum() == whole.size - array.size
    assert (torch.ones(300, 401).fill_(3).t().zero_() == 0).all() and torch.full_like(
        torch.ones(300, 401), 2
    ).sum() == 240600


@pytest.mark.parametrize("far", [(), (3e9,), (float("nan"), -5e18)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_as_integers_wherever_large_ones_stand(dtype, far):
    x = torch.from_numpy(np.random.default_rng(0).uniform(-300, 300, 5000)).to(dtype)
    for k, value in enumerate(far):
        x[2000 + 900 * k] = value
    near = x.abs() < 1e3
    for whole in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        found = x.to(whole)
        assert np.array_equal(
            found.numpy()[near.numpy()], x.numpy()[near.numpy()].astype(np.int64).astype(found.numpy().dtype)
        )
        for value in far if whole is torch.int64 else ():
            lowest = value != value
            assert found[x.isnan() if lowest else x == value].item() == (
                -(2**63) if lowest else int(torch.tensor(value, dtype=dtype).item())
            )


def test_arrays_that_no_loop_takes():
    x = np.ones((3, 4), np.float32)
    for arrays in (
        (x, x, np.ones((3, 5), np.float32)),
        (x, x.astype(np.float64), x),
        (x, x),
        (x, x[:2], x.copy()),
        (x, x, np.ones(4, np.float32)),
    ):
        before = arrays[-1].copy()
        assert not elements.over_rows("rows:add", *arrays)
        assert np.array_equal(arrays[-1], before)
    assert not elements.over_rows("rows:nothing", x, x, x.copy()) and not elements.over_rows(
        "rows:add", x[:0], x[:0], x[:0].copy()
    )


OPERATORS = {
    "add": lambda x, y: (x + y, x.numpy() + y.numpy()), "sub": lambda x, y: (torch.sub(x, y, alpha=2), x.numpy() - 2 * y.numpy()),
    "mul": lambda x, y: (x * y, x.numpy() * y.numpy()), "div": lambda x, y: (x / y, x.numpy() / y.numpy()),
    "prelu": lambda x, y: (torch.ops.aten._prelu_kernel(x, y), np.where(x.numpy() > 0, x.numpy(), x.numpy() * y.numpy())),
    "clamp": lambda x, y: (x.clamp(-0.5, 0.25), np.minimum(np.maximum(x.numpy(), np.float32(-0.5)), np.float32(0.25))),
    "clamp_min": lambda x, y: (x.clamp(min=0.25), np.maximum(x.numpy(), np.float32(0.25))),
    "clamp of nan": lambda x, y: (x.clamp(max=float("nan")), np.full(x.shape, np.nan, np.float32)),
    "copysign": lambda x, y: (torch.copysign(x, y), np.copysign(x.numpy(), y.numpy())), "reciprocal": lambda x, y: (x.reciprocal(), 1 / x.numpy()),
    "logical_and": lambda x, y: (torch.logical_and(x, y), np.logical_and(x.numpy(), y.numpy())),
    "logical_not": lambda x, y: (torch.logical_not(x), np.logical_not(x.numpy())), "cube": lambda x, y: (x**3, x.numpy() ** 2 * x.numpy()),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("layout", [k for k in LAYOUTS if k not in ("a number", "backwards")])
def test_operators_of_large_arrays(name: str, layout: str):
    shape, arrange = LAYOUTS[layout]
    given = [numbers(np.random.default_rng(k), shape, torch.float32, True) for k in (8, 9)]
    given[0][0, 0], given[1][0, 0] = 0.0, -0.0
    x, y = arrange(*[np.asarray(g.numpy()) for g in given])
    with np.errstate(all="ignore"):
        found, expected = OPERATORS[name](torch.from_numpy(x), torch.from_numpy(y))
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found._array.base is None or not found.is_contiguous()


def test_the_gated_unit_over_rows():
    x = numbers(np.random.default_rng(10), (300, 1010), torch.float32, True)
    for dim, part in ((1, x), (0, x), (0, x.t()), (1, x[:, ::2][:, :504])):
        first, gate = part.double().chunk(2, dim)
        found = torch.nn.functional.glu(part, dim)
        np.testing.assert_allclose(found.numpy(), (first * gate.sigmoid()).numpy(), rtol=2e-6, atol=1e-7)


# ---- losses, factories
LOSSES = {"mse_loss.default": (), "huber_loss.default": (0.75,), "smooth_l1_loss.default": (1.0,)}


@pytest.mark.parametrize("key", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_of_many_elements(key: str, dtype, threads):
    for shape in SHAPES:
        for special in (False, True):
            x, y = (numbers(np.random.default_rng(k), shape, dtype, special) for k in (11, 12))
            for reduction in (1, 2):
                args = (x, y, reduction, *LOSSES[key])
                found = []
                for n in (1, 3):
                    threads(n)
                    assert compare(operator_of(key), args, 1e-5)
                    found.append(small.table[key](args).numpy().tobytes())
                assert found[0] == found[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_ranges_of_many_elements(dtype, threads):
    whole = torch.arange(3, 400_007, 2, dtype=dtype)
    assert np.array_equal(whole.numpy(), np.arange(3, 400_007, 2).astype(whole.numpy().dtype))
    if dtype is torch.int64:
        return
    for n in (1, 3):
        threads(n)
        found = torch.linspace(-2, 5, 300_001, dtype=dtype).numpy()
        np.testing.assert_allclose(found, np.linspace(-2, 5, 300_001), rtol=2e-6, atol=1e-6)
        assert (
            found[0] == -2
            and found[-1] == 5
            and found.tobytes() == torch.linspace(-2, 5, 300_001, dtype=dtype).numpy().tobytes()
        )
    np.testing.assert_array_equal(torch.linspace(2, 5, 1, dtype=dtype).numpy(), [2])


def test_classes_as_rows():
    classes = places((700, 3), 300)
    found = torch.nn.functional.one_hot(classes, 301)
    assert np.array_equal(found.numpy(), np.eye(301, dtype=np.int64)[classes.numpy()]) and found.dtype is torch.int64
    assert torch.nn.functional.one_hot(classes).shape[-1] == int(classes.max()) + 1
    assert torch.equal(torch.nn.functional.one_hot(torch.tensor(2), 4), torch.tensor([0, 0, 1, 0]))
    assert torch.equal(
        torch.nn.functional.one_hot(classes.t(), 300), torch.nn.functional.one_hot(classes, 300).transpose(0, 1)
    )
    for bad, count in ((torch.tensor([-1]), 3), (torch.tensor([3]), 3)):
        with pytest.raises(RuntimeError, match="Class values must be"):
            torch.nn.functional.one_hot(bad, count)


@pytest.mark.parametrize("shape", [(4, 16, 64, 64), (4, 3, 64, 65), (2, 100, 64, 64), (2, 8, 16, 32, 32)], ids=str)
def test_operands_of_images_that_lie_channels_last(shape):
    form = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x, rest = torch.randn(shape), (1,) * (len(shape) - 2)
    pixels = x.to(memory_format=form)
    per_channel = torch.randn(shape[1], *rest)
    whole = torch.randn(1, *shape[1:])
    for y in (
        per_channel,
        pixels,
        x,
        torch.randn(1),
        torch.randn(shape[-1]),
        torch.randn(shape[0], 1, *rest),
        whole,
        whole.to(memory_format=form),
    ):
        np.testing.assert_array_equal((pixels * y).numpy(), x.numpy() * y.numpy())
        np.testing.assert_array_equal((y - pixels).numpy(), y.numpy() - x.numpy())
    assert (pixels * per_channel).is_contiguous(memory_format=form)
