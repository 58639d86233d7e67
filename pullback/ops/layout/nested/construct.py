"""Nested tensors from lists, from packed values, from parts of a dense tensor; and back to a padded dense tensor.

Comes in: tensors (or lists of numbers). Goes out: a nested tensor; `as_nested_tensor`, `nested_tensor_from_jagged`
and `narrow` keep history, `nested_tensor` makes a leaf.
"""

from __future__ import annotations

import math

from ....core import device as devices
from ....core.tensor import Tensor, set_requires_grad
from ...make.construct import tensor as make_tensor
from ...system.operator import exports
from .layouts import Structure, is_jagged, is_nested, structure_of
from .operators import components, get_values, nest, nest_on, nest_view

_JAGGED_ONLY = (
    "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
    "allows for a single "
    "ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
)


def pack(parts: list[Tensor], layout, ragged_idx: int | None = None) -> Tensor:
    """A nested tensor of components, with their history."""
    if layout is devices.jagged:
        return _pack_jagged(parts, ragged_idx)
    for i, p in enumerate(parts):
        before = parts[max(i - 1, 0)]
        if p.ndim != before.ndim:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {p.ndim} for Tensor at index {i} and dimension {before.ndim} for Tensor at index {i - 1}."
            )
    structure = Structure(devices.strided, sizes=tuple(tuple(p.shape) for p in parts))
    values = exports["torch"]["cat"]([p.reshape(-1) for p in parts]) if parts else make_tensor([])
    return nest(values, structure)


def _pack_jagged(parts: list[Tensor], ragged_idx: int | None) -> Tensor:
    """Components that differ in one dimension at most; where they do not differ, the first is the ragged one."""
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    first = parts[0]
    for what, have in (("dtype", lambda p: p.dtype), ("device", lambda p: p.device), ("dim", lambda p: p.ndim)):
        if any(have(p) != have(first) for p in parts):
            where = "be on" if what == "device" else "have"
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {where} the same {what}")
    if not first.ndim:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    differing = [d for d in range(first.ndim) if any(p.shape[d] != first.shape[d] for p in parts)]
    if len(differing) > 1 or ragged_idx is not None and differing and differing[0] != ragged_idx - 1:
        raise RuntimeError(_JAGGED_ONLY)
    along = differing[0] if differing else (ragged_idx or 1) - 1
    lengths = [p.shape[along] for p in parts]
    structure = Structure(devices.jagged, offsets=make_tensor(_running(lengths), device=first.device))
    structure.extremes.update(min_seqlen=min(lengths), max_seqlen=max(lengths))
    return nest(exports["torch"]["cat"](list(parts), along), structure, along + 1)


def _running(lengths: list[int]) -> list[int]:
    out = [0]
    for n in lengths:
        out.append(out[-1] + n)
    return out


