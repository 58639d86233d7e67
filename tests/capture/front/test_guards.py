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
