"""Operators that write arguments which may share a base, as one pure call."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.core.tree import tree_map_only
from pullback.joint.functionalize import Functionalization
from pullback.library import Library

HOP = torch.ops.higher_order.auto_functionalized_v2


def functional(f):
    def run(*args):
        with Functionalization() as mode:
            out = f(*args)
        return tree_map_only(torch.Tensor, mode.value, out)

    return run


def write_both(x, y):
    x.add_(1)
    y.mul_(2)


def write_all(x, ys, z):
    if x is not None:
        x.add_(1)
    for y in ys:
        y.add_(z)


@pytest.fixture(scope="module")
def library():
    lib = Library("bases", "DEF")
    lib.define("both(Tensor(a!) x, Tensor(b!) y) -> ()")
    lib.define("back(Tensor(a!) x, Tensor y, *, float k=1.0) -> (Tensor(a!), Tensor)")
    lib.define("all(Tensor(a!)? x, Tensor(b!)[] ys, Tensor z) -> ()")
    lib.impl("both", write_both, "CompositeExplicitAutograd")
    lib.impl("back", lambda x, y, k=1.0: (x.add_(y * k), y.sum()), "CompositeExplicitAutograd")
    lib.impl("all", write_all, "CompositeExplicitAutograd")
    yield torch.ops.bases
    lib._destroy()


def traced(f, *args):
    """The call in the graph of a function, which must give what the function gives and write nothing."""
    want = f(*[a.clone() for a in args])
    graph = make_fx(functional(f))(*[a.clone() for a in args])
    given = [a.clone() for a in args]
    got = graph(*given)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(given, args, strict=True))
    (node,) = [n for n in graph.graph.nodes if n.target is HOP]
    return node


def test_overlapping_views_of_one_base(library):
    def f(x):
        x = x.clone()
        library.both(x[:2], x[1:])
        return (x,)

    node = traced(f, torch.randn(3))
    assert len(node.kwargs["_all_bases"]) == 1
    assert (node.kwargs["_y_slice_start"], node.kwargs["_y_slice_end"]) == (1, 3)


def test_rows_are_strided_in_their_base(library):
    def f(x):
        library.both(x[0], x.t()[1])
        return x, x * 2

    node = traced(f, torch.randn(3, 3))
    assert node.kwargs["_x_size"] == (3,) and node.kwargs["_y_stride"] == (3,)


def test_whole_arguments_are_their_own_bases(library):
    def f(x, y):
        library.both(x, y)
        return x, y

    node = traced(f, torch.randn(3), torch.randn(3))
    assert {k for k in node.kwargs if k[0] == "_"} == {"_x_base_index", "_y_base_index", "_all_bases"}


def test_a_base_with_gaps(library):
    def f(x):
        x = x[:, ::2]
        library.both(x[0], x[1])
        return (x * 1,)

    want = f(torch.arange(10.0).reshape(2, 5))
    with Functionalization() as mode:
        got = mode.value(f(torch.arange(10.0).reshape(2, 5))[0])
    assert torch.equal(got, want[0])


def test_results_and_arguments_given_back(library):
    def f(x, y):
        part, total = library.back(x[1:], y[1:], k=2.0)
        return x * 2, part, total

    traced(f, torch.randn(3), torch.randn(3))


def test_none_and_lists(library):
    def f(x):
        library.all(None, [x[0:1], x[1]], torch.ones(2))
        return (x + 1,)

    node = traced(f, torch.zeros(3, 2))
    assert node.kwargs["_x_base_index"] is None and node.kwargs["_ys_length"] == 2


def test_another_dtypes_view_is_a_base_by_itself(library):
    def f(x, y):
        library.both(x.view(torch.int32), y)
        return x, y

    traced(f, torch.ones(3), torch.ones(3))
    with pytest.raises(NotImplementedError, match="share memory"):
        make_fx(functional(lambda x: library.both(x, x.view(torch.int32))))(torch.ones(3))


def test_pure_operators_are_refused():
    with pytest.raises(AssertionError, match="Cannot auto-functionalize op"):
        HOP(torch.ops.aten.sin.default, self=torch.ones(2), _all_bases=[])
