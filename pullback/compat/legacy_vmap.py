"""`torch._vmap_internals`: `torch.vmap` as it was before, with narrower terms.

In: a function that returns a tensor or a tuple of tensors, dimensions counted from the front, `out_dims` a number or one
number per output. What the newer function would take as well (structures, None, negative `in_dims`) raises here: code
that calls this one relies on being told.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..batching.batched import BatchLevel
from ..batching.vmap import batch_inputs, name_of, process_inputs, remove_batch_dim
from ..core.tensor import Tensor
from ..core.tree import tree_flatten


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0) -> Callable:
    """The old `torch.vmap`, with a warning that says where it is now."""
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", category=FutureWarning, stacklevel=2
    )
    return vmap_without_warning(func, in_dims, out_dims)


def vmap_without_warning(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable:
    """The old `torch.vmap`; with `allow_none_pass_through`, outputs that are None stay None."""

    @functools.wraps(func)
    def batched(*args):
        _check_out_dims(func, out_dims)
        _check_in_dims(func, in_dims, args)
        size, dims, flat, spec = process_inputs(in_dims, args, func)
        with BatchLevel(size, "error") as level:
            out = func(*batch_inputs(dims, flat, level, spec))
            _check_outputs(func, out, allow_none_pass_through)
            outputs = out if isinstance(out, tuple) else (out,)
            each = _one_per_output(func, out_dims, len(outputs))
            results = [
                None if o is None else remove_batch_dim(o, level, size, d) for o, d in zip(outputs, each, strict=True)
            ]
        return tuple(results) if isinstance(out, tuple) else results[0]

    return batched


def _check_in_dims(func: Callable, in_dims: Any, args: tuple) -> None:
    """No dimension is counted from the end."""
    named = [in_dims] if isinstance(in_dims, int) else tree_flatten(in_dims)[0]
    negative = next((d for d in named if isinstance(d, int) and d < 0), None)
    tensor = next((a for a in tree_flatten(args)[0] if isinstance(a, Tensor)), None)
    if negative is not None and tensor is not None:
        raise ValueError(
            f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={negative} for some input, but that input is a "
            f"Tensor of dimensionality {tensor.ndim} so expected in_dim to satisfy 0 <= in_dim < {tensor.ndim}."
        )


def _check_out_dims(func: Callable, out_dims: Any) -> None:
    if isinstance(out_dims, int) or isinstance(out_dims, tuple) and all(isinstance(d, int) for d in out_dims):
        return
    raise ValueError(
        f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int representing where in "
        "the outputs the vmapped dimension should appear."
    )


def _check_outputs(func: Callable, out: Any, allow_none: bool) -> None:
    name = name_of(func)
    lead = f"vmap({name}, ...): `{name}` must only return Tensors, got type"
    if not isinstance(out, (Tensor, tuple)):
        raise ValueError(f"{lead} {type(out)} as the return.")
    for i, output in enumerate(out if isinstance(out, tuple) else ()):
        if not isinstance(output, Tensor) and not (allow_none and output is None):
            raise ValueError(f"{lead} {type(output)} for return {i}.")


def _one_per_output(func: Callable, out_dims: Any, count: int) -> tuple[int, ...]:
    if isinstance(out_dims, int):
        return (out_dims,) * count
    if len(out_dims) != count:
        name = name_of(func)
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got {count} outputs) of {name}."
        )
    return out_dims
