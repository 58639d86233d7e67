"""What a nested tensor holds: components of different sizes, packed one after the other.

Two layouts. *Jagged*: one dimension is ragged, at `ragged_idx`; `values` has all dimensions but the batch, components lie one
after the other along the ragged one, and `offsets` says where they start (`lengths`, where given, how long they are).
*Strided*: any dimension may differ, `values` is flat, `sizes` has each component's shape, and `strides` and `starts`, where
components are not packed row by row, say where each lies. What always holds: `values` is a plain tensor without history;
results of element-wise work share the `structure` of what they were made from, and only tensors of one ragged size (or, in
the strided layout, of the same sizes) meet element by element.
"""

from __future__ import annotations

import functools
import itertools
import math
from weakref import WeakValueDictionary

from ....core import device as devices
from ....core.geometry import contiguous_strides
from ....core.tensor import NESTED, Tensor, stride_of, wrap

_NOTHING_IN_COMMON = (
    "NestedTensorImpl doesn't support {0}: components of the strided layout have {0} of their own, see {1}"
)
_next_number = itertools.count(1).__next__


class RaggedSize:
    """The size of a ragged dimension, or a multiple of it: a symbol that equals only itself."""

    __slots__ = ("number", "factor", "node")
    is_symbolic = is_ragged = True

    def __init__(self, number: int | None = None, factor: int = 1):
        self.number, self.factor = _next_number() if number is None else number, factor
        self.node = self

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __index__(self) -> int:
        raise RuntimeError(f"the ragged size {self!r} is no fixed number")

    def __mul__(self, other: int) -> RaggedSize:
        return RaggedSize(self.number, self.factor * other) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other) -> bool:
        return isinstance(other, RaggedSize) and (self.number, self.factor) == (other.number, other.factor)

    def __hash__(self) -> int:
        return hash((self.number, self.factor))

    def __ge__(self, other) -> bool:
        return _at_least(self, other)

    def __gt__(self, other) -> bool:
        return not _at_least(other, self)

    def __le__(self, other) -> bool:
        return _at_least(other, self)

    def __lt__(self, other) -> bool:
        return not _at_least(self, other)


def _at_least(a, b) -> bool:
    """Whether a >= b: multiples of one ragged size compare, and all of them are at least two; nothing else is known."""
    if isinstance(a, RaggedSize) and isinstance(b, RaggedSize):
        if a.number == b.number:
            return a.factor >= b.factor
    elif isinstance(b, int) and b <= 2:
        return True
    elif isinstance(a, int) and a < 2:
        return False
    raise ValueError(f"{a!r} and {b!r} cannot be compared: the sizes of ragged dimensions are not known")


@functools.lru_cache(4096)
def _irregular(sizes: tuple) -> RaggedSize:
    """The size of the dimensions in which components of these sizes differ."""
    return RaggedSize()


# by the identities of offsets and lengths, which a structure keeps alive: tensors made with them later have that structure
_structures: WeakValueDictionary = WeakValueDictionary()


def structure_of(offsets: Tensor, lengths: Tensor | None = None) -> Structure:
    """The structure of offsets: tensors made with the same offsets (and lengths) meet element by element."""
    found = _structures.get((id(offsets), id(lengths)))
    return Structure(devices.jagged, offsets=offsets, lengths=lengths) if found is None else found


class Structure:
    """How components lie in the packed values, and the sizes that users see."""

    __slots__ = (
        "offsets",
        "lengths",
        "sizes",
        "strides",
        "starts",
        "ragged",
        "layout",
        "extremes",
        "_packed",
        "__weakref__",
    )

    def __init__(self, layout, *, offsets=None, lengths=None, sizes=None, strides=None, starts=None, ragged=None):
        self.layout, self.offsets, self.lengths = layout, offsets, lengths
        self.sizes, self.strides, self.starts = sizes, strides, starts
        self.ragged = ragged or (RaggedSize() if sizes is None else _irregular(sizes))
        self.extremes: dict = {}  # min_seqlen, max_seqlen, where they are known
        self._packed: Structure | None = None
        if offsets is not None:
            _structures[id(offsets), id(lengths)] = self

    @property
    def count(self) -> int:
        return self.offsets.shape[0] - 1 if self.sizes is None else len(self.sizes)

    @property
    def has_holes(self) -> bool:
        """Whether components are anything but packed one after the other, each row by row."""
        return self.lengths is not None or self.strides is not None

    @property
    def is_packed(self) -> bool:
        """Whether nothing lies between components, though values may go on before the first and after the last."""
        if self.lengths is None:
            return self.strides is None
        spans = self.spans()
        return all(start + length == after for (start, length), (after, _) in itertools.pairwise(spans))

    def spans(self) -> list[tuple[int, int]]:
        """(start, length) of each component along the ragged dimension of the values."""
        if self.sizes is not None:
            ends = list(itertools.accumulate((math.prod(s) for s in self.sizes), initial=0))
            return [(a, b - a) for a, b in itertools.pairwise(ends)]
        starts = self.offsets.tolist()
        if self.lengths is None:
            return [(a, b - a) for a, b in itertools.pairwise(starts)]
        return list(zip(starts, self.lengths.tolist(), strict=False))

    def places(self) -> tuple[tuple, tuple]:
        """(strides, starts) of the components of the strided layout."""
        if self.strides is not None:
            return self.strides, self.starts
        return tuple(tuple(contiguous_strides(s)) for s in self.sizes), tuple(start for start, _ in self.spans())

    def component_lengths(self) -> list[int]:
        return [length for _, length in self.spans()]

    def packed(self) -> Structure:
        """The same sizes without holes."""
        if not self.has_holes:
            return self
        if self._packed is None:
            from ...make.construct import tensor

            if self.sizes is not None:
                self._packed = Structure(self.layout, sizes=self.sizes)
            else:
                running = list(itertools.accumulate(self.component_lengths(), initial=0))
                offsets = tensor(running, dtype=self.offsets.dtype)
                self._packed = Structure(self.layout, offsets=offsets, ragged=self.ragged)
        return self._packed

    def extreme(self, which: str) -> int:
        """The shortest ("min_seqlen") or the longest ("max_seqlen") component along the ragged dimension."""
        if which not in self.extremes:
            lengths = self.component_lengths() or [0]
            self.extremes[which] = min(lengths) if which == "min_seqlen" else max(lengths)
        return self.extremes[which]

    def shape(self, values: Tensor, ragged_idx: int) -> tuple:
        if self.sizes is None:
            inner = values._array.shape
            return (self.count, *inner[: ragged_idx - 1], self.ragged, *inner[ragged_idx:])
        if not self.sizes:
            return (0,)
        return (len(self.sizes), *[s[0] if len(set(s)) == 1 else self.ragged for s in zip(*self.sizes, strict=True)])


