"""One element or another: ties, limits, masks, replacements."""

import math

import pytest

import pullback as torch

inf, nan = math.inf, math.nan


def grads(out, *inputs):
    return [None if g is None else g.tolist() for g in torch.autograd.grad(out.sum(), inputs, allow_unused=True)]


def test_ties_share_the_gradient():
    x, y = (torch.tensor(v, requires_grad=True) for v in ([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]))
    assert grads(torch.maximum(x, y), x, y) == [[0.5, 0, 1], [0.5, 1, 0]]
    assert grads(torch.minimum(x, y), x, y) == [[0.5, 1, 0], [0.5, 0, 1]]
    assert grads(torch.fmax(x, y), x, y) == [[1, 0, 1], [0, 1, 0]]


def test_nan():
    x, y = torch.tensor([nan, 1.0]), torch.tensor([1.0, nan])
    assert torch.maximum(x, y).isnan().all() and torch.fmax(x, y).tolist() == [1, 1]
    assert torch.tensor([nan]).clamp(0, 1).isnan().all()


def test_limits():
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    low, high = torch.tensor(0.0, requires_grad=True), torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
    assert x.clamp(0, 1).tolist() == [0, 0, 1] and x.clip(max=1).tolist() == [-1, 0, 1]
    assert grads(x.clamp(low, high), x, low, high) == [[0, 1, 0], 1, [0, 0, 1]]
    assert torch.tensor([1, 5]).clamp(0.5, 2.5).tolist() == [1, 2.5]
    assert x.clamp(0, 1).grad_fn.name() == "ClampBackward1" and x.clamp(low).grad_fn.name() == "ClampBackward0"
    assert x.clamp_min(0).grad_fn.name() == "ClampMinBackward0"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "limits", [{"min": 0}, {"max": 0}, {"min": -0.0}, {"max": -0.0}, {"min": 0, "max": 1}, {"min": 0.0, "max": 0.0}]
)
def test_zeros_at_a_limit_keep_their_sign(limits, dtype):
    x = torch.tensor([-0.0, 0.0] * 20, dtype=dtype)
    calls = [lambda x: x.clamp(**limits), lambda x: x.clone().clamp_(**limits)]
    if len(limits) == 1:
        calls.append(lambda x: (torch.clamp_min if "min" in limits else torch.clamp_max)(x, *limits.values()))
    for call in calls:
        assert call(x).signbit().equal(x.signbit()) and torch.compile(call)(x).signbit().equal(x.signbit())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("size", [7, 5000])  # by one call of the array library, and by two
def test_limits_of_integers(dtype, size):
    kind = getattr(torch, dtype)
    ends = torch.iinfo(kind)
    values = [(37 * k) % 256 + ends.min for k in range(size - 1)] + [ends.max]
    x = torch.tensor(values, dtype=kind)
    for low, high in ((5, 90), (90, 5), (ends.min, ends.max), (7, None), (None, 7)):
        wanted = [v if low is None else max(v, low) for v in values]
        wanted = [v if high is None else min(v, high) for v in wanted]
        for y in (x.clamp(low, high), x.reshape(1, -1).t().clamp(low, high)[:, 0], x.clone().clamp_(low, high)):
            assert y.dtype is kind and y.tolist() == wanted
    assert x.clamp(torch.tensor(5, dtype=kind), torch.tensor(90, dtype=kind)).tolist() == x.clamp(5, 90).tolist()
    assert x.clamp(2.5).dtype is torch.float32
    assert x.sign().tolist() == [(v > 0) - (v < 0) for v in values] and x.sign().dtype is kind


