"""Where Python values and tensors meet, as operators, so that traces and fake tensors see it happen.

`sym_size` and its kin read metadata; `lift_fresh` is what `torch.tensor(data)` does with the tensor it has just made;
`_local_scalar_dense` is what `item()` reads. With nothing listening neither is called: the value goes straight through.
"""

from __future__ import annotations

from ...core import modes
from ...core.arrays import readable, to_host
from ...core.geometry import is_dense, strides_like
from ...core.modes import ambient
from ...core.tensor import NESTED, Tensor, stride_of
from ..eager.functions import bypassing
from ..family.base import Family
from ..shape import view_inverses
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, NONDIFFERENTIABLE, Operator, Spec
from .conversion import COPY
from .like import like_strides
from .make_lowering import lower_copy


class _Lift(Family):
    """The tensor itself."""

    def execute(self, op: Operator, args: tuple) -> Tensor:
        return args[0]

    run_meta = execute

    def meta(self, op: Operator, args: tuple) -> Spec:
        t = args[0]
        return Spec(t._array.shape, t.dtype, t.stride())


class _Number(Family):
    """The one number in a tensor."""

    def execute(self, op: Operator, args: tuple):
        t = args[0]
        if not t._array.size:
            raise RuntimeError("Empty tensor not supported")
        return readable(to_host(t._array)).reshape(-1)[0].item()

    def run_meta(self, op: Operator, args: tuple):
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")


lift_fresh = Operator(
    "lift_fresh(Tensor(a) self) -> Tensor(a)",
    _Lift(),
    vjp=NONDIFFERENTIABLE,
    lazy_bits=True,
    inverse=view_inverses.same,
)
local_scalar_dense = Operator("_local_scalar_dense(Tensor self) -> Scalar", _Number(), vjp=NONDIFFERENTIABLE)


def _lifted_otherwise(t: Tensor) -> Tensor:
    return dispatch(lift_fresh, (t,))


@bypassing("lift_fresh.default", otherwise=_lifted_otherwise)
def lifted(t: Tensor) -> Tensor:
    """A tensor around an array that no operator made, as what listens sees it."""
    return dispatch(lift_fresh, (t,)) if ambient.mode & modes.DISPATCH else t


lift_fresh_copy = Operator(  # what `lift_fresh` is in a graph without aliases
    "lift_fresh_copy(Tensor self) -> Tensor",
    COPY,
    lower=lower_copy,
    meta=lambda self: Spec(self._array.shape, self.dtype, like_strides(self, None)),
    vjp=lambda g: g,
    jvp=LINEAR,
    cost="cheap",
)


class _Fact(Family):
    """A number of a tensor's metadata, which graphs with symbolic sizes compute."""

    takes_layouts = True

    def execute(self, op: Operator, args: tuple):
        return op.kernel(*args)

    run_meta = execute


_FACT = _Fact()


facts: dict[str, Operator] = {}  # by name, and overload where it has one: what subclasses may be asked for


def _fact(text: str, read, library: str = "aten") -> Operator:
    op = Operator(text, _FACT, kernel=read, vjp=NONDIFFERENTIABLE, lazy_bits=True, cost="cheap", library=library)
    facts[text.partition("(")[0]] = op
    return op


def _fixed_sizes(self: Tensor) -> tuple:
    if self._keys & NESTED:
        raise RuntimeError(
            "directly calling torch.ops.aten.size: ragged sizes are no integers, use torch.ops.aten.sym_size"
        )
    return self.size()


sym_size = _fact("sym_size.int(Tensor self, int dim) -> SymInt", lambda self, dim: self.size(dim))
sym_stride = _fact("sym_stride.int(Tensor self, int dim) -> SymInt", lambda self, dim: self.stride(dim))
sym_storage_offset = _fact("sym_storage_offset(Tensor self) -> SymInt", lambda self: self.storage_offset())
sym_numel = _fact("sym_numel(Tensor self) -> SymInt", lambda self: self.numel())
_fact("sym_size(Tensor self) -> SymInt[]", lambda self: self.size())
_fact("sym_stride(Tensor self) -> SymInt[]", lambda self: self.stride())
_fact("size(Tensor self) -> int[]", lambda self: _fixed_sizes(self))
_fact("stride(Tensor self) -> int[]", lambda self: self.stride())
_fact("dim(Tensor self) -> int", lambda self: self.dim())
_fact("numel(Tensor self) -> int", lambda self: self.numel())
_fact("is_contiguous(Tensor self) -> bool", lambda self: self.is_contiguous())
_fact(
    "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
    lambda self, memory_format: self.is_contiguous(memory_format=memory_format),
)
_fact(
    "sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool",
    lambda self, memory_format: self.is_contiguous(memory_format=memory_format),
)
_fact(
    "is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool",
    lambda self, memory_format: strides_like(self.shape, self.stride(), memory_format),
).own_answer = lambda self, memory_format: strides_like(self._array.shape, stride_of(self), memory_format)
_fact(
    "is_non_overlapping_and_dense(Tensor self) -> bool",
    lambda self: self.is_contiguous() if self._keys & NESTED else is_dense(tuple(self.shape), tuple(self.stride())),
).own_answer = lambda self: is_dense(tuple(self._array.shape), tuple(stride_of(self)))
_fact("is_same_size(Tensor self, Tensor other) -> bool", lambda self, other: self.is_same_size(other))
_fact("device(Tensor a) -> Device", lambda a: a.device, "prim")
_fact("layout(Tensor a) -> Layout", lambda a: a.layout, "prim")
