"""Writes to sparse tensors: who sees them. Which share and which do not was recorded from PyTorch."""

import pytest

import pullback as torch

DENSE = [[0.0, 1, 2, 0], [3, 0, 0, 4], [0, 5, 0, 0], [0, 0, 6, 7]]
LAYOUTS = {
    "coo": lambda: torch.tensor(DENSE).to_sparse().coalesce(),
    "hybrid": lambda: torch.tensor([DENSE, DENSE]).permute(1, 2, 0).to_sparse(2).coalesce(),
    "csr": lambda: torch.tensor(DENSE).to_sparse_csr(),
    "csc": lambda: torch.tensor(DENSE).to_sparse_csc(),
    "bsr": lambda: torch.tensor(DENSE).to_sparse_bsr((2, 2)),
    "bsc": lambda: torch.tensor(DENSE).to_sparse_bsc((2, 2)),
    "batch": lambda: torch.tensor([DENSE, DENSE]).to_sparse_csr(),
}
COORDINATES = ("coo", "hybrid")
COMPRESSED = tuple(name for name in LAYOUTS if name not in COORDINATES)
WRITES = {
    "neg": lambda t: t.neg_(),
    "sin": lambda t: t.sin_(),
    "tanh": lambda t: t.tanh_(),
    "div": lambda t: t.div_(2),
    "sqrt out": lambda t: torch.sqrt(t, out=t),
}
OWN_MEMORY_OF_COORDINATES = {
    "mul": lambda t: t.mul_(3),
    "mul dense": lambda t: t.mul_(torch.full(t.shape, 3.0)),
    "add": lambda t: t.add_(t),
    "sub": lambda t: t.sub_(t.clone() * 3),
    "copy": lambda t: t.copy_(t.clone() * 3),
    "zero": lambda t: t.zero_(),
}

ALL_WRITES = {**WRITES, **OWN_MEMORY_OF_COORDINATES}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("by", ["detached", "itself"])
def test_values_that_stay_in_place_are_written_where_they_are(name, write, by):
    t = LAYOUTS[name]()
    expected = WRITES[write](LAYOUTS[name]()).to_dense()
    values, detached = t.values(), t.detach()
    WRITES[write](detached if by == "detached" else t)
    for seen in (t, detached):
        torch.testing.assert_close(seen.to_dense(), expected)
    torch.testing.assert_close(values, t.values())
    assert t._version == detached._version == values._version == 1


@pytest.mark.parametrize("name", COORDINATES)
@pytest.mark.parametrize("write", OWN_MEMORY_OF_COORDINATES)
def test_products_and_sums_of_coordinates_take_memory_of_their_own(name, write):
    t = LAYOUTS[name]()
    expected, before = OWN_MEMORY_OF_COORDINATES[write](LAYOUTS[name]()).to_dense(), t.to_dense()
    detached = t.detach()
    OWN_MEMORY_OF_COORDINATES[write](detached)
    assert torch.equal(detached.to_dense(), expected)
    assert torch.equal(t.to_dense(), before)


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("write", OWN_MEMORY_OF_COORDINATES)
@pytest.mark.parametrize("view", ["detach", "data"])
def test_all_writes_to_compressed_tensors_are_seen(name, write, view):
    t = LAYOUTS[name]()
    expected = OWN_MEMORY_OF_COORDINATES[write](LAYOUTS[name]()).to_dense()
    OWN_MEMORY_OF_COORDINATES[write](t.detach() if view == "detach" else t.data)
    assert torch.equal(t.to_dense(), expected)
    assert t._version == (view == "detach")


def test_elements_elsewhere_are_seen_by_detached_tensors_too():
    t, other = LAYOUTS["csr"](), torch.tensor(DENSE).T.to_sparse_csr()
    kept = other.to_dense()
    t.data.copy_(other)
    assert torch.equal(t.to_dense(), kept)
    t.detach().add_(torch.eye(4).to_sparse_csr())
    assert torch.equal(t.to_dense(), kept + torch.eye(4)) and torch.equal(other.to_dense(), kept)


def test_places_shared_with_another_tensor_stay_as_they_are():
    t = LAYOUTS["csr"]()
    double = t * 2
    double.copy_(torch.tensor(DENSE).T.to_sparse_csr())
    double.zero_()
    assert t.to_dense().tolist() == DENSE


def test_values_that_are_one_place_in_memory_are_not_written_there():
    one = torch.ones(1)
    t = torch.sparse_coo_tensor([[0, 1, 2]], one.expand(3), (3,), is_coalesced=True)
    t.neg_()
    assert t.to_dense().tolist() == [-1.0, -1.0, -1.0] and one.tolist() == [1.0]


