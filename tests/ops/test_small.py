"""Functions in C for small plain calls: what they give is what the rules of their operators give, in every dtype they take.

Samples of the table run in each dtype, then arrays of any shape with NaN, infinities and equal elements. Always holds: shapes, dtypes and
strides are the rules'; a call that the rules refuse is not taken, memory that is not row-major as in `tests/core/test_layouts.py`; every function takes some call.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback.core import small
from pullback.ops.system.inplace import run_inplace
from pullback.ops.system.operator import registry
from tests.ops.checks import rebuild, results, tensors_in
from tests.ops.samples import samples_of

if not small.table:
    pytest.skip("the extensions are not built", allow_module_level=True)

DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
FRONTS = ("one_hot.classes", "prod.others")  # functions that are no operators
KEYS = sorted(set(small.table) - set(FRONTS))
# What follows a tensor in calls of operators along a dimension: made for a rank.
FORMS = {
    "max.dim": lambda d: (d, False), "min.dim": lambda d: (d, True), "amax.default": lambda d: ((d,), False),
    "amin.default": lambda d: ((d,), True), "argmax.default": lambda d: (d, False), "argmin.default": lambda d: (d, True),
    "aminmax.default": lambda d: (d, False), "any.dim": lambda d: (d, False), "all.dim": lambda d: (d, True),
    "count_nonzero.dim_IntList": lambda d: ((d,),), "prod.dim_int": lambda d: (d, False, None), "cumprod.default": lambda d: (d, None),
    "cummax.default": lambda d: (d,), "cummin.default": lambda d: (d,), "sort.default": lambda d: (d, True),
    "sort.stable": lambda d: (True, d, False), "argsort.default": lambda d: (d, True), "argsort.stable": lambda d: (True, d, False),
    "topk.default": lambda d: (1, d, True, True), "kthvalue.default": lambda d: (1, d, True), "median.dim": lambda d: (d, False),
    "nanmedian.dim": lambda d: (d, True), "mode.default": lambda d: (d, False), "var.correction": lambda d: ((d,), 0, False),
    "std.correction": lambda d: ((d,), None, True), "var_mean.correction": lambda d: (None, 0, False),
    "std_mean.correction": lambda d: ((d,), 0.5, True), "logsumexp.default": lambda d: ((d,), False),
    "linalg_vector_norm.default": lambda d: (2, (d,), False, None), "max.default": lambda d: (), "min.default": lambda d: (),
    "any.default": lambda d: (), "all.default": lambda d: (), "median.default": lambda d: (), "nanmedian.default": lambda d: (),
    "prod.default": lambda d: (None,),
}  # fmt: skip


ELSEWHERE = (
    "_to_copy.default",
    "mm.default",
    "addmm.default",
    "bmm.default",
    "_softmax.default",
    "_log_softmax.default",
    "native_layer_norm.default",
)  # whose samples are all of another kind: see tests of their own


def operator_of(key: str):
    """The operator; the in-place form where the name ends so."""
    name, _, overload = key.partition(".")
    if key in registry or not name.endswith("_"):
        return registry[key]
    return registry[f"{name[:-1]}.{overload}"].inplace


def by_rules(op, args: tuple) -> list:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if op.body is not None:
            return results(op.body(*args))
        return results(op.family.execute(op, args) if op.inplace_of is None else run_inplace(op, args))


def compare(op, args: tuple, allowed: float | None = None) -> bool:
    """Whether the function took the call; what it gave is then what the rules give."""
    first = tensors_in(args)[0]
    before, version = first.clone(), first._version
    torch.manual_seed(0)
    found = small.table[op.name + "." + op.overload](args)
    drawn = torch.get_rng_state()
    torch.manual_seed(0)
    if found is None:
        assert np.array_equal(first.numpy(), before.numpy(), equal_nan=first.dtype.is_floating_point)
        return False
    if op.inplace_of is not None:
        assert found is args[0] and found._version == version + 1
        args = (before, *args[1:])
    expected, found = by_rules(op, args), results(found)
    assert len(found) == len(expected) and torch.equal(torch.get_rng_state(), drawn)
    for f, e in zip(found, expected, strict=True):
        assert (f.dtype, f.shape, f.stride()) == (e.dtype, e.shape, e.stride()), (op, args)
        tolerance = allowed or (1e-6 if f.dtype in (torch.float32, torch.complex64) else 1e-12)
        np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=tolerance, atol=tolerance, err_msg=f"{op}{args}")
    return True


def samples(op, dtype):
    for sample, _ in samples_of(op.inplace_of or op):
        args = rebuild(
            sample, [t.detach().to(dtype) if t.dtype is torch.float64 else t.detach() for t in tensors_in(sample)]
        )
        if all(t._keys == 0 for t in tensors_in(args)):
            yield args


WHOLE = torch.arange(-6, 6).reshape(3, 4)
MORE = {  # samples of which are all of another kind
    "clamp.default": [(WHOLE, -2, 7), (WHOLE, None, 3), (WHOLE.to(torch.uint8), 3, None)],
    "clamp_min.default": [(WHOLE, 2)],
    "clamp_max.default": [(WHOLE.to(torch.int8), -1)],
    "remainder.Scalar": [(WHOLE, 3), (WHOLE.to(torch.int32), -4)],
    "fmod.Scalar": [(WHOLE, 3), (WHOLE.to(torch.int16), -4)],
    "nonzero.default": [(torch.tensor([[True, False, True], [False, True, True]]),), (torch.tensor([True, True]),)],
    **{
        f"{name}_.{overload}": [
            (torch.zeros(shape, dtype=dtype), *rest, None)
            for shape in ((), (7,), (2, 8), (3, 9), (5, 41))
            for dtype in kinds
            for rest in forms
        ]
        for name, overload, kinds, forms in (
            ("uniform", "default", (torch.float32, torch.float64), [(0.0, 1.0), (-2, 3.5), (1.0, 1.0), (2.0, 1.0)]),
            ("normal", "default", (torch.float32, torch.float64), [(0.0, 1.0), (0.5, 2), (1.0, 0.0), (0.0, -1.0)]),
            ("exponential", "default", (torch.float32, torch.float64), [(1.0,), (0.5,), (0.0,)]),
            ("bernoulli", "float", DTYPES, [(0.0,), (0.3,), (1,), (1.5,)]),
            ("random", "from", DTYPES, [(0, 10), (-5, 100), (3, 3), (0, 1 << 30), (-(1 << 40), 1 << 41), (0, None)]),
            ("random", "to", DTYPES, [(2,), (1 << 24,), (0,)]),
        )
    },
    **{
        f"{name}.default": [
            (*[torch.tensor(p, dtype=dtype) for p in parameters], None) for dtype in (torch.float32, torch.float64)
        ]
        for name, parameters in (
            ("poisson", ([[0.0, 0.5, 3.0], [12.0, 400.0, 1e6]],)),
            ("binomial", ([0.0, 3.0, 40.0, 1e6], [0.2, 0.5, 0.9, 0.3])),
            ("_standard_gamma", ([0.1, 0.9, 1.0, 30.0],)),
            ("_sample_dirichlet", ([[0.1, 0.9, 3.0], [1.0, 1.0, 1.0]],)),
        )
    },
    "histogram.bin_ct": [(torch.tensor([0.5, 2.0, 1.0, 1.0]), 3, None, None, False)],
    "as_strided_scatter.default": [
        (
            torch.arange(12.0).reshape(3, 4),
            torch.full(size, 50.0)[..., ::step],
            size[:-1] + (size[-1] // step,),
            stride,
            start,
        )
        for step in (1, 2)
        for size, stride, start in (
            ((2, 2), (4, 1), None),
            ((2, 2), (1, 2), None),
            ((2, 2), (1, 1), None),
            ((3, 4), (4, 1), None),
            ((4,), (3,), None),
            ((4,), (0,), None),
            ((2,), (12,), None),
            ((2, 2), (4, 1), 1),
            ((2, 2), (2, 3), None),
        )
    ],
    "unique_consecutive.default": [
        (torch.tensor(values, dtype=dtype), True, False, None)
        for values in ([[3, 3], [1, 3]], [2], 5)
        for dtype in (torch.float32, torch.int64, torch.int32)
    ]
    + [(torch.tensor([math.nan, math.nan, 0.0, -0.0, math.inf, math.inf]), False, True, None)],
    "bernoulli.default": [
        (torch.linspace(0, top, 40, dtype=dtype).reshape(5, 8), None)
        for dtype in (torch.float32, torch.float64)
        for top in (1.0, 1.5)
    ],
    **{
        f"{name}.default": [
            (a, b, reduction, *rest)
            for shape in ((), (7,), (5, 33), (2, 3, 4))
            for dtype in (torch.float32, torch.float64)
            for a, b in [
                (torch.arange(math.prod(shape), dtype=dtype).reshape(shape), torch.full(shape, 3.25, dtype=dtype)),
                (torch.full(shape, math.nan, dtype=dtype), torch.zeros(shape, dtype=dtype)),
                (torch.full(shape, math.inf, dtype=dtype), torch.zeros(shape, dtype=dtype)),
            ]
            for reduction in (0, 1, 2)
            for rest in forms
        ]
        for name, forms in (
            ("mse_loss", [()]),
            ("huber_loss", [(1.0,), (0.5,), (3,)]),
            ("smooth_l1_loss", [(1.0,), (0.5,), (0.0,)]),
        )
    },
    "index_put.default": [
        (torch.arange(24, dtype=dtype).reshape(4, 3, 2), (mask, *rest), torch.full(shape, 3, dtype=dtype), adds)
        for dtype in DTYPES
        for adds in (False, True)
        for mask, shape, rest in (
            (torch.arange(24).reshape(4, 3, 2) % 5 > 1, (14,), ()),
            (torch.arange(12).reshape(4, 3) % 3 > 0, (8, 2), ()),
            (torch.tensor([True, False, True, False]), (2, 3, 2), (None,)),
            (torch.tensor([True, False, True, False]), (1, 3, 2), ()),
            (torch.zeros(4, dtype=torch.bool), (0, 3, 2), ()),
            (torch.tensor([True, False, True]), (2, 3, 2), ()),
        )
    ],
    "_unique2.default": [
        (torch.tensor(values).to(dtype), True, *wanted)
        for values in ([[3, -3], [100, 3]], [2], 5, [-128, 127, 0, -128], [0, 1 << 40], [])
        for dtype in DTYPES
        for wanted in ((False, False), (True, False), (True, True))
        if dtype.is_signed or values == [2]
    ],
    "dropout.default": [
        (torch.tensor(values, dtype=dtype), p, train)
        for values in ([[1.0, -0.0, 2.0], [math.nan, math.inf, -3.0]], [], 2.0)
        for dtype in (torch.float32, torch.float64)
        for p, train in ((0.5, True), (0.9, True), (0.5, False), (1.0, True), (0.0, True), (1.5, True))
    ],
    "linalg_lstsq.default": [
        (torch.eye(3, n, dtype=dtype) + 0.1, torch.arange(6.0, dtype=dtype).reshape(3, 2), rcond, driver)
        for n in (2, 3, 5)
        for dtype in (torch.float32, torch.float64)
        for rcond, driver in ((None, None), (0.1, "gelsy"), (None, "gelsd"), (None, "gels"))
    ],
    "linalg_matrix_rank.atol_rtol_float": [
        (x.to(dtype), *rest)
        for x in (
            torch.ones(3, 3),
            torch.eye(2, 4),
            torch.zeros(2, 2),
            torch.arange(24.0).reshape(2, 4, 3),
            torch.full((2, 2), math.nan),
        )
        for dtype in (torch.float32, torch.float64)
        for rest in ((None, None, False), (0.5, None, False), (None, None, True))
    ],
    "pad.default": [
        (torch.arange(24.0).reshape(shape).to(dtype), amounts, mode, value)
        for shape in ((2, 3, 4), (1, 2, 3, 4), (24,), (1, 2, 1, 3, 4))
        for dtype in (torch.float32, torch.int64, torch.int16)
        for amounts in ((1, 2), (3, 0, 1, 3), (1, 1, 1, 1, 1, 0), (0, 0), (-1, 2), (5, 0), (1,))
        for mode, value in (
            *((mode, None) for mode in ("constant", "reflect", "replicate", "circular", "other")),
            ("constant", 2.0),
            ("constant", 1e300),
            ("circular", 0.0),
        )
    ],
    "_upsample_bilinear2d_aa.default": [
        (
            torch.tensor([0.5, math.nan, 2.0, -1.0] * (h * w), dtype=dtype).reshape(2, 2, h, w),
            size,
            align,
            scale,
            scale,
        )
        for dtype in (torch.float32, torch.float64)
        for h, w in ((8, 8), (5, 9), (2, 2))
        for size in ((3, 3), (8, 8), (1, 2), (4, 7))
        for align in (False, True)
        for scale in (None, 0.4)
    ],
    "pixel_unshuffle.default": [(torch.arange(96.0).reshape(2, 2, 4, 6), 2), (torch.arange(24.0).reshape(1, 4, 6), 2)],
}


def refuses(op, args) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_rules(op, tuple(a.clone() if i == 0 and isinstance(a, torch.Tensor) else a for i, a in enumerate(args)))
    except Exception:
        return True
    return False


@pytest.mark.parametrize("key", KEYS)
def test_samples(key: str):
    op = operator_of(key)
    taken = 0
    for args in [*MORE.get(key, ()), *[args for dtype in DTYPES for args in samples(op, dtype)]]:
        if refuses(op, args):
            assert small.table[key](args) is None, f"{op} refuses {args}"
        else:
            taken += compare(op, args)
    assert taken or key in ELSEWHERE, f"{key}: no sample is taken"


def numbers(rng, shape: tuple, dtype, special: bool):
    values = rng.normal(size=shape).astype(np.float64)
    if dtype.is_floating_point and special and values.size:
        at = rng.integers(0, 5, size=shape)
        values = np.where(
            at == 0, np.nan, np.where(at == 1, np.inf, np.where(at == 2, -np.inf, np.where(at == 3, 0.5, values)))
        )
    return torch.tensor(values if dtype.is_floating_point else np.round(values * 2)).to(dtype)


@pytest.mark.parametrize("key", sorted(FORMS))
def test_shapes_and_special_numbers(key: str):
    op, rng = operator_of(key), np.random.default_rng(0)
    for dtype in DTYPES:
        for shape in ((), (1,), (7,), (3, 5), (2, 40, 3), (4, 1, 2, 2), (0, 3), (3, 0)):
            for d in range(-len(shape), max(len(shape), 1)):
                for special in (False, True):
                    args = (numbers(rng, shape, dtype, special), *FORMS[key](d))
                    if refuses(op, args):
                        assert small.table[key](args) is None, f"{op} refuses {args}"
                    else:
                        compare(op, args)


@pytest.mark.parametrize("key", sorted(FORMS))
def test_memory_that_is_not_row_major_is_left_to_the_rules(key: str):
    x = torch.arange(12.0).reshape(3, 4)
    for other in (x.t(), x[:, ::2], x[:, 1:]):
        assert small.table[key]((other, *FORMS[key](0))) is None


INDEXED = {
    "gather.default": lambda x, i, y, d: (x, d, i, False), "scatter.src": lambda x, i, y, d: (x, d, i, y),
    "scatter_.src": lambda x, i, y, d: (x, d, i, y), "scatter.value": lambda x, i, y, d: (x, d, i, 1),
    "scatter_add.default": lambda x, i, y, d: (x, d, i, y), "scatter_add_.default": lambda x, i, y, d: (x, d, i, y),
    "scatter_reduce.two": lambda x, i, y, d: (x, d, i, y, ("sum", "prod", "amax", "amin")[i.numel() % 4], True),
    "index_select.default": lambda x, i, y, d: (x, d, i.reshape(-1)), "take.default": lambda x, i, y, d: (x, i),
    "index_copy.default": lambda x, i, y, d: (x, d, i.unique(), x.index_select(d, i.unique()) * 2),
    "index_add.default": lambda x, i, y, d: (x, d, i.reshape(-1), x.index_select(d, i.reshape(-1)), 1),
    "index_add_.default": lambda x, i, y, d: (x, d, i.reshape(-1), x.index_select(d, i.reshape(-1)), 1),
    "index_fill.int_Scalar": lambda x, i, y, d: (x, d, i.reshape(-1), 1),
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(INDEXED))
@pytest.mark.parametrize("integer", [torch.int64, torch.int32])
def test_indices(key: str, integer):
    op, rng = operator_of(key), np.random.default_rng(0)
    taken = 0
    for dtype in DTYPES:
        for shape, of_index in (
            ((5,), (7,)),
            ((3, 4), (2, 4)),
            ((3, 4), (3, 2)),
            ((2, 3, 4), (2, 3, 2)),
            ((2, 3, 4), (1, 2, 3)),
        ):
            for d in range(len(shape)):
                for low, high in ((0, shape[d]), (-shape[d], shape[d]), (0, shape[d] + 1)):
                    index = torch.tensor(rng.integers(low, high, size=of_index)).to(integer)
                    x, y = (
                        numbers(rng, shape, dtype, True),
                        numbers(rng, tuple(np.maximum(shape, of_index)), dtype, True),
                    )
                    try:
                        args = INDEXED[key](x, index, y, d)
                    except (RuntimeError, IndexError):  # of the index_select that makes an argument
                        continue
                    if refuses(op, args):
                        before = args[0].clone()
                        assert small.table[key](args) is None, f"{op} refuses {args}"
                        assert np.array_equal(args[0].numpy(), before.numpy(), equal_nan=dtype.is_floating_point)
                    else:
                        taken += compare(op, args)
    assert taken or integer is torch.int32  # which some refuse


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_casts(source, target):
    op, rng = registry["_to_copy.default"], np.random.default_rng(0)
    for special in (False, True):
        x = numbers(rng, (4, 5), source, special) * 100
        taken = compare(op, (x.to(source), target, None, None, None, False, None))
        assert taken or special


def test_writes_to_memory_that_is_read_are_left_to_the_rules():
    x = torch.arange(4.0)
    assert small.table["copy_.default"]((x, x, False)) is None
    assert small.table["copy_.default"]((x[:2], x[2:], False)) is None and x._version == 0
    index = torch.tensor([1, 0])
    assert small.table["index_add_.default"]((x, 0, index, x[:2], 1)) is None and x._version == 0


def test_numbers_that_do_not_fit_are_left_to_the_rules():
    fill = small.table["fill_.Scalar"]
    for x, value in ((torch.zeros(2, dtype=torch.int8), 200), (torch.zeros(2, dtype=torch.int64), 1.5), (torch.zeros(2), 1j),
                     (torch.zeros(2), 1e300), (torch.zeros(2, dtype=torch.bool), 2)):  # fmt: skip
        assert fill((x, value)) is None and x._version == 0


def test_writes_with_history_are_recorded():
    x = torch.ones(3, requires_grad=True)
    y = torch.zeros(3)
    y.copy_(x)
    assert y.grad_fn is not None
    with torch.no_grad():
        x.zero_()
        assert x._version == 1
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.zero_()


def test_every_function_is_of_an_operator():
    for key in KEYS:
        op = operator_of(key)
        native = op.native
        asked_first = native.__self__[0] if native.__name__ == "through_rows" else native
        assert (asked_first.__name__ == "through_bits") == op.declared.moves, key
        assert (asked_first.__self__ if op.declared.moves else asked_first) is small.table[key], key


MOVED = {
    "cat.default": lambda x, d: ((x, x * 2, x), d), "stack.default": lambda x, d: ((x, x * 2), d), "hstack.default": lambda x, d: ((x, x),),
    "vstack.default": lambda x, d: ((x, x),), "column_stack.default": lambda x, d: ((x, x),), "flip.default": lambda x, d: (x, (d,)),
    "roll.default": lambda x, d: (x, (3,), (d,)), "tril.default": lambda x, d: (x, d), "triu.default": lambda x, d: (x, d),
    "diag.default": lambda x, d: (x, d), "diag_embed.default": lambda x, d: (x, d, -2, -1),
    "diagonal_scatter.default": lambda x, d: (x, x.diagonal(d) * 2 if x.ndim == 2 else x, d, 0, 1),
    "constant_pad_nd.default": lambda x, d: (x, (1, 2, 0, 3)[: 2 * x.ndim], 0), "channel_shuffle.default": lambda x, d: (x, 2),
    "pixel_shuffle.default": lambda x, d: (x, 2), "pixel_unshuffle.default": lambda x, d: (x, 2), "complex.default": lambda x, d: (x, x * 2),
    **{f"{kind}_pad{n}d.default": lambda x, d, n=n: (x, (1, 2, 0, 1, 2, 2)[: 2 * n]) for kind in ("reflection", "replication") for n in (1, 2, 3)},
}  # fmt: skip
OTHER_DTYPES = (*DTYPES, torch.complex64, torch.complex128)


@pytest.mark.parametrize("key", sorted(MOVED))
def test_elements_that_are_moved(key: str):
    op, taken = operator_of(key), 0
    for dtype in OTHER_DTYPES:
        for shape in (
            (),
            (1,),
            (5,),
            (3, 5),
            (4, 4),
            (2, 4, 6),
            (2, 4, 4, 2),
            (2, 4, 1, 1),
            (1, 1, 4, 4),
            (2, 3, 4, 3, 3),
            (0, 3),
        ):
            for d in range(-len(shape) - 1, len(shape) + 2):
                x = torch.arange(math.prod(shape)).reshape(shape).to(dtype)
                try:
                    forms = (
                        [MOVED[key](y, d) for y in (x, x.t(), x[:, ::2]) if shape != () or y is x]
                        if len(shape) == 2
                        else [MOVED[key](x, d)]
                    )
                except Exception:
                    continue
                for args in forms:
                    if refuses(op, args):
                        assert small.table[key](args) is None, f"{op} refuses {args}"
                    else:
                        taken += compare(op, args)
    assert taken


def test_matrices_on_a_diagonal():
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(4.0).reshape(2, 2)
    expected = torch.tensor([[0.0, 1, 2, 0, 0], [3, 4, 5, 0, 0], [0, 0, 0, 0, 2], [0, 0, 0, 1, 3]])
    assert small.table["_block_diag.default"](((a, b.t()),)).equal(expected)
    assert torch.block_diag(a, b.t()).equal(expected)
    assert small.table["_block_diag.default"](((a, b.double()),)) is None
    assert torch.block_diag(a.clone().requires_grad_(), b).grad_fn is not None


PAIRED = {
    "div.Tensor_mode": lambda x, y: [(x, y, mode) for mode in ("trunc", "floor")],
    "clamp.Tensor": lambda x, y: [(x, y, y + 1), (x, None, y), (x, y, None)], "polar.default": lambda x, y: [(x, y)],
    "where.self": lambda x, y: [(x > 0, x, y), (x > 0, x, y[0, 0])], "prelu.default": lambda x, y: [(x, y[0]), (x, y[0, :1])],
    "frexp.Tensor": lambda x, y: [(x,)], "diff.default": lambda x, y: [(x, 1, d, None, None) for d in (0, 1, -1)],
    "renorm.default": lambda x, y: [(x, 2, d, 1.5) for d in (0, 1)], "kron.default": lambda x, y: [(x, y), (x.t(), y[:, ::2])],
    "cosine_similarity.default": lambda x, y: [(x, y, 1, 1e-8), (x * 0, y, -1, 1e-8)],
    "rms_norm.default": lambda x, y: [(x, (x.shape[1],), None, None), (x, (x.shape[1],), y[0], 1e-3)],
    "isin.Tensor_Tensor": lambda x, y: [(x.long(), y[0].long(), False, invert) for invert in (False, True)],
    "index_put.default": lambda x, y: [(x, (torch.tensor([2, 0, 1]),), y[:3], added) for added in (False, True)],
    "addr.default": lambda x, y: [(x, y[:, 0].contiguous(), y[0], 0.5, 2)], "inner.default": lambda x, y: [(x, y)],
    "_pdist_forward.default": lambda x, y: [(x, p) for p in (0.0, 1.0, 2.0, math.inf)], "glu.default": lambda x, y: [(x, 1), (x, 0)],
    "native_batch_norm.default": lambda x, y: [
        (x, y[0], None, None, None, True, 0.1, 1e-5), (x, None, y[1], y[2], y[3] ** 2 + 1, False, 0.1, 1e-5),
    ],
    "multilabel_margin_loss.default": lambda x, y: [(x, torch.arange(x.numel()).reshape(x.shape) % 4 - 1, r) for r in (0, 1, 2)],
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(PAIRED))
def test_elements_of_several_tensors(key: str):
    op, rng, taken = operator_of(key), np.random.default_rng(0), 0
    for dtype in (torch.float32, torch.float64):
        for special in (False, True):
            x, y = (
                numbers(rng, (4, 6), dtype, special and key in ("clamp.Tensor", "where.self", "frexp.Tensor"))
                for _ in "xy"
            )
            for args in PAIRED[key](x, y):
                taken += compare(op, args, 3e-6 if dtype is torch.float32 else 1e-12)
    assert taken


def test_a_view_of_a_tensor_without_history_is_taken_and_one_with_history_is_recorded():
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.kron(x[:2], x[1:]).grad_fn is None
    view = x[:2]
    x.mul_(torch.ones(4, requires_grad=True))  # the view has a history from here on
    assert torch.kron(view, view).grad_fn is not None


@pytest.mark.parametrize("shift", [0, 1, 4, 12, 16, 1024])
def test_copies_a_little_after_their_source_but_for_pages(shift: int):
    memory = torch.zeros(20000)
    source = torch.arange(3000.0)
    away = (source.data_ptr() - memory.data_ptr()) // 4 % 1024
    target = memory[away + shift : away + shift + 3000].detach()
    target.copy_(source)
    assert torch.equal(target, source) and memory.sum() == source.sum()
