"""Matrix products with sparse factors.

Comes in: canonical arguments of mm, addmm, mv, bmm and the sparse-only products. Goes out: dense where one factor is
dense, sparse where both are. Always holds: the gradient of `sparse.mm` and `sparse.addmm` with respect to a sparse
factor has that factor's indices; `mm` itself gives the full gradient, as PyTorch does.
"""

from __future__ import annotations

from ....core.arrays import library, library_of, to_host
from ....core.tensor import SPARSE, Tensor
from ...elementwise.arithmetic import conj
from ...linalg.contraction import addmm, mm
from ...system.calls import front
from ...system.dispatch import dispatch
from ...system.operator import NOT_IMPLEMENTED, Operator
from ...system.scalars import c_name
from . import kernels
from .convert import as_tensor, coalesced, coo_to_compressed, to_coo, to_dense
from .layouts import BY_ROW, CompressedArray, is_compressed, is_coo, is_sparse, wrap_coo, wrap_sparse
from .masks import masked, pattern_of, sparse_mask
from .shapes import select
from .table import layout_operator, refuse_dense, sparse_rule


# ---- kernels
def _matrix(t: Tensor):
    """A SciPy matrix of a 2-d sparse tensor: CSR, in a dtype that SciPy computes with. Those of a device are copied to the CPU."""
    import scipy.sparse as sp

    a = t._array
    if a.dense_dim or a.ndim != 2:
        raise RuntimeError(
            f"sparse matrix products need 2-d tensors without dense dimensions, but got shape {list(a.shape)} with "
            f"dense_dim {a.dense_dim}"
        )
    if is_compressed(t) and a.blocksize is None:
        result = sp.csr_matrix if a.layout in BY_ROW else sp.csc_matrix
        return result((_wide(a.values._array), to_host(a.plain._array), to_host(a.compressed._array)), a.shape)
    a = to_coo(t)._array
    kernels.check_range(a.indices._array, a.shape)
    return sp.coo_matrix((_wide(a.values._array), tuple(to_host(a.indices._array))), a.shape).tocsr()


def _wide(values):
    values = to_host(values)
    return values.astype("f4") if values.dtype.itemsize == 2 and values.dtype.kind not in "iu" else values


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b of matrices, at least one of them sparse."""
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_c_name(a)} != {_c_name(b)}")
    if is_sparse(a) and is_sparse(b):
        return _sparse_product(a, b)
    if is_sparse(a):
        result = _matrix(a) @ _wide(b._array)
    else:
        result = (_matrix(b).T @ _wide(a._array).T).T
    return as_tensor(result.astype(a.dtype.numpy, copy=False), a)


def _sparse_product(a: Tensor, b: Tensor) -> Tensor:
    result = (_matrix(a) @ _matrix(b)).tocoo()
    result.sum_duplicates()
    xp = library_of(result.col)
    order = xp.lexsort((result.col, result.row))
    indices = xp.stack((result.row, result.col)).astype(xp.int64)[:, order]
    out = wrap_coo(
        as_tensor(indices, a),
        as_tensor(result.data[order].astype(a.dtype.numpy, copy=False), a),
        (a.shape[0], b.shape[1]),
        True,
    )
    if is_coo(a):
        return out
    return coo_to_compressed(
        out,
        a.layout,
        (a._array.blocksize[0], b._array.blocksize[1]) if a._array.blocksize and b._array.blocksize else None,
        None,
    )


def _c_name(t: Tensor) -> str:
    return c_name(t.dtype)


def _check_pair(name: str, a: Tensor, b: Tensor) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"{name}: expected both matrices to be 2-D, but got {a.ndim}-D and {b.ndim}-D")
    if a.shape[1] != b.shape[0]:
        if is_sparse(a) and is_sparse(b):
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
            )
        raise RuntimeError(f"{name}: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")


# ---- rules of the dense operators
@sparse_rule("mm")
def _mm(op: Operator, self, mat2):
    _check_pair("addmm", self, mat2)
    return product(self, mat2)


@sparse_rule("addmm")
def _addmm(op: Operator, self, mat1, mat2, beta=1, alpha=1):
    _check_pair("addmm", mat1, mat2)
    if is_sparse(mat1) or is_sparse(mat2):
        result = product(mat1, mat2)
    else:
        result = mat1.mm(mat2)
    result = result if alpha == 1 else result * alpha
    if beta == 0:
        return result if not is_sparse(result) or is_sparse(self) else to_dense(result)
    addend = self if beta == 1 else self * beta
    if is_sparse(result) and not is_sparse(addend):
        return addend.expand(result.shape) + result
    if not is_sparse(result) and is_sparse(addend):
        return result + addend
    return (addend if is_sparse(addend) else addend.expand(result.shape)) + result


@sparse_rule("mv")
def _mv(op: Operator, self, vec):
    if not is_sparse(self):
        raise RuntimeError("mv: expected a sparse matrix and a dense vector")
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {self.ndim}, and vector Dim: {vec.ndim}"
        )
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"mv: expected self.size(-1) == vec.size(-1), but got {self.shape[1]} and {vec.shape[0]}")
    return product(self, to_dense(vec).unsqueeze(1)).squeeze(1)


@sparse_rule("addmv")
def _addmv(op: Operator, self, mat, vec, beta=1, alpha=1):
    result = _mv(op, mat, vec)
    result = result if alpha == 1 else result * alpha
    return result if beta == 0 else to_dense(self) * beta + result


@sparse_rule("linalg_solve_triangular")
def _solve_triangular(op: Operator, self, other, *rest):
    """By the dense matrix: the elimination fills it in anyway."""
    return dispatch(op, (to_dense(self), to_dense(other), *rest))


@sparse_rule("bmm")
def _bmm(op: Operator, self, mat2):
    if is_sparse(mat2):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if self.ndim != 3 or mat2.ndim != 3 or self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(f"bmm_sparse: shapes {list(self.shape)} and {list(mat2.shape)} cannot be multiplied")

    parts = [product(select(None, self, 0, i), mat2[i]) for i in range(self.shape[0])]
    xp = library(mat2.device)
    if not parts:
        return mat2.new_zeros((0, self.shape[1], mat2.shape[2]))
    return as_tensor(xp.stack([p._array for p in parts]), mat2)


@sparse_rule("dot")
def _dot(op: Operator, self, tensor):
    return (to_dense(self) * to_dense(tensor)).sum()


# ---- sparse-only products
def _left_grad(g, mat1, mat2, alpha):
    """d/d mat1 at mat1's places."""
    result = g.mm(conj(mat2.t()))
    result = result if alpha == 1 else result * conj(alpha)
    return sparse_mask(result, pattern_of(mat1)) if mat1._keys & SPARSE else result


