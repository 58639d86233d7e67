"""Sparse tensors from their parts, and what they are made of.

    sparse_coo_tensor(indices, values, size)
    sparse_csr_tensor(crow_indices, col_indices, values, size), and its kin

Goes out: a sparse tensor through which gradients reach `values`. The parts come out again by `indices()`, `values()`,
`crow_indices()` and so on, on the same memory.
"""

from __future__ import annotations

from types import MethodType

from ....core import device as devices
from ....core import dtype as dtypes
from ....core.layers import above, extend
from ....core.tensor import NESTED, Tensor, set_requires_grad, view_of
from ...make.construct import tensor as make_tensor
from ...make.factories import empty, sizes_from, zeros
from ...system.calls import front
from ...system.dispatch import dispatch
from ...system.operator import LINEAR, NONDIFFERENTIABLE
from . import invariants
from .layouts import (
    BY_ROW,
    COMPRESSED,
    NAMES,
    CompressedArray,
    counted_by,
    is_compressed,
    is_coo,
    layout_name,
    wrap_coo,
    wrap_sparse,
)
from .masks import sparse_mask
from .table import LAYOUT_VIEW, layout_operator, refuse_dense, sparse_rule

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


# ---- operators
def _values_grad(g, out):
    """The gradient at the places of the values."""
    return _values(dispatch(_mask_operator(), (g, out)))


def _mask_operator():
    return sparse_mask


coo_from_parts = layout_operator(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor "
    "values, *, "
    f"{_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    run=lambda sparse_dim, dense_dim, size, indices, values, *rest: wrap_coo(
        indices, counted_by([0], values), size, indices.shape[1] < 2 if rest[-1] is None else rest[-1]
    ),  # one element has no double
    vjp={"values": _values_grad},
)
compressed_from_parts = layout_operator(
    "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] size, "
    "*, "
    f"{_OPTIONS}) -> Tensor",
    run=lambda compressed, plain, values, size, dtype, layout, *_: wrap_sparse(
        CompressedArray(layout, compressed, plain, counted_by([0], values), size)
    ),
    vjp={"values": _values_grad},
)


def _shared(t: Tensor) -> Tensor:
    """Another tensor on the same memory."""
    return view_of(t, t._array, t.dtype, t._offset)


def _shared_values(t: Tensor) -> Tensor:
    """The values of a tensor, which count their versions with it: those of `.data` with nobody else."""
    return _shared(counted_by(t._counter, t._array.values))


def _rebuild(g, self):
    """A sparse gradient with the indices of `self` and the gradient of its values."""
    a = self._array
    if is_coo(self):
        return dispatch(
            coo_from_parts, (a.sparse_dim, a.dense_dim, a.shape, a.indices, g, None, None, None, None, a.coalesced)
        )
    return dispatch(compressed_from_parts, (a.compressed, a.plain, g, a.shape, None, a.layout, None, None))


values_op = layout_operator(
    "values(Tensor(a) self) -> Tensor(a)",
    run=_shared_values,
    family=LAYOUT_VIEW,
    vjp={"self": _rebuild},
    jvp=LINEAR,
)
raw_values_op = layout_operator("_values(Tensor(a) self) -> Tensor(a)", run=_shared_values, vjp=NONDIFFERENTIABLE)


def _values(t: Tensor) -> Tensor:
    """Differentiable values, whether or not the indices are in order."""
    return dispatch(values_op, (t,))


# ---- public constructors
def _as_index(data, device) -> Tensor:
    result = data if isinstance(data, Tensor) else make_tensor(data, device=device)
    return result.detach()


def _as_values(data, dtype, device) -> Tensor:
    if isinstance(data, Tensor):
        return (
            data
            if dtype is None and device is None
            else data.to(dtype=dtype or data.dtype, device=device or data.device)
        )
    return make_tensor(data, dtype=dtype, device=device)


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad and not t.requires_grad:
        set_requires_grad(t, True)
    return t


