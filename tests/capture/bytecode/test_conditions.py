"""Conditions of captured graphs: what is tested, what is not, and the words for what does not hold."""

import ast
from pathlib import Path

import pytest

import pullback as torch
from pullback.backward import switch
from pullback.capture.bytecode import conditions, lookups, modules
from pullback.capture.front.config import config
from pullback.nn.module_hooks import register_module_forward_hook


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


OTHERS = {
    "the same": lambda p: p.detach().clone().requires_grad_(),
    "dtype": lambda p: p.detach().double().requires_grad_(),
    "size": lambda p: torch.ones(3, 2, requires_grad=True),
    "rank": lambda p: torch.ones(2, 3, 1, requires_grad=True),
    "strides": lambda p: torch.ones(3, 2).t().requires_grad_(),
    "class": lambda p: torch.nn.Parameter(p.detach().clone()),
    "no gradient": lambda p: p.detach().clone(),
    "no leaf": lambda p: torch.ones(2, 3, requires_grad=True) * 2,
    "a view that wants one": lambda p: (torch.ones(2, 2, 3, requires_grad=True) * 1)[0],
    "a view of a leaf": lambda p: torch.ones(2, 3, requires_grad=True).view(2, 3),
    "a conjugate": lambda p: torch.ones(2, 3, dtype=torch.complex64).conj(),
    "no data": lambda p: torch.ones(2, 3, device="meta"),
    "no tensor": lambda p: 3,
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("wants", [True, False])
@pytest.mark.parametrize("name", OTHERS)
def test_a_tensor_of_other_metadata_is_told_apart(monkeypatch, name: str, wants: bool, native: bool) -> None:
    if not native:
        monkeypatch.setattr(conditions, "native_conditions", None)
    counted = Counter()
    run = torch.compile(lambda x: x * 2, backend=counted, dynamic=False)
    first = torch.ones(2, 3, requires_grad=wants)
    run(first)
    if name == "no tensor":
        assert run(OTHERS[name](first)) == 6
        return
    other = OTHERS[name](first)
    result = run(other)
    assert result.dtype == other.dtype and result.shape == other.shape and result.requires_grad == other.requires_grad
    fits = name == ("the same" if wants else "no gradient")
    assert len(counted.graphs) == (1 if fits else 2)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.register_forward_hook(lambda module, args, result: result + 1),
        lambda m: m.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
        lambda m: setattr(m, "forward", lambda x: x * 7),
        lambda m: m.register_full_backward_hook(lambda module, g, h: (g[0] * 3,)),
    ],
)
def test_a_module_that_gets_a_hook_is_told_apart(monkeypatch, change, native: bool) -> None:
    if not native:
        monkeypatch.setattr(conditions, "native_conditions", None)
        monkeypatch.setattr(modules, "native_conditions", None)
    layer = torch.nn.Linear(3, 3)
    run = torch.compile(lambda x: layer(x), backend="eager")
    x = torch.ones(2, 3, requires_grad=True)
    before = run(x)
    change(layer)
    got, want = run(x), layer(x)
    torch.testing.assert_close(got, want)
    assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (got, want)))
    assert before.shape == got.shape


def test_the_conditions_of_a_deep_model_are_few_words_to_the_machine() -> None:
    """A tensor and a module are one call each where the extension is there."""
    if conditions.native_conditions is None:
        pytest.skip("the extension is not built")
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
    run = torch.compile(model, backend="eager")
    run(torch.ones(2, 3))
    (segment,) = run.compiled_call.front.driver.segments.values()
    text = segment.entries[0].text
    assert text.count("fits(") == 9 and "_array.strides" not in text and "_forward_pre_hooks" not in text


def base_changed(cls, monkeypatch) -> None:
    monkeypatch.setattr(cls.__mro__[1], "scale", lambda self, x: x * 5)


def method_added(cls, monkeypatch) -> None:
    monkeypatch.setattr(cls, "scale", lambda self, x: x * 7, raising=False)


def inherits_from_another(cls, monkeypatch) -> None:
    cls.__bases__ = (type("Other", (), {"scale": lambda self, x: x * 9}),)


def of_the_package(cls, monkeypatch) -> None:
    monkeypatch.setattr(torch.Tensor, "__mul__", lambda self, other: self + other)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("change", [base_changed, method_added, inherits_from_another, of_the_package])
def test_classes_that_change_are_told_apart_at_any_call(monkeypatch, change, native: bool) -> None:
    if not native:
        monkeypatch.setattr(conditions, "native_conditions", None)

    class Base:
        def scale(self, x):
            return x * 2

    class Scale(Base):
        pass

    scale, x, count = Scale(), torch.arange(3.0), Counter()
    run = torch.compile(lambda x: scale.scale(x), backend=count)
    for k in range(4):  # from the second call on by the short way; the tests are made again where a class is another
        Scale.other = k  # of which nothing is read
        assert torch.equal(run(x), x * 2)
    assert len(count.graphs) == 1
    change(Scale, monkeypatch)
    assert torch.equal(run(x), scale.scale(x)) and not torch.equal(run(x), torch.tensor([0.0, 2.0, 4.0]))
    assert len(count.graphs) == 2
    monkeypatch.undo()


