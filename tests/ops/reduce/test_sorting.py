"""Order: sorts, selections, quantiles, searches, distinct elements, histograms."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch


def random(dtype, shape, ties):
    rng = np.random.default_rng(1)
    return (rng.integers(-20, 20, shape) if ties or dtype.startswith("int") else rng.standard_normal(shape)).astype(
        dtype
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8", "float16", "bool"])
def test_sort_is_stable_in_both_directions(dtype):
    a = random("int64", (4, 500), True).astype(dtype)
    for descending in (False, True):
        values, places = torch.from_numpy(a).sort(1, descending)
        key = -a.astype(np.int64) if descending else a
        np.testing.assert_array_equal(places.numpy(), np.argsort(key, axis=1, kind="stable"))
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, places.numpy(), 1))


def test_nan_is_largest_and_zeros_are_equal():
    t = torch.tensor([float("nan"), 0.0, -0.0, -float("nan"), 1.0])
    assert t.sort().indices.tolist() == [1, 2, 4, 0, 3]
    assert t.sort(descending=True).indices.tolist() == [0, 3, 4, 1, 2]


def test_sort_keeps_the_order_of_memory():
    t = torch.arange(24.0).reshape(2, 3, 4).permute(2, 1, 0)
    assert t.sort(0).values.stride() == t.stride()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [6, 40, 3000])
def test_selections(dtype, ties, n):
    a = random(dtype, (3, n), ties)
    t, ordered, places = torch.from_numpy(a), np.sort(a, axis=1), np.argsort(a, axis=1, kind="stable")
    for k in {1, 3, n // 2, n}:
        for largest in (True, False):
            values, at = torch.topk(t, k, 1, largest)
            np.testing.assert_array_equal(values.numpy(), ordered[:, ::-1][:, :k] if largest else ordered[:, :k])
            np.testing.assert_array_equal(np.take_along_axis(a, at.numpy(), 1), values.numpy())
        assert torch.kthvalue(t, k).values.tolist() == ordered[:, k - 1].tolist()
    median = torch.median(t, 1)
    assert median.values.tolist() == ordered[:, (n - 1) // 2].tolist()
    assert median.indices.tolist() == places[:, (n - 1) // 2].tolist()


def test_ties_are_broken_as_pytorch_breaks_them():
    assert torch.topk(torch.tensor([1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), 4).indices.tolist() == [3, 5, 4, 0]
    assert torch.kthvalue(torch.tensor([1.0, 1.0, 1.0, 0.0]), 2).indices.item() == 0
    assert torch.mode(torch.tensor([1, 2, 2, 3, 3, 1])) == (1, 5)


def test_medians_and_nan():
    t = torch.tensor([[1.0, float("nan"), 0.0], [float("nan")] * 3])
    assert torch.median(t, 1).indices.tolist() == [1, 0]
    np.testing.assert_array_equal(torch.nanmedian(t, 1).values.numpy(), [0, np.nan])
    assert torch.median(torch.tensor([])).isnan()


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(interpolation):
    a = np.random.default_rng(0).standard_normal((5, 7))
    q = np.array([0.0, 0.3, 0.5, 1.0])
    got = torch.quantile(torch.from_numpy(a), torch.from_numpy(q), 1, interpolation=interpolation)
    np.testing.assert_allclose(got.numpy(), np.quantile(a, q, axis=1, method=interpolation))
    a[0, 0] = np.nan
    got = torch.nanquantile(torch.from_numpy(a), 0.3, 1, interpolation=interpolation)
    np.testing.assert_allclose(got.numpy(), np.nanquantile(a, 0.3, axis=1, method=interpolation))


@pytest.mark.parametrize("d", [torch.int64, torch.float64, torch.int32, torch.float32])
def test_the_earliest_of_equals_is_picked_among_many(d):
    x = (torch.arange(4000) % 7).to(d).reshape(2, 2000)
    order = np.argsort(-x.numpy(), axis=1, kind="stable")
    for k in (3, 150, 900):
        values, places = x.topk(k, 1)
        np.testing.assert_array_equal(places.numpy(), order[:, :k])
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x.numpy(), order[:, :k], 1))


def test_searches():
    rows = torch.tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])
    assert torch.searchsorted(rows, torch.tensor([[3.0, 9.0], [0.0, 4.0]])).tolist() == [[1, 3], [0, 1]]
    assert torch.searchsorted(rows, torch.tensor([[3.0], [4.0]]), right=True).tolist() == [[2], [2]]
    assert torch.bucketize(torch.tensor([0, 3, 7]), rows[0], out_int32=True).dtype is torch.int32
    assert torch.searchsorted(torch.tensor([5.0, 1.0, 3.0]), 3.5, sorter=torch.tensor([1, 2, 0])).item() == 2
    with pytest.raises(RuntimeError, match="side can only be 'left' or 'right' but got up"):
        torch.searchsorted(rows, rows, side="up")


def test_distinct_elements():
    t = torch.tensor([[3, 1], [2, 1], [3, 1]])
    values, inverse, counts = torch.unique(t, return_inverse=True, return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 2, 3], [3, 1, 2]) and values[inverse].tolist() == t.tolist()
    assert torch.unique(t, dim=0).tolist() == [[2, 1], [3, 1]]
    assert torch.unique_consecutive(torch.tensor([1, 1, 2, 1])).tolist() == [1, 2, 1]
    assert torch.unique(torch.tensor([float("nan"), float("nan")])).shape == (2,)
    assert torch.isin(torch.tensor([1, 2]), torch.tensor([2, 3]), invert=True).tolist() == [True, False]
    with pytest.raises(NotImplementedError, match="depends on the data"):
        torch.unique(torch.empty(3, device="meta"))


def test_histograms_keep_the_dtype_of_their_input():
    x, single, double = torch.zeros(3), torch.zeros(0), torch.zeros(0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="input tensor and hist tensor should have the same dtype"):
        torch.histogram(x, 1, out=(double, single))
    with pytest.raises(RuntimeError, match="input tensor and bin_edges tensor should have the same dtype"):
        torch.histogram(x, 1, out=(single, double))
    assert [r.tolist() for r in torch.histogram(x, 1, out=(torch.zeros(0), torch.zeros(0)))] == [[3.0], [-0.5, 0.5]]


def test_histograms():
    a = np.random.default_rng(0).standard_normal(1000)
    t = torch.from_numpy(a)
    np.testing.assert_array_equal(torch.histc(t, 10, -1, 1).numpy(), np.histogram(a, 10, (-1, 1))[0])
    hist, edges = torch.histogram(t, 10, density=True)
    np.testing.assert_allclose(hist.numpy(), np.histogram(a, 10, density=True)[0])
    np.testing.assert_allclose(edges.numpy(), np.histogram(a, 10)[1])
    points = t.reshape(500, 2)
    hist, edges = torch.histogramdd(points, [3, 4], weight=torch.ones(500, dtype=torch.float64))
    np.testing.assert_allclose(hist.numpy(), np.histogramdd(points.numpy(), (3, 4))[0])
    assert torch.bincount(torch.tensor([1, 2, 2]), minlength=5).tolist() == [0, 1, 2, 0, 0]
    with pytest.raises(RuntimeError, match="1-d non-negative integral inputs"):
        torch.bincount(torch.tensor([-1]))


def test_out_of_quantiles_and_running_extremes_has_the_dtype_of_the_result():
    x = torch.rand(3)
    with pytest.raises(RuntimeError, match=r"quantile\(\) out tensor must be same dtype as the input tensor"):
        torch.quantile(x, 0.5, out=torch.empty((), dtype=torch.float64))
    values, places = torch.empty(0, dtype=torch.int16), torch.empty(0, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="expected scalar_type Float but found Short"):
        torch.cummax(x, 0, out=(values, places))
    with pytest.raises(RuntimeError, match="expected scalar_type Long but found Int"):
        torch.cummin(x, 0, out=(torch.empty(0), places.int()))
    with pytest.raises(IndexError, match="Expected reduction dim -1 or 0 for scalar but got 100"):
        torch.cummax(torch.rand(()), 100)


def test_searches_say_that_they_copy():
    edges = torch.linspace(0, 1, 10)
    with pytest.warns(UserWarning, match="boundary tensor is non-contiguous"):
        torch.searchsorted(edges[::2], torch.rand(3))
    with pytest.warns(UserWarning, match="input value tensor is non-contiguous"):
        torch.bucketize(torch.rand(3, 2).t(), edges)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_searching_a_sequence_that_ends_in_nan(dtype):
    """A number is nowhere greater than NaN, so what is behind the last number belongs behind the NaN."""
    sequence = torch.tensor([-1.0, 0.0, math.nan], dtype=dtype)
    values = torch.tensor([math.nan, 1.0, -1.0, 0.0, -math.inf], dtype=dtype)
    assert torch.searchsorted(sequence, values).tolist() == [3, 3, 0, 1, 0]
    assert torch.bucketize(values, sequence, right=True).tolist() == [3, 3, 1, 3, 0]
    assert torch.searchsorted(sequence, values[1]).item() == 3


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=20), st.sampled_from(["float32", "int64", "int16"]), st.data())
def test_one_element_of_a_row_by_its_rank_or_its_count(row, dtype, data):
    t = torch.tensor(row).to(getattr(torch, dtype))
    counts = Counter(row)
    often = min(v for v, n in counts.items() if n == max(counts.values()))
    k = data.draw(st.integers(1, len(row)))
    for (value, place), want in [
        (t.mode(0), often),
        (t.kthvalue(k, 0), sorted(row)[k - 1]),
        (t.median(0), sorted(row)[(len(row) - 1) // 2]),
    ]:
        assert (value.item(), row[place.item()]) == (want, want)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: torch.max(x, 0, out=out),
        lambda x, out: torch.min(x, 0, out=out),
        lambda x, out: torch.sort(x, 0, out=out),
        lambda x, out: torch.topk(x, 1, 0, out=out),
        lambda x, out: torch.kthvalue(x, 1, 0, out=out),
        lambda x, out: torch.median(x, 0, out=out),
        lambda x, out: torch.mode(x, 0, out=out),
    ],
)
def test_out_is_of_the_very_dtypes(call):
    x, values, places = torch.tensor([[3.0, 1.0], [2.0, 4.0]]), torch.empty(0), torch.empty(0, dtype=torch.int64)
    call(x, (values, places))
    for out in ((values.double(), places), (values.int(), places), (values, places.double()), (values, places.int())):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype|expected scalar type"):
            call(x, out)


def test_the_median_of_no_integers_is_what_casts_make_of_nan():
    for name, expected in (("int8", 0), ("int16", 0), ("int32", -(1 << 31)), ("int64", -(1 << 63)), ("uint8", 0)):
        assert torch.zeros(0, dtype=getattr(torch, name)).median().item() == expected
