"""What captured programs ask of sets, keys, lists and functions from outside: answers are conditions, changes are done again."""

import functools
import warnings

import pytest

import pullback as torch
from pullback import nn
from pullback.capture.front.config import config


def whole(f, backend="eager"):
    return torch.compile(f, backend=backend, fullgraph=True)


def test_membership_in_a_set_of_objects_is_a_condition():
    for kind in (set, frozenset):
        functions = {torch.sin, len, "name", int}
        holder = {"functions": kind(functions)}
        run = whole(lambda x, one: x + 1 if one in holder["functions"] else x - 1)  # noqa: B023
        assert run(torch.ones(1), torch.sin).tolist() == [2.0]
        assert run(torch.ones(1), torch.cos).tolist() == [0.0]
        holder["functions"] = kind(functions - {torch.sin} | {torch.cos})
        assert run(torch.ones(1), torch.sin).tolist() == [0.0]
        assert run(torch.ones(1), torch.cos).tolist() == [2.0]


def test_sets_of_functions_are_read():
    functions = {torch.sin, torch.cos}
    run = whole(lambda x: sum(f(x) for f in functions))
    want = (torch.ones(1).sin() + torch.ones(1).cos()).item()
    assert run(torch.ones(1)).item() == pytest.approx(want)
    functions.remove(torch.sin)
    assert run(torch.ones(1)).item() == pytest.approx(torch.ones(1).cos().item())


def test_keys_of_a_dict_from_outside():
    table = {"a": 1}

    def f(x, keys):
        return x + 1 if "a" in keys else x - 1

    run = whole(f)
    assert run(torch.ones(1), table.keys()).item() == 2
    table["b"] = table.pop("a")
    assert run(torch.ones(1), table.keys()).item() == 0

    def changes(x, table, keys):
        table["c"] = 1
        return x + ("c" in keys)

    assert torch.compile(changes)(torch.ones(1), table, table.keys()).item() == 2


def test_a_list_from_outside_is_repeated():
    values = [1, 2]

    def f(x):
        nonlocal values
        same = values
        values *= 2
        return x + len(same)

    run = whole(f)
    first = values
    assert run(torch.zeros(1)).item() == 4 and values is first and values == [1, 2] * 2
    assert run(torch.zeros(1)).item() == 8 and len(values) == 8


def test_attributes_of_modules_are_deleted_at_each_run():
    model = nn.Linear(2, 2)

    def f(x):
        del model.extra
        return x + hasattr(model, "extra")

    run = whole(f)
    for value in (nn.Parameter(torch.ones(1)), nn.Linear(1, 1), 3):
        for _ in range(2):
            model.extra = value
            assert run(torch.ones(1)).item() == 1 and not hasattr(model, "extra")
    with pytest.raises(AttributeError, match="extra"):
        run(torch.ones(1))


def test_functions_that_remember_are_computed_in_the_graph_with_a_warning():
    @functools.lru_cache
    def remembered(x):
        return x + 10

    def f(x):
        y = remembered(x)
        return y + (remembered(x) is y), remembered(x * 2)

    run = whole(f)
    with pytest.warns(UserWarning, match="lru_cache"):
        out = run(torch.ones(1))
    assert [t.item() for t in out] == [12.0, 12.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [t.item() for t in run(torch.zeros(1))] == [11.0, 10.0]

    log = []

    @functools.lru_cache
    def told(x):
        log.append(1)
        return x + 1

    torch.compile(lambda x: told(x))(torch.ones(1))
    assert log == [1]


def test_scripted_functions_are_entered():
    scripted = torch.jit.script_if_tracing(lambda x, n=2: x * n)
    assert whole(lambda x: scripted(x) + scripted(x, 3))(torch.ones(1)).item() == 5


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_truth_of_a_number_that_depends_on_data(backend):
    before, config.capture_scalar_outputs = config.capture_scalar_outputs, True
    try:
        run = whole(lambda x: bool(x.item()), backend)
        assert [run(torch.tensor([v])) for v in (3, 0, 2.5, 0.0)] == [True, False, True, False]
    finally:
        config.capture_scalar_outputs = before


def test_functions_that_know_themselves_are_one():
    def f(x):
        def own():
            return own

        def even(n):
            return n == 0 or odd(n - 1)

        def odd(n):
            return n != 0 and even(n - 1)

        return x + 1, own, even, odd

    _, own, even, odd = whole(f)(torch.ones(1))
    assert own() is own and even(4) and odd(3) and even.__closure__[0].cell_contents is odd


def test_whether_something_can_be_called():
    class Plain:
        pass

    class Called(nn.Module):
        def __bool__(self):
            raise AssertionError

    plain, called = Plain(), Called()
    assert whole(lambda x: x + callable(called) + 2 * callable(plain) + 4 * callable(len))(torch.zeros(1)).item() == 5