@pytest.mark.parametrize("native", [True, False])
def test_tensors_that_share_memory_now_are_told_apart(monkeypatch, native: bool) -> None:
    if not native:
        monkeypatch.setattr(conditions, "native_conditions", None)

    def f(*tensors):
        tensors[0].add_(1)
        return tensors[-1] * 2

    for n in (2, 20):  # few and many are looked at in different ways
        count = Counter()
        run = torch.compile(f, backend=count)
        whole = torch.zeros(n + 1, 3)
        for _ in range(3):
            run(*[torch.zeros(3) for _ in range(n)])
        assert len(count.graphs) == 1
        assert torch.equal(run(*[whole[k].clone() for k in range(n - 1)], torch.ones(3)), torch.full((3,), 2.0))
        assert len(count.graphs) == 1
        first = torch.zeros(3)
        assert torch.equal(run(first, *[torch.zeros(3) for _ in range(n - 2)], first), torch.full((3,), 2.0))
        assert len(count.graphs) == 2
        views = [torch.zeros(3) for _ in range(n - 2)]
        row = torch.zeros(6)
        assert torch.equal(run(row[:3], *views, row[3:]), torch.zeros(3))
        assert len(count.graphs) == 3


def test_tests_that_follow_each_other_are_one_line() -> None:
    found = conditions.Conditions()
    found.test("a", "a is true")
    found.test("b or c", "b or c is true")
    found.lines.append((False, "d = e", "'e is not there'"))
    found.test("d", "d is true")
    assert found.body() == ["if not ((a) and (b or c)): return MISS", "d = e", "if not ((d)): return MISS"]


def test_a_class_that_gets_another_base_meanwhile_is_looked_up_in_the_new_order() -> None:
    class First:
        name = "first"

    class Second:
        name = "second"

    class Heir(First):
        pass

    with lookups.noting(lookups.Lookups()):
        assert lookups.class_attribute(Heir, "name") == "first"
        Heir.__bases__ = (Second,)
        assert lookups.class_attribute(Heir, "name") == "second"
        assert lookups.class_attribute(Heir, "other") is lookups.ABSENT


def test_what_captures_take_for_settled_is_never_bound_again() -> None:
    rebound = set()
    for path in Path(torch.__file__).parent.rglob("*.py"):
        if "global " in (text := path.read_text(encoding="utf-8")):
            found = [name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Global) for name in node.names]
            rebound |= {(path.name, name) for name in found if name.isupper() or name in ("ambient", "process")}
    assert rebound == {("switch.py", "COMPILE_COUNTER")}  # an object, which is no simple value
    assert not isinstance(switch.COMPILE_COUNTER, (int, float, str))


class Uncounted(dict):
    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("kind", [dict, Uncounted])
def test_an_empty_dict_that_gets_a_key_is_told_apart(kind: type) -> None:
    def f(x, extra):
        for value in [*extra]:
            x = x * len(value)
        return x

    table = kind()
    run = torch.compile(f, backend="eager")
    assert run(torch.ones(2), table).tolist() == [1, 1]
    table["three"] = 3
    assert run(torch.ones(2), table).tolist() == [5, 5]


def test_a_leaf_that_gets_a_hook_is_told_apart() -> None:
    w, seen = torch.ones(2, requires_grad=True), []

    def step():
        (w * w).sum().backward()
        return w.grad

    run = torch.compile(step, backend="eager")
    for _ in range(3):
        w.grad = None
        assert run().tolist() == [2, 2]
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    w.grad = None
    assert run().tolist() == [2, 2] and seen == [[2, 2]]


def test_a_hook_of_all_modules_is_told_apart() -> None:
    layer, seen = torch.nn.Linear(2, 2), []
    run = torch.compile(layer, backend="eager")
    run(torch.ones(2))
    with register_module_forward_hook(lambda module, args, out: seen.append(1)):
        run(torch.ones(2))
    assert seen == [1]


def test_the_words_for_what_does_not_fit_are_compiled_once(monkeypatch) -> None:
    made = []
    compiled = conditions.compiled
    monkeypatch.setattr(conditions, "compiled", lambda text, *rest: made.append(rest[-1]) or compiled(text, *rest))
    run = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)
    with config.patch(recompile_limit=1), pytest.warns(RuntimeWarning, match="the limit"):
        for n in range(6):
            assert run(torch.ones(2), n).tolist() == [1.0 + n] * 2
    assert made.count("explain") == 1
