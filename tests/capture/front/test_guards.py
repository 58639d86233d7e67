"""What a graph depends on of tensors, and the words for what does not fit."""

import pytest

import pullback as torch
from pullback.capture.front.guards import describe, sharing, tensor_mismatch


def reasons(f, *calls) -> list[str]:
    """Why each call after the first makes another graph."""
    out: list[str] = []
    run = torch.compile(f, backend="eager", dynamic=False, guard_fail_fn=lambda failure: out.append(failure[0]))
    for args in calls:
        run(*args)
    return out


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            lambda: torch.ones(2, 3, dtype=torch.float64),
            "tensor 'x' dtype mismatch. expected Float, actual Double",
        ),
        (
            lambda: torch.ones(2, 3, requires_grad=True),
            "tensor 'L['x']' requires_grad mismatch. expected requires_grad=0",
        ),
        (lambda: torch.ones(2, 4), "tensor 'x' size mismatch at index 1. expected 3, actual 4"),
        (lambda: torch.ones(3, 2).t(), "tensor 'x' stride mismatch at index 0. expected 3, actual 1"),
        (lambda: torch.ones(2), "tensor 'x' rank mismatch. expected 2, actual 1"),
        (
            lambda: torch.nn.Parameter(torch.ones(2, 3)),
            "expected type of 'x' to be a tensor type, Tensor, but found Parameter",
        ),
        (lambda: torch.ones(2, 3, device="meta"), "tensor 'x' device mismatch. expected cpu, actual meta"),
    ],
)
def test_words_for_tensors(other, words: str) -> None:
    fact = describe(torch.ones(2, 3))
    assert tensor_mismatch("L['x']", other(), fact) == words
    assert tensor_mismatch("L['x']", torch.zeros(2, 3), fact) is None
    assert reasons(lambda x: x + 1, (torch.ones(2, 3),), (other(),)) == [words]


def test_words_for_values() -> None:
    x = torch.ones(2)
    assert reasons(lambda x, y: x * y, (x, 3), (x, 4), (x, 3.0))[0] == "L['y'] == 3  (it is 4)"


def test_words_for_sharing() -> None:
    x, y, base = torch.ones(2), torch.ones(2), torch.ones(4)
    assert reasons(lambda x, y: x + y, (x, y), (x, x)) == ["L['x'] is not L['y']"]
    assert reasons(lambda x, y: x + y, (x, x), (x, y)) == ["L['x'] is L['y']"]
    assert "share memory in another way" in reasons(lambda x, y: x.add_(y), (x, y), (base[:2], base[2:]))[0]
    assert sharing([base[:2], base[2:]]) != sharing([base[:2], base[1:3]])


def test_leaves_and_results_differ() -> None:
    fact = describe(torch.ones(2, requires_grad=True))
    words = tensor_mismatch("L['x']", torch.ones(2, requires_grad=True) * 1, fact)
    assert words == "tensor 'x' is_leaf mismatch. expected is_leaf=True"
    assert tensor_mismatch("L['x']", torch.ones(2) * 1, describe(torch.ones(2))) is None


def test_views_of_one_base_are_told_apart_by_where_they_lie_to_each_other():
    base = torch.arange(12.0)
    assert sharing([base[2:4], base[5:7]]) == sharing([base[4:6], base[7:9]])
    assert sharing([base[2:4], base[5:7]]) != sharing([base[2:4], base[6:8]])
    assert sharing([base[2:4], base[5:7]]) != sharing([base[5:7], base[2:4]])
    assert sharing([base[2:4], torch.ones(2)]) == ()


def test_where_tensors_lie_to_each_other_matters_on_memory_that_is_written():
    base, other = torch.arange(12.0), torch.ones(3)
    near, far = [other, base[2:4], base[5:7]], [other, base[2:4], base[6:8]]
    assert sharing(near, {0}) == sharing(far, {0}) != sharing([other, base[2:4], torch.ones(2)], {0})
    assert sharing(near, {1}) != sharing(far, {1})
    assert sharing(near, {2}) != sharing(far, {2})


def test_places_of_several_lengths_are_of_one_graph():
    def add(out, x, rows, columns):
        return out.index_add_(0, rows, x[rows, columns, None])

    calls = []
    for n in (3, 4, 5, 7, 9):
        rows, columns = torch.where(torch.arange(20.0).view(10, 2) < 2 * n)
        calls.append((torch.zeros(10, 1), torch.ones(10, 2), rows, columns))
    out: list[str] = []
    run = torch.compile(add, backend="eager", guard_fail_fn=lambda failure: out.append(failure[0]))
    for args in calls:
        assert run(*args).tolist() == add(torch.zeros(10, 1), *args[1:]).tolist()
    assert len(out) == 1 and "size mismatch" in out[0]  # its sizes are symbols from then on


WRITES = {
    "itself": lambda x: x.add_(1),
    "a view": lambda x: x.view(-1)[1:].mul_(2),
    "a view that may be a copy": lambda x: x.reshape(-1).contiguous().add_(1),
    "data": lambda x: x.data.add_(1),
    "detached": lambda x: x.detach().neg_(),
    "one of a list": lambda x: torch._foreach_add_([torch.ones(3), x.flatten()], 1.0),
    "out=": lambda x: torch.add(x, 1, out=x),
    "a part of a split": lambda x: x.unbind(0)[1].copy_(torch.tensor(7.0)),
    "chosen": lambda x: x.to(torch.float32).expand_as(x).view_as(x).fill_(3),
    "an index": lambda x: x.__setitem__(slice(0, 2), 5.0),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_seen_wherever_the_others_lie(name: str, backend: str) -> None:
    def f(x, y, z):
        WRITES[name](x)
        return y + 1, z * y

    run = torch.compile(f, backend=backend, dynamic=False)
    for first, second in ((0, 4), (1, 4), (2, 4), (4, 4), (2, 3), (3, 0)):
        ours, theirs = torch.arange(12.0), torch.arange(12.0)
        got, wanted = (
            call(base[first : first + 3], base[second : second + 3], base[:3])
            for call, base in ((run, ours), (f, theirs))
        )
        assert [t.tolist() for t in got] == [t.tolist() for t in wanted] and ours.tolist() == theirs.tolist()
