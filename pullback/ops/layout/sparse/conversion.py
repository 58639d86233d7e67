"""The public conversions: `to_dense`, `to_sparse` and its kin, `coalesce`, and how gradients take them back.

Comes in: a tensor of any layout. Goes out: the same numbers in another. Always holds: a gradient that reaches a sparse
tensor by `to_dense` has the tensor's own indices (it is masked) unless `masked_grad=False` asks for all of it.
"""

from __future__ import annotations

from ....core import device as devices
from ....core.tensor import OPAQUE, SPARSE, Tensor
from ...system.calls import front
from ...system.dispatch import dispatch
from ...system.operator import LINEAR, find
from . import convert
from .layouts import BLOCKED, COMPRESSED, is_coo, is_sparse, layout_name
from .masks import pattern_of, sparse_mask
from .table import layout_operator


# ---- gradients
def to_layout(g, info):
    """A gradient in the layout that an input had."""
    if info.layout is devices.strided:
        return to_dense(g) if g._keys & SPARSE else g
    if info.layout is devices.sparse_coo and is_sparse(g):
        return g if is_coo(g) else dispatch(to_sparse_op, (g, devices.sparse_coo, None, None))
    return dispatch(to_sparse_op, (g, info.layout, info.blocksize, info.dense_dim))


def _dense_grad(g, self, masked_grad):
    if masked_grad is None or masked_grad:
        return sparse_mask(g, pattern_of(self))
    a = self._array
    if is_coo(self):
        return dispatch(to_sparse_dim, (g, a.sparse_dim))
    return dispatch(to_sparse_op, (g, a.layout, a.blocksize, a.dense_dim))


def _sparse_grad(g, self_info):
    return to_layout(g, self_info)


# ---- operators
to_dense_op = layout_operator(
    "_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
    run=lambda self, dtype, masked_grad: convert.to_dense(self),
    node="ToDenseBackward0",
    vjp={"self": _dense_grad},
    jvp=LINEAR,
)
to_sparse_dim = layout_operator(
    "_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    run=lambda self, sparse_dim: _copied(convert.to_coo(self, sparse_dim), self),
    node="ToSparseBackward0",
    vjp={"self": _sparse_grad},
    jvp=LINEAR,
)
to_sparse_op = layout_operator(
    "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    run=lambda self, layout, blocksize, dense_dim: _copied(convert.convert(self, layout, blocksize, dense_dim), self),
    node="ToSparseBackward1",
    vjp={"self": _sparse_grad},
    jvp=LINEAR,
)


def _copied(result: Tensor, source: Tensor) -> Tensor:
    return result.shallow() if result is source else result


def _plain_conversion(layout):
    def run(self, dense_dim):
        return _copied(convert.to_compressed(self, layout, None, dense_dim), self)

    name = layout.name.rpartition("_")[2]
    return layout_operator(
        f"_to_sparse_{name}(Tensor self, int? dense_dim=None) -> Tensor",
        run=run,
        node=f"ToSparse{name.title()}Backward0",
        vjp={"self": _sparse_grad},
        jvp=LINEAR,
    )


def _blocked_conversion(layout):
    def run(self, blocksize, dense_dim):
        return _copied(convert.to_compressed(self, layout, blocksize, dense_dim), self)

    name = layout.name.rpartition("_")[2]
    return layout_operator(
        f"_to_sparse_{name}(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
        run=run,
        node=f"ToSparse{name.title()}Backward0",
        vjp={"self": _sparse_grad},
        jvp=LINEAR,
    )


_to_compressed = {x: (_blocked_conversion if x in BLOCKED else _plain_conversion)(x) for x in COMPRESSED}
coalesce_op = layout_operator(
    "_coalesce(Tensor self) -> Tensor",
    run=convert.coalesced,
    node="CoalesceBackward0",
    vjp={"self": lambda g: g},
    jvp=LINEAR,
)


# ---- public
@front("Tensor.to_dense")
def to_dense(self, dtype=None, *, masked_grad=None) -> Tensor:
    """The same numbers, all of them; a dense tensor itself."""
    if self._keys & OPAQUE:
        return dispatch(find("_mkldnn_to_dense.default"), (self, dtype))
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        kind = "sparse" if is_coo(self) else self.layout.name
        raise RuntimeError(f"dtype argument is not supported by {kind}_to_dense")
    return dispatch(to_dense_op, (self, None, masked_grad))


@front("Tensor.to_sparse")
def to_sparse(self, *args, sparse_dim=None, layout=None, blocksize=None, dense_dim=None) -> Tensor:
    """A sparse copy: COO with so many sparse dimensions, or the layout named."""
    if args and (layout is not None or blocksize is not None or dense_dim is not None or len(args) > 1):
        raise TypeError(f"to_sparse() takes 0 positional arguments but {len(args)} was given")
    sparse_dim = args[0] if args else sparse_dim
    if sparse_dim is not None and not isinstance(sparse_dim, int):
        raise TypeError(f"to_sparse(): argument 'sparse_dim' (position 1) must be int, not {type(sparse_dim).__name__}")
    if sparse_dim is not None:
        if is_coo(self) and sparse_dim == self._array.sparse_dim:
            return self
        return dispatch(to_sparse_dim, (self, sparse_dim))
    layout = layout or devices.sparse_coo
    if self.layout is layout and tuple(getattr(self._array, "blocksize", None) or ()) == (_block(blocksize) or ()):
        return self
    return dispatch(to_sparse_op, (self, layout, _block(blocksize), dense_dim))


def _block(blocksize, name: str = "dense_to_sparse") -> tuple | None:
    if blocksize is None:
        return None
    block = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
    if len(block) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(block)}")
    return block


@front("Tensor.to_sparse_coo")
def to_sparse_coo(self) -> Tensor:
    return self.to_sparse()


@front("Tensor.to_sparse_csr")
def to_sparse_csr(self, dense_dim=None) -> Tensor:
    return _to_unblocked(self, devices.sparse_csr, dense_dim)


@front("Tensor.to_sparse_csc")
def to_sparse_csc(self, dense_dim=None) -> Tensor:
    return _to_unblocked(self, devices.sparse_csc, dense_dim)


def _to_unblocked(t: Tensor, layout, dense_dim) -> Tensor:
    if t.layout is layout:
        return t
    return dispatch(_to_compressed[layout], (t, dense_dim))


@front("Tensor.to_sparse_bsr")
def to_sparse_bsr(self, blocksize, dense_dim=None) -> Tensor:
    return _to_blocked(self, devices.sparse_bsr, blocksize, dense_dim)


@front("Tensor.to_sparse_bsc")
def to_sparse_bsc(self, blocksize, dense_dim=None) -> Tensor:
    return _to_blocked(self, devices.sparse_bsc, blocksize, dense_dim)


def _to_blocked(t: Tensor, layout, blocksize, dense_dim) -> Tensor:
    block = _block(blocksize, f"dense_to_{layout.name}")
    if t.layout is layout and tuple(t._array.blocksize) == block:
        return t
    return dispatch(_to_compressed[layout], (t, block, dense_dim))


@front("Tensor.coalesce")
def coalesce(self) -> Tensor:
    """Indices sorted, values at the same index added up."""
    if not is_coo(self):
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {layout_name(self)}")
    return self if self._array.coalesced else dispatch(coalesce_op, (self,))