def _right_grad(g, mat1, alpha):
    result = conj(mat1.t()).mm(g)
    return result if alpha == 1 else result * conj(alpha)


sparse_addmm_op = layout_operator(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    run=lambda self, mat1, mat2, beta, alpha: _addmm(None, self, mat1, mat2, beta, alpha),
    vjp={
        "self": lambda g, beta: g if beta == 1 else g * conj(beta),
        "mat1": _left_grad,
        "mat2": _right_grad,
    },
)
sparse_matmul_op = layout_operator(
    "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
    run=lambda self, other: _mm(None, self, other),
    vjp={
        "self": lambda g, self, other: _masked_product(g, other, self, False),
        "other": lambda g, self, other: _masked_product(g, self, other, True),
    },
    cost="compute",
)


def _masked_product(g, factor, pattern, right: bool):
    """Gradient of a sparse factor: the other factor times `g`, at the places of the factor itself."""
    result = conj(factor.t()).mm(g) if right else g.mm(conj(factor.t()))
    return sparse_mask(result, pattern_of(pattern))


@front("sparse.mm", "torch._sparse_mm")
def sparse_mm(sparse, dense, reduce=None) -> Tensor:
    """Product of matrices of which any may be sparse; `reduce` combines the terms by another reduction (CSR only)."""
    if reduce is not None:
        from .reduced import mm_reduce

        return mm_reduce(sparse, dense, reduce)
    if not is_sparse(sparse) and not is_sparse(dense):
        return sparse.mm(dense)
    if is_sparse(sparse) and is_sparse(dense):
        return dispatch(sparse_matmul_op, (sparse, dense))
    _check_pair("addmm", sparse, dense)
    if not is_sparse(sparse):
        return dispatch(mm, (sparse, dense))
    return dispatch(sparse_addmm_op, (dense.new_zeros((sparse.shape[0], dense.shape[1])), sparse, dense, 0, 1))