def test_where():
    c = torch.tensor([True, False])
    assert torch.where(c, 1, 2).dtype is torch.int64 and torch.where(c, 1.5, 2).tolist() == [1.5, 2]
    assert torch.where(c, torch.ones(2, dtype=torch.half), 2.0).dtype is torch.float16
    assert torch.where(c, torch.ones(3, 1), torch.zeros(2)).tolist() == [[1, 0]] * 3
    x, y = torch.ones(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    assert grads(torch.where(c, x, y), x, y) == [[1, 0], [1]]
    assert grads(x.where(c, torch.tensor(nan)), x) == [[1, 0]]
    assert [t.tolist() for t in torch.where(c)] == [[0]]


def test_masks():
    x, v = torch.ones(2, 2, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    mask = torch.tensor([True, False])
    assert grads(x.masked_fill(mask, v), x, v) == [[[0, 1], [0, 1]], 2]
    assert torch.tensor([1, 2]).masked_fill(mask, 7.9).tolist() == [7, 2]
    y = torch.zeros(2)
    assert y.masked_fill_(mask, 3) is y and y.tolist() == [3, 0]
    assert torch.ones(2).masked_fill(mask.reshape(2, 1), 0).shape == (2, 2)


def test_replacements_fit_the_dtype():
    x = torch.tensor([nan, inf, -inf], dtype=torch.float16)
    assert x.nan_to_num().tolist() == [0, 65504, -65504]
    assert x.nan_to_num(1, 2, 3).tolist() == [1, 2, 3]
    assert torch.tensor([1]).nan_to_num().tolist() == [1]


REFUSED = [
    ("torch.clamp(torch.ones(2))", RuntimeError, "At least one of 'min' or 'max' must not be None"),
    ("torch.ones(2, dtype=torch.cfloat).clamp(0)", NotImplementedError, "clamp is not supported for complex types"),
    ("torch.ones(2, dtype=torch.int8).clamp(-300, 1)", RuntimeError, "cannot be converted to type int8_t"),
    ("torch.maximum(torch.ones(2), 1)", TypeError, "must be Tensor, not int"),
    ("torch.maximum(torch.ones(1), torch.ones(1) * 1j)", RuntimeError, "maximum not implemented for complex"),
    ("torch.where(torch.ones(2), 1, 2)", RuntimeError, "boolean tensor, but got a tensor with dtype Float"),
    ("torch.ones(2).masked_fill(torch.ones(2), 1)", RuntimeError, "boolean masks, but got mask with dtype float"),
    (
        "torch.ones(2).masked_fill(torch.ones(2) > 0, torch.ones(2))",
        RuntimeError,
        "only supports a 0-dimensional value",
    ),
    ("torch.tensor([1]).masked_fill(torch.tensor([True]), inf)", RuntimeError, "type int64_t without overflow"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)


def test_where_of_a_condition_alone_gives_the_places_where_it_holds():
    condition = torch.tensor([[True, False], [True, True]])
    expected = [[0, 1, 1], [0, 0, 1]]
    assert [t.tolist() for t in torch.where(condition)] == expected
    assert [t.tolist() for t in torch.ops.aten.where(condition)] == expected


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,), (40, 40)])
def test_numbers_beside_truths_are_promoted(shape):
    truths = torch.ones(shape, dtype=torch.bool)
    for number, expected in ((0, torch.int64), (1, torch.int64), (1.0, torch.float32), (True, torch.bool)):
        for found in (
            torch.where(truths, truths, number),
            torch.where(truths, number, truths),
            truths.where(truths, number),
        ):
            assert found.dtype is expected, number
    assert torch.where(truths, truths.to(torch.uint8), 1).dtype is torch.uint8
    with pytest.raises(RuntimeError, match="Expected out type to be Float but got Double"):
        torch.where(truths, torch.ones(shape), 0.0, out=torch.empty(shape, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_one_element_for_all_is_chosen_as_if_it_were_spread(dtype):
    truths = torch.tensor([[True, False, True], [False, False, True]])
    x = torch.arange(6).reshape(2, 3).to(dtype)
    for one in (x[1, 2].clone(), 0, 0.5, float("nan"), float("inf"), True):
        for first, second in ((x, one), (one, x)):
            spread = [v if v is x else torch.as_tensor(v).expand(2, 3).contiguous() for v in (first, second)]
            found, expected = torch.where(truths, first, second), torch.where(truths, *spread)
            wide = torch.result_type(first, second)
            assert found.dtype is wide
            assert torch.equal(found.nan_to_num(7), expected.to(wide).nan_to_num(7))
