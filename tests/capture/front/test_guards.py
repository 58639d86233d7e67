"""Guards: what fits, and the words for what does not."""

import pytest

import pullback as torch
from pullback.capture.front.guards import Guards, as_described, describe, sharing, source_names
from pullback.core import tree


def guards_of(*args, **kwargs):
    def f(x, y=None, *rest, z=None):
        return x

    flat, spec = tree.tree_flatten((args, kwargs))
    return Guards(flat, spec, source_names(f, args, kwargs)), flat


def why(result: Guards, *args, **kwargs) -> str | None:
    flat, spec = tree.tree_flatten((args, kwargs))
    reason = result.why_not(flat, spec)
    assert (reason is None) == result.hold(flat, spec)
    return reason


def test_same_kind_of_arguments_fits() -> None:
    result, _ = guards_of(torch.ones(2), 3, z={"a": [torch.ones(1)]})
    assert result.names == ["L['x']", "L['y']", "L['z']['a'][0]"]
    assert why(result, torch.zeros(2), 3, z={"a": [torch.zeros(1)]}) is None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            lambda: torch.ones(2, 3, dtype=torch.float64),
            "tensor 'L['x']' dtype mismatch. expected Float, actual Double",
        ),
        (
            lambda: torch.ones(2, 3, requires_grad=True),
            "tensor 'L['x']' requires_grad mismatch. expected requires_grad=0",
        ),
        (lambda: torch.ones(2, 4), "tensor 'L['x']' size mismatch at index 1. expected 3, actual 4"),
        (lambda: torch.ones(3, 2).t(), "tensor 'L['x']' stride mismatch at index 0. expected 3, actual 1"),
        (lambda: torch.ones(2), "tensor 'L['x']' rank mismatch. expected 2, actual 1"),
        (
            lambda: torch.nn.Parameter(torch.ones(2, 3)),
            "expected type of 'L['x']' to be a tensor type, Tensor, but found Parameter",
        ),
        (lambda: torch.ones(2, 3, device="meta"), "tensor 'L['x']' device mismatch. expected cpu, actual meta"),
    ],
)
def test_words_for_tensors(other, words: str) -> None:
    result, _ = guards_of(torch.ones(2, 3))
    assert words in why(result, other())


def test_words_for_values_and_structure() -> None:
    result, _ = guards_of(torch.ones(2), 3)
    assert why(result, torch.ones(2), 4) == "L['y'] == 3  (it is 4)"
    assert "L['y'] == 3" in why(result, torch.ones(2), 3.0)
    assert "another structure" in why(result, torch.ones(2))


def test_words_for_sharing() -> None:
    x, y = torch.ones(2), torch.ones(2)
    apart, _ = guards_of(x, y)
    assert why(apart, x, x) == "L['x'] is not L['y']"
    same, _ = guards_of(x, x)
    assert why(same, x, y) == "L['x'] is L['y']"
    base = torch.ones(4)
    assert "share memory in another way" in why(apart, base[:2], base[2:])
    assert sharing([base[:2], base[2:]]) != sharing([base[:2], base[1:3]])


def test_leaves_and_results_differ() -> None:
    result, _ = guards_of(torch.ones(2, requires_grad=True))
    assert (
        why(result, torch.ones(2, requires_grad=True) * 1) == "tensor 'L['x']' is_leaf mismatch. expected is_leaf=True"
    )
    assert why(guards_of(torch.ones(2))[0], torch.ones(2) * 1) is None


def test_views_of_one_base_are_told_apart_by_where_they_lie_to_each_other():
    base = torch.arange(12.0)
    assert sharing([base[2:4], base[5:7]]) == sharing([base[4:6], base[7:9]])
    assert sharing([base[2:4], base[5:7]]) != sharing([base[2:4], base[6:8]])
    assert sharing([base[2:4], base[5:7]]) != sharing([base[5:7], base[2:4]])
    assert sharing([base[2:4], torch.ones(2)]) == ()


def test_a_plain_tensor_is_described_as_any_other():
    plain, wanting = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    fact = describe(plain)
    assert as_described(torch.zeros(2, 3), fact) and as_described(wanting, describe(wanting))
    others = (torch.ones(3, 2), torch.ones(3, 2).t(), plain.double(), wanting, torch.ones(2, 3, device="meta"))
    for other in others:
        assert not as_described(other, fact) and (other is wanting or not as_described(other, describe(wanting)))
    assert as_described(torch.ones(4), (*fact[:6], None, None))
    assert not as_described(plain, describe(wanting))
