"""What operators do with masked tensors, below autograd.

Comes in: an operator with arguments of which some are masked. Goes out: its result. Element-wise operators compute on the
data; masked operands must have one mask, which the result has too. Views and their kin do to the mask what they do to the
data. Reductions are those of `torch.masked`; a result is there where an element took part. An operator of none of these kinds
is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ...core.tree import tree_map
from ...ops.family.pointwise import POINTWISE
from ...ops.system.operator import Operator, public
from .. import reductions as plain
from ..filling import every, filled
from .core import MaskedTensor, is_masked_tensor, masks_match

MISMATCH = "Input masks must match. If you need support for this, please open an issue on Github."


def run(op: Operator, args: tuple, kwargs: dict):
    """An operator on at least one masked tensor."""
    name = op.name
    if name in REDUCTIONS:
        options = dict(zip(list(op.schema.index)[1:], args[1:], strict=False)) | kwargs
        return reduce(name, args[0], {k: v for k, v in options.items() if v is not None})
    rule = RULES.get(name)
    if rule is not None:
        return rule(op, args, kwargs)
    source = op.inplace_of or op
    if source.is_view or name in ALONG:
        return _on_both(op, args, kwargs)
    if source.family is POINTWISE or name in ELEMENT_WISE:
        return _elementwise(op, args, kwargs)
    return NotImplemented


# ---- parts
def _data(value):
    return value._masked_data if is_masked_tensor(value) else value


def _mask(value):
    return value._masked_mask if is_masked_tensor(value) else value


def _masked_among(values) -> list[MaskedTensor]:
    found = []
    for v in values:
        if is_masked_tensor(v):
            found.append(v)
        elif isinstance(v, (tuple, list)):
            found.extend(_masked_among(v))
    return found


def dense(t: MaskedTensor) -> tuple[Tensor, Tensor]:
    """Data and mask as strided tensors."""
    data, mask = t._masked_data, t._masked_mask
    return (data, mask) if data.layout is devices.strided else (data.to_dense(), mask.to_dense())


def like_mask(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Strided data under a mask of any layout."""
    if mask.layout is not devices.strided and data.layout is devices.strided:
        data = data.sparse_mask(mask)
    return MaskedTensor(data, mask)


def _zeroed(value):
    """The data, with zeros where elements are missing."""
    if not is_masked_tensor(value):
        return value
    data, mask = dense(value)
    return data.masked_fill(~mask, 0)


# ---- kinds of operators
def _elementwise(op: Operator, args: tuple, kwargs: dict):
    masked = _masked_among((*args, *kwargs.values()))
    first = masked[0]
    if not all(masks_match(first, other) for other in masked[1:]):
        raise ValueError(MISMATCH)
    if op.inplace_of is not None and not is_masked_tensor(args[0]):
        raise ValueError(f"{op.display}_(): a masked tensor cannot be written into a tensor without a mask")
    if first.layout is devices.strided:
        out = op(*tree_map(_data, args), **tree_map(_data, kwargs))
        return args[0] if op.inplace_of is not None else _under(out, first._masked_mask)
    return _on_values(op, args, kwargs, first)


def _under(out, mask: Tensor):
    if isinstance(out, (tuple, list)):
        return type(out)(_under(o, mask) for o in out)
    return MaskedTensor(out, mask if out.shape == mask.shape else mask.expand(out.shape))


def _on_values(op: Operator, args: tuple, kwargs: dict, first: MaskedTensor):
    """Of sparse operands with the same places, the values."""

    def values(v):
        data = _data(v)
        return data.values() if isinstance(data, Tensor) and data.layout is not devices.strided else data

    out = op(*tree_map(values, args), **tree_map(values, kwargs))
    if op.inplace_of is not None:
        return args[0]
    data = first._masked_data
    if data.layout is devices.sparse_coo:
        made = public("torch", "sparse_coo_tensor")(data.indices(), out, data.shape, is_coalesced=True)
    else:
        made = public("torch", "sparse_csr_tensor")(data.crow_indices(), data.col_indices(), out, data.shape)
    return MaskedTensor(made, first._masked_mask)


def _on_both(op: Operator, args: tuple, kwargs: dict):
    """The operator on the data, and on the mask."""
    data = op(*tree_map(_data, args), **tree_map(_data, kwargs))
    mask = op(*tree_map(_mask, args), **tree_map(_mask, kwargs))
    if op.inplace_of is not None:
        return NotImplemented
    if isinstance(data, (tuple, list)):
        return type(data)(MaskedTensor(d, m) for d, m in zip(data, mask, strict=True))
    return MaskedTensor(data, mask)


