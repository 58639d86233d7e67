"""Sparse tensors made the old way, by dtype."""

import pullback as torch
from pullback.ops.layout import sparse


def test_typed_constructors_make_coo_tensors():
    x = sparse.FloatTensor(torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0]), torch.Size([2, 3]))
    assert x.layout is torch.sparse_coo and x.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]]
    assert isinstance(x, sparse.FloatTensor) and not isinstance(x, sparse.DoubleTensor)
    assert not isinstance(x.to_dense(), sparse.FloatTensor)
    assert sparse.LongTensor(2, 3).shape == (2, 3) and sparse.LongTensor(2, 3).dtype is torch.int64
    assert sparse.DoubleTensor().shape == (0,)


def test_parts_of_compressed_tensors_as_operators():
    x = torch.eye(2)
    rows, columns = x.to_sparse_csr(), x.to_sparse_csc()
    assert (
        torch.ops.aten.crow_indices(rows).tolist() == [0, 1, 2] == torch.ops.aten.ccol_indices.default(columns).tolist()
    )
    assert torch.ops.aten.col_indices(rows).tolist() == [0, 1] == torch.ops.aten.row_indices(columns).tolist()
    assert torch.ops.aten._nnz(rows) == 2
