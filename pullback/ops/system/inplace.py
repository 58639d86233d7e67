"""Writing into tensors: in-place forms, and what must hold before memory is changed.

`run_inplace(op, args)` runs the functional operator and stores the result in the first argument. It refuses, before
anything has changed: results of another shape or of a higher category, memory that holds one element at several
indices, leaves that require grad, and views that may not be written. Then the version goes up and history is rebased.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from sys import getrefcount

import numpy as np

from ...core import dtype as dtypes
from ...core import halves, modes
from ...core import node as nodes
from ...core.arrays import assign
from ...core.device import sparse_coo
from ...core.geometry import Geometry, contiguous_strides, is_dense, may_overlap
from ...core.layers import above
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.promotion import can_cast
from ...core.storage import UntypedStorage, span_bytes, storage_of, unset, window
from ...core.symbolic import likely
from ...core.tensor import (
    CONJ,
    CUDA,
    DISPATCH_SUBCLASS,
    FAKE,
    INFERENCE_TENSOR,
    LAYOUTS,
    META,
    NAMED,
    NEG,
    SPARSE,
    STORED,
    ZERO,
    Tensor,
    stride_of,
)
from ..eager.direct import is_written
from . import overrides
from .execute import execute
from .operator import NONDIFFERENTIABLE, Operator, find
from .placement import write_on_device
from .record import check_saved, note_stack, plan_of

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
    "Please clone() the tensor before performing the operation."
)


def run_inplace(op: Operator, args: tuple, written=None):
    """An in-place operator on canonical arguments: `self` is written and returned; then `written()`, then recording."""

    target = args[0]
    if target._keys & (INFERENCE_TENSOR | ZERO):
        check_inference_write(target)
    functional = op.inplace_of
    mode = ambient.mode
    keys = 0
    for t in op.tensors(args):
        keys |= t._keys
    recording = mode & modes.GRAD and not mode & modes.BELOW_AUTOGRAD
    wanted = bool(recording) and any(requires_grad(t) for t in op.tensors(args))
    if wanted:
        check_writable(target)
    if functional.is_view and not keys & LAYOUTS:  # no element is written: the shape changes
        return op.family.execute(op, args)
    before = None
    recorded = functional
    if wanted and op.differentiable:
        if keys & INFERENCE_TENSOR:
            check_saved(functional, args)
        before = (before_write(functional, target), *[operand_before(a, target) for a in args[1:]])
    elif wanted and requires_grad(target) and functional.vjp is NONDIFFERENTIABLE:
        recorded = find("zero.default")  # what was there is gone, and nothing with a gradient came in its place
        before = (before_write(recorded, target),)
    version = target._counter[0]
    if not (keys & DISPATCH_SUBCLASS or mode & modes.DISPATCH) or not handed_over(op, args):
        if keys or not is_written(functional) or not functional.family.write_plain(functional, args):
            compute_into(op, target, args, keys)
    if keys & NAMED and not mode & modes.UNNAMED:
        above.named_write(op, target, args)
    if written is not None:
        written()
    if before is not None:
        record_write(recorded, target, before, version)
    return target


def check_inference_write(target: Tensor) -> None:
    """Refuse writes to tensors of inference mode outside of it, since nothing counts them, and to those that are zero for ever."""
    if target._keys & ZERO:
        raise RuntimeError(
            "ZeroTensors are immutable. Please use the materialized zero tensor obtained using .clone() if you want a mutable tensor."
        )
    if target._keys & INFERENCE_TENSOR and not ambient.mode & modes.INFERENCE and not ambient.function_levels:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
            "See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def handed_over(op: Operator, args: tuple) -> bool:
    """Whether a dispatch mode or subclass took the write; it then counts as one write, however it was done."""
    version = args[0]._counter[0]
    taken = overrides.call_dispatch(op, args) is not NotImplemented
    if taken and args[0]._counter[0] == version:
        bump(args[0])
    return taken


def compute_into(op: Operator, target: Tensor, args: tuple, keys: int) -> None:
    """Run the functional operator and put its result into `target`: directly where the operator or its family can."""
    if keys & FAKE:
        above.write_fake(op, args)
        return
    functional = op.inplace_of
    if functional.declared.scatters:
        check_scattered(op, target, args)
    direct = functional.declared.write
    if (
        functional.declared.expanded is not None
        and not keys & (CONJ | NEG | LAYOUTS | CUDA | STORED)
        and is_expanded(target)
    ):
        check_operands(op, args)
        functional.declared.expanded(*args)
        bump(target)
        return
    if keys & (CONJ | NEG | LAYOUTS | STORED) or direct is None and functional.family.write is None:
        result = execute(functional, args, keys)
        if functional.declared.scatters and target._keys & STORED and target.dtype is dtypes.bool:
            write_changed(op, target, result)
        elif functional.is_view and target._keys & SPARSE and target._view_info is None:
            reshape_coordinates(op, target, result)
        else:
            store(op, target, result)
        return
    check_overlap(target)
    check_operands(op, args)
    if keys & CUDA:
        written = write_on_device(functional, target, args)
    elif direct is not None:
        direct(*args)
        written = True
    else:
        written = functional.family.write(functional, target, args)
    if written:
        bump(target)
    else:
        store(op, target, execute(functional, args, keys))


def check_scattered(op: Operator, target: Tensor, args: tuple) -> None:
    """Refuse indices and values that lie on what is written. One value to fill places with is read before that, and so is a mask."""
    operands = op.tensors(args)[1:]
    if op.inplace_of.declared.scatters == "indices":
        operands = operands[:1]
    elif len(operands) == 2 and operands[0].dtype.name == "bool" and operands[1]._array.size == 1:
        return
    if any(t is target and t._array.size or overlaps(target, t) for t in operands):
        raise RuntimeError(OVERLAP)


def check_operands(op: Operator, args: tuple) -> None:
    """Refuse operands that share some memory with the written tensor, where the result goes straight into it."""
    functional, tensors = op.inplace_of, op.tensors(args)
    if functional.declared.write is None and functional.family.write is None:
        return
    if any(t._keys & (CONJ | NEG | LAYOUTS) for t in tensors):
        return
    reads_first = functional.declared.reads_first  # a value of one element is read before anything is written
    for t in tensors[1:]:
        if not (reads_first and t._array.size == 1):
            check_partial_overlap(args[0], t)


def overlaps(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have elements in common; False where they have gaps, of which that would be hard to say."""
    if a._memory is None or a._memory is not b._memory or a._keys & META and not a._keys & FAKE:
        return False
    if not all(is_dense(t._array.shape, stride_of(t)) for t in (a, b)):
        return False
    within = (n for s, t in ((a, b), (b, a)) for n in (s._offset < t._offset + t._array.size, s._array.size > 0))
    return all(likely(n, otherwise=False) for n in within)


