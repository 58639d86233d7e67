"""Copies, and what else programs make of the standard library, inside graphs."""

import collections
import copy
import operator
import re
import sys
import types
import weakref

import pytest

import pullback as torch


class Point:
    def __init__(self, a):
        self.a, self.b = a, [1, {"x": a}]


class Own(Point):
    def __deepcopy__(self, memo):
        result = Own(copy.deepcopy(self.a, memo))
        result.b = copy.deepcopy(self.b, memo)
        return result


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.k = torch.nn.ReLU(), 3

    def forward(self, x):
        return self.act(x) * self.k


layer = torch.nn.Linear(2, 2).requires_grad_(False)
table = {"p": [1, 2, {"q": (3, 4)}], "t": torch.ones(2)}
view = types.MappingProxyType(table)


def of_tables(x):
    mine = copy.deepcopy(table)
    mine["p"].append(5)
    return x + len(mine["p"]), mine["t"] + 1, mine


def of_instances(x):
    p = Point(x)
    q = copy.deepcopy(p)
    q.b[0] = 7
    return p.b[0] + q.b[0] + q.a + q.b[1]["x"], q.a is q.b[1]["x"]


def by_own_methods(x):
    p = Own(x)
    q = copy.deepcopy([p, p])
    return q[0] is q[1], q[0].a is q[0].b[1]["x"], q[0].a + 1


def shallow(x):
    p = Point(x)
    q = copy.copy(p)
    return q.a + 1, q.b is p.b, copy.copy(table["p"])


def modules(x):
    return Scaled()(x) + torch.nn.Sequential(layer, torch.nn.Tanh())(x)


def named(x):
    kind = collections.namedtuple("kind", "a b")
    t = kind(x, 2)
    return t.a * t.b


def weak(x):
    return weakref.ref(layer)()(x)


def matched(x):
    m = re.match(r"(\d+)-(\d+)", "12-34")
    return x * int(m.group(1)) + len(re.compile("a+").findall("aabaa"))


def called(x):
    return operator.methodcaller("sum", 0)(x) + operator.methodcaller("mean", dim=0)(x)


def settings(x):
    return x + sys.getrecursionlimit()


def through_views(x):
    own = types.MappingProxyType({"a": x})
    first = view["p"][0] if "p" in view else 0
    return (
        own["a"] * len(view) + first,
        list(view),
        dict(view)["t"] + 1,
        [*view.keys()],
        view.get("none", 3),
        bool(view),
        own,
    )


@pytest.mark.parametrize(
    "f",
    [of_tables, of_instances, by_own_methods, shallow, modules, named, weak, matched, called, settings, through_views],
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph_gives_what_the_program_gives(f, backend):
    x = torch.randn(2, 2)
    run = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        assert str(run(x)) == str(f(x))


def test_a_view_shows_what_is_behind_it():
    table = {"a": 1}
    view = types.MappingProxyType(table)
    run = torch.compile(lambda x: x * view["a"] + len(view), backend="eager", fullgraph=True)
    x = torch.ones(2)
    for change in ({}, {"a": 2}, {"b": 1}, {"a": 1}):
        table.update(change)
        assert run(x).tolist() == (x * view["a"] + len(view)).tolist()


def test_what_is_one_object_has_one_copy():
    given = {"a": [1], "b": [1]}
    run = torch.compile(lambda x: (x + 1, copy.deepcopy(given)), backend="eager")
    for same in (False, True, False):
        given["b"] = given["a"] if same else [1]
        made = run(torch.ones(1))[1]
        assert (made["a"] is made["b"]) == same and made["a"] is not given["a"]
