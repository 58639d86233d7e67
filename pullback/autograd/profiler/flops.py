"""How much arithmetic a call is: formulas for the operators that dominate a model, by name.

An operator and its canonical arguments come in, a count of floating-point operations goes out; 0 where no formula is
known. A multiplication and an addition count as two.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core.tensor import Tensor
from ...ops.system.operator import Operator


def count_flops(op: Operator, args: tuple) -> int:
    """Floating-point operations of one call."""
    rule = FORMULAS.get(op.name)
    return 0 if rule is None or op.body is not None else rule(*args)


def _product(a: Tensor, b: Tensor, *rest) -> int:
    return 2 * a.numel() * (b.shape[-1] if b.ndim > 1 else 1)


def _added_product(bias, a: Tensor, b: Tensor, *rest) -> int:
    return _product(a, b)


def _elements(a, b=None, *rest) -> int:
    counts = [t.numel() for t in (a, b) if isinstance(t, Tensor)]
    return max(counts, default=0)


def _convolution(
    input: Tensor, weight: Tensor, bias, stride, padding, dilation, transposed, output_padding, groups
) -> int:
    """Each output element (of the input, where transposed) is a product with one filter."""
    taps = 2 * math.prod(weight.shape[1:])
    if transposed:
        return taps * input.numel()
    size = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(input.shape[2:], weight.shape[2:], *map(list, (stride, padding, dilation)))
    ]
    return taps * input.shape[0] * weight.shape[0] * math.prod(size)


FORMULAS: dict[str, Callable[..., int]] = {
    "mm": _product,
    "bmm": _product,
    "mv": _product,
    "matmul": _product,
    "addmm": _added_product,
    "baddbmm": _added_product,
    "addmv": _added_product,
    "linear": lambda input, weight, bias=None: 2 * input.numel() * weight.shape[0],
    "convolution": _convolution,
    "mul": _elements,
    "add": _elements,
}