class NestedArray:
    """In the place of an array: packed values and their structure."""

    __slots__ = ("values", "structure", "ragged_idx", "shape")
    base = None

    def describe(self, t: Tensor) -> str:
        return describe(t)

    def __init__(self, values: Tensor, structure: Structure, ragged_idx: int = 1):
        self.values, self.structure, self.ragged_idx = values, structure, ragged_idx
        self.shape = structure.shape(values, ragged_idx)

    @property
    def stride(self) -> tuple:
        """Of jagged tensors: that of the values, behind the size of one component."""
        if self.structure.sizes is not None:
            return contiguous_strides(tuple(1 if isinstance(s, RaggedSize) else s for s in self.shape))
        rest = math.prod(s for s in self.shape[1:] if not isinstance(s, RaggedSize))
        return (self.structure.ragged * rest, *stride_of(self.values))

    @property
    def common_sizes(self) -> tuple:
        """What `size()` gives: in the strided layout, where any dimension may differ, there is no such thing."""
        if self.structure.sizes is not None:
            raise RuntimeError(_NOTHING_IN_COMMON.format("sizes", "_nested_tensor_size()"))
        return self.shape

    def common_size(self, dim: int):
        """The size of one dimension: in the strided layout, of one in which all components agree."""
        if self.structure.sizes is not None and isinstance(self.shape[dim], RaggedSize):
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return self.shape[dim]

    @property
    def common_strides(self) -> tuple:
        if self.structure.sizes is not None:
            raise RuntimeError(_NOTHING_IN_COMMON.format("strides", "_nested_tensor_strides()"))
        return self.stride

    @property
    def c_contiguous(self) -> bool:
        """Whether components lie one after the other, each row by row."""
        return self.structure.is_packed and self.values.is_contiguous()

    @property
    def layout(self):
        return self.structure.layout

    @property
    def form(self) -> tuple[Structure, int, tuple]:
        """All but the values: structure, place of the ragged dimension, shape of the values."""
        return self.structure, self.ragged_idx, self.values._array.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        s = self.structure
        if s.sizes is not None:
            return sum(math.prod(size) for size in s.sizes)
        if s.lengths is None:
            return self.values._array.size
        inner = self.values._array.shape
        return int(s.lengths._array.sum()) * math.prod(inner[: self.ragged_idx - 1] + inner[self.ragged_idx :])

    @property
    def has_strangers(self) -> bool:
        """Whether the values of the strided layout have elements that are no component's, with which nothing is computed."""
        return self.structure.strides is not None and self.size != self.values._array.size

    @property
    def dtype(self):
        return self.values._array.dtype

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def strides(self):
        raise NotImplementedError("Cannot access the storage of a nested tensor; use values()")

    @property
    def __array_interface__(self) -> dict:
        return self.values._array.__array_interface__


def wrap_nested(values: Tensor, structure: Structure, ragged_idx: int = 1) -> Tensor:
    """A nested tensor without history on packed values: a write to either is a write to both."""
    t = wrap(NestedArray(values, structure, ragged_idx), values.dtype, values.device, NESTED)
    t._counter, t._offset = values._counter, values._offset
    return t


def is_nested(t) -> bool:
    return isinstance(t, Tensor) and bool(t._keys & NESTED)


def is_jagged(t: Tensor) -> bool:
    return t._array.structure.sizes is None


def describe(t: Tensor) -> str:
    """The text of a nested tensor."""
    import textwrap

    a = t._array
    if a.layout is devices.jagged:
        leaf = ", requires_grad=True" if t.requires_grad and t.is_leaf else ""
        tail = f", grad_fn={t.grad_fn}" if t.grad_fn is not None else leaf
        shape = ", ".join(map(str, a.shape))
        return (
            f"NestedTensor(size=({shape}), offsets={a.structure.offsets}{tail}, contiguous={not a.structure.has_holes})"
        )
    from .operators import components

    body = ",\n".join(textwrap.indent(repr(c), "  ") for c in components(t.detach()))
    leaf = ", requires_grad=True" if t.requires_grad else ""
    grad = f", grad_fn=<{type(t.grad_fn).__name__}>" if t.grad_fn is not None else leaf
    return f"nested_tensor([\n{body}\n]{grad})" if body else f"nested_tensor([\n\n]{grad})"
