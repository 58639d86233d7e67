"""Bad input: PyTorch's error type and words, and nothing changed afterwards (values, shape, version).

The words are those that PyTorch 2.13 gives for the same line; each is compared up to its first 70 characters.
"""

from __future__ import annotations

import warnings

import pytest

import pullback as torch

CASES = [
    ('torch.ones(2, 3) + torch.ones(4)', RuntimeError, 'The size of tensor a (3) must match the size of tensor b (4) at non-si'),
    ('torch.ones(2, 3).add_(torch.ones(2, 2, 3))', RuntimeError, "output with shape [2, 3] doesn't match the broadcast shape [2, 2, 3]"),
    ('torch.ones(3, dtype=torch.int64).add_(1.5)', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('torch.ones(3, dtype=torch.int64).add_(torch.ones(3))', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('torch.ones(3, dtype=torch.int64).div_(2)', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('torch.ones(3).mul_(1j)', RuntimeError, "result type ComplexFloat can't be cast to the desired output type Floa"),
    ('torch.ones(1).expand(3).add_(1)', RuntimeError, 'unsupported operation: more than one element of the written-to tensor '),
    ('torch.ones(3, requires_grad=True).add_(1)', RuntimeError, 'a leaf Variable that requires grad is being used in an in-place operat'),
    ('torch.ones(3, requires_grad=True)[1:].add_(1)', RuntimeError, 'a view of a leaf Variable that requires grad is being used in an in-pl'),
    ('torch.ones(2, 3) @ torch.ones(2, 3)', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)'),
    ('torch.ones(2, 3).mm(torch.ones(3))', RuntimeError, 'mat2 must be a matrix'),
    ('torch.mm(torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64))', RuntimeError, 'expected m1 and m2 to have the same dtype, but got: float != double'),
    ('torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4, 2))', RuntimeError, 'Expected size for first two dimensions of batch2 tensor to be: [2, 4] '),
    ('torch.dot(torch.ones(3), torch.ones(4))', RuntimeError, 'inconsistent tensor size, expected tensor [3] and src [4] to have the '),
    ('torch.dot(torch.ones(3, 1), torch.ones(3))', RuntimeError, '1D tensors expected, but got 2D and 1D tensors'),
    ('torch.mv(torch.ones(2, 3), torch.ones(2))', RuntimeError, 'size mismatch, got input (2), mat (2x3), vec (2)'),
    ('torch.ones(2, 3).sum(2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('torch.ones(2, 3).sum((0, 0))', RuntimeError, 'dim 0 appears multiple times in the list of dims'),
    ('torch.ones(2, 3).transpose(0, 5)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 5)'),
    ('torch.ones(2, 3).permute(0, 0)', RuntimeError, 'permute(): duplicate dims are not allowed.'),
    ('torch.ones(2, 3).permute(0)', RuntimeError, 'permute(sparse_coo): number of dimensions in the tensor input does not'),
    ('torch.ones(2, 3).view(4)', RuntimeError, "shape '[4]' is invalid for input of size 6"),
    ('torch.ones(2, 3).t().view(6)', RuntimeError, "view size is not compatible with input tensor's size and stride (at le"),
    ('torch.ones(2, 3).view(-1, -1)', RuntimeError, 'only one dimension can be inferred'),
    ('torch.ones(2, 3).reshape(-1, 4)', RuntimeError, "shape '[-1, 4]' is invalid for input of size 6"),
    ('torch.ones(2, 3).expand(3, 3)', RuntimeError, 'The expanded size of the tensor (3) must match the existing size (2) a'),
    ('torch.ones(2, 3).expand(2)', RuntimeError, 'expand(torch.FloatTensor{[2, 3]}, size=[2]): the number of sizes provi'),
    ('torch.ones(2, 3)[5]', IndexError, 'index 5 is out of bounds for dimension 0 with size 2'),
    ('torch.ones(2, 3)[0, 0, 0]', IndexError, 'too many indices for tensor of dimension 2'),
    ('torch.ones(2, 3)[torch.tensor([7])]', IndexError, 'index 7 is out of bounds for dimension 0 with size 2'),
    ('torch.ones(2, 3)[torch.tensor([0.5])]', IndexError, 'tensors used as indices must be long, int, byte or bool tensors'),
    ('torch.ones(2, 3)[torch.ones(3, dtype=torch.bool)]', IndexError, 'The shape of the mask [3] at index 0 does not match the shape of the i'),
    ('torch.ones(2, 3).select(0, 4)', IndexError, 'select(): index 4 out of range for tensor of size [2, 3] at dimension '),
    ('torch.ones(3).gather(0, torch.tensor([5]))', RuntimeError, 'index 5 is out of bounds for dimension 0 with size 3'),
    ('torch.ones(3).gather(0, torch.tensor([1.0]))', RuntimeError, 'gather(): Expected dtype int32/int64 for index'),
    ('torch.ones(3).index_select(0, torch.tensor([4]))', IndexError, 'index out of range in self'),
    ('torch.zeros(3).scatter_(0, torch.tensor([4]), 1.0)', RuntimeError, 'index 4 is out of bounds for dimension 0 with size 3'),
    ('torch.zeros(3).index_add_(0, torch.tensor([0]), torch.ones(2))', RuntimeError, 'index_add_(): Number of indices (1) should be equal to source.size(dim'),
    ('torch.cat([torch.ones(2, 3), torch.ones(2, 4)])', RuntimeError, 'Sizes of tensors must match except in dimension 0. Expected size 3 but'),
    ('torch.cat([torch.ones(2, 3), torch.ones(2)])', RuntimeError, 'Tensors must have same number of dimensions: got 2 and 1'),
    ('torch.cat([])', ValueError, 'torch.cat(): expected a non-empty list of Tensors'),
    ('torch.stack([torch.ones(2), torch.ones(3)])', RuntimeError, 'stack expects each tensor to be equal size, but got [2] at entry 0 and'),
    ('torch.stack([])', RuntimeError, 'stack expects a non-empty TensorList'),
    ('torch.ones(2, 3).squeeze(4)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 4)'),
    ('torch.ones(3).unsqueeze(3)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 3)'),
    ('torch.ones(0).max()', RuntimeError, 'max(): Expected reduction dim to be specified for input.numel() == 0. '),
    ('torch.ones(0, 3).max(0)', IndexError, 'max(): Expected reduction dim 0 to have non-zero size.'),
    ('torch.ones(0, 3).argmax(0)', IndexError, 'argmax(): Expected reduction dim 0 to have non-zero size.'),
    ('torch.ones(3).item()', RuntimeError, 'a Tensor with 3 elements cannot be converted to Scalar'),
    ('torch.tensor([1, 2]).mean()', RuntimeError, 'mean(): could not infer output dtype. Input dtype must be either a flo'),
    ('torch.tensor([1 + 1j]).max()', NotImplementedError, '"max_all" not implemented for \'ComplexFloat\''),
    ('torch.tensor([1 + 1j]) < 2', NotImplementedError, '"lt_cpu" not implemented for \'ComplexFloat\''),
    ('torch.ones(3).bitwise_and(torch.ones(3))', NotImplementedError, '"bitwise_and_cpu" not implemented for \'Float\''),
    ('torch.ones(2) << torch.ones(2)', NotImplementedError, '"lshift_cpu" not implemented for \'Float\''),
    ('torch.ones(3).backward()', RuntimeError, 'element 0 of tensors does not require grad and does not have a grad_fn'),
    ('torch.ones(3, requires_grad=True).mul(2).backward()', RuntimeError, 'grad can be implicitly created only for scalar outputs'),
    ('torch.ones(3, dtype=torch.int64, requires_grad=True)', RuntimeError, 'Only Tensors of floating point and complex dtype can require gradients'),
    ('torch.ones(3, requires_grad=True).numpy()', RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().n"),
    ('torch.add(torch.ones(2), "a")', TypeError, "add(): argument 'other' (position 2) must be Tensor, not str"),
    ('torch.sum(3)', TypeError, "sum(): argument 'input' (position 1) must be Tensor, not int"),
    ('torch.nn.functional.softmax(torch.ones(2, 3), dim=4)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 4)'),
    ('torch.softmax(torch.ones(3, dtype=torch.int64), 0)', NotImplementedError, '"softmax_lastdim_kernel_impl" not implemented for \'Long\''),
    ('torch.linalg.inv(torch.ones(2, 3))', RuntimeError, 'linalg.inv: A must be batches of square matrices, but they are 2 by 3 '),
    ('torch.linalg.inv(torch.zeros(2, 2))', torch.linalg.LinAlgError, 'linalg.inv: The diagonal element 1 is zero, the inversion could not be'),
    ('torch.linalg.cholesky(-torch.eye(2))', torch.linalg.LinAlgError, 'linalg.cholesky: The factorization could not be completed because the '),
    ('torch.linalg.solve(torch.ones(2, 2), torch.ones(3))', RuntimeError, 'linalg.solve: Incompatible shapes of A and B for the equation AX = B ('),
    ('torch.nn.functional.conv2d(torch.ones(1, 3, 4, 4), torch.ones(2, 2, 3, 3))', RuntimeError, 'Given groups=1, weight of size [2, 2, 3, 3], expected input[1, 3, 4, 4'),
    ('torch.nn.functional.conv2d(torch.ones(1, 2, 2, 2), torch.ones(2, 2, 3, 3))', RuntimeError, 'Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3'),
    ('torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 2))', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)'),
    ('torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5]))', IndexError, 'Target 5 is out of bounds.'),
    ('torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1, 2]))', ValueError, 'Expected input batch_size (2) to match target batch_size (3).'),
    ('torch.nn.functional.nll_loss(torch.ones(2, 3), torch.ones(2))', RuntimeError, 'expected target dtype to be Long or Byte, but got Float'),
    ('torch.nn.functional.embedding(torch.tensor([9]), torch.ones(3, 2))', IndexError, 'index out of range in self'),
    ('torch.nn.functional.max_pool2d(torch.ones(1, 1, 2, 2), 3)', RuntimeError, 'Given input size: (1x2x2). Calculated output size: (1x0x0). Output siz'),
    ('torch.nn.functional.layer_norm(torch.ones(2, 3), (4,))', RuntimeError, 'Given normalized_shape=[4], expected input with shape [*, 4], but got '),
    ('torch.nn.functional.batch_norm(torch.ones(1, 2), None, None, training=True)', ValueError, 'Expected more than 1 value per channel when training, got input size t'),
    ('torch.nn.functional.dropout(torch.ones(2), p=2.0)', ValueError, 'dropout probability has to be between 0 and 1, but got 2.0'),
    ('torch.arange(0, 5, 0)', RuntimeError, 'step must be nonzero'),
    ('torch.stack([torch.ones(3)], out=torch.empty(1, 3, dtype=torch.long))', TypeError, "torch.cat(): input types can't be cast to the desired output type Long"),
    ('torch.vstack([torch.ones(3)], out=torch.empty(1, 3, dtype=torch.long))', TypeError, "torch.cat(): input types can't be cast to the desired output type Long"),
    ('torch.nonzero(torch.ones(3), out=torch.empty(3))', RuntimeError, 'nonzero: Expected out tensor to have scalar type Long but got scalar type Float'),
    ('torch.arange(5, 0, 1)', RuntimeError, 'upper bound and lower bound inconsistent with step sign'),
    ('torch.full((2,), 1.0).fill_(torch.ones(2))', RuntimeError, 'fill_ only supports 0-dimension value tensor but got tensor with 1 dim'),
    ('torch.fill(torch.ones(2), torch.ones(2))', RuntimeError, 'fill_ only supports 0-dimension value tensor but got tensor with 1 dim'),
    ('torch.ops.aten.fill.Tensor(torch.ones(2, device="meta"), torch.ones(1, device="meta"))', RuntimeError, 'fill_ only supports 0-dimension'),
    ('torch.ops.aten.avg_pool3d_backward(torch.ones(1, 2, 2, 2), torch.ones(1, 4, 4, 4), [2] * 3, [2] * 3, [0] * 3, True, True, 0)', RuntimeError, 'divisor must be not zero'),
    ('torch.ops.aten.avg_pool2d_backward(torch.ones(1, 2, 2), torch.ones(1, 4, 4), [2] * 2, [2] * 2, [0] * 2, True, True, 0)', RuntimeError, 'divisor must be not zero'),
    ('torch.zeros(3).copy_(torch.ones(4))', RuntimeError, 'The size of tensor a (3) must match the size of tensor b (4) at non-si'),
    ('torch.ones(2, 3).masked_fill(torch.ones(2, 3), 0)', RuntimeError, 'masked_fill_ only supports boolean masks, but got mask with dtype floa'),
    ('torch.ones(2, 3).masked_select(torch.ones(4, dtype=torch.bool))', RuntimeError, 'The size of tensor a (4) must match the size of tensor b (3) at non-si'),
    ('torch.where(torch.ones(2, dtype=torch.bool), torch.ones(3), torch.ones(2))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-si'),
    ('torch.ones(4).split(-1)', RuntimeError, 'split expects split_size be non-negative, but got split_size=-1'),
    ('torch.ones(4).split([1, 2])', RuntimeError, 'split_with_sizes expects split_sizes to sum exactly to 4 (input tensor'),
    ('torch.ones(4).chunk(0)', RuntimeError, 'chunk expects `chunks` to be greater than 0, got: 0'),
    ('torch.ones(4).narrow(0, 3, 2)', RuntimeError, 'start (3) + length (2) exceeds dimension size (4).'),
    ('torch.ones(4).unfold(0, 5, 1)', RuntimeError, 'maximum size for tensor at dimension 0 is 4 but size is 5'),
    ('torch.ones(2, 3).diagonal(0, 1, 1)', RuntimeError, 'diagonal dimensions cannot be identical 1, 1'),
    ('torch.ones(3).sort(2)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 2)'),
    ('torch.ones(3).topk(4)', RuntimeError, 'selected index k out of range'),
    ('torch.ones(3).kthvalue(4)', RuntimeError, 'kthvalue(): selected number k out of range for dimension 0'),
    ('torch.ones(2, 2).cumsum(3)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 3)'),
    ('torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(4, 2))', RuntimeError, 'einsum(): subscript j has size 4 for operand 1 which does not broadcas'),
    ('torch.einsum("ij", torch.ones(2, 3, 4))', RuntimeError, 'einsum(): the number of subscripts in the equation (2) does not match '),
    ('torch.ones(2, 3).as_strided((5, 5), (3, 1))', RuntimeError, 'setStorage: sizes [5, 5], strides [3, 1], storage offset 0, and itemsi'),
    ('torch.ones(2, 3, dtype=torch.complex64).clamp(0, 1)', NotImplementedError, 'clamp is not supported for complex types'),
    ('torch.ones(2).clamp()', RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
    ('torch.tensor([1, 2]).view(torch.complex64).view(3)', RuntimeError, "shape '[3]' is invalid for input of size 2"),
    ('torch.ones(3, 3).tril_().unflatten(0, (2, 2))', RuntimeError, "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim "),
    ('torch.ones(2, 3).flatten(1, 0)', RuntimeError, 'flatten() has invalid args: start_dim cannot come after end_dim'),
    ('torch.ones(3).roll(1, 2)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 2)'),
    ('torch.ones(3).flip(2)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 2)'),
    ('torch.ones(3).repeat()', TypeError, 'repeat() missing 1 required positional arguments: "repeats"'),
    ('torch.ones(2, 3).repeat(2)', RuntimeError, 'Number of dimensions of repeat dims can not be smaller than number of '),
    ('torch.tensor("a")', TypeError, "new(): invalid data type 'str'"),
    ('torch.tensor([[1, 2], [3]])', ValueError, 'expected sequence of length 2 at dim 1 (got 1)'),
    ('torch.ones(3) / "a"', TypeError, "unsupported operand type(s) for /: 'Tensor' and 'str'"),
    ('bool(torch.ones(3))', RuntimeError, 'Boolean value of Tensor with more than one value is ambiguous'),
    ('int(torch.ones(2))', ValueError, 'only one element tensors can be converted to Python scalars'),
    ('torch.ones(3).__setitem__(5, 1)', IndexError, 'index 5 is out of bounds for dimension 0 with size 3'),
    ('torch.ones(3).__setitem__(slice(0, 2), torch.ones(3))', RuntimeError, 'The expanded size of the tensor (2) must match the existing size (3) a'),
    ('torch.ones(2, 3).index_put_((torch.tensor([0, 5]),), torch.tensor(1.0))', IndexError, 'index 5 is out of bounds for dimension 0 with size 2'),
    ('torch.ones(4)[::-1]', ValueError, 'step must be greater than zero'),
    ('torch.ones(3).resize_(2, -1)', RuntimeError, 'Trying to create tensor with negative dimension -1'),
    ('torch.zeros(2, -1)', RuntimeError, 'zeros: Dimension size must be non-negative.'),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "words"), CASES, ids=[c[0] for c in CASES])
def test_error_is_pytorchs(line: str, kind: type, words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            eval(line, {"torch": torch})
    assert type(caught.value) is kind, f"{caught.value!r}"
    assert str(caught.value).startswith(words)


def leaf():
    return torch.ones(3, requires_grad=True)


# A tensor, what is wrongly done to it, and the error.
WRITES = {
    "broadcasts the target": (lambda: torch.ones(2, 3), lambda t: t.add_(torch.ones(2, 2, 3)), RuntimeError),
    "needs a higher dtype": (lambda: torch.ones(3, dtype=torch.int64), lambda t: t.add_(1.5), RuntimeError),
    "divides integers": (lambda: torch.ones(3, dtype=torch.int64), lambda t: t.div_(2), RuntimeError),
    "writes a leaf": (leaf, lambda t: t.mul_(2), RuntimeError),
    "writes a view of a leaf": (leaf, lambda t: t[1:].mul_(2), RuntimeError),
    "writes expanded memory": (lambda: torch.ones(3, 1), lambda t: t.expand(3, 2).mul_(2), RuntimeError),
    "writes its own neighbour": (lambda: torch.arange(4.0), lambda t: t[1:].add_(t[:-1]), RuntimeError),
    "copies another shape": (lambda: torch.ones(3), lambda t: t.copy_(torch.ones(4)), RuntimeError),
    "scatters out of range": (lambda: torch.ones(3), lambda t: t.scatter_(0, torch.tensor([0, 4]), 5.0), RuntimeError),
    "puts out of range": (lambda: torch.ones(3), lambda t: t.index_put_((torch.tensor([0, 4]),), torch.tensor(5.0)), IndexError),
    "adds rows out of range": (lambda: torch.ones(3), lambda t: t.index_add_(0, torch.tensor([0, 4]), torch.ones(2)), Exception),
    "sets out of range": (lambda: torch.ones(3), lambda t: t.__setitem__(5, 1), IndexError),
    "sets another shape": (lambda: torch.ones(3), lambda t: t.__setitem__(slice(0, 2), torch.ones(3)), RuntimeError),
    "fills with a vector": (lambda: torch.ones(3), lambda t: t.fill_(torch.zeros(3)), RuntimeError),
    "masks with numbers": (lambda: torch.ones(3), lambda t: t.masked_fill_(torch.ones(3), 0), RuntimeError),
    "transposes a missing dimension": (lambda: torch.ones(2, 3), lambda t: t.transpose_(0, 4), IndexError),
    "resizes to a negative size": (lambda: torch.ones(3), lambda t: t.resize_(2, -1), RuntimeError),
    "resizes what requires grad": (leaf, lambda t: t.resize_(4), RuntimeError),
    "gives out= the wrong dtype": (lambda: torch.ones(3, dtype=torch.int64), lambda t: torch.add(torch.ones(3), 1, out=t), RuntimeError),
    "gives out= overlapping memory": (lambda: torch.ones(1), lambda t: torch.add(torch.ones(3), 1, out=t.expand(3)), RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("what", WRITES)
def test_a_refused_write_changes_nothing(what: str) -> None:
    make, write, kind = WRITES[what]
    t = make()
    before = t.tolist(), tuple(t.shape), t.stride(), t._version, t.dtype
    with pytest.raises(kind):
        write(t)
    assert (t.tolist(), tuple(t.shape), t.stride(), t._version, t.dtype) == before


def test_shared_memory_of_numpy_is_not_resized() -> None:
    import numpy as np

    t = torch.from_numpy(np.ones(3))
    with pytest.raises(RuntimeError, match="resiz"):
        t.resize_(10)
    assert t.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like"])
@pytest.mark.parametrize("value, kind", [(None, "NoneType"), (3, "int")])
def test_like_nothing(name, value, kind):
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'input' \(position 1\) must be Tensor, not {kind}"):
        getattr(torch, name)(value)


def test_complex_numbers_for_real_elements():
    x = torch.zeros(2, requires_grad=True)
    result = torch.threshold(x, 1 + 0j, 2 + 0j)
    assert result.tolist() == [2, 2] and isinstance(result.grad_fn._saved_threshold, complex)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        torch.threshold(x, 1 + 1j, 2)


@pytest.mark.parametrize("pivots, bound", [([0, 1, 2], ">= 1"), ([1, 2, 9], "<= LD.size")])
def test_pivots_outside_the_matrix(pivots, bound):
    with pytest.raises(RuntimeError, match=rf"must all satisfy \|pivot\| {bound}"):
        torch.linalg.ldl_solve(torch.eye(3), torch.tensor(pivots), torch.eye(3))
