"""Operators that write arguments which may be views of one base, as one pure call.

`auto_functionalized_v2(op, _all_bases=[...], **arguments)` copies the bases, makes the written arguments again as views of
the copies, runs the operator on them, and gives (results..., copies...). Where a written argument `x` lies is said by
`_x_base_index` (None: the argument is None) and, where it is not the whole base, by `_x_slice_dim`, `_x_slice_start`,
`_x_slice_end`, or by `_x_size`, `_x_stride`, `_x_storage_offset`; of a list `xs`, by `_xs_length` and `_xs_0_...`.
Functionalization makes the copies the values of the bases, so whatever shares their memory sees the write.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor, stride_of
from ...ops.system.operator import Operator
from .auto_functionalized import in_order, is_omitted, own_results, written_arguments
from .base import HigherOrderOperator


class AutoFunctionalizedV2(HigherOrderOperator):
    """`torch.ops.higher_order.auto_functionalized_v2(op, _all_bases=bases, **arguments)`."""

    def __init__(self) -> None:
        super().__init__("auto_functionalized_v2", cacheable=True)

    def __call__(self, _mutable_op: Operator, /, **kwargs):
        if not written_arguments(_mutable_op):
            raise AssertionError(f"Cannot auto-functionalize op {_mutable_op}")
        return super().__call__(_mutable_op, **kwargs)

    def plain(self, _mutable_op: Operator, *, _all_bases: list, **kwargs):
        copies = [base.clone() for base in _all_bases]
        names = written_arguments(_mutable_op)
        written = {name: written_argument(name, kwargs, copies) for name in names if is_given(name, kwargs)}
        known = _mutable_op.schema.index
        out = _mutable_op(**{k: v for k, v in kwargs.items() if k in known}, **written)
        return (*own_results(_mutable_op, out, list(written.values())), *copies)

    def autograd(self, _mutable_op: Operator, **kwargs):
        raise RuntimeError(f"Autograd not implemented for {self} of {_mutable_op}")


def is_given(name: str, fields: dict[str, Any]) -> bool:
    """Whether the fields of a call say where a written argument lies."""
    return f"_{name}_base_index" in fields or f"_{name}_length" in fields


def written_argument(name: str, fields: dict[str, Any], bases: list[Tensor]):
    """A written argument, made again of the bases."""
    length = fields.get(f"_{name}_length")
    if length is not None:
        return [written_argument(f"{name}_{i}", fields, bases) for i in range(length)]
    index = fields[f"_{name}_base_index"]
    if index is None:
        return None
    base = bases[index]
    if f"_{name}_slice_dim" in fields:
        dim, start, end = (fields[f"_{name}_slice_{part}"] for part in ("dim", "start", "end"))
        return base.narrow(dim, start, end - start)
    if f"_{name}_size" in fields:
        size, stride, offset = (fields[f"_{name}_{part}"] for part in ("size", "stride", "storage_offset"))
        return base.as_strided(size, stride, offset + base.storage_offset())
    return base


class Bases:
    """The bases of the arguments that one call writes."""

    def __init__(self, mode):
        self.mode = mode
        self.tensors: list[Tensor] = []

    def fields(self, name: str, value) -> dict[str, Any]:
        """Where a written argument lies."""
        if isinstance(value, (tuple, list)):
            inner = [self.fields(f"{name}_{i}", v) for i, v in enumerate(value)]
            return {f"_{name}_length": len(inner), **{k: v for part in inner for k, v in part.items()}}
        if value is None:
            return {f"_{name}_base_index": None}
        base = self.mode.base(value)
        place = {f"_{name}_base_index": self._index(base)}
        return place | {f"_{name}_{part}": number for part, number in within(value, base).items()}

    def _index(self, base: Tensor) -> int:
        for i, known in enumerate(self.tensors):
            if known is base:
                return i
            if known._memory is base._memory:
                raise NotImplementedError(
                    "an operator writes to arguments that share memory, one of them seen as another dtype, or conjugated: "
                    "this cannot be functionalized"
                )
        self.tensors.append(base)
        return len(self.tensors) - 1


def within(t: Tensor, base: Tensor) -> dict[str, Any]:
    """Where a tensor lies in its base: nothing where it is all of it."""
    shape, stride, offset = tuple(t._array.shape), tuple(stride_of(t)), t._offset - base._offset
    whole, steps = tuple(base._array.shape), tuple(stride_of(base))
    if shape == whole and stride == steps:
        return {}
    differing = [d for d in range(len(whole)) if shape[d] != whole[d]] if len(shape) == len(whole) else []
    if len(differing) == 1 and stride == steps and steps[differing[0]] and offset % steps[differing[0]] == 0:
        (dim,) = differing
        start = offset // steps[dim]
        return {"slice_dim": dim, "slice_start": start, "slice_end": start + shape[dim]}
    return {"size": shape, "stride": stride, "storage_offset": offset}


auto_functionalized_v2 = AutoFunctionalizedV2()


def run(mode, op: Operator, args: tuple):
    """Under functionalization: run a writing operator on values, and make what it wrote the values of the bases."""
    given = dict(zip([a.name for a in op.schema.arguments], args, strict=False))
    names, bases = [n for n in written_arguments(op) if n in given], Bases(mode)
    fields = {k: v for n in names for k, v in bases.fields(n, given[n]).items()}
    values = {n: mode.argument(v) for n, v in given.items() if n not in names and not is_omitted(op, n, v)}
    out = auto_functionalized_v2(op, **values, **fields, _all_bases=[mode.value(b) for b in bases.tensors])
    count = len(out) - len(bases.tensors)
    for base, new in zip(bases.tensors, out[count:], strict=True):
        mode.assign(base, new)
    return in_order(op, given, out[:count])
