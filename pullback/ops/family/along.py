"""Operators along one dimension: scans, sorts, softmax, and reductions that also say where (max with indices).

    cumsum = along("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", result=INT_TO_LONG,
        kernel=lambda xp, a, axis: xp.cumsum(a, axis=axis), ...)

`kernel(xp, a, axis, *rest)` gets an array of at least one dimension (a 0-d tensor counts as one element), the wrapped
axis, and the remaining arguments except `dtype` and `keepdim`; float16 and bfloat16 arrive as float32 and are rounded
once. It returns a new array, or a tuple of them, never its input. From the declaration follow meta and the vmap rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...core import dtype as dtypes
from ...core import halves
from ...core.arrays import LARGE, library, run_chunks
from ...core.dtype import dtype
from ...core.geometry import contiguous_strides, elementwise_strides, is_contiguous, wrap_dim
from ...core.storage import new_array
from ...core.tensor import Tensor, stride_of, wrap
from ...core.threads import thread_count
from ..system.calls import export_operator
from ..system.declaration import Declaration
from ..system.inplace import cast_array
from ..system.operator import Operator, Spec
from ..system.return_types import pack_results
from .base import Family, device_of
from .reduction import same_dtype


def laid_as(array, dtype: dtype, stride: tuple, xp=np):
    """A copy of an array in memory of those strides, which are in elements."""
    out = new_array(array.shape, dtype, stride, xp)
    out[...] = array
    return out


class AlongDeclaration(Declaration):
    """What an operator along one dimension may declare."""

    kind = "an operator along a dimension"
    contradictions = {
        "meta": {"kernel": "the shape rule follows from the dimension"},
        "length": {"reduces": "a dimension that goes away has no length"},
    }

    result: Callable[[dtype], dtype] = same_dtype
    """`result(dtype)`: the dtype of the (first) result from the input's; further results are int64."""
    cast: bool = False
    """Whether the kernel works in the result's dtype."""
    length: Callable | None = None
    """`length(n, *rest)`: the size of `dim` in the results; without it, unchanged."""
    reduces: bool = False
    """Whether `dim` becomes 1, and goes away without `keepdim`."""
    keeps_strides: bool = False
    """Whether the results have the input's order of dimensions in memory."""
    split: bool = False
    """Whether large inputs may be cut along another dimension and worked on by several threads."""
    cost: str = "compute"