def test_tensors_made_of_values_share_them_and_count_by_themselves():
    values = torch.tensor([1.0, 2.0])
    t = torch.sparse_coo_tensor([[0, 1]], values, (2,), is_coalesced=True)
    values.add_(1)
    assert t._version == 0
    t.neg_()
    assert values.tolist() == [-2.0, -3.0] and (t._version, values._version) == (1, 1)


@pytest.mark.parametrize("name", ["coo", "csr", "bsc"])
def test_a_write_to_values_is_a_write_to_what_was_saved(name):
    t = LAYOUTS[name]().requires_grad_()
    result = t * t
    with torch.no_grad():
        t.values().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.to_dense().sum().backward()


# ---- views
@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("write", ALL_WRITES)
def test_transposed_compressed_tensors_are_views(name, write):
    t = LAYOUTS[name]()
    view = t.transpose(-2, -1)
    assert view._is_view() and view._base is t and view.values()._is_view()
    ALL_WRITES[write](view)
    assert torch.equal(t.to_dense(), view.to_dense().transpose(-2, -1))
    assert not torch.equal(t.to_dense(), LAYOUTS[name]().to_dense())
    assert t._version == view._version == 1


def test_elements_elsewhere_are_refused_through_a_view():
    t = LAYOUTS["csr"]()
    with pytest.raises(NotImplementedError, match="no elements elsewhere"):
        t.t().add_(torch.eye(4).to_sparse_csc())
    assert t.to_dense().tolist() == DENSE


@pytest.mark.parametrize("transposed", [lambda t: t.t(), lambda t: t.transpose(0, 1), lambda t: t.transpose(0, 0)])
def test_transposed_coordinates_are_copies(transposed):
    t = LAYOUTS["coo"]()
    transposed(t)._values().zero_()
    assert t.to_dense().tolist() == DENSE


@pytest.mark.parametrize("view", [lambda t: t.permute(1, 0), lambda t: t.unsqueeze(0)])
def test_permuted_coordinates_are_views(view):
    t = LAYOUTS["coo"]()
    seen = view(t)
    seen.neg_()
    assert seen._base is t and t.to_dense().sum() == -sum(map(sum, DENSE))


def test_a_dense_dimension_that_is_selected_is_a_view():
    t = LAYOUTS["hybrid"]()
    t.select(2, 1).neg_()
    assert t.to_dense()[..., 0].tolist() == DENSE and torch.equal(t.to_dense()[..., 1], -torch.tensor(DENSE))


@pytest.mark.parametrize(("name", "dim"), [("csr", 0), ("csc", 1)])
def test_a_line_that_lies_in_one_piece_is_a_view(name, dim):
    t = LAYOUTS[name]()
    for i in (1, -2):
        line = t.select(dim, i)
        assert torch.equal(line.to_dense(), torch.tensor(DENSE).select(dim, i)) and line._base is t
    line.neg_()
    assert torch.equal(t.to_dense().select(dim, -2), -torch.tensor(DENSE).select(dim, -2))


def test_views_with_history_are_made_again_after_a_write_to_their_base():
    leaf = LAYOUTS["csr"]().requires_grad_()
    base = leaf * 2
    view = base.t()
    base.neg_()
    view.to_dense().sum().backward()
    assert torch.equal(leaf.grad.to_dense(), -2.0 * (torch.tensor(DENSE) != 0))


@pytest.mark.parametrize("view", [lambda t: t.t(), lambda t: t.values()])
def test_writes_to_views_with_history_are_refused(view):
    base = LAYOUTS["csr"]().requires_grad_() * 2
    with pytest.raises(NotImplementedError, match="views of sparse tensors have no gradient"):
        view(base).neg_()


# ---- sizes
def test_compressed_rows_are_resized():
    t = LAYOUTS["csr"]()
    assert t.resize_(6, 5) is t and t.shape == (6, 5) and t._nnz() == 7 and t._version == 1
    assert torch.equal(t.to_dense()[:4, :4], torch.tensor(DENSE)) and not t.to_dense()[4:].any()
    t.resize_(2, 5)
    assert torch.equal(t.to_dense()[:, :4], torch.tensor(DENSE)[:2]) and t._nnz() == 4
    batch = LAYOUTS["batch"]().resize_(2, 5, 4)
    assert torch.equal(batch.to_dense()[:, :4], torch.tensor([DENSE, DENSE]))


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("csr", (4,), "Only batched sparse CSR matrices"),
        ("csr", (4, 3), "Resizing columns of sparse CSR tensors to a smaller value"),
        ("batch", (4, 4), "Only batched sparse CSR matrices"),
        ("bsr", (8, 8), "are not resized"),
        ("coo", (8, 8), "sparse_resize_"),
    ],
)
def test_sizes_that_are_refused(name, size, words):
    t = LAYOUTS[name]()
    with pytest.raises(RuntimeError, match=words):
        t.resize_(size)
    assert torch.equal(t.to_dense(), LAYOUTS[name]().to_dense())


