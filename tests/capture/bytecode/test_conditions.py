"""Conditions of captured graphs: what is tested, what is not, and the words for what does not hold."""

import pytest

import pullback as torch


class Counter:
    def __init__(self) -> None:
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        return graph


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()


def reasons_of(f, calls, **options) -> tuple[list[str], int]:
    """Why further graphs were made over some calls, and how many graphs there are."""
    reasons, count = [], Counter()
    run = torch.compile(f, backend=count, guard_fail_fn=lambda failure: reasons.append(failure[0]), **options)
    for args in calls:
        torch.testing.assert_close(run(*args), f(*args))
    return reasons, len(count.graphs)


def test_what_is_not_read_is_not_tested() -> None:
    def f(x, options):
        return x * options["scale"]

    calls = [(torch.ones(2), {"scale": 2, "other": other}) for other in ("a", 3, None)]
    assert reasons_of(f, calls) == ([], 1)


def test_a_float_that_changes_becomes_an_input() -> None:
    reasons, graphs = reasons_of(lambda x, a: x * a + a, [(torch.ones(2), 0.1 * i) for i in range(1, 6)])
    assert reasons == ["L['a'] == 0.1  (it is 0.2)"] and graphs == 2


def test_a_float_that_is_looked_at_is_tested() -> None:
    _, graphs = reasons_of(lambda x, a: x * a if a > 0.25 else x - a, [(torch.ones(2), 0.1 * i) for i in range(1, 7)])
    assert graphs == 3


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), float("nan")])
def test_special_floats_are_told_apart(value: float) -> None:
    count = Counter()
    run = torch.compile(lambda x, a: torch.copysign(x, torch.full((2,), a)) + 0 * x, backend=count)
    for given in (value, 1.5, value, 1.5):
        torch.testing.assert_close(run(torch.ones(2), given), torch.copysign(torch.ones(2), torch.full((2,), given)))
    assert len(count.graphs) <= 2


def test_where_a_tensor_begins_does_not_matter() -> None:
    data = torch.arange(20.0)
    assert reasons_of(lambda x: x * 2, [(data[i : i + 3],) for i in range(6)]) == ([], 1)


def test_but_it_does_where_the_program_counts_from_there() -> None:
    data = torch.arange(20.0)
    _, graphs = reasons_of(lambda x: x.as_strided((2,), (1,), 0) * 2, [(data[i : i + 3],) for i in range(3)])
    assert graphs == 3


def test_memory_matters_only_where_it_is_written() -> None:
    data = torch.arange(20.0)
    pairs = [(data[:3], data[3:6]), (data[:3], data[1:4]), (torch.ones(3), torch.ones(3))]
    assert reasons_of(lambda x, y: x + y, pairs) == ([], 1)


def test_shared_memory_matters_where_it_is_written() -> None:
    def writes(x, y):
        x.add_(1)
        return x + y

    def pair(start: int) -> tuple:
        data = torch.arange(10.0)
        return data[:3], data[start : start + 3]

    count = Counter()
    run = torch.compile(writes, backend=count)
    for start in (5, 1, 5):  # apart, overlapping, apart
        torch.testing.assert_close(run(*pair(start)), writes(*pair(start)))
    assert len(count.graphs) == 2


def test_the_same_object_twice() -> None:
    x, y = torch.ones(2), torch.ones(2)
    reasons, graphs = reasons_of(lambda a, b: a + b, [(x, y), (x, x)])
    assert reasons == ["L['a'] is not L['b']"] and graphs == 2
