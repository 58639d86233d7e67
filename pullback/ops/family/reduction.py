"""Reductions: some dimensions go away (or become 1).

    sum = reduction("sum.dim_IntList(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        kernel=lambda xp, a, axis, keepdims: xp.add.reduce(a, axis=axis, keepdims=keepdims), result=INT_TO_LONG, ...)

`kernel(xp, a, axis, keepdims, *rest)` gets a tuple of wrapped axes (all of them for `dim=None` or `dim=[]`) and the remaining
arguments except `dtype`; `empty="keep"` makes `dim=[]` mean none of them. `result(dtype)` maps the input's dtype to the result's; the kernel works in the result's dtype
unless `cast=False` (float16 and bfloat16 in float32).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core import dtype as dtypes
from ...core.arrays import LARGE, library, run_chunks
from ...core.dtype import dtype
from ...core.geometry import wrap_dims
from ...core.tensor import Tensor, wrap
from ...core.threads import thread_count
from ..system.calls import export_operator
from ..system.declaration import Declaration
from ..system.inplace import cast_array
from ..system.operator import Operator, Spec
from .base import Family, device_of


def INT_TO_LONG(d: dtype) -> dtype:
    """Sums and products of integers and booleans are int64."""
    return dtypes.int64 if d.category <= 1 else d


def same_dtype(d: dtype) -> dtype:
    """The result has the input's dtype."""
    return d


class ReductionDeclaration(Declaration):
    """What a reduction may declare."""

    kind = "a reduction"
    contradictions = {"meta": {"kernel": "the shape rule of a reduction follows from its dimensions"}}

    result: Callable[[dtype], dtype] = same_dtype
    """`result(dtype)`: the dtype of the result from the input's."""
    cast: bool = True
    """Whether the kernel works in the result's dtype."""
    empty: str | None = None
    """`"keep"`: `dim=[]` means no dimension; without it, all."""
    combine: str | None = None
    """The ufunc that joins partial results, where large inputs may be cut into pieces."""
    cost: str = "cheap"


