"""Iterators that were made before a graph: read on by `next` inside, and left where the program left them."""

from __future__ import annotations

import itertools

import pytest

import pullback as torch
from pullback.surface.compiler import graph_break

MAKERS = {
    "list": lambda k: iter([1.0, 2.0, 3.0 + k, 4.0]),
    "tuple": lambda k: iter((1.0, k, 3.0)),
    "range": lambda k: iter(range(k, 9)),
    "count": lambda k: itertools.count(k),
    "count by steps": lambda k: itertools.count(k, 2),
    "values": lambda k: iter({"a": 1.0, "b": k, "c": 2.0}.values()),
    "enumerate": lambda k: (n * v for n, v in enumerate([1.0, 2.0])) if k < 0 else iter([k, k + 1, k + 2]),
}


def twice(x, it):
    return x + next(it), x * next(it)


def with_default(x, it):
    return x + 1, [next(it, None) for _ in range(6)]


def the_rest(x, it):
    first = next(it)
    return x + first, list(itertools.islice(it, 1)) if isinstance(it, itertools.count) else list(it)


def seen(f, make, compiled):
    run, out = compiled(f), []
    for k in (0, 1, 2, 1):
        it = make(k)
        out.append((str(run(torch.ones(2), it)), list(itertools.islice(it, 3))))
    return out


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("f", [twice, with_default, the_rest])
def test_read_on(f, kind):
    want = seen(f, MAKERS[kind], lambda f: f)
    assert seen(f, MAKERS[kind], lambda f: torch.compile(f, backend="eager")) == want


@pytest.mark.parametrize(
    "make", [lambda: enumerate([1.0, 2.0], 5), lambda: zip([1, 2, 3], (4.0, 5.0)), lambda: iter({"a": 1}.items())]
)
def test_all_that_is_left(make):
    def f(x, it):
        return x + 1, list(it), next(it, "end")

    assert str(torch.compile(f, backend="eager", fullgraph=True)(torch.ones(1), make())) == str(
        f(torch.ones(1), make())
    )


def test_an_iterator_that_another_goes_over():
    def f(x, pairs, inner):
        return next(pairs), next(inner), x + next(pairs)[0]

    def make():
        inner = iter([1, 2, 3, 4])
        return zip(inner, [5, 6, 7]), inner

    assert str(torch.compile(f, backend="eager")(torch.ones(1), *make())) == str(f(torch.ones(1), *make()))


def test_no_graph_ends_at_next():
    graphs = []

    def f(x):
        it = iter(tuple(range(10)))
        x = x + next(it) + next(it)
        graph_break()
        x = x + next(it) + next(it)
        graph_break()
        return x + next(it), list(it)

    run = torch.compile(f, backend=lambda gm, _: graphs.append(gm) or gm)
    for _ in range(2):
        assert str(run(torch.ones(1))) == "(tensor([11.]), [5, 6, 7, 8, 9])"
    assert len(graphs) == 3
