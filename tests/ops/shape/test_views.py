"""Views: geometry as PyTorch has it, shared memory, gradients of parts, refusals in PyTorch's words."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pullback as torch
from pullback.ops.shape import view_geometry as geometry


def counting(*shape, **options):
    return torch.arange(float(np.prod(shape, dtype=int)), **options).reshape(shape).clone()


def placed(t):
    return tuple(t.shape), t.stride(), t.storage_offset()


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (lambda x: x.view(6, 4), ((6, 4), (4, 1), 0)),
        (lambda x: x.view(-1), ((24,), (1,), 0)),
        (lambda x: x.view(2, 1, 12), ((2, 1, 12), (12, 12, 1), 0)),
        (lambda x: x.transpose(0, 2), ((4, 3, 2), (1, 4, 12), 0)),
        (lambda x: x.permute(2, 0, 1), ((4, 2, 3), (1, 12, 4), 0)),
        (lambda x: x.permute(dims=(1, 0, 2)), ((3, 2, 4), (4, 12, 1), 0)),
        (lambda x: x[1].t(), ((4, 3), (1, 4), 12)),
        (lambda x: x.unsqueeze(1), ((2, 1, 3, 4), (12, 12, 4, 1), 0)),
        (lambda x: x.unsqueeze(-1), ((2, 3, 4, 1), (12, 4, 1, 1), 0)),
        (lambda x: x[:1].squeeze(0), ((3, 4), (4, 1), 0)),
        (lambda x: x.select(1, -1), ((2, 4), (12, 1), 8)),
        (lambda x: x[:, 1:, ::2], ((2, 2, 2), (12, 4, 2), 4)),
        (lambda x: x.narrow(2, 1, 2), ((2, 3, 2), (12, 4, 1), 1)),
        (lambda x: x.diagonal(1, 1, 2), ((2, 3), (12, 5), 1)),
        (lambda x: x.diagonal(-1, 1, 2), ((2, 2), (12, 5), 4)),
        (lambda x: x.unfold(2, 2, 1), ((2, 3, 3, 2), (12, 4, 1, 1), 0)),
        (lambda x: x[0, :1].expand(5, 3, 4), ((5, 3, 4), (0, 0, 1), 0)),
        (lambda x: x.as_strided((2, 2), (1, 5), 3), ((2, 2), (1, 5), 3)),
        (lambda x: x.mT, ((2, 4, 3), (12, 1, 4), 0)),
        (lambda x: x.T, ((4, 3, 2), (1, 4, 12), 0)),
        (lambda x: x.movedim(0, -1), ((3, 4, 2), (4, 1, 12), 0)),
        (lambda x: x.flatten(1), ((2, 12), (12, 1), 0)),
        (lambda x: x.unflatten(2, (2, -1)), ((2, 3, 2, 2), (12, 4, 2, 1), 0)),
        (lambda x: x.view(torch.int32), ((2, 3, 4), (12, 4, 1), 0)),
        (lambda x: x.view(torch.int16), ((2, 3, 8), (24, 8, 1), 0)),
        (lambda x: torch.view_as_complex(x.view(12, 2)), ((12,), (1,), 0)),
    ],
)
def test_geometry(view, expected):
    x = counting(2, 3, 4)
    result = view(x)
    assert placed(result) == expected
    tracked = result.dtype not in (torch.int32, torch.int16)  # no gradient goes through other bits
    assert result._is_view() == tracked and (result._base is x) == tracked
    assert result.data_ptr() == x.data_ptr() + expected[2] * result.element_size()
    assert placed(view(x.to("meta")))[:2] == expected[:2]


def test_a_write_through_a_view_is_seen_by_all():
    x = counting(2, 3)
    row, column = x[1], x.t()[0]
    row.add_(10)
    assert column.tolist() == [0.0, 13.0]
    assert x._version == row._version == column._version == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x.view(5, 5), RuntimeError, "shape '[5, 5]' is invalid for input of size 24"),
        (lambda x: x.view(-2, 3), RuntimeError, "invalid shape dimension -2 at index 0 of shape [-2, 3]"),
        (lambda x: x.transpose(0, 1).view(24), RuntimeError, "view size is not compatible with input tensor's size"),
        (lambda x: x.t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda x: x.permute(0, 0, 1), RuntimeError, "permute(): duplicate dims are not allowed."),
        (lambda x: x.permute(), TypeError, 'permute() missing 1 required positional arguments: "dims"'),
        (
            lambda x: x.transpose(0, 5),
            IndexError,
            "Dimension out of range (expected to be in range of [-3, 2], but got 5)",
        ),
        (
            lambda x: x.select(0, 5),
            IndexError,
            "select(): index 5 out of range for tensor of size [2, 3, 4] at dimension 0",
        ),
        (lambda x: x.narrow(0, 1, 5), RuntimeError, "start (1) + length (5) exceeds dimension size (2)."),
        (
            lambda x: x.expand(5, 3, 4),
            RuntimeError,
            "The expanded size of the tensor (5) must match the existing size (2)",
        ),
        (lambda x: x.expand(2, 3), RuntimeError, "expand(torch.FloatTensor{[2, 3, 4]}, size=[2, 3])"),
        (lambda x: x.diagonal(0, 0, 0), RuntimeError, "diagonal dimensions cannot be identical 0, 0"),
        (lambda x: x.unfold(0, 3, 1), RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 3"),
        (lambda x: x.as_strided((200,), (1,)), RuntimeError, "are out of bounds for storage of size 96"),
        (lambda x: x.imag, RuntimeError, "imag is not implemented for tensors with non-complex dtypes."),
        (lambda x: x[0, 0].mT, RuntimeError, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D"),
        (lambda x: x.flatten(2, 1), RuntimeError, "flatten() has invalid args: start_dim cannot come after end_dim"),
        (lambda x: x[:, 1:, 1:3].view(torch.float64), RuntimeError, "self.storage_offset() must be divisible by 2"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call(counting(2, 3, 4))
    assert words in str(caught.value)


def gradient(function, x):
    x = x.clone().requires_grad_()
    out = function(x)
    (g,) = torch.autograd.grad(out, x, counting(*out.shape) + 1, create_graph=True)
    return out, g


@pytest.mark.parametrize(
    ("view", "node"),
    [
        (lambda x: x[1:], "SliceBackward0"),
        (lambda x: x[0], "SelectBackward0"),
        (lambda x: x[...], "AliasBackward0"),
        (lambda x: x.diagonal(1), "DiagonalBackward0"),
        (lambda x: x.unfold(1, 2, 1), "UnfoldBackward0"),
        (lambda x: x.expand(2, 3, 4), "ExpandBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x.view(12), "ViewBackward0"),
        (lambda x: x.t().reshape(12), "UnsafeViewBackward0"),
        (lambda x: x.unsqueeze(0), "UnsqueezeBackward0"),
        (lambda x: x.as_strided((3, 2), (1, 2), 1), "AsStridedBackward0"),
    ],
)
def test_gradients_put_elements_back(view, node):
    """A view of ones' places is linear: its gradient, at g, is the sum of g over the places each element shows in."""
    x = counting(3, 4)
    out, g = gradient(view, x)
    assert type(out.grad_fn).__name__ == node
    expected = np.zeros(12)
    np.add.at(expected, view(counting(3, 4)).numpy().astype(int).reshape(-1), np.arange(out.numel()) + 1.0)
    assert g.reshape(-1).tolist() == expected.tolist()