def _same_view(a: tuple, b: tuple) -> bool:
    """Whether two (offset, shape, stride) are one view; not where data decides it."""
    if len(a[1]) != len(b[1]) or not all(likely(m == n, otherwise=False) for m, n in zip(a[1], b[1], strict=True)):
        return False
    strides = zip(*a[1:], b[2], strict=True)
    return likely(a[0] == b[0], otherwise=False) and all(
        likely(n == 1, otherwise=False) or likely(s == r, otherwise=False) for n, s, r in strides
    )


def check_partial_overlap(target: Tensor, other: Tensor) -> None:
    """Refuse an operand that shares some memory with the written tensor without being the same view of it."""
    if other._memory is None or other._memory is not target._memory or target._keys & META and not target._keys & FAKE:
        return
    ours, theirs = ((t._offset, t._array.shape, stride_of(t)) for t in (target, other))
    if _same_view(ours, theirs):
        return  # the same view: where a size is 1, strides say nothing
    if target._array.size == other._array.size == 1 and likely(ours[0] == theirs[0], otherwise=True):
        return
    if overlaps(target, other):
        raise RuntimeError(OVERLAP)


def before_write(op: Operator, target: Tensor) -> Tensor:
    """The first argument as the rules must see it: its old history, and its old values where a rule reads them."""
    name = op.schema.arguments[0].name
    if name in plan_of(op).saved:
        kept = target.detach().clone()
        kept._autograd = _history(target)
        if kept._autograd is not None and target._autograd.tangents:
            kept._autograd.tangents = {level: t.clone() for level, t in target._autograd.tangents.items()}
        return kept
    return target.shallow(_history(target))


def operand_before(arg, target: Tensor):
    """Another argument as it is before the write: one on the written memory keeps the history it has now."""
    if isinstance(arg, (tuple, list)):
        return type(arg)([operand_before(a, target) for a in arg])
    if not isinstance(arg, Tensor) or arg._counter is not target._counter:
        return arg
    if ambient.saved_hooks:  # what they pack must be the old values
        kept = arg.detach().clone()
        kept._autograd = _history(arg)
    else:
        kept = arg.shallow(_history(arg))
    if arg._autograd is not None and arg._autograd.tangents:
        kept._autograd = nodes.with_tangents(kept._autograd, {k: t.clone() for k, t in arg._autograd.tangents.items()})
    return kept


def _history(target: Tensor):
    edge = nodes.edge_of(target)
    return None if edge is None else nodes.Autograd(True, edge)