@front("sparse.addmm", "torch._sparse_addmm")
def sparse_addmm(mat, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2), with gradients at the places of a sparse `mat1`."""
    if not is_sparse(mat1):
        return dispatch(addmm, (mat, mat1, mat2, beta, alpha))
    return dispatch(sparse_addmm_op, (mat, mat1, mat2, beta, alpha))


@front("torch.spmm", "torch.dsmm")
def spmm(input, mat2) -> Tensor:
    return input.mm(mat2)


@front("torch.saddmm")
def saddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None) -> Tensor:
    return sparse_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


@front("torch.smm", "Tensor.smm")
def smm(input, mat2) -> Tensor:
    """A sparse result: rows of `input` that have elements, times `mat2`."""
    return sspaddmm(input.new_zeros((input.shape[0], mat2.shape[1])), input, mat2, beta=0, alpha=1)


def _run_sspaddmm(self, mat1, mat2, beta, alpha):
    if not is_coo(mat1):
        raise refuse_dense("sspaddmm", mat1)
    rows = coalesced(mat1)._array.indices._array[0]
    xp = library(mat1.device)
    keep = xp.unique(rows)
    result = product(mat1, to_dense(mat2))._array[keep] * alpha
    n = mat2.shape[1]
    indices = xp.stack((xp.repeat(keep, n), xp.tile(xp.arange(n), keep.size))).astype(xp.int64)
    out = wrap_coo(
        as_tensor(indices, mat1), as_tensor(result.reshape(-1).astype(mat1.dtype.numpy), mat1), (mat1.shape[0], n), True
    )
    return out if beta == 0 else (to_coo(self) * beta) + out


sspaddmm = layout_operator(
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    run=_run_sspaddmm,
    function=True,
    method=True,
    vjp={"self": NOT_IMPLEMENTED, "mat1": NOT_IMPLEMENTED, "mat2": NOT_IMPLEMENTED},
)


def _run_hspmm(mat1, mat2):
    if not is_coo(mat1):
        raise refuse_dense("hspmm", mat1)
    _check_pair("hspmm", mat1, mat2)
    xp = library(mat1.device)
    rows = xp.unique(coalesced(mat1)._array.indices._array[0])
    result = product(mat1, to_dense(mat2))._array[rows]
    return wrap_coo(
        as_tensor(rows[None].astype(xp.int64), mat1), as_tensor(result, mat1), (mat1.shape[0], mat2.shape[1]), True
    )


hspmm = layout_operator(
    "hspmm(Tensor mat1, Tensor mat2) -> Tensor",
    run=_run_hspmm,
    function=True,
    aliases=("hsmm",),
    vjp={"mat1": NOT_IMPLEMENTED, "mat2": NOT_IMPLEMENTED},
)


# ---- a dense product, at the places of a sparse matrix
def _run_sampled(self, mat1, mat2, beta, alpha):
    if not is_compressed(self):
        raise RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout but got {self.layout}")
    if mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[-2]}x{mat1.shape[-1]} and "
            f"{mat2.shape[-2]}x{mat2.shape[-1]})"
        )
    if tuple(self.shape[-2:]) != (mat1.shape[-2], mat2.shape[-1]):
        raise RuntimeError(
            f"sampled_addmm: self.shape{list(self.shape)} must match the product's shape "
            f"{[mat1.shape[-2], mat2.shape[-1]]}"
        )
    product = mat1.matmul(mat2)
    whole = _for_each(self._array, tuple(product.shape[:-2]))._array
    there = masked(product, wrap_sparse(whole))._array.values * alpha
    return wrap_sparse(whole.with_values(there + whole.values * beta))


def _for_each(a: CompressedArray, batch: tuple) -> Tensor:
    """One matrix as often as a batch has matrices; a batch as it is."""
    if a.batch_dim or not batch:
        return wrap_sparse(a)
    parts = (t.expand(*batch, *t.shape).contiguous() for t in (a.compressed, a.plain, a.values))
    return wrap_sparse(CompressedArray(a.layout, *parts, (*batch, *a.shape)))


def _sampled_left(g, self, mat2, alpha):
    result = sparse_mask(g, self.detach()).to_dense(masked_grad=False).matmul(conj(mat2.mT))
    return result * conj(alpha)


def _sampled_right(g, self, mat1, alpha):
    result = conj(mat1.mT).matmul(sparse_mask(g, self.detach()).to_dense(masked_grad=False))
    return result * conj(alpha)


sampled_addmm = layout_operator(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    run=_run_sampled,
    public="sparse.sampled_addmm",
    function=True,
    out=True,
    vjp={"self": lambda g, beta: g * conj(beta), "mat1": _sampled_left, "mat2": _sampled_right},
)
