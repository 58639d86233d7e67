"""Jacobians two ways: by differences of a function's values, and by its own derivatives.

All Jacobians here are matrices (elements of the input, elements of the output), one per input that requires a gradient
and per output. For a complex input a numerical entry is `df/dx + i df/dy`, which is what backward gives (the conjugate
Wirtinger gradient) when outputs are real. Sparse inputs are perturbed entry by entry where they have entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import forward_ad
from .calls import grad
from .gradcheck import GradcheckError

zeros_like, stack = public("torch", "zeros_like"), public("torch", "stack")


# ---- inputs and outputs
def as_tuple(x) -> tuple:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def differentiable(x) -> tuple:
    """The outputs that require a gradient."""
    return tuple(o for o in as_tuple(x) if isinstance(o, Tensor) and o.requires_grad)


def is_inexact(x) -> bool:
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def wanted(inputs: tuple) -> list[int]:
    """Which inputs are differentiated."""
    return [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]


def is_strided(x: Tensor) -> bool:
    return "strided" in str(x.layout)


def content_of(x: Tensor) -> Tensor:
    """The numbers of a tensor, dense or not, on the same memory and without history."""
    if is_strided(x):
        return x.data
    if x.is_mkldnn:
        return x._array.values
    return (x._values() if "coo" in str(x.layout) else x.values()).data


def densified(x):
    """A sparse tensor of the same layout that has an entry everywhere; anything else as it is."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(densified, x))
    if not isinstance(x, Tensor) or is_strided(x) or x.is_mkldnn:
        return x

    dense, layout = x.detach().to_dense(), str(x.layout)
    if "coo" in layout:
        everywhere = public("torch", "ones")(dense.shape[: x.sparse_dim()]).nonzero().t()
        values = dense.reshape(-1, *dense.shape[x.sparse_dim() :]).clone()
        full = public("torch", "sparse_coo_tensor")(everywhere, values, x.shape, is_coalesced=True)
    else:
        batches = dense.ndim - 2 - x.dense_dim()
        block = tuple(x.values().shape[batches + 1 : batches + 3]) if "bs" in layout else None
        ones = public("torch", "ones")(dense.shape)
        full = dense.sparse_mask(ones.to_sparse(layout=x.layout, blocksize=block, dense_dim=x.dense_dim()))
    return full.requires_grad_(x.requires_grad)


def entries(x: Tensor) -> Iterator[tuple[Tensor, tuple, int]]:
    """Each number of a tensor: (what holds it, its index there, its place in the dense tensor)."""
    content = content_of(x)
    places = range(content.numel()) if is_strided(x) or x.is_mkldnn else _places(x)
    for index, place in zip(product(*map(range, content.shape)), places, strict=True):
        yield content, index, place


def _places(x: Tensor) -> list[int]:
    """Where in the dense tensor each entry of a sparse one is."""
    layout, shape = str(x.layout), tuple(x.shape)
    rest = 1
    if "coo" in layout:
        leading = x.sparse_dim()
        for n in shape[leading:]:
            rest *= n
        flat = [0] * x._nnz()
        for d, row in enumerate(x._indices().tolist()):
            flat = [f * shape[d] + i for f, i in zip(flat, row, strict=True)]
        return [f * rest + k for f in flat for k in range(rest)]
    where = public("torch", "arange")(x.numel()).reshape(shape)
    return where.sparse_mask(x.detach()).values().reshape(-1).tolist()


# ---- by differences
def check_same(first: Tensor, second: Tensor, eps: float, index=None) -> None:
    """A function must give tensors of one kind around a point."""
    where = f"on index {index} " if index is not None else ""
    for what in ("shape", "dtype"):
        a, b = getattr(first, what), getattr(second, what)
        if a != b:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}by {eps}, "
                f"but got: {what}s {a} and {b}."
            )


def difference(call: Callable[[], tuple], target: Tensor, step, eps: float, index=None) -> list[Tensor]:
    """(f(x + step) - f(x - step)) / (2 eps), flat, one per output; `target` is changed in place and restored."""
    before = target.clone()
    target.copy_(before - step)
    low = call()
    target.copy_(before + step)
    high = call()
    target.copy_(before)
    result = []
    for a, b in zip(low, high, strict=True):
        check_same(a, b, eps, index)
        result.append(((b - a) / (2 * eps)).detach().reshape(-1))
    return result


def numerical_column(call, target: Tensor, steps: tuple, eps: float, is_complex: bool, index=None) -> list[Tensor]:
    """The derivative along a step, and for a complex input along an imaginary one too, as one complex number."""
    real = difference(call, target, steps[0], eps, index)
    if not is_complex:
        return real
    imaginary = difference(call, target, steps[1] * 1j, eps, index)
    return [a + b * 1j for a, b in zip(real, imaginary, strict=True)]


