"""Public functions on tensors in C: what they give is what the functions behind them give; what they do not read, they leave to those."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode
from pullback.core import small
from tests.ops.make.test_native_factories import CALLS as FACTORIES

if not small.fronts:
    pytest.skip("the extensions are not built", allow_module_level=True)

DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
special = torch.tensor([[math.nan, -0.0, math.inf], [0.0, -math.inf, 1.5]])
x = torch.arange(12.0).reshape(3, 4) - 5
b = x > 0
i = torch.tensor([[0, -1, 2, 1], [2, 0, -3, 1]])
cube = torch.arange(24.0).reshape(2, 3, 4)
vectors = [torch.arange(float(n)) for n in (3, 2, 4)]


def of_each(call) -> list:
    """A call for an argument of every dtype."""
    return [call((x % 3).to(d)) for d in DTYPES]


CHOSEN = [
    *of_each(lambda t: ((b, t, t + t), {})), ((b, x, 2), {}), ((b, 2.5, x), {}), ((b, x.double(), math.nan), {}), ((b, x.long(), -3), {}),
    ((b, b, True), {}), ((special > 0, special, -0.0), {}), ((special > 0, 7, special), {}), ((torch.tensor(True), torch.tensor(1.0), 2), {}),
    ((b,), {"input": x, "other": x + 1}), ((b, x, x), {"out": None}),
]  # fmt: skip
TAKEN = [
    *of_each(lambda t: ((t, i, 0), {})), ((x, i.t().contiguous()[:3], 1), {}), ((x[0], i[0], -1), {}), ((x, i), {"dim": 0}), ((special, torch.tensor([[1, -1, 0]]), 0), {}),
]  # fmt: skip
SPREAD = [
    *of_each(lambda t: ((t, b, t + t), {})),
    ((special, special > 0, special.flatten()), {}),
    ((x, b), {"source": x}),
]
REPEATED = [
    *of_each(lambda t: ((t, 2, 0), {})), ((x, 3, 1), {}), ((x, 3, -2), {}), ((x, 2), {}), ((cube, 2, 1), {}), ((x, 1, 0), {}),
    ((x[0], 4), {"dim": 0}), ((x.to(torch.complex64), 2, 0), {}), ((torch.tensor(3.0), 2), {}), ((special, 2, 1), {"output_size": None}),
]  # fmt: skip
planes = torch.arange(2 * 3 * 5 * 6.0).reshape(2, 3, 5, 6) % 7
ROUNDED = [
    ((t,), {"decimals": d})
    for t in (x / 7, x.double() / 7, special, special * 1e30, torch.tensor(2.675))
    for d in (1, 3, -1, 20)
]
CALLS = {
    "torch.where": CHOSEN,
    "Tensor.where": [((a[1], a[0], *a[2:]), k) for a, k in CHOSEN if len(a) == 3 and not k and isinstance(a[1], torch.Tensor)],
    "torch.take_along_dim": TAKEN,
    "Tensor.take_along_dim": TAKEN,
    "torch.masked_scatter": SPREAD,
    "Tensor.masked_scatter": SPREAD,
    "torch.repeat_interleave": REPEATED,
    "Tensor.repeat_interleave": REPEATED,
    "torch.cartesian_prod": [
        (tuple(vectors[:2]), {}), (tuple(vectors), {}), ((vectors[2][::2], vectors[0]), {}), ((vectors[0].flip(0), vectors[1]), {}), ((special[0], special[1]), {}),
        ((torch.tensor([1, 2]), torch.tensor([3])), {}), ((vectors[0].to(torch.complex64), vectors[1].to(torch.complex64)), {}),
    ],
    "Tensor.contiguous": [
        *of_each(lambda t: ((t.t(),), {})), ((cube[:, 1:],), {}), ((cube.transpose(0, 2),), {}), ((x.to(torch.complex64).t(),), {}),
        ((planes.to(memory_format=torch.channels_last),), {}),
    ],
    "torch.round": ROUNDED,
    "Tensor.round": ROUNDED,
    "nn.functional.max_pool2d": [
        ((planes, 2), {}),
        ((planes, 3, 2, 1), {}),
        ((planes.double(), (2, 3)), {"stride": (1, 2), "padding": (1, 0)}),
        ((planes, 2), {"dilation": 2, "ceil_mode": True, "stride": None}),
        ((planes[0], 2, 1), {"return_indices": False}),
        ((planes.log(), 3, 1, 1), {}),
    ],
    "torch.unravel_index": [
        ((torch.tensor([0, 5, 11, 23]), (2, 3, 4)), {}), ((torch.tensor([[7, -1], [30, -25]]), (4, 3)), {}), ((torch.tensor(9), [10]), {}),
        ((torch.tensor([3]),), {"shape": torch.Size([2, 2])}), ((torch.tensor([-(1 << 62), 1 << 62]), (1 << 29, 1 << 29, 1 << 29)), {}),
    ],
    "torch.tensordot": [
        ((x, x.t().contiguous(), 1), {}), ((cube, cube.reshape(3, 4, 2)), {}), ((x.double(), x.double().reshape(4, 3)), {"dims": 1}), ((x, x, 2), {}),
        ((x[0], x[0], 1), {"out": None}),
    ],
    "torch.gradient": [
        ((x,), {}), ((cube.double(),), {"spacing": 0.5}), ((x,), {"dim": 1}), ((x,), {"dim": -2, "edge_order": 1}), ((x[0],), {"spacing": 3}), ((special,), {}),
        ((torch.zeros(2, 2),), {}),
    ],
    "nn.functional.local_response_norm": [
        ((cube, n), k) for n in (1, 2, 3, 7) for k in ({}, {"alpha": 0.5, "beta": 0.5, "k": 2}, {"beta": 1})
    ] + [((cube.double(), 3), {})],
    "torch.tensor": [
        (([1.0, 2.0],), {}), (([1, 2],), {}), (([True, False],), {}), (([1, 2.5],), {}), (([[1.0, 2.0], [3.0, 4.0]],), {}), ((((1, 2), (3, 4)),), {}), (([[[7]]],), {}),
        (([1, 2],), {"dtype": torch.float64}), (([1, 2],), {"dtype": torch.int8}), (([math.nan, -0.0, math.inf],), {}), (([1.5],), {"dtype": torch.float32}),
    ],
}  # fmt: skip
recorded = torch.ones(3, 4, requires_grad=True)
LEFT = {  # calls that take more than the functions read
    "Tensor.contiguous": [
        ((recorded.t(),), {}), ((x.t(),), {"memory_format": torch.channels_last}), ((x[:0].t(),), {}), ((x.to(torch.bfloat16).t(),), {}),
    ],
    "torch.where": [
        ((b,), {}), ((b, recorded, 0), {}), ((b, x, recorded), {}), ((b, x.long(), 0.5), {}), ((b, x, 1j), {}), ((b, x, True), {}), ((b, x[0], x), {}),
        ((b, x, x.double()), {}), ((b.t(), x.t(), 0), {}), ((b, x, 1e300), {}), ((b, x.to(torch.int8), 300), {}), ((b, 1, 2), {}), ((b, x, x), {"out": x.clone()}),
        ((b.to(torch.uint8), x, 0), {}), ((b, x), {"self": x}), ((b, x.to(torch.bfloat16), 0), {}), ((b[:0], x[:0], 0), {}),
    ],
    "Tensor.where": [((recorded, b, 0), {}), ((torch.nn.Parameter(x), b, x), {})],
    "torch.take_along_dim": [
        ((x, i, None), {}), ((x, i), {}), ((recorded, i, 0), {}), ((x, i + 3, 0), {}), ((x, i[:, :1], 0), {}), ((x, i.int(), 0), {}), ((x, i, 2), {}), ((x.t(), i.t(), 1), {}),
        ((x, i, 0), {"out": x.clone()}),
    ],
    "torch.masked_scatter": [((recorded, b, x), {}), ((x, b, x[0, :2]), {}), ((x, b[0], x), {}), ((x, b, x.double()), {}), ((x, x, x), {})],
    "torch.repeat_interleave": [
        ((x, -1, 0), {}), ((x, 0, 0), {}), ((recorded, 2, 0), {}), ((x, torch.tensor(2), 0), {}), ((x, 2, 0), {"output_size": 6}), ((x, 2.0, 0), {}), ((x, 2, 3), {}), ((x.t(), 2, 0), {}),
        ((torch.tensor(3.0), 2, 0), {}), ((x,), {}),
    ],
    "torch.cartesian_prod": [((vectors[0],), {}), ((x, x), {}), ((vectors[0], vectors[1].double()), {}), ((recorded[0], vectors[0]), {}), ((vectors[0][:0], vectors[1]), {})],
    "torch.unravel_index": [((torch.tensor([1]), (2, 0)), {}), ((torch.tensor([1]), 4), {}), ((torch.tensor([1.0]), (4,)), {}), ((torch.tensor([1]), (2, -1)), {}), ((torch.tensor([1]), (2.0,)), {}), ((torch.tensor([1], dtype=torch.int32), (4,)), {})],
    "torch.round": [((x,), {}), ((x,), {"decimals": 0}), ((recorded,), {"decimals": 2}), ((x.long(),), {"decimals": 2}), ((x,), {"decimals": 1.0}), ((x.t(),), {"decimals": 1}), ((x,), {"decimals": 1, "out": x.clone()})],
    "nn.functional.max_pool2d": [
        ((planes, 0), {}), ((planes, 7), {}), ((planes, 2, 2, 2), {}), ((planes, 2), {"return_indices": True}), ((planes, [2, 2]), {}), ((x, 2), {}), ((planes.long(), 2), {}),
        ((torch.ones(1, 2, 4, 4, requires_grad=True), 2), {}), ((planes, 2.0), {}), ((planes, (2, 2, 2)), {}), ((planes, 2, ()), {}), ((planes.permute(0, 1, 3, 2), 2), {}),
    ],
    "torch.tensordot": [
        ((recorded, x, 2), {}), ((x, x, 1), {}), ((x, x, 0), {}), ((x, x, 3), {}), ((x, x, ([0], [0])), {}), ((x.long(), x.long(), 2), {}), ((x, x.double(), 2), {}), ((x, x, 2), {"out": torch.zeros(())}),
        ((x, torch.ones(1, 3), 1), {}), ((x.t(), x, 1), {}),
    ],
    "torch.gradient": [((recorded,), {}), ((x,), {"spacing": [1.0, 2.0]}), ((x,), {"edge_order": 2}), ((x,), {"dim": (0, 1)}), ((x[:1],), {}), ((x.long(),), {}), ((x,), {"spacing": 1j}), ((torch.tensor(1.0),), {})],
    "nn.functional.local_response_norm": [((x, 2), {}), ((cube, 0), {}), ((cube, 2.0), {}), ((torch.ones(1, 1, 2, requires_grad=True), 2), {}), ((cube[:0], 2), {}), ((cube.long(), 2), {})],
    "torch.tensor": [
        ((1.0,), {}), (([],), {}), (([[1], [2, 3]],), {}), (([1, True],), {}), (([1j],), {}), (([x[0, 0]],), {}), (([np.float32(1)],), {}), (([1.0],), {"requires_grad": True}),
        (([1.5],), {"dtype": torch.int64}), (([300],), {"dtype": torch.int8}), (([1e300],), {"dtype": torch.float32}), (([1, 0],), {"dtype": torch.bool}), (([1.0],), {"device": "cpu"}),
        (([1.0],), {"out": None}), (([1.0],), {"dtype": torch.bfloat16}), (([1 << 60],), {}),
    ],
}  # fmt: skip


def public(key: str):
    owner = torch.Tensor if key.startswith("Tensor.") else torch
    for name in key.removeprefix("torch.").removeprefix("Tensor.").split("."):
        owner = getattr(owner, name)
    return owner


def several(result) -> list:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("key", sorted(CALLS))
def test_results_are_those_of_the_function_behind(key: str):
    for args, kwargs in CALLS[key]:
        found, expected = small.fronts[key](args, kwargs), several(public(key).__wrapped__(*args, **kwargs))
        assert found is not None, (args, kwargs)
        assert len(several(found)) == len(expected)
        for f, e in zip(several(found), expected, strict=True):
            assert (f.dtype, f.shape, f.stride()) == (e.dtype, e.shape, e.stride()), (args, kwargs)
            assert f.is_leaf and not f.requires_grad and f._version == 0
            np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=2e-6, err_msg=f"{args}{kwargs}")
            if f.dtype.is_floating_point:
                np.testing.assert_array_equal(np.signbit(f.numpy()), np.signbit(e.numpy()), err_msg=f"{args}{kwargs}")
        through = several(public(key)(*args, **kwargs))
        assert all(
            np.array_equal(t.numpy(), f.numpy(), equal_nan=f.is_floating_point())
            for t, f in zip(through, several(found), strict=True)
        )


# Functions whose answers are no tensors.
PAIRS = [
    ((x, x), {}), ((x, x.clone()), {}), ((x, x + 1), {}), ((x, x[:2]), {}), ((special, special), {}), ((special[1:, :1], -special[1:, :1]), {}), ((i, i), {}), ((i, i.flip(0)), {}),
    ((x[:0], x[:0]), {}), ((x.to(torch.complex64), x.to(torch.complex64)), {}), ((x,), {"other": x}),
]  # fmt: skip
ANSWERED = {"torch.equal": PAIRS, "Tensor.equal": PAIRS}


@pytest.mark.parametrize("key", ANSWERED)
def test_answers_are_those_of_the_function_behind(key: str):
    for args, kwargs in ANSWERED[key]:
        found = small.fronts[key](args, kwargs)
        assert found is public(key).__wrapped__(*args, **kwargs) is public(key)(*args, **kwargs), (args, kwargs)
    for args in ((x, x.double()), (x.t(), x.t()), (b, b), (x.to(torch.bfloat16), x.to(torch.bfloat16)), (x, 2), (x,)):
        assert small.fronts[key](args, {}) is None
    with Listen(), pytest.raises(Heard):
        public(key)(x, x)
    with pytest.raises(Heard):
        public(key)(x.as_subclass(Loud), x)


def test_every_function_is_tried():
    assert set(CALLS) | set(FACTORIES) | set(ANSWERED) == set(small.fronts)


@pytest.mark.parametrize("key", sorted(LEFT))
def test_calls_that_take_more_are_left(key: str):
    for args, kwargs in LEFT[key]:
        assert small.fronts[key](args, kwargs) is None, (args, kwargs)


def test_history_is_recorded_and_views_of_tensors_without_it_are_taken():
    key = "torch.repeat_interleave"
    assert small.fronts[key]((x[:2], 2, 0), {}) is not None
    base = x.clone()
    view = base[:2]
    base.mul_(torch.ones(4, requires_grad=True))  # the view has a history from here on
    assert small.fronts[key]((view, 2, 0), {}) is None and view.repeat_interleave(2, 0).grad_fn is not None
    with torch.no_grad():
        assert small.fronts[key]((recorded, 2, 0), {}) is not None
        hidden = recorded[:2]
    assert small.fronts[key]((hidden, 2, 0), {}) is None  # a view that was made with recording off
    assert torch.where(b, recorded, 0).grad_fn is not None


class Heard(BaseException):
    """Raised by the overrides here."""


class Listen(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise Heard


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise Heard


@pytest.mark.parametrize("key", sorted(CALLS))
def test_modes_and_subclasses_see_the_call(key: str):
    args, kwargs = CALLS[key][0]
    with Listen(), pytest.raises(Heard):
        public(key)(*args, **kwargs)
    if key != "torch.tensor":
        with pytest.raises(Heard):
            public(key)(*[a.as_subclass(Loud) if isinstance(a, torch.Tensor) else a for a in args], **kwargs)


@pytest.mark.parametrize("key", sorted(set(CALLS) - {"torch.tensor"}))
def test_transforms_and_fakes_see_the_call(key: str):
    args, kwargs = CALLS[key][0]
    expected = several(public(key)(*args, **kwargs))
    tensors = [k for k, a in enumerate(args) if isinstance(a, torch.Tensor)]

    def of(*given):
        return tuple(
            several(
                public(key)(*[given[tensors.index(k)] if k in tensors else a for k, a in enumerate(args)], **kwargs)
            )
        )

    batched = torch.vmap(of)(*[torch.stack([args[k], args[k]]) for k in tensors])
    for pair, e in zip(batched, expected, strict=True):
        assert all(torch.allclose(p, e) for p in pair)
    with FakeTensorMode() as mode:
        fakes = of(*[mode.from_tensor(args[k]) for k in tensors])
    assert [(f.shape, f.dtype) for f in fakes] == [(e.shape, e.dtype) for e in expected]


@pytest.mark.parametrize(
    "call, operator",
    [
        (lambda: torch.where(b, x, 0), "where.self"),
        (lambda: x.take_along_dim(i, 0), "gather"),
        (lambda: x.repeat_interleave(2, 0), "expand"),
        (lambda: torch.tensordot(x, x, 2), "mm"),
        (lambda: x.masked_scatter(b, x), "masked_scatter"),
    ],
)
def test_an_override_of_what_they_are_written_in_wins(call, operator: str):
    def seen(*args, **kwargs):
        raise Heard

    library = torch.library.Library("aten", "IMPL")
    library.impl(operator, seen, "CPU")
    try:
        with pytest.raises(Heard):
            call()
    finally:
        library._destroy()
    assert isinstance(call(), torch.Tensor)
