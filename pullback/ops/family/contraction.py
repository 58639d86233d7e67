"""Contractions: products of matrices, vectors and batches of them.

    mm = contraction("mm(Tensor self, Tensor mat2) -> Tensor", meta=_mm_shape, kernel=product, vjp={...})

`meta(*args)` checks the arguments and says what comes out; it runs before every kernel: errors and shapes have one
source. `kernel(xp, *args)` sees arrays of the working dtype: float16 and bfloat16 arrive as float32 and are rounded
once after. `quick="matmul"` (or "addmm") writes a fast path for plain matrices of one floating dtype into the public
function; `shortcut(*args)` is one that is called there, and gives None for what it does not handle.
"""

from __future__ import annotations

import numpy as np

from ...core import dtype as dtypes
from ...core.arrays import library
from ...core.objects import fresh_lines
from ...core.tensor import wrap
from ..system.calls import default_names, export_operator
from ..system.declaration import Declaration
from ..system.operator import Operator
from .base import Family, array_of, device_of

DIRECT = frozenset((dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128))
NARROW = ("mm", "addmm")  # a CUDA device multiplies narrow floats as they are, and sums them in float32
_EXACT = 1 << 53  # integers up to here are exact in float64
_WORTH_BLAS = 1 << 13  # multiplications below which the plain integer loop is quicker


class ContractionDeclaration(Declaration):
    """What a contraction may declare."""

    kind = "a contraction"
    conditions = (*Declaration.conditions, ("recorder", "quick"))

    quick: str | None = None
    """The lines that are the fast path of plain matrices: `"matmul"` or `"addmm"`."""
    recorder: str | None = None
    """The operator as which those lines record a call, where it is another."""


class Contraction(Family):
    """See the module's docstring."""

    declares = ContractionDeclaration

    def execute(self, op: Operator, args: tuple):
        spec = self.meta(op, args)
        device = device_of(op, args)
        xp = library(device)
        given = [array_of(a) for a in args]
        if xp is np or op.name not in NARROW:
            given = [working(a) for a in given]
        made = xp.asarray(op.kernel(xp, *given))
        if made.dtype != spec.dtype.numpy:
            made = made.astype(spec.dtype.numpy)
        elif made.base is not None or not made.flags.c_contiguous:
            made = made.copy()
        return wrap(made, spec.dtype, device)

    def meta(self, op: Operator, args: tuple):
        from ..linalg.contraction_shapes import require_tensors

        require_tensors(op, args)
        return op.meta_rule(*args)

    def fast_lines(self, op: Operator, values: list[str], has_out: bool) -> list[str]:
        quick = op.declared.quick
        lines = [] if quick is None or op.inplace_of is not None else _QUICK[quick](values)
        if op.declared.shortcut is not None:
            given = ", ".join(values)
            asked = [f"t = shortcut({given})", "if t is not None:", "    return t"]
            lines += (
                ["    if out is None:", *(f"        {x}" for x in asked)] if has_out else [f"    {x}" for x in asked]
            )
        return lines

    def fast_names(self, op: Operator) -> dict:
        from ..system.operator import registry

        record = registry[op.declared.recorder] if op.declared.recorder is not None else op
        names = {"DIRECT": DIRECT, "recorder": record, "add": np.add, "shortcut": op.declared.shortcut}
        return default_names(op) | names


def working(value):
    """A half-precision array as float32; anything else as it is."""
    if hasattr(value, "strides") and value.dtype.itemsize <= 2 and value.dtype.kind in "fV":
        return value.astype(np.float32)
    return value


def product(xp, a, b):
    """`a @ b` over the last two dimensions."""
    if a.dtype.kind in "iu":
        return _integer_product(xp, a, b)
    if a.ndim == b.ndim == 2:
        return a.dot(b) if xp is np or a.dtype.itemsize != 2 else _narrow_product(a, b)
    return xp.matmul(_ready(xp, a), _ready(xp, b))


def _narrow_product(a, b):
    """Of matrices of narrow floats, in float32: on a CUDA device only, elsewhere they arrive in float32."""
    from ...core.cuda_products import wide_product

    made = wide_product(a, b)
    return working(a).dot(working(b)) if made is None else made


def _ready(xp, a):
    """An array whose matrices BLAS can read in place; others are copied, since the loop without BLAS is far slower."""
    if a.ndim < 2:
        return a
    size, (rows, columns) = a.itemsize, a.strides[-2:]
    height, width = a.shape[-2:]
    by_rows = columns == size and (rows >= width * size or height == 1)
    by_columns = rows == size and (columns >= height * size or width == 1)
    return a if by_rows or by_columns else xp.ascontiguousarray(a)


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


_WRAP = fresh_lines()


def _matmul_lines(values: list[str]) -> list[str]:
    x, y = values
    plain = f"{x}.__class__ in PLAIN and {y}.__class__ in PLAIN and not {x}.keys and not {y}.keys and out is None"
    fits = f"mode < 2 and d is {y}.dtype and d in DIRECT and a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0]"
    return [
        f"    if {plain}:",
        f"        a = {x}.array",
        f"        b = {y}.array",
        f"        d = {x}.dtype",
        "        mode = ambient.mode",
        f"        if {fits}:",
        "            r = a.dot(b)",
        *[f"            {line}" for line in _WRAP],
        f"            if mode and ({x}.autograd is not None or {y}.autograd is not None):",
        f"                return recorder.record(t, {x}, {y})",
        "            return t",
    ]


def _addmm_lines(values: list[str]) -> list[str]:
    bias, x, y, beta, alpha = values
    plain = " and ".join(f"{v}.__class__ in PLAIN and not {v}.keys" for v in (bias, x, y))
    ones = f"{beta}.__class__ is int and {alpha}.__class__ is int and {beta} == {alpha} == 1"
    fits = "a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0]"
    addend = "(c.shape == b.shape[1:] or c.shape == (a.shape[0], b.shape[1]))"
    wanted = " or ".join(f"{v}.autograd is not None" for v in (bias, x, y))
    return [
        f"    if {plain} and out is None:",
        f"        a = {x}.array",
        f"        b = {y}.array",
        f"        c = {bias}.array",
        f"        d = {x}.dtype",
        "        mode = ambient.mode",
        f"        if mode < 2 and d is {y}.dtype and d is {bias}.dtype and d in DIRECT and {ones}:",
        f"            if {fits} and {addend}:",
        "                r = a.dot(b)",
        "                add(r, c, r)",
        *[f"                {line}" for line in _WRAP],
        f"                if mode and ({wanted}):",
        f"                    return recorder.record(t, {', '.join(values)})",
        "                return t",
    ]


_QUICK = {"matmul": _matmul_lines, "addmm": _addmm_lines}
CONTRACTION = Contraction()


def contraction(schema: str, **rules) -> Operator:
    """Declare a contraction."""
    return export_operator(Operator(schema, CONTRACTION, **rules))
