"""Copies, and what else programs make of the standard library, inside graphs."""

import collections
import copy
import enum
import functools
import inspect
import operator
import re
import sys
import types
import typing
import warnings
import weakref

import pytest

import pullback as torch
from pullback.capture.front.config import config


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


def takes(a, b=2, *rest):
    return a


def signatures(x):
    found = inspect.signature(takes)
    return x + len(found.parameters), list(found.parameters), found.bind(x, 3).arguments["b"]


def of_classes(x):
    return x + ("a" in Table.__dict__) + len(Table.__dict__) + Table.__dict__["a"]


def of_members(x):
    return Chosen.apply(x, Way.UP) + Chosen.apply(x, Way.DOWN)


class Table:
    a = 1


class Way(enum.Enum):
    UP, DOWN = 1, 2


class Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, way):
        ctx.way = way
        return x.sin() if way is Way.UP else x.cos()

    @staticmethod
    def backward(ctx, g):
        return (g if ctx.way is Way.UP else -g), None


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
    [
        of_tables,
        of_instances,
        by_own_methods,
        shallow,
        modules,
        named,
        weak,
        matched,
        called,
        settings,
        signatures,
        of_classes,
        of_members,
        through_views,
    ],
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


def test_a_class_that_gets_more_is_read_again():
    class Local:
        a = 1

    run = torch.compile(lambda x: x + len(Local.__dict__), backend="eager", fullgraph=True)
    before = run(torch.zeros(1)).item()
    Local.b = 2
    assert run(torch.zeros(1)).item() == before + 1


def test_a_warning_is_given_at_each_run_for_its_own_line():
    def inner():
        warnings.warn("careful", RuntimeWarning, stacklevel=2)

    def f(x):
        inner()
        return x + 1

    def heard(f):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            f(torch.ones(2))
        return [(str(w.message), w.category, w.filename, w.lineno) for w in found]

    run = torch.compile(f, backend="eager", fullgraph=True)
    assert heard(run) == heard(run) == heard(f) != []


def test_functions_that_may_be_called_later(capsys):
    def f(x):
        y = x + 1
        print("y is", y)
        return y * 2

    x = torch.ones(2)
    with config.patch(reorderable_logging_functions={print}):
        run = torch.compile(f, backend="eager", fullgraph=True)
        for _ in range(2):
            assert run(x).tolist() == [4.0, 4.0] and capsys.readouterr().out == "y is tensor([2., 2.])\n"
    with config.patch(ignore_logging_functions={print}):
        torch.compile(f, backend="eager", fullgraph=True)(x)
        assert capsys.readouterr().out == ""


def test_a_view_that_is_made_inside_stays_one():
    table = {"a": 2, "b": 3}

    def f(x):
        view = types.MappingProxyType(table)
        y = x * view["a"] + sum(view.values()) + len(view)
        table["d"] = 4
        return y, view

    x = torch.ones(2)
    want = f(x)[0].tolist()
    del table["d"]
    found, view = torch.compile(f, backend="eager", fullgraph=True)(x)
    table["e"] = 5
    assert found.tolist() == want and view["e"] == 5 and list(view) == ["a", "b", "d", "e"]


class Held(typing.NamedTuple):
    function: object
    k: int


def test_what_a_tuple_is_made_of_stays_itself():
    def f(x):
        add = functools.partial(operator.add, 1)
        first = Held(add, 4)
        return x * {first: 5}[Held(add, 4)], first.function is add, first.function(2)

    x = torch.ones(2)
    found = torch.compile(f, backend="eager", fullgraph=True)(x)
    assert found[0].tolist() == [5.0, 5.0] and found[1:] == (True, 3)


def test_autocast_that_is_asked_for_inside():
    def f(x):
        with torch.autocast("cpu"):
            inside = torch.is_autocast_enabled("cpu")
        return x * (2 if inside else 3) + (1 if torch.is_autocast_enabled("cpu") else 0)

    run = torch.compile(f, backend="eager", fullgraph=True)
    assert run(torch.ones(1)).item() == 2
    with torch.autocast("cpu"):
        assert run(torch.ones(1)).item() == 3
