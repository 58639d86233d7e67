"""What must hold of the parts of a sparse tensor, and whether it is checked.

Comes in: indices, values, a shape. Raises RuntimeError in PyTorch's words where a condition does not hold. Checks of
shapes that nothing can be made without are always done; those that read the indices only where they are asked for.
"""

from __future__ import annotations

from ....core.geometry import Geometry
from ....core.tensor import CONJ, FAKE, INFERENCE_TENSOR, META, NEG, STORED, Tensor
from .layouts import BLOCKED, BY_ROW


class check_sparse_tensor_invariants:
    """Whether constructors check indices: a context manager, a decorator, a switch (`enable`, `disable`)."""

    _enabled = False

    @staticmethod
    def is_enabled() -> bool:
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved: bool | None = None

    def __enter__(self):
        if self.saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting."
            )
        self.saved = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc) -> None:
        if self.saved is not None:
            check_sparse_tensor_invariants._enabled = self.saved
        self.saved = None

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapped


def wanted(check_invariants: bool | None) -> bool:
    return check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants


# ---- coordinates
def coo_shape(indices: Tensor, values: Tensor) -> tuple:
    """The smallest shape that holds the indices."""
    check_coo_parts(indices, values)
    array = indices._array
    nnz = array.shape[1]
    sparse = tuple(int(m) + 1 for m in array.max(axis=1)) if nnz else (0,) * array.shape[0]
    if nnz and array.size and array.min() < 0:
        low = array.min(axis=1)
        d = int((low < 0).argmax())
        raise RuntimeError(f"found negative index {int(low[d])} for dim {d}")
    return (*sparse, *values._array.shape[1:])


def check_coo_parts(indices: Tensor, values: Tensor) -> None:
    if indices._keys & ~(INFERENCE_TENSOR | META | FAKE) or values._keys & ~(
        INFERENCE_TENSOR | META | FAKE | CONJ | NEG | STORED
    ):
        raise RuntimeError(
            f"expected indices and values to be dense tensors, but got layouts {indices.layout} and {values.layout}"
        )
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")


def check_coo(indices: Tensor, values: Tensor, size: tuple) -> None:
    """Shapes that must agree."""
    sparse_dim, dense_dim = indices.shape[0], values.ndim - 1
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if any(s < 0 for s in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    check_coo_parts(indices, values)
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    if tuple(values.shape[1:]) != tuple(size[sparse_dim:]):
        expected = [values.shape[0], *size[sparse_dim:]]
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(values.shape)}")


def check_coo_indices(indices: Tensor, size: tuple, is_coalesced: bool | None) -> None:
    """Indices inside the shape, and sorted where they are said to be."""
    array = indices._array
    if array.size:
        low, high = array.min(axis=1), array.max(axis=1)
        for d, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            if a < 0:
                raise RuntimeError(f"found negative index {a} for dim {d}")
            if b >= size[d]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {b}"
                )
    if is_coalesced:
        keys = 0
        for row, n in zip(array, size, strict=False):
            keys = keys * n + row
        if array.shape[0] and (keys[1:] <= keys[:-1]).any():
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


# ---- compressed
def _words(layout) -> tuple[str, str, str, str]:
    return (
        ("crow_indices", "col_indices", "row", "ncols")
        if layout in BY_ROW
        else ("ccol_indices", "row_indices", "column", "nrows")
    )


def compressed_shape(layout, compressed: Tensor, plain: Tensor, values: Tensor) -> tuple:
    """The smallest shape that holds the indices."""
    batch = compressed.ndim - 1
    if batch < 0 or plain.ndim != compressed.ndim:
        raise RuntimeError("compressed_indices must have dimensionality >= 1 and equal to that of plain_indices")
    blocked = layout in BLOCKED
    if values.ndim < batch + 1 + 2 * blocked:
        raise RuntimeError(f"values must have dimensionality >= {batch + 1 + 2 * blocked} but got {values.ndim}")
    br, bc = values.shape[batch + 1 : batch + 3] if blocked else (1, 1)
    along = compressed.shape[-1] - 1
    across = int(plain._array.max()) + 1 if plain.numel() else 0
    rows, columns = (along, across) if layout in BY_ROW else (across, along)
    dense = values.shape[batch + 1 + 2 * blocked :]
    return (*compressed.shape[:-1], rows * br, columns * bc, *dense)