def test_gradients_of_gradients():
    x = counting(3, 4).requires_grad_()
    (g,) = torch.autograd.grad((x[1:, ::2] ** 3).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert gg[1:, ::2].tolist() == (6 * counting(3, 4)[1:, ::2]).tolist()
    assert gg[0].tolist() == [0.0] * 4


def test_views_of_complex_numbers():
    z = torch.tensor([[1 + 2j, 3 - 4j]])
    z.real.mul_(10)
    z.imag = torch.tensor([[0.5, 0.25]])
    assert z.tolist() == [[10 + 0.5j, 30 + 0.25j]]
    assert z.conj().imag.tolist() == [[-0.5, -0.25]]
    assert z.H.tolist() == [[10 - 0.5j], [30 - 0.25j]]
    with pytest.raises(RuntimeError, match="doesn't work on unresolved conjugated tensors"):
        torch.view_as_real(z.conj())


def test_slices_are_clamped_as_python_clamps_them():
    for start in (None, -9, -2, 0, 1, 9):
        for end in (None, -9, -1, 2, 9):
            for step in (1, 2, 3):
                a, b = geometry.slice_bounds(start, end, 5)
                assert list(range(5))[a:b:step] == list(range(5))[start:end:step]


def test_copies_of_views_share_nothing():
    x = counting(2, 3)
    for result in (torch.t_copy(x), torch.view_copy(x, (6,)), torch.slice_copy(x, 1, 0, 2), *torch.unbind_copy(x)):
        result.fill_(7)
    assert x.tolist() == counting(2, 3).tolist()


def test_squeeze_understands_numpys_name():
    x = torch.zeros(1, 3, 1)
    assert x.squeeze(axis=0).shape == (3, 1) and torch.squeeze(x, axis=(0, 2)).shape == (3,)


def test_sizes_that_are_none():
    with pytest.raises(RuntimeError, match="should be of type ints"):
        torch.broadcast_shapes(1.1)
    with pytest.raises(RuntimeError, match="size is -1 but must be >= 0"):
        torch.ops.aten.unfold_backward(torch.ones(2, 3), [6], 0, -1, 1)


def test_narrow_takes_a_tensor_of_one_integer():
    x = torch.arange(3)
    assert x.narrow(0, torch.tensor(1), 1).tolist() == [1]
    for start in (torch.tensor(0.0), torch.tensor([0])):
        with pytest.raises(RuntimeError, match="start must be an 0-dim integral Tensor"):
            x.narrow(0, start, 1)


def test_view_offers_the_call_to_what_stands_for_a_dtype():
    class Kind:
        def __torch_function__(self, *args, **kwargs):
            return 4

    assert torch.empty(4).view(Kind()) == 4


def test_a_tensor_serves_as_a_list_of_its_rows():
    a = torch.arange(4).reshape(2, 2)
    assert torch.ops.aten.index(a, torch.ones(2, dtype=torch.long)).item() == 3


def test_a_copy_of_a_detached_tensor_has_a_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    (gradient,) = torch.autograd.grad((torch.detach_copy(x) * 3).sum(), x)
    assert gradient.tolist() == [3, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_windows_of_other_numbers_than_floats_have_gradients(dtype) -> None:
    x = torch.arange(6).to(getattr(torch, dtype)).requires_grad_()
    (gradient,) = torch.autograd.grad(x.unfold(0, 3, 2).real.sum(), x)
    assert gradient.tolist() == [1, 1, 2, 1, 1, 0] and gradient.dtype is x.dtype


@pytest.mark.parametrize(
    "size, stride, start",
    [
        ((2, 2), (1, 2), 0),
        ((2, 3), (5, 1), 2),
        ((3, 3), (1, 1), 1),
        ((0, 3), (1, 1), 0),
        ((), (), 7),
        ((2, 2), (3, 0), 0),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_gradient_of_a_window_on_the_storage_goes_to_its_places(size, stride, start, turned):
    leaf = torch.zeros(4, 5, requires_grad=True)
    x = leaf.t() if turned else leaf
    g = torch.arange(1.0, 1 + math.prod(size)).reshape(size)
    expected = np.zeros(20)
    places = start + sum(np.indices(size)[d] * st for d, st in enumerate(stride)) if size else np.array(start)
    np.add.at(expected, places, g.numpy())
    (slope,) = torch.autograd.grad(x.as_strided(size, stride, start), leaf, g)
    assert np.array_equal(slope.numpy(), expected.reshape(4, 5))
    if len({*places.ravel()}) == places.size:
        written = torch.as_strided_scatter(leaf.detach(), g, size, stride, start)
        assert np.array_equal(written.numpy(), expected.reshape(4, 5))


def test_memory_is_read_as_another_dtype_where_it_holds_what_the_tensor_means():
    z, x = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([1.0, 2.0])
    for lazy, call in ((z.conj(), lambda t: t.view(torch.float32)), (torch._neg_view(x), lambda t: t.view(t.dtype))):
        with pytest.raises(RuntimeError, match="torch.Tensor.view is not supported for"):
            call(lazy)
    assert torch.view_as_real_copy(z.conj()).tolist() == [[1, -2], [3, 1]]
    assert torch.view_copy(torch._neg_view(x), torch.int32).tolist() == (-x).view(torch.int32).tolist()
    assert torch.view_as_complex_copy(torch._neg_view(x)).item() == -1 - 2j


def test_a_last_dimension_of_one_element_keeps_its_stride_in_views() -> None:
    one, column = torch.ones(4, 4).diagonal(3), torch.ones(1, 5).t()
    assert one.view(-1, 1).stride() == one.reshape(1, 1).stride() == one.unflatten(-1, (-1, 1)).stride() == (5, 5)
    assert torch.flatten(one.view(1, 1)).stride() == (5,)
    assert column.unflatten(0, (1, -1)).stride() == (5, 1, 5) and column.view(5, 1, 1).stride() == (1, 5, 5)
    with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1 to view Float as Short"):
        one.view(1, 1).view(torch.int16)
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2 to view Float as Double"):
        one.view(1, 1).view(torch.float64)
