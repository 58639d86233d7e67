"""What must hold of the arguments of linear algebra, in PyTorch's words.

In: tensors, of which only metadata is read, and the name of the function that was called.
Out: nothing, or a RuntimeError (NotImplementedError for dtypes that a kernel does not take).
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.dtype import dtype
from ...core.promotion import promote_types
from ...core.tensor import Tensor

LAPACK_DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def has_rank(t: Tensor, name: str, argument: str = "A") -> None:
    if t.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def is_square(t: Tensor, name: str, argument: str = "A") -> None:
    has_rank(t, name, argument)
    rows, columns = t.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def is_inexact(t: Tensor, name: str) -> None:
    d = t.dtype
    if not d.is_floating_point and not d.is_complex:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {d.scalar_name}")


def is_precise(t: Tensor, name: str) -> None:
    """A floating point or complex dtype, and not a half one."""
    is_inexact(t, name)
    if t.dtype not in LAPACK_DTYPES:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {t.dtype.scalar_name}")


def kernel_takes(t: Tensor, kernel: str) -> None:
    if t.dtype not in LAPACK_DTYPES:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{t.dtype.scalar_name}'")


def same_dtype(a: Tensor, b: Tensor, name: str, names: tuple[str, str] = ("A", "B")) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected {names[0]} and {names[1]} to have the same dtype, but found {names[0]} of type "
            f"{a.dtype.scalar_name} and {names[1]} of type {b.dtype.scalar_name} instead"
        )


def solvable(a: Tensor, b_shape: tuple[int, ...], left: bool, name: str) -> None:
    """The sides of A X = B (or X A = B) fit."""
    n, (rows, columns) = a.shape[-1], b_shape[-2:]
    if n != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a.shape[-2]}x{n} and {rows}x{columns})"
        )


def two_dims(t: Tensor, name: str) -> None:
    """The rank check of the older functions."""
    if t.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(t.shape)} instead")


def norm_dtype(given: dtype | None, own: dtype, name: str) -> None:
    """The `dtype=` of a norm: inexact, of the input's kind, and no narrower than the input."""
    if given is None:
        return
    if not given.is_floating_point and not given.is_complex:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {given.scalar_name}")
    if given.is_complex != own.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {given.scalar_name}")
    if promote_types(given, own) is not given:
        raise RuntimeError(
            f"{name}: the dtype of the input ({own.scalar_name}) should be convertible without narrowing to the "
            f"specified dtype ({given.scalar_name})"
        )