def check_compressed(layout, compressed: Tensor, plain: Tensor, values: Tensor, size: tuple) -> None:
    """All conditions on the parts of a compressed tensor, in the order in which PyTorch names them."""
    first, second, word, other = _words(layout)
    batch, blocked = compressed.ndim - 1, layout in BLOCKED
    for name, part in ((first, compressed), (second, plain)):
        if part.ndim and part.shape[-1] > 1 and part.stride(-1) != 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    if compressed.ndim < 1:
        raise RuntimeError(f"{first} must have dimensionality >= 1 but got {compressed.ndim}")
    if compressed.ndim != plain.ndim:
        raise RuntimeError(
            f"{first} and {second} dimensionalities must be equal but got {compressed.ndim} and {plain.ndim}, "
            f"respectively"
        )
    dense_dim = values.ndim - batch - 1 - 2 * blocked
    if dense_dim < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {2 * blocked}) but "
            f"got {values.ndim}"
        )
    if len(size) != batch + 2 + dense_dim:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + "
            f"{dense_dim}) but got {len(size)}"
        )
    _check_batches(size[:batch], (first, compressed), (second, plain), ("values", values))
    nnz = values.shape[batch]
    if plain.shape[-1] != nnz:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got "
            f"{plain.shape[-1]}"
        )
    block = values.shape[batch + 1 : batch + 3] if blocked else (1, 1)
    for d in range(2):
        if not block[d] or size[batch + d] % block[d]:
            raise RuntimeError(
                f"tensor shape[{batch + d}] (={size[batch + d]}) must be divisible with blocksize[{d}] (={block[d]}) "
                f"as defined by values shape"
            )
    counts = size[batch] // block[0], size[batch + 1] // block[1]
    along, across = counts if layout in BY_ROW else counts[::-1]
    if compressed.shape[-1] != along + 1:
        kind = f"number of {word}{' block' if blocked else ''}s"
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the {kind} + 1 (={along + 1}), but got {compressed.shape[-1]}"
        )
    _check_index_dtypes(first, second, compressed.dtype, plain.dtype)
    _check_compressed_indices(
        compressed._array,
        plain._array,
        along,
        across,
        (first, second, other, f"n{'rows' if layout in BY_ROW else 'cols'}"),
    )


def _check_batches(wanted: tuple, *parts: tuple[str, Tensor]) -> None:
    """That all parts have the batch dimensions of the tensor."""
    shapes = [(name, list(part.shape[: len(wanted)])) for name, part in parts]
    if any(shape != list(wanted) for _, shape in shapes):
        listed = ", ".join(f"{name} (={shape})" for name, shape in shapes[:-1])
        raise RuntimeError(
            f"all batch dimensions of {listed}, and {shapes[-1][0]} (={shapes[-1][1]}) must be equal to tensor batch "
            f"dimensions (={list(wanted)})"
        )


def _check_index_dtypes(first: str, second: str, one, other) -> None:
    if one is not other:
        names = f"{one.scalar_name} and {other.scalar_name}"
        raise RuntimeError(f"{first} and {second} must have the same dtype, bot got {names}, respectively")
    if one.name not in ("int32", "int64"):
        raise RuntimeError(f"{first} and {second} dtype must be Int or Long, but got {one.scalar_name}")


def _check_compressed_indices(compressed, plain, along: int, across: int, words: tuple) -> None:
    if isinstance(compressed, Geometry):
        return  # without data there is nothing more to look at
    first, second, other, count = words
    nnz = plain.shape[-1]
    steps = compressed[..., 1:] - compressed[..., :-1]
    conditions = (
        ((compressed[..., 0] == 0).all(), f"{first}[..., 0] == 0"),
        ((compressed[..., -1] == nnz).all(), f"{first}[..., -1] == nnz"),
        ((steps >= 0).all() and (steps <= across).all(), f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {other}"),
        ((plain >= 0).all() and (plain < across).all(), f"0 <= {second} < {other}"),
    )
    for holds, words_of_it in conditions:
        if not holds:
            raise RuntimeError(f"`{words_of_it}` is not satisfied.")
    batches = compressed.reshape(-1, along + 1)
    for c, p in zip(batches, plain.reshape(len(batches), nnz), strict=True):
        rising = p[1:] > p[:-1]
        starts = c[(c > 0) & (c < nnz)] - 1
        rising[starts] = True
        if not rising.all():
            raise RuntimeError(
                f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {count} are sorted and "
                f"distinct along the last "
                "dimension values` is not satisfied."
            )
