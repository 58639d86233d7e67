"""From a list of examples to a batch.

Tensors and arrays are stacked, numbers become a tensor, strings stay a list; dicts, tuples and sequences are batched
member by member. `collate` takes a table of types for other rules.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

from ...core.dtype import float64
from ...core.tensor import Tensor
from ...ops.system.operator import public

stack, as_tensor, make_tensor = public("torch", "stack"), public("torch", "as_tensor"), public("torch", "tensor")
_WRONG = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
Rules = dict[type | tuple[type, ...], Callable]
CollateFunction = Callable[[list], object]  # what `DataLoader(collate_fn=...)` takes


NO_NUMBERS = re.compile("[SaUO]")  # in the kind of an array's dtype: strings and objects


def _holds_no_numbers(array: np.ndarray) -> bool:
    return NO_NUMBERS.search(array.dtype.kind) is not None


def _mapping_like(source: Mapping, result: dict):
    """A mapping of the same type, or a dict where that type cannot be made so."""
    try:
        if isinstance(source, MutableMapping):
            like = copy.copy(source)
            like.update(result)
            return like
        return type(source)(result)
    except TypeError:
        return result


def _sequence_like(source: Sequence, result: list):
    """A sequence of the same type, or a list where that type cannot be made so."""
    try:
        if isinstance(source, MutableSequence):
            like = copy.copy(source)
            for i, value in enumerate(result):
                like[i] = value
            return like
        return type(source)(result)
    except TypeError:
        return result


def default_convert(data):
    """One example with arrays turned into tensors, wherever they are inside it."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        numbers = not isinstance(data, (np.str_, np.bytes_)) and not _holds_no_numbers(np.asarray(data))
        return as_tensor(data) if numbers else data
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        result = [default_convert(d) for d in data]
        return type(data)(*result) if hasattr(data, "_fields") else result
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(d) for d in data])
    return data


def collate(batch: Sequence, *, collate_fn_map: Rules | None = None):
    """A batch by a table of rules (type or types -> function), and member by member where none fits."""
    first = batch[0]
    rules = collate_fn_map or {}
    rule = rules.get(type(first)) or next((rules[kind] for kind in rules if isinstance(first, kind)), None)
    if rule is not None:
        return rule(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _mapping_like(first, {k: collate([d[k] for d in batch], collate_fn_map=rules) for k in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=rules) for column in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        result = [collate(column, collate_fn_map=rules) for column in zip(*batch, strict=True)]
        return result if isinstance(first, tuple) else _sequence_like(first, result)
    raise TypeError(_WRONG.format(type(first)))


def collate_tensor_fn(batch, *, collate_fn_map: Rules | None = None) -> Tensor:
    """Tensors, stacked."""
    first = batch[0]
    kind = "nested" if first.is_nested else "sparse" if "sparse" in str(first.layout) else None
    if kind is not None:
        raise RuntimeError(
            f"Batches of {kind} tensors are not currently supported by the default collate_fn; please provide a custom "
            "collate_fn to handle them appropriately."
        )
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch, *, collate_fn_map: Rules | None = None) -> Tensor:
    """Arrays of numbers, stacked."""
    if _holds_no_numbers(batch[0]):
        raise TypeError(_WRONG.format(batch[0].dtype))
    return collate([as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map: Rules | None = None) -> Tensor:
    """NumPy numbers."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch, *, collate_fn_map: Rules | None = None) -> Tensor:
    """Python floats, in double precision."""
    return make_tensor(batch, dtype=float64)


def collate_int_fn(batch, *, collate_fn_map: Rules | None = None) -> Tensor:
    """Python integers."""
    return make_tensor(batch)


def collate_str_fn(batch, *, collate_fn_map: Rules | None = None):
    """Strings stay as they are."""
    return batch


default_collate_fn_map: Rules = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """A batch of examples, by the rules above."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