@pytest.mark.parametrize("name", COMPRESSED)
def test_resize_as_another_compressed_tensor(name):
    t, like = LAYOUTS[name]().to(torch.float64), LAYOUTS[name]()
    t.resize_as_sparse_(like)
    assert torch.equal(t.to_dense(), like.to_dense().double())
    like = torch.eye(6).to_sparse(layout=like.layout, blocksize=(2, 2) if "b" in name[:2] and name != "batch" else None)
    if name == "batch":
        like = torch.stack([torch.eye(6)] * 2).to_sparse_csr()
    t.resize_as_sparse_(like)
    assert t.shape == like.shape and t.dtype is torch.float64 and t._nnz() == like._nnz()
    with pytest.raises(RuntimeError, match="self and src must have the same layout"):
        t.resize_as_sparse_(like.transpose(-2, -1))
    with pytest.raises(RuntimeError, match="src  expected sparse compressed tensor layout"):
        t.resize_as_sparse_(torch.eye(6))


@pytest.mark.parametrize("name", LAYOUTS)
def test_there_is_no_storage(name):
    for ask in ("storage", "untyped_storage"):
        with pytest.raises(NotImplementedError, match="Cannot access storage of Sparse"):
            getattr(LAYOUTS[name](), ask)()


def test_copies_say_what_does_not_fit():
    t = torch.ones(2, 3).to_sparse_csr()
    with pytest.raises(RuntimeError, match="expected shapes of self and src to match along dimension 0"):
        t.copy_(torch.ones(3, 2).to_sparse_csr())
    with pytest.raises(RuntimeError, match="Expected input tensors to have the same shape"):
        t.add(torch.ones(3, 2).to_sparse_csr())


@pytest.mark.parametrize("compressed", [False, True])
def test_values_count_with_the_tensor_that_is_asked_for_them(compressed: bool) -> None:
    dense = torch.eye(3)
    t = (dense.to_sparse_csr() if compressed else dense.to_sparse()).requires_grad_()

    def values(t):
        return t.values() if compressed else t._values()

    values(t).data.mul_(2)
    values(t.data).mul_(2)
    assert t._version == 0
    values(t.detach()).mul_(2)
    assert t._version == 1
    assert t.detach().to_dense().diagonal().tolist() == [8.0] * 3


def test_gradients_are_checked_by_differences_of_values() -> None:
    x = torch.rand(4, dtype=torch.float64).to_sparse().requires_grad_()
    dense = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: a.to_dense(masked_grad=False) * b, (x, dense))


@pytest.mark.parametrize("name, args", [("transpose_", (0, 1)), ("swapaxes_", (-1, 0)), ("t_", ())])
def test_coordinates_are_transposed_in_place(name, args):
    dense = torch.arange(6.0).reshape(2, 3)
    sparse = dense.to_sparse()
    assert getattr(sparse, name)(*args) is sparse
    assert sparse.shape == (3, 2) and sparse._version == 1
    assert sparse.to_dense().tolist() == dense.T.tolist()


def test_dense_dimensions_stay_where_they_are():
    dense = torch.arange(12.0).reshape(2, 3, 2)
    sparse = dense.to_sparse(2).transpose_(0, 1)
    assert sparse.to_dense().tolist() == dense.transpose(0, 1).tolist()
    with pytest.raises(RuntimeError, match="sparse and dense dimensions cannot be exchanged"):
        sparse.transpose_(0, 2)


@pytest.mark.parametrize("layout, name", [(torch.sparse_csr, "SparseCsr"), (torch.sparse_bsc, "SparseBsc")])
def test_rows_do_not_become_columns_in_place(layout, name):
    block = (1, 1) if layout is torch.sparse_bsc else None
    sparse = torch.eye(2).to_sparse(layout=layout, blocksize=block)
    with pytest.raises(RuntimeError, match=f"transpose_: in-place transposition is not supported for {name} layout"):
        sparse.transpose_(0, 1)
    assert sparse.layout is layout
