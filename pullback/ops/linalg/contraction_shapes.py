"""What contractions take and what comes out of them: one rule each, for shape, dtype and every refusal.

A rule takes the operator's arguments, reads only metadata, raises in PyTorch's words, and gives a `Spec`.
"""

from __future__ import annotations

from ...core.geometry import infer_size
from ...core.symbolic import holds
from ...core.tensor import Tensor
from ..shape import view_geometry
from ..shape.views import _check_expand
from ..system.operator import Operator, Spec
from ..system.scalars import c_name, check_fits
from ..system.schema import type_name


def require_tensors(op: Operator, args: tuple) -> None:
    """Refuse numbers where tensors belong: nothing is promoted here, so nothing could be made of them."""
    for i, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=False)):
        if argument.is_tensor and not argument.is_list and value is not None and not isinstance(value, Tensor):
            name = "input" if argument.name == "self" else argument.name
            raise TypeError(
                f"{op.display}(): argument '{name}' (position {i + 1}) must be Tensor, not {type_name(value)}"
            )


def dot_out(result: Tensor, out: Tensor) -> None:
    """`exact_out`, in the words of dot and vdot."""
    if out.dtype is not result.dtype:
        raise RuntimeError(
            f"result dtype {out.dtype.scalar_name} does not match input dtype {result.dtype.scalar_name}"
        )


def bad_inplace(shape: tuple, result: tuple) -> str:
    """What an in-place call says whose target has not the shape of the result."""
    return f"Bad in-place call: input tensor size {list(shape)} and output tensor size {list(result)} should match"


def _numbers(name: str, dtype, *lengths) -> None:
    """Refuse truths, unless one of these lengths is zero: then nothing is multiplied."""
    if dtype.name == "bool" and not any(holds(n == 0) for n in lengths):
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


def _unless_kept(mat1, beta) -> tuple:
    """How long the sums of products are, where the addend is not multiplied either."""
    return () if beta else mat1._array.shape[-1:]


def check_factors(dtype, *factors) -> None:
    """Refuse factors that numbers of a dtype cannot be: with an imaginary part, or too large."""
    for factor in factors:
        if factor.__class__ is not int or not 0 <= factor <= 127:  # which all hold
            check_fits(factor, dtype)


def check_expands(addend: Tensor, shape: tuple) -> None:
    """Raise the errors of `expand` where an addend does not broadcast to the product."""
    _check_expand(addend, shape)
    view_geometry.expand(addend._array.shape, (1,) * addend._array.ndim, 0, shape)


# ---- two matrices
def mm(self, mat2) -> Spec:
    if self.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    _check_inner(self, mat2)
    _check_same_dtype(self, mat2)
    _numbers("addmm_impl_cpu_", self.dtype, *self._array.shape, mat2._array.shape[1])
    return Spec((self._array.shape[0], mat2._array.shape[1]), self.dtype)


def _check_inner(mat1, mat2) -> None:
    (n, m), (k, p) = mat1._array.shape, mat2._array.shape
    if not holds(m == k):
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {k}x{p})")


def _check_same_dtype(mat1, mat2) -> None:
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(mat1.dtype)} != {c_name(mat2.dtype)}"
        )


def _check_factor_dtypes(mat1, mat2) -> None:
    if mat1.dtype is not mat2.dtype:
        names = f"{mat1.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {names}")


def _check_addend_dtype(addend, mat2) -> None:
    if addend.dtype is not mat2.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {addend.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )


def addmm(self, mat1, mat2, beta, alpha) -> Spec:
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if t.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {t.ndim}-D tensor")
    _check_inner(mat1, mat2)
    _check_addend_dtype(self, mat2)
    _check_factor_dtypes(mat1, mat2)
    shape = (mat1._array.shape[0], mat2._array.shape[1])
    check_expands(self, shape)
    _numbers("addmm_impl_cpu_", self.dtype, *shape, *_unless_kept(mat1, beta))
    check_factors(self.dtype, beta, alpha)
    return Spec(shape, self.dtype)