def empty_coo(size: tuple, dtype=None, device=None) -> Tensor:
    """A COO tensor without specified elements."""
    if any(s < 0 for s in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    indices = empty((len(size), 0), dtype=dtypes.int64, device=device)
    return wrap_coo(indices, empty((0,), dtype=dtype, device=device), size, True)


def empty_sparse(size: tuple, layout, dtype=None, device=None) -> Tensor:
    """`zeros(size, layout=...)`: a tensor of a sparse layout without specified elements."""
    if layout is devices.sparse_coo:
        return empty_coo(size, dtype, device)
    if layout not in (devices.sparse_csr, devices.sparse_csc):
        raise RuntimeError(
            f"torch.empty: Only batched sparse (non-block) CSR and CSC layouts can be made without parts, but got "
            f"{layout}"
        )
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    batch, lines = size[:-2], size[-2] if layout in BY_ROW else size[-1]
    pointers = zeros((*batch, lines + 1), dtype=dtypes.int64, device=device)
    plain = empty((*batch, 0), dtype=dtypes.int64, device=device)
    return wrap_sparse(
        CompressedArray(layout, pointers, plain, empty((*batch, 0), dtype=dtype, device=device), tuple(size))
    )


def _is_size(a) -> bool:
    return (
        isinstance(a, int)
        and not isinstance(a, bool)
        or isinstance(a, (tuple, list))
        and all(isinstance(s, int) for s in a)
    )


_UNSET = object()


@front("torch.sparse_coo_tensor")
def sparse_coo_tensor(
    *args,
    indices=_UNSET,
    values=_UNSET,
    size=None,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
    **unknown,
) -> Tensor:
    """A COO tensor from indices and values, or an empty one from a size."""
    if unknown:
        raise TypeError(f"sparse_coo_tensor() got an unexpected keyword argument '{next(iter(unknown))}'")
    given = list(args)
    only_size = (
        values is _UNSET
        and indices is _UNSET
        and (len(given) == 1 or not given and size is not None or len(given) > 3 or given and isinstance(given[0], int))
    )
    if only_size and all(map(_is_size, given)):
        shape = sizes_from("sparse_coo_tensor", tuple(given), size)
        t = empty_coo(shape, dtype, device)
        return _finish(t, requires_grad)
    if indices is _UNSET and given:
        indices = given.pop(0)
    if values is _UNSET and given:
        values = given.pop(0)
    size = given.pop(0) if given and size is None else size
    if indices is _UNSET or values is _UNSET or given:
        raise TypeError(
            f"sparse_coo_tensor() received an invalid combination of arguments - got {len(args)} positional arguments"
        )
    return _coo(indices, values, size, dtype, device, requires_grad, check_invariants, is_coalesced)


def _coo(indices, values, size, dtype, device, requires_grad, check_invariants, is_coalesced) -> Tensor:
    values = _as_values(values, dtype, device)
    where = values.device
    indices = _as_index(indices, where)
    indices = indices.long() if indices.dtype.name != "int64" else indices
    if not values.ndim:
        values = values.reshape(1)
    size = invariants.coo_shape(indices, values) if size is None else sizes_from("sparse_coo_tensor", (size,))
    invariants.check_coo(indices, values, size)
    if invariants.wanted(check_invariants):
        invariants.check_coo_indices(indices, size, is_coalesced)
    result = dispatch(
        coo_from_parts,
        (
            indices.shape[0],
            values.ndim - 1,
            tuple(size),
            indices,
            values,
            dtype,
            devices.sparse_coo,
            None,
            None,
            is_coalesced,
        ),
    )
    return _finish(result, requires_grad)


def _compressed(
    name, layout, compressed, plain, values, size, dtype, device, requires_grad, check_invariants
) -> Tensor:
    if layout not in COMPRESSED:
        raise RuntimeError(f"{name} expected sparse compressed tensor layout but got {NAMES[layout]}")
    values = _as_values(values, dtype, device)
    compressed, plain = _as_index(compressed, values.device), _as_index(plain, values.device)
    size = invariants.compressed_shape(layout, compressed, plain, values) if size is None else sizes_from(name, (size,))
    if invariants.wanted(check_invariants):
        invariants.check_compressed(layout, compressed, plain, values, size)
    if compressed.dtype is not plain.dtype:
        compressed, plain = compressed.long(), plain.long()
    result = dispatch(
        compressed_from_parts, (*_as_integers(compressed, plain), values, tuple(size), dtype, layout, None, None)
    )
    return _finish(result, requires_grad)


def _as_integers(*parts: Tensor) -> tuple:
    return tuple(p if p.dtype.name in ("int32", "int64") else p.long() for p in parts)


@front("torch._validate_sparse_compressed_tensor_args")
def validate_compressed(compressed_indices, plain_indices, values, size, layout) -> None:
    """An error for parts that make no tensor of a compressed layout."""
    if layout not in COMPRESSED:
        raise RuntimeError(
            f"validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {NAMES[layout]}"
        )
    invariants.check_compressed(layout, compressed_indices, plain_indices, values, tuple(size))


def _make_validator(layout):
    name = NAMES[layout].removeprefix("Sparse").lower()

    @front(f"torch._validate_sparse_{name}_tensor_args")
    def validate(compressed_indices, plain_indices, values, size) -> None:
        validate_compressed(compressed_indices, plain_indices, values, size, layout)


for _layout in COMPRESSED:
    _make_validator(_layout)


@front("torch._validate_sparse_coo_tensor_args")
def validate_coo(indices, values, size, is_coalesced=None) -> None:
    """An error for parts that make no COO tensor."""
    invariants.check_coo_parts(indices, values)
    invariants.check_coo(indices, values, tuple(size))
    invariants.check_coo_indices(indices, tuple(size), is_coalesced)


@front("torch.sparse_compressed_tensor")
def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
) -> Tensor:
    """A tensor of a compressed layout from its parts."""
    return _compressed(
        "sparse_compressed_tensor",
        layout,
        compressed_indices,
        plain_indices,
        values,
        size,
        dtype,
        device,
        requires_grad,
        check_invariants,
    )


