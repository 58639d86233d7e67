"""The inverse of each view: the new value of what was viewed, from the new value of the view.

`INVERSES[op](whole, part, args, index)`: `whole` is the value before, `part` the new value of the view that
`op(whole, *args)` (its result `index`, for operators with several) shows.
"""

from __future__ import annotations

from ..core.geometry import contiguous_strides, wrap_dim
from ..core.tensor import Tensor, stride_of
from ..ops.system.dispatch import dispatch
from ..ops.system.operator import Operator, find


def call(name: str, *args) -> Tensor:
    """Run an operator by its full name, as the modes in force see it."""
    op = find(name)
    return dispatch(op, op.convert(op.bind(args, {})))


def copy_into(whole: Tensor, part: Tensor) -> Tensor:
    """`part` in the layout of `whole`."""
    return call("copy.default", whole, part)


def reshaped(part: Tensor, shape: tuple) -> Tensor:
    """`part` in another shape: a view where the layout allows one."""
    from ..core.geometry import view_strides
    from ..core.tensor import stride_of

    if tuple(part.array.shape) == tuple(shape):
        return part
    if view_strides(part.array.shape, stride_of(part), shape) is not None:
        return call("view.default", part, shape)
    return call("view.default", call("clone.default", part, _CONTIGUOUS), shape)


def _contiguous():
    from ..core.device import contiguous_format

    return contiguous_format


_CONTIGUOUS = _contiguous()


def _same(whole, part, args, index):
    return part


def _shape(whole, part, args, index):
    return reshaped(part, tuple(whole.array.shape))


def _transpose(whole, part, args, index):
    return call("transpose.int", part, args[0], args[1])


def _permute(whole, part, args, index):
    n = len(whole.array.shape)
    dims = [wrap_dim(d, n) for d in args[0]]
    return call("permute.default", part, [dims.index(d) for d in range(n)])


def _unsqueeze(whole, part, args, index):
    return call("squeeze.dim", part, args[0])


def _select(whole, part, args, index):
    return call("select_scatter.default", whole, part, *args)


def _slice(whole, part, args, index):
    return call("slice_scatter.default", whole, part, *args)


def _diagonal(whole, part, args, index):
    return call("diagonal_scatter.default", whole, part, *args)


def _unbind(whole, part, args, index):
    return call("select_scatter.default", whole, part, args[0] if args else 0, index)


def _split(whole, part, args, index):
    size, dim = args[0], args[1] if len(args) > 1 else 0
    start = size * index
    return call(
        "slice_scatter.default", whole, part, dim, start, start + part.array.shape[wrap_dim(dim, whole.ndim)], 1
    )


def _split_sizes(whole, part, args, index):
    sizes, dim = args[0], args[1] if len(args) > 1 else 0
    start = sum(sizes[:index])
    return call("slice_scatter.default", whole, part, dim, start, start + sizes[index], 1)


def _expand(whole, part, args, index):
    """Reached only where nothing was repeated: sizes of one in front, or no element at all."""
    return reshaped(part, tuple(whole.array.shape)) if part.array.size == whole.array.size else whole


def _conj(whole, part, args, index):
    return call("conj_physical.default", part)


def _neg(whole, part, args, index):
    return call("neg.default", part)


def _real(whole, part, args, index):
    if tuple(stride_of(part)) != contiguous_strides(part.array.shape):  # dimensions of size 1 may have odd strides
        part = call("clone.default", part, _CONTIGUOUS)
    return call("view_as_complex.default", part)


def _complex(whole, part, args, index):
    return call("view_as_real.default", part)


def _bits(whole, part, args, index):
    return call("view.dtype", part, whole.dtype)


_BY_NAME = {
    "alias.default": _same, "detach.default": _same, "lift_fresh.default": _same,
    "view.default": _shape, "_reshape_alias.default": _shape, "squeeze.default": _shape, "squeeze.dim": _shape,
    "squeeze.dims": _shape, "transpose.int": _transpose, "permute.default": _permute, "unsqueeze.default": _unsqueeze,
    "t.default": lambda whole, part, args, index: call("t.default", part),
    "select.int": _select, "slice.Tensor": _slice, "diagonal.default": _diagonal, "unbind.int": _unbind,
    "split.Tensor": _split, "split_with_sizes.default": _split_sizes, "expand.default": _expand,
    "_conj.default": _conj, "_neg_view.default": _neg, "view_as_real.default": _real,
    "view_as_complex.default": _complex, "view.dtype": _bits,
}  # fmt: skip
INVERSES: dict[Operator, object] = {find(name): rule for name, rule in _BY_NAME.items()}
RETYPING = frozenset(
    find(name)
    for name in ("_conj.default", "_neg_view.default", "view_as_real.default", "view_as_complex.default", "view.dtype")
)  # views whose elements are others than those of what they show