# ---- batches of matrices
def _batches(batch1, batch2) -> tuple:
    for name, t in (("batch1", batch1), ("batch2", batch2)):
        if t.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    (b, n, m), (c, k, p) = batch1._array.shape, batch2._array.shape
    if not (holds(b == c) and holds(m == k)):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{b}, {m}] but got: [{c}, {k}]."
        )
    return b, n, p


def _check_scalar_types(batch1, batch2) -> None:
    if batch1.dtype is not batch2.dtype:
        raise RuntimeError(f"expected scalar type {batch1.dtype.scalar_name} but found {batch2.dtype.scalar_name}")


def bmm(self, mat2) -> Spec:
    shape = _batches(self, mat2)
    _check_scalar_types(self, mat2)
    _numbers("bmm", self.dtype, *shape, self._array.shape[2])
    return Spec(shape, self.dtype)


def baddbmm(self, batch1, batch2, beta, alpha) -> Spec:
    check_expands(self, (batch1.size(0), batch1.size(1), batch2.size(2)))
    shape = _batches(batch1, batch2)
    _check_scalar_types(batch1, batch2)
    if self.dtype is not batch1.dtype:
        names = f"input {c_name(self.dtype)}, batch1: {c_name(batch1.dtype)}, batch2: {c_name(batch2.dtype)}"
        raise RuntimeError(f"Input dtypes must be the same, got: {names}")
    _numbers("baddbmm", self.dtype, *shape, *_unless_kept(batch1, beta))
    check_factors(self.dtype, beta, alpha)
    return Spec(shape, self.dtype)


def addbmm(self, batch1, batch2, beta, alpha) -> Spec:
    check_expands(self, (batch1.size(1), batch2.size(2)))
    _, n, p = _batches(batch1, batch2)
    _check_addend_dtype(self, batch2)
    _check_factor_dtypes(batch1, batch2)
    _numbers("addmm_impl_cpu_", self.dtype, n, p)
    check_factors(self.dtype, beta, alpha)
    return Spec((n, p), self.dtype)


# ---- a matrix and a vector
def mv(self, vec) -> Spec:
    if not self.ndim:
        self.size(0)  # raises
    return _mat_vec(self, vec, 1, self._array.shape[0], vec.dtype)


def addmv(self, mat, vec, beta, alpha) -> Spec:
    check_factors(self.dtype, beta, alpha)
    return _mat_vec(mat, vec, self.ndim, self._array.shape[0] if self.ndim else 1, self.dtype)


def _mat_vec(mat, vec, ndim: int, length: int, dtype) -> Spec:
    """`ndim`, `length` and `dtype` are the addend's, or the result's where there is none."""
    if not (mat.ndim == 2 and vec.ndim == 1 and ndim <= 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got {ndim}, {mat.ndim}, {vec.ndim}")
    n, m = mat._array.shape
    if not holds(m == vec._array.shape[0]) or length not in (n, 1):
        raise RuntimeError(f"size mismatch, got input ({length}), mat ({n}x{m}), vec ({vec._array.shape[0]})")
    if not (dtype is mat.dtype is vec.dtype):
        names = f"{dtype.scalar_name}, {mat.dtype.scalar_name}, and {vec.dtype.scalar_name}"
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {names}")
    _numbers("addmv_impl_cpu", dtype, n, m)
    return Spec((n,), dtype)


# ---- two vectors
def dot(self, other) -> Spec:
    if self.ndim != 1 or other.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {other.ndim}D tensors")
    if self.dtype is not other.dtype:
        names = f"{self.dtype.scalar_name} and {other.dtype.scalar_name}"
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {names}")
    n, m = self._array.shape[0], other._array.shape[0]
    if not holds(n == m):
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, "
            f"but got {n} and {m} elements respectively"
        )
    _numbers("dot", self.dtype)
    return Spec((), self.dtype)


def unsafe_view(self, size) -> Spec:
    return Spec(infer_size(size, self.numel()), self.dtype)
