"""Compiled programs whose sizes and positions data decides: one graph for all of them, with the numbers of the plain program."""

import pytest

import pullback as torch
from pullback.capture.front.backends import lookup_backend
from pullback.capture.front.config import config
from pullback.capture.shapes.questions import statically_known_true
from pullback.core import geometry

LENGTH, X = 10, torch.arange(40.0).view(10, 4)


@pytest.fixture(autouse=True)
def scalars_captured():
    torch.compiler.reset()
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def one_graph(function, *calls, backend="aot_eager", dynamic=None):
    count = 0

    def counted(graph, inputs):
        nonlocal count
        count += 1
        return lookup_backend(backend)(graph, inputs)

    made = torch.compile(function, backend=counted, fullgraph=True, dynamic=dynamic)
    for args in calls:
        torch.testing.assert_close(made(*args), function(*args))
    assert count == 1
    return made


def numbers(*values):
    return torch.tensor(values)


def head(x, n):
    return x[: n.item()] * 2


def between(x, n):
    start, end = n.tolist()
    return x[start:end] + 1


def by_tensors(x, n):
    return x[n[0] : n[1] : n[2]] * 1


def piece(x, n):
    return x.narrow(0, n.item(), 3) + 0


def piece_at_tensor(x, n):
    return torch.narrow(x, 0, n[0], 2) * 3


def parts(x, n):
    return [p.sum() for p in torch.tensor_split(x, n)]


def rows(x, n):
    i = n.item()
    return torch.select(x, 0, i), x.t().select(1, i) * 2


CASES = [
    (head, [(3,), (0,), (10,), (50,), (-2,)]),
    (between, [(2, 5), (5, 2), (-3, 9), (0, 99), (-99, -1)]),
    (by_tensors, [(0, 9, 2), (-6, 99, 3), (4, 2, 1)]),
    (piece, [(0,), (7,), (-4,)]),
    (piece_at_tensor, [(0,), (8,), (-3,)]),
    (parts, [(2, 5), (0, 20), (-1, 3)]),
    (rows, [(0,), (9,), (-1,), (-10,)]),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(("function", "values"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_positions(function, values, backend):
    one_graph(function, *((X, numbers(*v)) for v in values), backend=backend)


@pytest.mark.parametrize("dynamic", [True, False])
def test_native_code_of_graphs_whose_sizes_are_symbols(dynamic):
    """Sizes that come with a call are made constants; what data decides stays a symbol."""
    made = one_graph(rows, (X, numbers(1)), (X, numbers(-1)), backend="inductor", dynamic=dynamic)
    torch.testing.assert_close(made(X[:5], numbers(4)), rows(X[:5], numbers(4)))


@pytest.mark.parametrize(("function", "value"), [(piece, 8), (piece, -11), (rows, 10), (rows, -11), (by_tensors, 0)])
def test_positions_out_of_range_are_refused_when_the_graph_runs(function, value):
    made = torch.compile(function, backend="aot_eager", fullgraph=True)
    good, bad = ((0, 2, 1), (0, 2, value)) if function is by_tensors else ((0,), (value,))
    made(X, numbers(*good))
    with pytest.raises(RuntimeError, match="assert"):
        made(X, numbers(*bad))


def test_a_slice_within_known_bounds_has_the_plain_length():
    def function(x, n):
        start, end = n.tolist()
        torch._check(start >= 0)
        torch._check(start <= end)
        torch._check(end <= x.size(0))
        out = x[start:end]
        assert statically_known_true(out.size(0) == end - start)
        return out * 1

    one_graph(function, (X, numbers(2, 5)), (X, numbers(4, 4)))


def test_sizes_that_must_fit_are_checked_when_the_graph_runs():
    def function(x, n, y):
        return torch.nn.functional.pad(x, (0, n.item())) @ y

    made = one_graph(function, (X, numbers(2), torch.ones(6, 2)))
    with pytest.raises(RuntimeError, match="assert"):
        made(X, numbers(3), torch.ones(6, 2))


def test_views_of_a_size_that_data_decides():
    def function(x, n):
        a, b = n.tolist()
        return x.view(a, b) * 1, x.reshape(a, -1), x.t().reshape(a, b) + 1

    made = one_graph(function, (X, numbers(5, 8)), (X, numbers(1, 40)), (X, numbers(40, 1)))
    with pytest.raises(RuntimeError, match="assert"):
        made(X, numbers(3, 5))


def test_rows_that_data_chooses_are_written():
    def function(x, n):
        i = n.item()
        x = x * 1
        x[i] += x[i + 1]
        return x

    one_graph(function, (X, numbers(0)), (X, numbers(5)), (X, numbers(-1)), (X, numbers(-3)))


def test_rows_of_indices_that_data_counts():
    def function(x):
        found = x.nonzero()
        return found[-1] + found[0]

    one_graph(function, (numbers(0, 1, 1, 0),), (numbers(0, 1, 0, 0),))


@pytest.mark.parametrize(
    ("shape", "stride", "new", "expected"),
    [
        ((4, 6), (6, 1), (2, 2, 6), (12, 6, 1)),
        ((4, 6), (12, 2), (24,), (2,)),
        ((4, 6), (12, 1), (24,), None),
        ((4, 6), (1, 4), (2, 2, 3, 2), (2, 1, 8, 4)),
        ((1, 6), (99, 1), (6, 1), (1, 1)),
        ((0, 6), (6, 1), (3, 0), (1, 1)),
    ],
)
def test_views_of_known_sizes(shape, stride, new, expected):
    assert geometry.view_strides(shape, stride, new) == expected