def record_write(op: Operator, target: Tensor, args: tuple, version: int) -> None:
    """Hang a node for the write on `target`; `args` and `version` are those before it."""
    stand_in = target.shallow()
    if target._autograd is not None and target._autograd.tangents:
        stand_in._autograd = nodes.with_tangents(None, target._autograd.tangents)
    op.record(stand_in, *args)
    if ambient.mode & modes.ANOMALY:
        note_stack(stand_in)
    if stand_in._autograd is not None:
        node = stand_in._autograd.edge[0]
        if op.declared.inplace_node is not None:
            node.__class__ = _inplace_class(op)
        node.saved = [_as_of(e, target._counter, version) for e in node.saved]
        above.rebase_history(target, stand_in._autograd.edge)
        if target._view_info is not None:
            node.saved = [_of_view(e, target) for e in node.saved]
    elif target._view_info is not None:
        target._view_info.version = target._counter[0]


@cache
def _inplace_class(op: Operator) -> type:
    """The node class of an operator whose in-place form has a node name of its own."""
    return type(nodes.Node)(op.declared.inplace_node, (op.node_class,), {"__slots__": ()})


def _as_of(entry, written: list, version: int):
    """A saved operand on the written memory was saved as it was before: reading it after the write must raise."""
    if entry.__class__ is list:
        return [_as_of(e, written, version) for e in entry]
    if entry.__class__ is tuple and entry and entry[0] is nodes.SAVED and entry[1]._counter is written:
        return (*entry[:2], version, entry[3])
    return entry


def _of_view(entry, target: Tensor):
    """A saved result that was written into a view has the view's history, not the write's alone."""
    if entry.__class__ is tuple and entry and entry[0] is nodes.SAVED_OUTPUT:
        return (*entry[:3], nodes.WeakEdge(target._autograd.edge))
    if entry.__class__ is nodes.SavedTensor and entry.is_output:
        entry.edge = nodes.WeakEdge(target._autograd.edge)
    return entry


def check_writable(target: Tensor) -> None:
    """Refuse in-place writes that autograd cannot follow, before anything is written."""
    if ambient.reverse_levels and requires_grad(target):
        base = target if target._view_info is None else target._view_info.base
        if any(base is t for level in ambient.reverse_levels for t in level.tracked):
            leaf = "leaf" if base is target else "view of a leaf"
            raise RuntimeError(f"a {leaf} Variable that requires grad is being used in an in-place operation.")
    if target._view_info is not None:
        above.check_view(target)
        if requires_grad(target) and target._view_info.base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if target._view_info.base._keys & SPARSE:
            raise NotImplementedError(
                "in-place operations on views of sparse tensors have no gradient: write to the tensor itself, or to a clone() of the view"
            )
    if requires_grad(target) and nodes.current_autograd(target).edge is None:  # of a view, since its base was written
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def bump(target: Tensor) -> None:
    """One more write to this memory."""
    target._counter[0] += 1


def store(op: Operator, target: Tensor, result: Tensor) -> None:
    """Put the numbers of `result` into `target`, or raise and leave it as it was."""
    check_result(op, target, result)
    check_overlap(target)
    write(target, result)


def reshape_coordinates(op: Operator, target: Tensor, result: Tensor) -> None:
    """Another shape of the same elements, in place: of coordinates alone, because others change their layout with it."""
    if target.layout is not sparse_coo:
        name = "".join(part.capitalize() for part in str(target.layout).removeprefix("torch.").split("_"))
        raise RuntimeError(f"torch.{op.name}: in-place transposition is not supported for {name} layout")
    write(target, result)


def write_changed(op: Operator, target: Tensor, result: Tensor) -> None:
    """`store` of truths into the bytes of numbers, of which those that mean the same stay what they are."""
    check_result(op, target, result)
    check_overlap(target)
    places = target._array.view(np.uint8)
    np.copyto(places, result._array.view(np.uint8), where=(places != 0) != result._array)
    bump(target)


def check_result(op: Operator, target: Tensor, result: Tensor) -> None:
    """Refuse a result of another shape than the tensor it is to be written to, or of a higher category."""
    shape = target._array.shape
    if result._array.shape != shape:
        own = op.inplace_of.declared.inplace_words if op.inplace_of is not None else None
        raise RuntimeError((own or bad_shape)(shape, result._array.shape))
    check_cast(result.dtype, target.dtype)


def bad_shape(shape: tuple, result: tuple) -> str:
    return f"output with shape {list(shape)} doesn't match the broadcast shape {list(result)}"


def check_cast(source, target) -> None:
    if not can_cast(source, target):
        raise RuntimeError(
            f"result type {source.scalar_name} can't be cast to the desired output type {target.scalar_name}"
        )