def call_on(fn: Callable, inputs: tuple, place: int | None = None, replacement=None) -> Callable[[], tuple]:
    """The function on its inputs, one of them replaced; outputs are copies."""

    def call() -> tuple:
        given = inputs if replacement is None else (*inputs[:place], replacement, *inputs[place + 1 :])
        return tuple(o.clone() for o in as_tuple(fn(*given)))

    return call


def numerical_jacobian(fn: Callable, inputs: tuple, place: int, outputs: tuple, eps: float, x=None) -> list[Tensor]:
    """One matrix per output that is a floating-point tensor, with respect to input `place`."""
    x = inputs[place] if x is None else x
    call = call_on(fn, inputs)
    chosen = [k for k, o in enumerate(outputs) if is_inexact(o)]
    result = [_zeros(outputs[k], x.numel(), outputs[k].numel(), x.dtype.is_complex) for k in chosen]
    for content, index, at in entries(x):
        column = numerical_column(call, content[index], (eps, eps), eps, x.is_complex(), index)
        for matrix, k in zip(result, chosen, strict=True):
            matrix[at] = column[k]
    return result


def _zeros(o: Tensor, rows: int, columns: int, is_complex: bool) -> Tensor:
    result = o.new_zeros((rows, columns))
    return result * 1j if is_complex and not o.is_complex() else result


# ---- by backward
def gradients(output: Tensor, inputs: tuple, g: Tensor) -> tuple:
    sources = [inputs[i] for i in wanted(inputs)]
    return grad(output, sources, g, retain_graph=True, allow_unused=True)


def backward_columns(output: Tensor, inputs: tuple, gs: list[Tensor]) -> tuple[list[Tensor], bool, bool]:
    """(per input a matrix with a column per given cotangent, whether sizes are right, whether dtypes are)."""
    sources = [inputs[i] for i in wanted(inputs)]
    result = [content_of(x).new_zeros((x.numel(), len(gs)), layout=output.layout) for x in sources]
    sizes = types = True
    for j, g in enumerate(gs):
        for matrix, x, d in zip(result, sources, gradients(output, inputs, g), strict=True):
            if d is None:
                continue
            sizes, types = sizes and d.shape == x.shape, types and d.dtype == x.dtype
            if d.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            matrix[:, j] = (d if is_strided(d) else d.to_dense()).reshape(-1)
    return result, sizes, types


def unit_cotangents(output: Tensor) -> list[Tensor]:
    result = []
    for j in range(output.numel()):
        g = output.new_zeros(output.numel())
        g[j] = 1.0
        result.append(g.reshape(output.shape))
    return result


def equal_within(first: list[Tensor], second: list[Tensor], atol: float) -> bool:
    return all(not a.numel() or (a - b).abs().max().item() <= atol for a, b in zip(first, second, strict=True))


# ---- by forward mode
def dual_inputs(inputs: tuple, tangents: dict[int, Tensor | None]) -> list:
    """Inputs without history, with tangents where `tangents` has them."""
    result = []
    for i, x in enumerate(inputs):
        x = x.detach() if isinstance(x, Tensor) and x.requires_grad else x
        t = tangents.get(i)
        result.append(x if t is None else forward_ad.make_dual(x, t if t._view_info is None else t.clone()))
    return result


def tangents_of(fn: Callable, inputs: tuple, tangents: dict[int, Tensor | None], check_dtypes: bool = False) -> list:
    """Tangents of the floating-point outputs, None where an output has none."""
    result = []
    for o in filter(is_inexact, as_tuple(fn(*dual_inputs(inputs, tangents)))):
        value, t = forward_ad.unpack_dual(o)
        if check_dtypes and t is not None and value.is_complex() != t.is_complex():
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        result.append((value, t))
    return result


def forward_row(fn: Callable, inputs: tuple, place: int, direction: Tensor, check_dtypes: bool) -> list[Tensor]:
    """Derivatives of all outputs along a direction of one input, flat; the other inputs have zero tangents."""
    with forward_ad.dual_level():
        tangents = {i: zeros_like(inputs[i]) for i in wanted(inputs)} | {place: direction}
        result = tangents_of(fn, inputs, tangents, check_dtypes)
        return [(zeros_like(v) if t is None else t).reshape(-1).detach() for v, t in result]


def forward_jacobian(fn: Callable, inputs: tuple, place: int, check_dtypes: bool = False) -> list[Tensor]:
    """One matrix per output, with respect to input `place`."""
    x = inputs[place]
    rows = [forward_row(fn, inputs, place, g, check_dtypes) for g in unit_cotangents(x.detach())]
    return [stack(list(column)) for column in zip(*rows, strict=True)]
