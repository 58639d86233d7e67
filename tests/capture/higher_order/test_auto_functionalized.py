"""Operators that write their arguments, as one pure call."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front.config import native
from pullback.capture.trace.make_fx import make_fx
from pullback.core.tree import tree_map_only
from pullback.joint.functionalize import Functionalization
from pullback.library import Library


def functional(f):
    def run(*args):
        with Functionalization() as mode:
            out = f(*args)
        return tree_map_only(torch.Tensor, mode.value, out)

    return run


def add_list(xs, z):
    for t in xs:
        t.add_(1)


def add_both(x, y):
    x.add_(1)
    y.add_(1)


@pytest.fixture(autouse=True)
def with_copies_of_arguments():
    with native.patch(enable_auto_functionalized_v2=False):
        yield


@pytest.fixture(scope="module")
def library():
    lib = Library("writes", "DEF")
    lib.define("add(Tensor(a!) x, Tensor y, float k=1.0) -> Tensor")
    lib.define("back(Tensor(a!) x, Tensor y) -> Tensor(a!)")
    lib.define("all(Tensor(a!)[] xs, Tensor? z) -> ()")
    lib.define("both(Tensor(a!) x, Tensor(b!) y) -> ()")
    lib.impl("add", lambda x, y, k=1.0: x.add_(y * k).sum(), "CompositeExplicitAutograd")
    lib.impl("back", lambda x, y: x.add_(y), "CompositeExplicitAutograd")
    lib.impl("all", add_list, "CompositeExplicitAutograd")
    lib.impl("both", add_both, "CompositeExplicitAutograd")
    yield torch.ops.writes
    lib._destroy()


def check(f, *args):
    want = f(*[a.clone() for a in args])
    graph = make_fx(functional(f))(*[a.clone() for a in args])
    given = [a.clone() for a in args]
    got = graph(*given)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(given, args, strict=True))  # a pure graph writes nothing
    assert sum(n.target is torch.ops.higher_order.auto_functionalized for n in graph.graph.nodes) == 1


def test_results_and_new_values(library):
    def f(x, y):
        total = library.add(x, y, 2.0)
        return x * 2, total

    check(f, torch.randn(3), torch.randn(3))


def test_a_write_to_a_view(library):
    def f(x, y):
        part = library.back(x[:2], y[:2])
        return x * 2, part

    check(f, torch.randn(3), torch.randn(3))


def test_lists(library):
    def f(x, y):
        library.all([x, y], None)
        return x * 2, y + 1

    check(f, torch.randn(3), torch.randn(3))


def test_written_arguments_that_share_memory_are_refused(library):
    with pytest.raises(NotImplementedError, match="share memory"):
        make_fx(functional(lambda x: library.both(x[:2], x[1:])))(torch.randn(3))


def test_pure_operators_are_refused():
    with pytest.raises(AssertionError, match="Cannot auto-functionalize op"):
        torch.ops.higher_order.auto_functionalized(torch.ops.aten.sin.default, self=torch.ones(2))
