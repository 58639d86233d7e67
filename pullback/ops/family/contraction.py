"""Contractions: products of matrices, vectors and batches of them.

    mm = contraction("mm(Tensor self, Tensor mat2) -> Tensor", meta=_mm_shape, kernel=product, vjp={...})

`meta(*args)` checks the arguments and says what comes out; it runs before every kernel: errors and shapes have one
source. `kernel(xp, *args)` sees arrays of the working dtype: float16 and bfloat16 arrive as float32 and are rounded
once after.
"""

from __future__ import annotations

import numpy as np

from ...core.arrays import library
from ...core.cuda_products import multiply as multiply_on_device
from ...core.tensor import wrap
from ...runtime.products import multiply, ready
from ..eager.products import ProductCase
from ..eager.straight import FunctionCase
from ..linalg.contraction_shapes import require_tensors
from ..system.calls import export_operator
from ..system.declaration import Declaration
from ..system.operator import Operator
from .base import Family, array_of, device_of

_EXACT = 1 << 53  # integers up to here are exact in float64
_WORTH_BLAS = 1 << 13  # multiplications below which the plain integer loop is quicker


class ContractionDeclaration(Declaration):
    """What a contraction may declare."""

    kind = "a contraction"
    kinds = {"plain": (ProductCase, FunctionCase)}

    narrow: bool = False
    """Whether a CUDA device multiplies float16 and bfloat16 as they are, and sums them in float32."""
    cost: str = "compute"


class Contraction(Family):
    """See the module's docstring."""

    declares = ContractionDeclaration
    direct = "family"
    takes_copies = False  # products read any order of memory

    def execute(self, op: Operator, args: tuple):
        spec = self.meta(op, args)
        device = device_of(op, args)
        xp = library(device)
        given = [array_of(a) for a in args]
        if xp is np or not op.declared.narrow:
            given = [working(a) for a in given]
        result = xp.asarray(op.kernel(xp, *given))
        if result.dtype != spec.dtype.numpy:
            result = result.astype(spec.dtype.numpy)
        elif result.base is not None or not result.flags.c_contiguous:
            result = result.copy()
        return wrap(result, spec.dtype, device)

    def meta(self, op: Operator, args: tuple):
        require_tensors(op, args)
        return op.meta_rule(*args)

    def check_example(self, op: Operator, args: tuple) -> None:
        _check_ranks(op.name, *args)
        try:
            op.meta_rule(*args)
        except RuntimeError as error:
            raise RuntimeError(f"Shape mismatch: Got incorrect dims for {op.name}: {error}") from None


_PRODUCTS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1)}
_ADDED = {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}


def _check_ranks(name: str, *args) -> None:
    """Refuse examples of a wrong rank; a sum with a product is refused by the name of the product."""
    a, b = args[1:3] if name in _ADDED else args[:2]
    name = _ADDED.get(name, name)
    ranks = _PRODUCTS.get(name)
    if ranks is not None and (a.ndim, b.ndim) != ranks:
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {name}(a, b). a has dim {a.ndim}and b has dim {b.ndim}but expected them "
            f"to have dim {ranks[0]} and dim {ranks[1]}"
        )
    if name == "dot" and (a.ndim, b.ndim) != (1, 1):
        raise RuntimeError("Got wrong shapes for dot")


def working(value):
    """A half-precision array as float32; anything else as it is."""
    if hasattr(value, "strides") and value.dtype.itemsize <= 2 and value.dtype.kind in "fV":
        return value.astype(np.float32)
    return value


def product_flops(a, b, *rest) -> int:
    """Floating-point operations of a product: each element of `a` meets each column of `b`."""
    return 2 * a.numel() * (b.shape[-1] if b.ndim > 1 else 1)


def added_product_flops(bias, a, b, *rest) -> int:
    return product_flops(a, b)


def product(xp, a, b):
    """`a @ b` over the last two dimensions."""
    if a.dtype.kind in "iu":
        return _integer_product(xp, a, b)
    if xp is not np:
        return _on_device(xp, a, b, wide=True)
    return multiply(a, b)


def rounded_product(xp, a, b):
    """The same, where nothing is added: narrow floats, which reach a CUDA device as they are, give narrow floats."""
    return product(xp, a, b) if xp is np or a.dtype.kind in "iu" else _on_device(xp, a, b, wide=False)


def _on_device(xp, a, b, wide: bool):
    result = multiply_on_device(a, b, wide)
    if result is None:
        a, b = working(a), working(b)
        result = a.dot(b) if a.ndim == b.ndim == 2 else xp.matmul(ready(xp, a), ready(xp, b))
    return result


def _integer_product(xp, a, b):
    """Integer products wrap around; where no sum can leave float64's exact range, BLAS computes them."""
    depth = a.shape[-1]
    if a.size * (b.shape[-1] if b.ndim > 1 else 1) >= _WORTH_BLAS and b.size:
        bound = _magnitude(a) * _magnitude(b) * depth
        if bound < _EXACT:
            return xp.matmul(a.astype(xp.float64), b.astype(xp.float64)).astype(a.dtype)
    return xp.matmul(a, b)


def _magnitude(a) -> int:
    return max(abs(int(a.max())), abs(int(a.min())))


CONTRACTION = Contraction()


def contraction(schema: str, **rules) -> Operator:
    """Declare a contraction."""
    return export_operator(Operator(schema, CONTRACTION, **rules))