def _make_constructor(layout):
    name = f"{layout.name}_tensor"

    def by_row(
        crow_indices,
        col_indices,
        values,
        size=None,
        *,
        dtype=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        check_invariants=None,
    ) -> Tensor:
        return _compressed(
            name, layout, crow_indices, col_indices, values, size, dtype, device, requires_grad, check_invariants
        )

    def by_column(
        ccol_indices,
        row_indices,
        values,
        size=None,
        *,
        dtype=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        check_invariants=None,
    ) -> Tensor:
        return _compressed(
            name, layout, ccol_indices, row_indices, values, size, dtype, device, requires_grad, check_invariants
        )

    chosen = by_row if layout in BY_ROW else by_column
    chosen.__name__, chosen.__doc__ = name, f"A {layout!r} tensor from its parts."
    return front(f"torch.{name}")(chosen)


for _layout in COMPRESSED:
    globals()[f"{_layout.name}_tensor"] = _make_constructor(_layout)


# ---- parts
def _require_coo(name: str, t: Tensor) -> None:
    if not is_coo(t):
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {layout_name(t)}")


def _require_coalesced(name: str, t: Tensor) -> None:
    _require_coo(name, t)
    if not t._array.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


@front("Tensor.indices")
def indices(self) -> Tensor:
    _require_coalesced("indices", self)
    return _shared(self._array.indices)


@front("Tensor._indices")
def raw_indices(self) -> Tensor:
    if not is_coo(self):
        raise refuse_dense("_indices", self)
    return _shared(self._array.indices)


@front("Tensor.values")
def values(self) -> Tensor:
    from ..nested import values_of_nested

    if self.is_nested:
        return values_of_nested(self)
    if not is_compressed(self):
        if not is_coo(self):
            raise RuntimeError(f"values expected sparse tensor layout but got {layout_name(self)}")
        _require_coalesced("values", self)
    return _values(self)


def raw_values(self) -> Tensor:
    """The values of a COO tensor, whether or not the indices are in order."""
    if not is_coo(self):
        raise refuse_dense("_values", self)
    return dispatch(raw_values_op, (self,))


def _own_values(self):
    """Of jagged nested tensors, the packed values without history; of all others a method, which COO tensors have."""
    if self._keys & NESTED and self.layout is devices.jagged:
        return self._array.values
    return MethodType(raw_values, self)


extend(Tensor, __name__, _values=property(_own_values))


def _index_part(name: str, part: str, kind: str):
    by_row = name in ("crow_indices", "col_indices")

    def get(self) -> Tensor:
        if not is_compressed(self) or (self.layout in BY_ROW) != by_row:
            raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got {layout_name(self)}")
        return _shared(getattr(self._array, part))

    get.__name__ = name
    return front(f"Tensor.{name}")(get)


crow_indices = _index_part("crow_indices", "compressed", "row")
col_indices = _index_part("col_indices", "plain", "row")
ccol_indices = _index_part("ccol_indices", "compressed", "column")
row_indices = _index_part("row_indices", "plain", "column")


@front("Tensor._nnz")
def nnz(self) -> int:
    if not (is_coo(self) or is_compressed(self)):
        raise refuse_dense("_nnz", self)
    return self._array.nnz


@front("Tensor.sparse_dim")
def sparse_dim(self) -> int:
    return self._array.sparse_dim if is_coo(self) or is_compressed(self) else 0


@front("Tensor.dense_dim")
def dense_dim(self) -> int:
    return self._array.dense_dim if is_coo(self) or is_compressed(self) else self.ndim


@front("Tensor._dimI")
def raw_sparse_dim(self) -> int:
    return sparse_dim(self)


@front("Tensor._dimV")
def raw_dense_dim(self) -> int:
    return dense_dim(self)


@front("Tensor.is_coalesced")
def is_coalesced(self) -> bool:
    _require_coo("is_coalesced", self)
    return self._array.coalesced


@front("Tensor._coalesced_")
def set_coalesced(self, coalesced: bool) -> Tensor:
    _require_coo("_coalesced_", self)
    self._array.coalesced = bool(coalesced)
    return self


def _copying(name: str, get):
    """`NAME_copy`: a part of a sparse tensor on memory of its own."""

    def copy(input, *, out=None) -> Tensor:
        result = get(input).clone()
        return result if out is None else out.resize_(result.shape).copy_(result)

    copy.__name__ = f"{name}_copy"
    return front(f"torch.{name}_copy")(copy)


for _name in ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    globals()[f"{_name}_copy"] = _copying(_name, globals()[_name])


@sparse_rule("new_empty", "new_zeros")
def new_zeros(op, self, size, dtype, layout, device, pin_memory) -> Tensor:
    """Without specified elements, in the layout of `self` unless the call names another."""
    layout, dtype, device = layout or self.layout, dtype or self.dtype, device or self.device
    if layout is devices.strided:
        return zeros(size, dtype=dtype, device=device)
    return empty_sparse(tuple(size), layout, dtype, device)


above.empty_sparse = empty_sparse