class Along(Family):
    """See the module's docstring."""

    declares = AlongDeclaration
    direct = "family"
    computes_in_dtype_of_out = True

    def bind(self, op: Operator, args: tuple) -> tuple[Tensor, int, bool, dtype, tuple]:
        """(self, axis, keepdim, dtype of the result, remaining arguments)."""
        index = op.schema.index
        t = args[0]
        axis = wrap_dim(args[index["dim"]], t._array.ndim)
        keepdim = "keepdim" in index and args[index["keepdim"]]
        result = ("dtype" in index and args[index["dtype"]]) or op.declared.result(t.dtype)
        rest = op.__dict__.get("remaining")
        if rest is None:
            rest = op.remaining = [i for name, i in index.items() if i and name not in ("dim", "keepdim", "dtype")]
        return t, axis, keepdim, result, tuple([args[i] for i in rest])

    def execute(self, op: Operator, args: tuple):
        if (check := op.declared.check) is not None:
            check(*args)
        t, axis, keepdim, result, rest = self.bind(op, args)
        device = t.device if len(op.tensor_positions) == 1 else device_of(op, args)
        xp = library(device)
        rest = tuple(r._array if isinstance(r, Tensor) else r for r in rest)
        array = self._working(op, t, result)
        output = run_along(op, xp, array if array.ndim else array.reshape(1), axis, rest)
        if not isinstance(output, tuple):
            return self._finish(op, t, output, result, axis, keepdim)
        kept = [self._finish(op, t, m, result if i == 0 else None, axis, keepdim) for i, m in enumerate(output)]
        return pack_results(op, kept)

    def _working(self, op: Operator, t: Tensor, result: dtype):
        wanted = result if op.declared.cast else t.dtype
        wanted = dtypes.float32 if wanted in dtypes.reduced_precision else wanted
        return cast_array(t._array, t.dtype, wanted)

    def _finish(self, op: Operator, t: Tensor, array, result: dtype | None, axis: int, keepdim: bool) -> Tensor:
        """A kernel's result in its dtype, shape and order of memory (`result` is None for places)."""
        result = result or dtypes.by_numpy[array.dtype]
        if array.dtype != result.numpy:
            array = halves.narrowed(array, result.numpy)
        if not t._array.ndim or op.declared.reduces and not keepdim:
            array = array.reshape((*array.shape[:axis], *array.shape[axis + 1 :]))
        stride = self._strides(op, t, array.shape)
        if stride is not None:
            array = laid_as(array, result, stride, library(t.device))
        elif not array.flags.c_contiguous or 1 in array.shape and _has_odd_strides(array):
            array = array.copy()
        return wrap(array, result, t.device)

    def _strides(self, op: Operator, t: Tensor, shape: tuple) -> tuple | None:
        """Where the input's order of dimensions is kept (`keeps_strides`), the strides that come of it."""
        if not op.declared.keeps_strides:
            return None
        array = t._array
        if isinstance(array, np.ndarray) and array.flags.c_contiguous and array.shape == shape:
            return None
        if is_contiguous(shape, stride_of(t)):
            return None
        return elementwise_strides(shape, [(t._array.shape, stride_of(t))])

    def place_of(self, op: Operator) -> Callable | int | None:
        return partial(self._placed, op) if op.declared.keeps_strides else None

    def _placed(self, op: Operator, results, args: tuple):
        several = results if isinstance(results, tuple) else (results,)
        strides = [self._strides(op, args[0], t._array.shape) for t in several]
        placed = [
            t if stride is None else wrap(laid_as(t._array, t.dtype, stride), t.dtype)
            for t, stride in zip(several, strides, strict=True)
        ]
        return tuple(placed) if isinstance(results, tuple) else placed[0]

    def meta(self, op: Operator, args: tuple):
        if (check := op.declared.check) is not None:
            check(*args)
        t, axis, keepdim, result, rest = self.bind(op, args)
        shape = t._array.shape
        if len(shape):
            if op.declared.reduces:
                shape = (*shape[:axis], *((1,) if keepdim else ()), *shape[axis + 1 :])
            elif (length := op.declared.length) is not None:
                shape = (*shape[:axis], length(shape[axis], *rest), *shape[axis + 1 :])
        stride = self._strides(op, t, shape)
        first = Spec(shape, result, stride)
        n = len(op.schema.returns)
        return first if n == 1 else (first, *[Spec(shape, dtypes.int64, stride)] * (n - 1))

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        """The batch goes first and `dim` moves up by one."""
        index = op.schema.index
        if dims[0] is None or any(d is not None for d in dims[1:]):
            return None
        t = args[0].movedim(dims[0], 0)
        rank = t.ndim - 1
        moved = list(args)
        moved[0] = t if rank else t.unsqueeze(-1)
        moved[index["dim"]] = wrap_dim(args[index["dim"]], rank) + 1
        keeps = rank or op.declared.reduces and not args[index["keepdim"]]
        out = op(*moved)
        if isinstance(out, Tensor):
            return out if keeps else out.squeeze(-1), 0
        return out if keeps else type(out)([o.squeeze(-1) for o in out]), 0


def _has_odd_strides(array) -> bool:
    """Whether dimensions of size 1 have strides that a new array would not have."""
    size = array.itemsize
    return array.size > 0 and tuple([s // size for s in array.strides]) != contiguous_strides(array.shape)


def run_along(op: Operator, xp, array, axis: int, rest: tuple):
    """The kernel, over the whole array or over pieces of another dimension on several threads."""
    n = thread_count()
    if op.declared.split and xp is np and array.size >= LARGE and n > 1:
        other = next((d for d in range(array.ndim) if d != axis and array.shape[d] >= n), None)
        if other is not None:
            step = -(-array.shape[other] // n)
            cuts = [(slice(None),) * other + (slice(s, s + step),) for s in range(0, array.shape[other], step)]
            parts = run_chunks([lambda cut=cut: op.kernel(xp, array[cut], axis, *rest) for cut in cuts])
            if isinstance(parts[0], tuple):
                return tuple(np.concatenate(p, axis=other) for p in zip(*parts, strict=True))
            return np.concatenate(parts, axis=other)
    return op.kernel(xp, array, axis, *rest)


ALONG = Along()


def along(schema: str, **rules) -> Operator:
    """Declare an operator along one dimension."""
    return export_operator(Operator(schema, ALONG, **rules))