def is_expanded(target: Tensor) -> bool:
    """Whether several elements of a tensor may be one place in memory."""
    return target._memory is not None and may_overlap(target._array.shape, stride_of(target))


def deprecated_on_expanded(name: str, example: str, write: Callable) -> Callable:
    """`expanded=` of an operator that still writes such tensors, element after element, and warns."""

    def expanded(*args) -> None:
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
            f"This also applies to advanced indexing e.g. {example}",
            stacklevel=2,
        )
        write(*args)

    return expanded


def check_overlap(target: Tensor) -> None:
    if is_expanded(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def write(target: Tensor, result: Tensor) -> None:
    """Copy numbers, minding conjugate and negative views, and count the write."""
    if (target._keys | result._keys) & LAYOUTS:
        above.write_layout(target, result)
        return
    if not target._keys & META:
        array, dtype = result._array, result.dtype
        if target._keys & (CONJ | NEG) and (dtype.category < 2 or dtype.category < target.dtype.category):
            # Truths have no negative, that of bytes wraps, and of a real number the imaginary part becomes -0, too.
            array, dtype = cast_array(array, dtype, target.dtype), target.dtype
        if target._keys & CONJ:
            array = array.conjugate()
        if target._keys & NEG:
            array = -array
        assign(target._array, cast_array(array, dtype, target.dtype))
    bump(target)


def cast_array(array, source, target):
    """An array of another dtype, with PyTorch's meaning of each cast."""
    if source is target:
        return array
    if source is dtypes.complex32:
        array = array.astype(np.complex64)
    elif target is dtypes.complex32:
        return array.astype(np.complex64).astype(target.numpy)
    if source.is_complex and not target.is_complex:
        array = array.real if target.name != "bool" else array
    if (
        (source.is_floating_point or source.is_complex)
        and target.category == 1
        and (target.itemsize < 8 or not target.is_signed)
    ):
        return _float_to_narrow_int(array, target)
    if (source in dtypes.reduced_precision or target in dtypes.reduced_precision) and (
        quick := halves.cast(array, target.numpy)
    ) is not None:
        return quick
    return array.astype(target.numpy)


def _float_to_narrow_int(array, target):
    """Floats truncate as they do in PyTorch: to int32, where what lies outside, and NaN, is the lowest number, and from
    there to narrower ones, which wrap; to unsigned ones beyond bytes through int64."""
    if target.name == "uint64":
        return array.astype(target.numpy)
    wide = array.astype("f8") if array.dtype.itemsize < 4 else array
    if target.is_signed or target.itemsize == 1:
        return wide.astype("i4").astype(target.numpy, copy=False)
    return wide.astype("i8").astype(target.numpy)


def _fill_from(storage, dtype, start: int) -> None:
    """Memory that a storage has gained, as new memory is."""
    unset(window(storage, dtype, (storage.length // dtype.itemsize - start,), (1,), start))


def told_mode(event: str, *args) -> None:
    """Tell the innermost dispatch mode, if it is one that traces, that memory is about to change shape or hands."""
    if ambient.mode & modes.DISPATCH:
        getattr(ambient.dispatch_modes[-1], event, _nobody)(*args)


def _nobody(*args) -> None:
    """A mode that does not care."""


# References to a storage that one tensor has alone: the tensor's, that of a variable, and the question's own (until Python counts others).
SOLE = 3 if sys.version_info < (3, 14) else 0


def resize(t: Tensor, shape: tuple, stride: tuple | None = None) -> None:
    """Change a tensor's shape in place; its storage grows if it must, and keeps its contents."""
    negative = next((s for s in shape if s < 0), None)
    if negative is not None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(shape)}")
    stride = stride or contiguous_strides(shape)
    if ambient.mode & modes.CAPTURE:
        ambient.captures[-1].refuse("it resizes a tensor")
    told_mode("resize", t, tuple(shape), tuple(stride))
    if isinstance(t._array, Geometry):
        memory = storage_of(t)
        memory.length = max(memory.length, span_bytes(shape, stride, t._offset, t.dtype.itemsize))
        t._array = Geometry(shape, stride, t.dtype.numpy)
        return
    storage = storage_of(t)
    need = span_bytes(shape, stride, t._offset, t.dtype.itemsize)
    if need > storage.length:
        old = storage.length
        sole = SOLE and getrefcount(storage) == SOLE
        UntypedStorage.of(storage).resize_under(t if sole else None, need)
        if modes.process.deterministic:
            _fill_from(storage, t.dtype, old // t.dtype.itemsize)
    t._array = window(storage, t.dtype, tuple(shape), stride, t._offset)
