"""Warnings and the environment in compiled functions."""

from __future__ import annotations

import os
import warnings

import pytest

import pullback as torch


def ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("hidden", stacklevel=1)
    warnings.warn("seen", FutureWarning, stacklevel=1)
    return x * 2


def nested(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no.*")
        warnings.warn("nothing", stacklevel=1)
        warnings.warn("something", stacklevel=1)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            warnings.warn("deep", stacklevel=1)
            warnings.warn("deeper", FutureWarning, stacklevel=1)
    return x * 2


def recorded(x):
    with warnings.catch_warnings(record=True):
        warnings.warn("kept", stacklevel=1)
        return x * 2


def left_by_an_error(x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("hidden", stacklevel=1)
            raise ValueError("inside")
    except ValueError:
        warnings.warn("after", stacklevel=1)
    return x * 2


def looked_at(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("one", stacklevel=1)
    return x * len(found)


def an_error(x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.warn("raised", stacklevel=1)
    except UserWarning as error:
        return x * 3, str(error)
    return x


def across_graphs(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("hidden", stacklevel=1)
        print("between")
        warnings.warn("hidden as well", stacklevel=1)
    warnings.warn("seen", stacklevel=1)
    return x * 2


def seen(f):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        out = f(torch.ones(2))
    return str(out), [(str(w.message), w.category, w.lineno) for w in found]


@pytest.mark.parametrize("whole", [ignored, nested, recorded, left_by_an_error])
def test_blocks_are_in_the_graph(whole):
    f, before = torch.compile(whole, backend="eager", fullgraph=True), list(warnings.filters)
    assert seen(f) == seen(f) == seen(whole)
    assert warnings.filters == before


@pytest.mark.parametrize("pieces", [looked_at, an_error, across_graphs])
def test_what_no_graph_can_do_is_done_between_graphs(pieces, capsys):
    f = torch.compile(pieces, backend="eager")
    assert seen(f) == seen(f) == seen(pieces)


def test_a_warning_that_is_an_error_is_raised_where_it_is_given():
    def f(x):
        try:
            warnings.warn("one", stacklevel=1)
        except UserWarning:
            return x * 3
        return x * 2

    g, found = torch.compile(f, backend="eager"), []
    for action in ("ignore", "error", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            found.append(g(torch.ones(1)).item())
    assert found == [2.0, 3.0, 2.0]


def test_the_environment_is_read_at_each_call(monkeypatch):
    def f(x):
        return (
            x + float(os.environ.get("PULLBACK_TESTED", "0")),
            os.getenv("PULLBACK_TESTED", "none"),
            "PULLBACK_TESTED" in os.environ,
        )

    g = torch.compile(f, backend="eager", fullgraph=True)
    monkeypatch.delenv("PULLBACK_TESTED", raising=False)
    assert str(g(torch.ones(1))) == str((torch.ones(1), "none", False))
    monkeypatch.setenv("PULLBACK_TESTED", "2")
    assert str(g(torch.ones(1))) == str((torch.ones(1) * 3, "2", True))


def test_text_of_sizes():
    f = torch.compile(lambda x: f"{x.shape[1:]} of {x.shape}, {x.shape[0]}", backend="eager", fullgraph=True)
    assert f(torch.ones(1, 2)) == "torch.Size([2]) of torch.Size([1, 2]), 1"
    assert f(torch.ones(3, 2)) == "torch.Size([2]) of torch.Size([3, 2]), 3"
