"""What a nested tensor holds: components of different sizes, packed one after the other.

Two layouts. *Jagged*: one dimension is ragged, `values` is (total, *rest) and `offsets` says where components start
(`lengths`, where given, how long they are). *Strided*: any dimension may differ, `values` is flat and `sizes` has each
component's shape. What always holds: `values` is a plain tensor without history; results of element-wise work share the
`structure` of what they were made from, and only tensors of one structure meet element by element.
"""

from __future__ import annotations

import itertools
import math

from ....core import device as devices
from ....core.tensor import NESTED, Tensor, wrap

_next_number = itertools.count(1).__next__


class RaggedSize:
    """The size of a ragged dimension: a symbol that equals only itself."""

    __slots__ = ("number", "node")
    is_symbolic = is_ragged = True

    def __init__(self):
        self.number = _next_number()
        self.node = self

    def __repr__(self) -> str:
        return f"j{self.number}"

    def __index__(self) -> int:
        raise RuntimeError(f"the ragged size {self!r} is no fixed number")

    __hash__ = object.__hash__


class Structure:
    """How components lie in the packed values, and the sizes that users see."""

    __slots__ = ("offsets", "lengths", "sizes", "ragged", "layout", "max_length", "min_length")

    def __init__(
        self, layout, offsets: Tensor | None = None, lengths: Tensor | None = None, sizes: tuple | None = None
    ):
        self.layout, self.offsets, self.lengths, self.sizes = layout, offsets, lengths, sizes
        self.ragged = RaggedSize()

    @property
    def count(self) -> int:
        return self.offsets.shape[0] - 1 if self.sizes is None else len(self.sizes)

    def spans(self) -> list[tuple[int, int]]:
        """(start, length) of each component along the first dimension of the packed values."""
        if self.sizes is not None:
            ends = list(itertools.accumulate((math.prod(s) for s in self.sizes), initial=0))
            return [(a, b - a) for a, b in itertools.pairwise(ends)]
        starts = self.offsets.tolist()
        if self.lengths is None:
            return [(a, b - a) for a, b in itertools.pairwise(starts)]
        return list(zip(starts, self.lengths.tolist(), strict=False))

    def shape(self, values: Tensor) -> tuple:
        if self.sizes is None:
            return (self.count, self.ragged, *values.array.shape[1:])
        if not self.sizes:
            return (0,)
        return (len(self.sizes), *[s[0] if len(set(s)) == 1 else self.ragged for s in zip(*self.sizes, strict=True)])


class NestedArray:
    """In the place of an array: packed values and their structure."""

    __slots__ = ("values", "structure", "shape")
    base = None
    stride: tuple = ()

    def describe(self, t: Tensor) -> str:
        return describe(t)

    def __init__(self, values: Tensor, structure: Structure):
        self.values, self.structure = values, structure
        self.shape = structure.shape(values)

    @property
    def layout(self):
        return self.structure.layout

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        if self.structure.lengths is None:
            return self.values.array.size
        return int(self.structure.lengths.array.sum()) * math.prod(self.values.array.shape[1:])

    @property
    def dtype(self):
        return self.values.array.dtype

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def strides(self):
        raise NotImplementedError("Cannot access the storage of a nested tensor; use values()")

    @property
    def __array_interface__(self):
        raise RuntimeError("Cannot access data pointer of a nested tensor; use values()")


def wrap_nested(values: Tensor, structure: Structure) -> Tensor:
    return wrap(NestedArray(values, structure), values.dtype, values.device, NESTED)


def is_nested(t) -> bool:
    return isinstance(t, Tensor) and bool(t.keys & NESTED)


def describe(t: Tensor) -> str:
    """The text of a nested tensor."""
    import textwrap

    a = t.array
    if a.layout is devices.jagged:
        tail = (
            ", requires_grad=True"
            if t.requires_grad and t.is_leaf
            else f", grad_fn={t.grad_fn}"
            if t.grad_fn is not None
            else ""
        )
        shape = ", ".join(map(str, a.shape))
        return f"NestedTensor(size=({shape}), offsets={a.structure.offsets}{tail}, "
        f"contiguous={a.structure.lengths is None})"
    from .operators import components

    body = ",\n".join(textwrap.indent(repr(c), "  ") for c in components(t.detach()))
    grad = (
        f", grad_fn=<{type(t.grad_fn).__name__}>"
        if t.grad_fn is not None
        else ", requires_grad=True"
        if t.requires_grad
        else ""
    )
    return f"nested_tensor([\n{body}\n]{grad})" if body else f"nested_tensor([\n\n]{grad})"