def _layout(layout):
    if layout not in (None, devices.strided, devices.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensor: {layout}")
    return devices.strided if layout is None else layout


def _cast(t: Tensor, dtype, device) -> Tensor:
    return t if dtype is None and device is None else t.to(dtype=dtype or t.dtype, device=device or t.device)


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A nested tensor without history, from a list of tensors or of nested lists of numbers."""
    layout = _layout(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [
        _cast(t.detach(), dtype, device) if isinstance(t, Tensor) else make_tensor(t, dtype=dtype, device=device)
        for t in tensor_list
    ]
    if parts and dtype is None and layout is devices.strided:
        parts = [p.to(parts[0].dtype) for p in parts]
    result = pack(parts, layout)
    if requires_grad:
        set_requires_grad(result, True)
    return result


def as_nested_tensor(ts, dtype=None, device=None, layout=None) -> Tensor:
    """A nested tensor of components, through which gradients reach them."""
    layout = _layout(layout)
    if is_nested(ts):
        if layout is not ts.layout:
            raise RuntimeError(f"Converting between nested tensor layouts is not supported: {ts.layout} to {layout}")
        return _cast(ts, dtype, device)
    if isinstance(ts, Tensor):
        if ts.ndim < 2:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
        return _rows_of(_cast(ts, dtype, device), layout)
    elif isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts):
        parts = list(ts)
    else:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    return pack([_cast(p, dtype, device) for p in parts], layout)


def _rows_of(t: Tensor, layout) -> Tensor:
    """A dense tensor as components of one length: its own memory where that lies row by row."""
    count, length = t.shape[0], t.shape[1]
    if layout is not devices.jagged:
        return nest_view(t.reshape(-1), Structure(layout, sizes=(tuple(t.shape[1:]),) * count))
    offsets = make_tensor([i * length for i in range(count + 1)], device=t.device)
    structure = Structure(devices.jagged, offsets=offsets)
    structure.extremes.update(min_seqlen=length, max_seqlen=length)
    return nest_view(t.reshape(count * length, *t.shape[2:]), structure)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A jagged nested tensor on packed values."""
    if not isinstance(values, Tensor) and hasattr(values, "tracer"):
        raise RuntimeError(
            "torch.nested.nested_tensor_from_jagged does not support tracing with fx.symbolic_trace: it reads offsets. "
            "Use fx.wrap to wrap the function that calls it."
        )
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = make_tensor(_running(lengths.tolist()), device=values.device), None
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    if offsets.ndim != 1 or offsets.shape[0] < 2:
        raise RuntimeError(
            f"nested_tensor_from_jagged(): offsets must be 1-d with at least 2 elements, got shape {list(offsets.shape)}"
        )
    structure = structure_of(offsets, lengths)
    known = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    structure.extremes.update({k: v for k, v in known.items() if v is not None})
    return nest_on(values, structure, jagged_dim or 1)


def narrow(tensor: Tensor, dim: int, start, length, layout=devices.strided) -> Tensor:
    """Part of each row of a dense tensor: component i is tensor[i, start[i] : start[i] + length[i]]."""
    if dim != 1:
        raise RuntimeError(f"narrow() only supports dim=1 for nested tensors, got {dim}")
    rows, width = tensor.shape[0], tensor.shape[1]
    starts = start.tolist() if isinstance(start, Tensor) else [start] * rows
    lengths = length.tolist() if isinstance(length, Tensor) else [length] * rows
    if any(a < 0 or n < 0 or a + n > width for a, n in zip(starts, lengths, strict=True)):
        raise RuntimeError(f"narrow(): start and length must lie inside dimension 1 of size {width}")
    if layout is not devices.jagged:
        return pack(
            [tensor[i].narrow(0, a, n) for i, (a, n) in enumerate(zip(starts, lengths, strict=True))], _layout(layout)
        )
    offsets = [i * width + a for i, a in enumerate(starts)]
    offsets.append(offsets[-1] + lengths[-1])
    values = tensor.reshape(rows * width, *tensor.shape[2:])
    return nested_tensor_from_jagged(values, make_tensor(offsets), make_tensor(lengths))


def to_padded_tensor(input: Tensor, padding: float, output_size=None, out=None) -> Tensor:
    """A dense tensor of all components, filled up with `padding`."""
    if not is_nested(input):
        raise RuntimeError("to_padded_tensor() expects a nested tensor")
    if is_jagged(input) and input._array.structure.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    parts = components(input)
    if not parts:
        return get_values(input)
    if not is_jagged(input):
        _check_padding(input, parts)
    largest = [max(p.shape[d] for p in parts) for d in range(parts[0].ndim)]
    if output_size is not None:
        if (
            len(output_size) != len(largest) + 1
            or output_size[0] != len(parts)
            or any(o < n for o, n in zip(output_size[1:], largest, strict=True))
        ):
            raise RuntimeError(
                f"Value in output_size is less than NestedTensor padded size. Truncation is not supported: got "
                f"{list(output_size)}, padded size is {[len(parts), *largest]}"
            )
        largest = list(output_size[1:])
    return exports["torch"]["stack"]([_padded(p, largest, padding) for p in parts])


def _check_padding(input: Tensor, parts: list[Tensor]) -> None:
    if not any(p.numel() for p in parts):
        raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
    if not input.is_contiguous():
        raise RuntimeError("for now to_padded_tensor only supports contiguous nested tensor")


def _padded(p: Tensor, size: list[int], padding: float) -> Tensor:
    if list(p.shape) == size:
        return p
    widths = [w for have, want in zip(reversed(p.shape), reversed(size), strict=True) for w in (0, want - have)]
    return exports["nn.functional"]["pad"](p, widths, value=padding) if math.prod(size) else p.new_zeros(size)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """Rows of a dense tensor where the mask is set, as a jagged nested tensor."""
    if tensor.layout is not devices.strided or is_nested(tensor):
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, got {tensor.layout}")
    mask = mask.expand(tensor.shape)
    lengths = mask.sum(-1).reshape(-1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=lengths)
