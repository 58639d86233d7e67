"""Operators whose fakes are more than a shape: numbers read from tensors, and results as long as data says.

`OWN_RULES` are run instead of the shape rule: operator -> rule(mode, operator, args). `UNBACKED_RULES` are asked where
the shape rule says that data decides, and only in a mode with a shape environment: operator -> rule(env, *args), which
gives `Spec`s whose unknown sizes are unbacked symbols, bounded by what is known without the data.
"""

from __future__ import annotations

import math

from ...core import dtype as dtypes
from ...core.geometry import broadcast_shapes, contiguous_strides
from ...core.tensor import FAKE, ZERO, Tensor
from ...ops.index import index_kernels, index_operators
from ...ops.index import masked_elements as elements
from ...ops.make.lifting import lift_fresh, local_scalar_dense
from ...ops.make.zero_tensors import zero_tensor_op
from ...ops.reduce import histograms, searching
from ...ops.shape import rearranging
from ...ops.system.operator import Operator, Spec
from .errors import DataDependentOutputException
from .facts import facts_of, result_device
from .mode import FakeTensorMode, constant_of


# ---- numbers
def _number(mode: FakeTensorMode, op: Operator, args: tuple):
    """`item()`: the number if it is known, the symbol it has had since the last write, a new one, or an error."""
    t = args[0]
    constant = constant_of(t)
    if constant is not None:
        return constant.item()
    if mode.shape_env is None or not mode.shape_env.allow_scalar_outputs or t.dtype.is_complex:
        raise DataDependentOutputException(op)
    known = t.__dict__.get("item_memo")
    if known is None or known[0] != t._counter[0]:
        known = t.__dict__["item_memo"] = (t._counter[0], _symbol(mode.shape_env, t))
    return known[1]


def _symbol(env, t: Tensor):
    if t.dtype.is_floating_point:
        return env.create_unbacked_symfloat()
    return env.create_unbacked_symbool() if t.dtype is dtypes.bool else env.create_unbacked_symint()


def _lift(mode: FakeTensorMode, op: Operator, args: tuple) -> Tensor:
    """A tensor just made of Python numbers: one that is a single number keeps it, since `item()` may ask."""
    t = args[0]
    if t._keys & FAKE:
        return t
    return mode.lifted(t)


def _zero_for_ever(mode: FakeTensorMode, op: Operator, args: tuple) -> Tensor:
    """A tensor that nobody may write: recipes of results say nothing of that."""
    mode.bypass("dispatch_key_set mismatch")
    spec = op.family.meta(op, args)
    result = mode.make(
        spec.shape, contiguous_strides(spec.shape), spec.dtype, result_device(op, facts_of(op), args, [])
    )
    result._keys |= ZERO
    return result


OWN_RULES = {local_scalar_dense: _number, lift_fresh: _lift, zero_tensor_op: _zero_for_ever}


# ---- sizes
def unbacked_size(env, most=None):
    """A size that is not known, but for a bound."""
    size = env.create_unbacked_symint()
    env.constrain_for_size(size, 0, most if isinstance(most, int) else None)
    return size


def count_of(env, t: Tensor):
    """How many elements are not zero: the same number until the tensor is written."""
    known = t.__dict__.get("nonzero_memo")
    if known is None or known[0] != t._counter[0] or known[1] is not env:
        known = t.__dict__["nonzero_memo"] = (t._counter[0], env, unbacked_size(env, math.prod(t._array.shape)))
    return known[2]


def _nonzero(env, self) -> Spec:
    rows = count_of(env, self)
    return Spec((rows, self._array.ndim), dtypes.int64, (1, rows))


def _masked_select(env, self, mask) -> Spec:
    return Spec((unbacked_size(env, math.prod(broadcast_shapes(self._array.shape, mask._array.shape))),), self.dtype)


def _places(env, repeats, output_size) -> Spec:
    return Spec((unbacked_size(env),), repeats.dtype)


def _bincount(env, self, weights, minlength) -> Spec:
    length = env.create_unbacked_symint()
    env.constrain_for_size(length, minlength if isinstance(minlength, int) else 0, None)
    kinds = {None: dtypes.int64, dtypes.float32: dtypes.float32}
    return Spec((length,), kinds.get(None if weights is None else weights.dtype, dtypes.float64))


def _distinct(env, self, inverse: bool = True, counts: bool = True, dim: int | None = None) -> tuple:
    """Distinct elements, or slices along `dim`: values, where each went, how often each occurs (empty if not asked)."""
    shape = self._array.shape
    number = unbacked_size(env, math.prod(shape) if dim is None else shape[dim])
    if dim is None:
        values, where = (number,), shape
    else:
        dim %= len(shape)
        values, where = (*shape[:dim], number, *shape[dim + 1 :]), (shape[dim],)
    return (
        Spec(values, self.dtype),
        Spec(where if inverse else (0,), dtypes.int64),
        Spec((number,) if counts else (0,), dtypes.int64),
    )


def _index(env, self, indices) -> Spec:
    """Masks pick a number of elements that is not known; several masks, and tensors beside them, as many each."""
    known, shapes = [], []
    for index in indices:
        mask = index is not None and index_kernels.is_mask(index._array)
        known += [index is not None] * (max(index._array.ndim, 1) if mask else 1)
        if index is not None:
            shapes.append(None if mask else index._array.shape)
    others = [s for s in shapes if s is not None]
    masks = [i for i in indices if i is not None and index_kernels.is_mask(i._array)]
    picked = count_of(env, masks[0])
    common = index_kernels.index_shape([*others, (picked,)]) if others else (picked,)
    return Spec(index_kernels.result_shape(self._array.shape, known, common), self.dtype)


UNBACKED_RULES = {
    elements.nonzero_op: _nonzero,
    elements.masked_select: _masked_select,
    rearranging.repeat_places: _places,
    histograms.bincount: _bincount,
    searching.unique1: lambda env, self, ordered, inverse: _distinct(env, self, inverse)[:2],
    searching.unique2: lambda env, self, ordered, inverse, counts: _distinct(env, self, inverse, counts),
    searching.unique_dim: lambda env, self, dim, *_: _distinct(env, self, dim=dim),
    searching.unique_dim_consecutive: lambda env, self, dim, *_: _distinct(env, self, dim=dim),
    searching.unique_runs: lambda env, self, inverse, counts, dim: _distinct(env, self, dim=dim),
    index_operators.index: _index,
    index_operators.unsafe_index: _index,
}
