"""What a sparse tensor holds in the place of an array.

Comes in: indices, values, a shape. Goes out: a `Tensor` whose `array` is a `CooArray` (coordinates) or
a `CompressedArray` (CSR, CSC, BSR, BSC). What always holds: indices and values are plain tensors without history, the
array answers what an array is asked for metadata (`shape`, `ndim`, `size`, `dtype`), and a tensor counts its versions with
its values. What a write changes is said in `writes`.
"""

from __future__ import annotations

from ....core import device as devices
from ....core.tensor import FAKE, META, SPARSE, Tensor, wrap
from ....core.wrapped import WrappedArray

COMPRESSED = (devices.sparse_csr, devices.sparse_csc, devices.sparse_bsr, devices.sparse_bsc)
BLOCKED = (devices.sparse_bsr, devices.sparse_bsc)
BY_ROW = (devices.sparse_csr, devices.sparse_bsr)
NAMES = {
    devices.strided: "Strided",
    devices.sparse_coo: "Sparse",
    devices.sparse_csr: "SparseCsr",
    devices.sparse_csc: "SparseCsc",
    devices.sparse_bsr: "SparseBsr",
    devices.sparse_bsc: "SparseBsc",
    devices.jagged: "Jagged",
    None: "none",
}


class SparseArray(WrappedArray):
    """What all sparse layouts share: a shape, values, and the metadata that follows from them."""

    __slots__ = ("shape", "values")

    layout = devices.sparse_coo
    blocksize: tuple | None = None
    implementation = "SparseTensorImpl"
    c_contiguous = False  # there are no strides

    @property
    def stride(self) -> tuple:
        return (0,) * len(self.shape)


class CooArray(SparseArray):
    """Coordinates: `indices` (sparse_dim, nnz), `values` (nnz, *dense). `fresh`: nobody else holds the parts yet."""

    __slots__ = ("indices", "coalesced", "fresh")

    def __init__(self, indices: Tensor, values: Tensor, shape: tuple, coalesced: bool = False, fresh: bool = False):
        self.indices, self.values, self.shape = indices, values, tuple(shape)
        self.coalesced, self.fresh = coalesced, fresh

    @property
    def sparse_dim(self) -> int:
        return self.indices._array.shape[0]

    @property
    def dense_dim(self) -> int:
        return self.values._array.ndim - 1

    @property
    def nnz(self) -> int:
        return self.values._array.shape[0]

    def with_values(self, values: Tensor) -> CooArray:
        return CooArray(self.indices, values, self.shape, self.coalesced)


class CompressedArray(SparseArray):
    """Rows (or columns) by their pointers.

    `compressed` is (*batch, n + 1), `plain` (*batch, nnz), `values` (*batch, nnz, *block, *dense).
    """

    __slots__ = ("layout", "compressed", "plain", "blocksize")

    implementation = "SparseCsrTensorImpl"

    def __init__(self, layout, compressed: Tensor, plain: Tensor, values: Tensor, shape: tuple):
        self.layout, self.compressed, self.plain, self.values, self.shape = (
            layout,
            compressed,
            plain,
            values,
            tuple(shape),
        )
        at = plain._array.ndim
        self.blocksize = values._array.shape[at : at + 2] if layout in BLOCKED else None

    @property
    def batch_dim(self) -> int:
        return self.plain._array.ndim - 1

    @property
    def sparse_dim(self) -> int:
        return 2

    @property
    def dense_dim(self) -> int:
        return self.values._array.ndim - self.plain._array.ndim - (2 if self.blocksize else 0)

    @property
    def nnz(self) -> int:
        return self.plain._array.shape[-1]

    def with_values(self, values: Tensor) -> CompressedArray:
        return CompressedArray(self.layout, self.compressed, self.plain, values, self.shape)

    def take(self, other: CompressedArray) -> None:
        """Hold the parts of another array of this layout and shape."""
        self.compressed, self.plain, self.values = other.compressed, other.plain, other.values
        self.blocksize = other.blocksize


def counted_by(counter: list, values: Tensor) -> Tensor:
    """Values that count their versions with a tensor, or by themselves."""
    result = values.shallow()
    result._counter = counter
    return result


def wrap_sparse(array: SparseArray) -> Tensor:
    """The tensor around a sparse array: a fake where its values are."""
    values = array.values
    t = wrap(array, values.dtype, values.device, SPARSE | values._keys & (META | FAKE))
    t._counter = values._counter
    if values._keys & FAKE:
        t.__dict__["fake_mode"] = values.__dict__["fake_mode"]
    return t


def wrap_coo(indices: Tensor, values: Tensor, shape: tuple, coalesced: bool = False, fresh: bool = False) -> Tensor:
    return wrap_sparse(CooArray(indices, values, shape, coalesced, fresh))


def is_sparse(t) -> bool:
    return isinstance(t, Tensor) and bool(t._keys & SPARSE)


def is_coo(t) -> bool:
    return is_sparse(t) and t._array.layout is devices.sparse_coo


def is_compressed(t) -> bool:
    return is_sparse(t) and t._array.layout is not devices.sparse_coo


def layout_name(t: Tensor) -> str:
    """The layout as PyTorch's messages spell it."""
    return NAMES[t.layout]


def backend_name(t: Tensor) -> str:
    """The backend as PyTorch's messages spell it."""
    kind = "" if not is_sparse(t) else "Sparse" if is_coo(t) else "SparseCsr"
    return kind + {"cpu": "CPU", "meta": "Meta", "cuda": "CUDA"}.get(t.device.type, t.device.type)
