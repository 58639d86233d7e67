"""Objects that a compiled function makes are what the function makes; and programs that used to hang or to crash."""

from __future__ import annotations

import collections
import dataclasses
import gc
import weakref

import pytest

import pullback as torch
from pullback.capture.front.exporting import export

x = torch.ones(3)


class Doubling(dict):
    def __setitem__(self, key, value):
        dict.__setitem__(self, key, value * 2)


class Ordered(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value + 1)


class Default(collections.defaultdict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value + 1)


class Appending(list):
    def append(self, value):
        list.append(self, value * 2)

    def extend(self, values):
        list.extend(self, [v * 3 for v in values])


class Pair(collections.namedtuple("Pair", "a b")):
    pass


class Marked(tuple):
    pass


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: float = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    a: object
    b: float = 2.0


class Mapping:
    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return {"a": 1.0, "b": 2.0}[key]


class Twice(torch.nn.Module):
    def forward(self, x):
        return x * 2


class Plus(Twice):
    def forward(self, x):
        return super().forward(x) + 1


def dict_with_its_own_setitem(x):
    d = Doubling()
    d["a"] = 1.0
    return x * d["a"], dict(d), d


def ordered_dict_with_its_own_setitem(x):
    d = Ordered()
    d["a"] = 1.0
    d["b"] = 2.0
    return x * d["a"], d


def default_dict_with_its_own_setitem(x):
    d = Default(float)
    d["a"] = 1.0
    return x * d["a"], d, d.default_factory


def list_with_its_own_append(x):
    d = Appending()
    d.append(1.0)
    return x * d[0], d


def attribute_of_a_named_tuple(x):
    result = Pair(x * 2, 3)
    result.extra = 5.0
    return result.a, result.b, result.extra, result.__dict__, result


def attribute_of_a_tuple(x):
    result = Marked((x * 2, 3))
    result.extra = x * 5
    return result, result.__dict__


def frozen_dataclass(x):
    result = Frozen(x * 2)
    return result.a * result.b, result


def frozen_dataclass_with_slots(x):
    result = FrozenSlots(x * 2)
    return result.a * result.b, result.b


def frozen_dataclass_refuses(x):
    result = Frozen(x * 2)
    try:
        result.a = 1
    except dataclasses.FrozenInstanceError:
        return result.a * 3


def dict_of_a_mapping(x):
    d = dict(Mapping(), x=x)
    return d["a"] * d["x"] * d["b"]


PROGRAMS = [
    dict_with_its_own_setitem, ordered_dict_with_its_own_setitem, default_dict_with_its_own_setitem,
    list_with_its_own_append, attribute_of_a_named_tuple, attribute_of_a_tuple, frozen_dataclass,
    frozen_dataclass_with_slots, frozen_dataclass_refuses, dict_of_a_mapping,
]  # fmt: skip


def shown(value):
    """A value as something to compare."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return type(value), [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shown(v) for v in value], shown(getattr(value, "__dict__", None))
    return shown(vars(value)) if dataclasses.is_dataclass(value) and hasattr(value, "__dict__") else value


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program, backend, whole):
    f = torch.compile(program, backend=backend, fullgraph=whole)
    for _ in range(2):
        assert shown(f(x)) == shown(program(x))


@pytest.mark.parametrize("whole", [False, True])
def test_the_forward_of_the_base(whole):
    assert torch.compile(Plus(), backend="eager", fullgraph=whole)(x).tolist() == [3.0] * 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_operator_whose_name_is_a_keyword(backend):
    want = torch.manual_seed(0) and x.clone().random_(2, 9).tolist()
    torch.manual_seed(0)
    assert torch.compile(lambda x: x.clone().random_(2, 9), backend=backend)(x).tolist() == want


def test_arguments_may_have_any_name():
    assert torch.compile(lambda x, **named: x * named["self"], backend="eager")(x, self=3.0).tolist() == [3.0] * 3


def test_a_coroutine_function_runs_uncompiled():
    async def f(x):
        return x * 2

    with pytest.warns(RuntimeWarning, match="coroutine"), pytest.raises(StopIteration) as end:
        torch.compile(f, backend="eager")(x).send(None)
    assert end.value.value.tolist() == [2.0] * 3


def test_an_iterator_without_end_is_not_read_in_a_capture():
    class Enough(Exception):
        pass

    def numbers():
        yield from range(150_000)
        raise Enough

    with pytest.raises(Enough):
        torch.compile(lambda x: x * len(list(numbers())), backend="eager")(x)


def test_an_exported_graph_takes_sizes_that_it_was_made_for_and_refuses_others():
    graph, _ = export(lambda x: x[: x.shape[0]] * x.shape[1])(torch.ones(3, 4))
    assert graph(torch.ones(3, 4)).tolist() == [[4.0] * 4] * 3
    assert graph(torch.ones(5, 6)).tolist() == [[6.0] * 6] * 5
    with pytest.raises(RuntimeError, match=r"size \[3, 4\] for L\['x'\], not a torch.float32 tensor of size \[1, 6\]"):
        graph(torch.ones(1, 6))


def test_a_truth_that_is_none_is_no_truth():
    class Odd:
        def __bool__(self):
            return 1.2

    class Negative:
        def __len__(self):
            return -1

    run = torch.compile(lambda x, o: x + 1 if o else x - 1, backend="eager")
    with pytest.raises(TypeError, match="__bool__ should return bool, returned float"):
        run(x, Odd())
    with pytest.raises(ValueError, match="__len__"):
        run(x, Negative())


def test_an_attribute_that_is_refused_is_asked_for_otherwise():
    class Refusing:
        def __getattribute__(self, name):
            if name == "scale":
                raise AttributeError
            return super().__getattribute__(name)

        def __getattr__(self, name):
            return 5

    given = Refusing()
    assert torch.compile(lambda x: x * given.scale, backend="eager", fullgraph=True)(x).tolist() == [5.0] * 3


def test_a_function_in_the_graph_is_given_no_objects_with_tensors():
    @torch.compiler.allow_in_graph
    def inner(pair):
        return pair.a + 1

    run = torch.compile(lambda x: inner(Frozen(x)), backend="eager")
    for _ in range(2):
        assert run(x).tolist() == [2.0] * 3


def test_a_compiled_module_is_let_go_of_with_its_class():
    def run():
        held = torch.ones(2)

        class Local(torch.nn.Module):
            def forward(self, x):
                return x * held

        module = Local()
        torch.compile(module, backend="eager")(torch.ones(2))
        return weakref.ref(module), weakref.ref(held), weakref.ref(Local)

    known = run()
    gc.collect()
    assert [one() for one in known] == [None] * 3