def _linear(op: Operator, args: tuple, kwargs: dict):
    """A sum over places: a result is there where one of its terms is."""

    def there(v):
        return dense(v)[1].to(v.dtype) if is_masked_tensor(v) else v

    data = op(*tree_map(_zeroed, args), **kwargs)
    return MaskedTensor(data, op(*tree_map(there, args), **kwargs) != 0)


# ---- reductions
def _all(input, dim=None, *, keepdim=False, mask):
    return filled(input.bool(), mask, True).all(every(dim, input.ndim), keepdim)


def _any(input, dim=None, *, keepdim=False, mask):
    return filled(input.bool(), mask, False).any(every(dim, input.ndim), keepdim)


REDUCTIONS: dict[str, Callable] = {
    "sum": plain.sum, "mean": plain.mean, "amin": plain.amin, "amax": plain.amax, "argmin": plain.argmin,
    "argmax": plain.argmax, "prod": plain.prod, "var": plain.var, "std": plain.std, "all": _all, "any": _any,
}  # fmt: skip


def reduce(name: str, masked: MaskedTensor, options: dict) -> MaskedTensor:
    """A reduction of the elements that are there; a result is there where one was."""
    data, mask = dense(masked)
    dims = every(options.get("dim"), data.ndim)
    out = REDUCTIONS[name](data, mask=mask, **options)
    there = mask.any(dims, options.get("keepdim", False)) if data.ndim else mask
    return MaskedTensor(out, there)


# ---- one by one
def where(op, args: tuple, kwargs: dict):
    condition, x, y = args
    if not isinstance(condition, Tensor):
        raise ValueError("where(): expected a tensor for the condition")
    x, y = (t if isinstance(t, Tensor) else public("torch", "tensor")(t) for t in (x, y))
    choose = public("torch", "where")
    always = public("torch", "ones_like")
    masks = [t._masked_mask if is_masked_tensor(t) else always(t, dtype=dtypes.bool) for t in (x, y)]
    return MaskedTensor(choose(_data(condition), _data(x), _data(y)), choose(_data(condition), *masks))


def _softmax(op: Operator, args: tuple, kwargs: dict):
    x = args[0]
    data = x._masked_data.masked_fill(~x._masked_mask, float("-inf"))
    return MaskedTensor(op(data, *args[1:], **kwargs), x._masked_mask)


def _softmax_backward(op: Operator, args: tuple, kwargs: dict):
    out = next(a for a in args if is_masked_tensor(a))
    return MaskedTensor(op(*map(_zeroed, args), **kwargs), out._masked_mask)


def _copied(op: Operator, args: tuple, kwargs: dict):
    """The data copied or cast, the mask copied to the same place."""
    x = args[0]
    data = op(x._masked_data, *args[1:], **kwargs)
    return MaskedTensor(data, x._masked_mask.to(data.device, copy=True))


def _like(op: Operator, args: tuple, kwargs: dict):
    x = args[0]
    return MaskedTensor(op(x._masked_data, *args[1:], **kwargs), x._masked_mask.clone())


def _on_data(op: Operator, args: tuple, kwargs: dict):
    return op(*tree_map(_data, args), **kwargs)


def _number(op: Operator, args: tuple, kwargs: dict):
    if not bool(args[0]._masked_mask):
        raise ValueError("item(): the element is masked out: expected a mask tensor that is True")
    return op(args[0]._masked_data)


def any_true(t: MaskedTensor) -> MaskedTensor:
    """Whether an element that is there is True."""
    data, mask = dense(t)
    if data.dtype is not dtypes.bool:
        raise ValueError(f"_is_any_true(): expected a boolean tensor, got {data.dtype}")
    return MaskedTensor((data & mask).any(), public("torch", "tensor")(True))


ELEMENT_WISE = frozenset(("clamp", "nan_to_num", "masked_fill", "fill", "zero", "copy"))
ALONG = frozenset(("detach", "alias", "cat", "stack", "index", "index_select", "flip", "roll", "repeat", "im2col"))
RULES: dict[str, Callable] = {
    "where": where, "_softmax": _softmax, "_log_softmax": _softmax,
    "_softmax_backward_data": _softmax_backward, "_log_softmax_backward_data": _softmax_backward,
    "_to_copy": _copied, "clone": _copied,
    **dict.fromkeys(("ones_like", "zeros_like", "empty_like", "full_like", "rand_like", "randn_like"), _like),
    **dict.fromkeys(("new_empty_strided", "new_zeros", "new_empty", "new_ones", "new_full", "is_same_size"), _on_data),
    **dict.fromkeys(("unfold_backward", "col2im", "select_backward", "slice_backward", "index_put"), _linear),
    "_local_scalar_dense": _number,
}  # fmt: skip
