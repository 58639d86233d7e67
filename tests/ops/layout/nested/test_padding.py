"""Packed values and padded tensors, and nested tensors where programs met an error: copies, custom functions, `apply_`."""

from __future__ import annotations

import pytest

import pullback as torch

ATEN = torch.ops.aten
OFFSETS = torch.tensor([0, 1, 3, 8, 10])


def test_values_go_into_a_padded_tensor_and_back():
    values = torch.arange(50.0, dtype=torch.float64).reshape(10, 5).requires_grad_()
    padded = ATEN._jagged_to_padded_dense_forward(values, [OFFSETS], [5], 1.5)
    assert padded.shape == (4, 5, 5) and bool((padded[0, 1:] == 1.5).all())
    assert torch.equal(padded[2], values[3:8])
    assert torch.equal(ATEN._padded_dense_to_jagged_forward(padded, [OFFSETS], 10), values)
    cut = ATEN._jagged_to_padded_dense_forward(values, [OFFSETS], [4], 1.5)
    assert torch.equal(cut, padded[:, :4])
    cut.sum().backward()
    assert values.grad[7].sum() == 0 and values.grad.sum() == 45


@pytest.mark.parametrize(
    ("offsets", "total", "words"),
    [
        ([OFFSETS, OFFSETS], 10, "only a single jagged dim"),
        ([OFFSETS[:, None]], 10, "expected 1D offsets"),
        ([OFFSETS], 11, "final offset should match total_L"),
        ([torch.tensor([0, 1, 8, 9, 10])], 10, "found batch item of length 7"),
    ],
)
def test_what_does_not_fit_is_refused(offsets, total, words):
    with pytest.raises(RuntimeError, match=words):
        ATEN._padded_dense_to_jagged_forward(torch.ones(4, 5, 2), offsets, total)
    with pytest.raises(RuntimeError, match="expected padded dim >= 2"):
        ATEN._padded_dense_to_jagged_forward(torch.ones(4), [OFFSETS], 10)


def jagged(**options):
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, **options)


def test_components_are_copied_whatever_their_offsets():
    target, source = jagged(), jagged() * 2
    assert target.shape != source.shape or target.copy_(source) is target
    other = torch.nested.nested_tensor([torch.ones(2, 3) * 3, torch.ones(4, 3) * 3], layout=torch.jagged)
    target.copy_(other)
    assert torch.equal(target.values(), other.values())
    with pytest.raises(RuntimeError, match="expected compatible input and src shapes"):
        target.copy_(torch.nested.nested_tensor([torch.ones(3, 3), torch.ones(3, 3)], layout=torch.jagged))


def test_a_gradient_that_nobody_sent_is_nested_zeros():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            assert second.is_nested and not second.values().any()
            return first + second

    x = jagged(requires_grad=True)
    Both.apply(x)[0].backward(torch.ones_like(x))
    assert x.grad.values().sum() == 18


def test_a_python_function_is_applied_to_the_values():
    x = jagged()
    assert x.apply_(lambda v: v * 5) is x and bool((x.values() == 5).all())


def test_a_ragged_size_is_no_operand():
    x = jagged()
    with pytest.raises(RuntimeError, match="invalid argument"):
        x * x.size(1)


def test_what_is_no_mask_of_rows_is_refused():
    padded = torch.rand(3, 4, 2)
    gaps = torch.ones(3, 4, dtype=torch.bool)
    gaps[0, 0] = False
    cases = {
        "ScalarType Bool, but got Float": (padded, torch.zeros(3, 4)),
        "Padding mask should be 2D": (padded, torch.zeros(3, 4, 2, dtype=torch.bool)),
        "should be a 3D tensor": (padded[0], torch.zeros(3, 4, dtype=torch.bool)),
        "Mask size should match input size": (padded, torch.zeros(4, 4, dtype=torch.bool)),
        "left-aligned": (padded, gaps),
    }
    for words, (values, mask) in cases.items():
        with pytest.raises(RuntimeError, match=words):
            torch._nested_tensor_from_mask(values, mask)