class Reduction(Family):
    """See the module's docstring."""

    declares = ReductionDeclaration
    direct = "family"
    computes_in_dtype_of_out = True

    def bind(self, op: Operator, args: tuple):
        """(self, axes, keepdim, dtype of the result, remaining arguments)."""
        dim_at, keepdim_at, dtype_at, rest = op.__dict__.get("layout") or _layout(op)
        t = args[0]
        dim = None if dim_at is None else args[dim_at]
        if dim == () and op.declared.empty == "keep":
            axes = ()
        else:
            axes = wrap_dims(None if dim == () else dim, t._array.ndim)
        wanted = None if dtype_at is None else args[dtype_at]
        result = wanted or op.declared.result(t.dtype)
        return t, axes, keepdim_at is not None and args[keepdim_at], result, tuple([args[i] for i in rest])

    def execute(self, op: Operator, args: tuple):
        check = op.declared.check
        if check is not None:
            check(*args)
        t, axes, keepdim, result, rest = self.bind(op, args)
        device = t.device if len(op.tensor_positions) == 1 else device_of(op, args)
        xp = library(device)
        working = dtypes.float32 if result in dtypes.reduced_precision else result
        array = t._array
        if op.declared.cast:
            array = cast_array(array, t.dtype, working)
        elif array.dtype.itemsize == 2 and t.dtype.is_floating_point:
            array = array.astype(np.float32)
        output = self._reduce(op, xp, array, axes, keepdim, rest)
        output = output if isinstance(output, np.ndarray) or xp is not np else np.asarray(output)
        if output.dtype != result.numpy:
            output = output.astype(result.numpy, order="C")
        elif output.base is not None or output is array or array.ndim > 1 and not array.flags.c_contiguous:  # row-major
            output = output.copy()
        return wrap(output, result, device)

    def _reduce(self, op: Operator, xp, array, axes: tuple, keepdim: bool, rest: tuple):
        combine = op.declared.combine  # a ufunc name: partial results of pieces may be joined with it
        n = thread_count()
        if combine and array.size >= LARGE and n > 1 and axes and xp is np:
            keep = [d for d in range(array.ndim) if d not in axes]
            if keep and array.shape[keep[0]] >= n:  # pieces of the result
                return self._split_kept(op, array, axes, keepdim, rest, keep[0], n)
            if not keep and array.flags.c_contiguous:
                flat = array.reshape(-1)
                step = -(-flat.size // n)
                parts = run_chunks(
                    [
                        lambda s=s: op.kernel(np, flat[s : s + step], (0,), False, *rest)
                        for s in range(0, flat.size, step)
                    ]
                )
                whole = getattr(np, combine).reduce(np.stack([np.asarray(p) for p in parts]), axis=0)
                return np.reshape(whole, (1,) * array.ndim) if keepdim else whole
        return op.kernel(xp, array, axes, keepdim, *rest)

    def _split_kept(self, op: Operator, array, axes: tuple, keepdim: bool, rest: tuple, dim: int, n: int):
        length = array.shape[dim]
        step = -(-length // n)

        def piece(start: int):
            index = (slice(None),) * dim + (slice(start, start + step),)
            return lambda: op.kernel(np, array[index], axes, keepdim, *rest)

        parts = run_chunks([piece(s) for s in range(0, length, step)])
        at = dim if keepdim else dim - sum(a < dim for a in axes)
        return np.concatenate(parts, axis=at)

    def place_of(self, op: Operator) -> None:
        """Results are row-major."""

    def meta(self, op: Operator, args: tuple) -> Spec:
        check = op.declared.check
        if check is not None:
            check(*args)
        t, axes, keepdim, result, _ = self.bind(op, args)
        return Spec(reduced_shape(t._array.shape, axes, keepdim), result)

    # ---- vmap: the batch goes first and every dim moves up by one
    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        return batch_reduction(op, args, dims)


def batch_reduction(op: Operator, args: tuple, dims: tuple):
    """The vmap rule of an operator that takes `dim` (one, several, or None for all) and perhaps `keepdim`."""
    index = op.schema.index
    if "dim" not in index or dims[0] is None or any(d is not None for d in dims[1:]):
        return None
    at, moved = index["dim"], list(args)
    moved[0] = t = args[0].movedim(dims[0], 0) if dims[0] else args[0]
    rank, many = t.ndim - 1, op.schema.arguments[at].is_list
    axes = (
        () if args[at] == () and op.declared.empty == "keep" else wrap_dims(args[at] if args[at] != () else None, rank)
    )
    keeps = "keepdim" in index and args[index["keepdim"]]
    if rank and (many or args[at] is not None):
        moved[at] = tuple(a + 1 for a in axes) if many else axes[0] + 1
        return op(*moved), 0
    moved[0] = t.reshape(size_of(t), -1) if rank else t.unsqueeze(-1)  # one dimension stands for all
    moved[at] = (1,) if many else 1
    if keeps:
        moved[index["keepdim"]] = False
    out = op(*moved)
    if not (keeps and rank):
        return out, 0
    shape = (size_of(t), *(1,) * rank)
    return out.reshape(shape) if isinstance(out, Tensor) else type(out)([o.reshape(shape) for o in out]), 0


def size_of(t: Tensor) -> int:
    return t._array.shape[0]


def _layout(op: Operator) -> tuple:
    """Where `dim`, `keepdim`, `dtype` and the rest stand among the arguments; kept with the operator."""
    index = op.schema.index
    named = [index.get(name) for name in ("dim", "keepdim", "dtype")]
    op.layout = (*named, [i for i in range(1, len(index)) if i not in named])
    return op.layout


def reduced_shape(shape: tuple, axes: tuple, keepdim: bool) -> tuple:
    """The shape that is left after reducing some axes."""
    if keepdim:
        return tuple(1 if d in axes else s for d, s in enumerate(shape))
    return tuple(s for d, s in enumerate(shape) if d not in axes)


REDUCTION = Reduction()


def reduction(schema: str, **rules) -> Operator:
    """Declare a reduction."""
    return export_operator(Operator(schema, REDUCTION, **rules))


def restore_dims(g: Tensor, shape, dim, keepdim: bool) -> Tensor:
    """A reduced gradient with its lost dimensions put back as ones, ready to broadcast against `shape`."""
    if keepdim or not len(shape):
        return g
    axes = wrap_dims(dim if dim not in ((), None) else None, len(shape))
    return g.reshape(reduced_shape(tuple(shape), axes, True))
