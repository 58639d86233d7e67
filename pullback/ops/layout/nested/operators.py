"""Operators on nested tensors, above autograd.

Comes in: an operator and its arguments, some of them nested. Goes out: what it gives, computed on the packed values (or
component by component) in ordinary differentiable operators. Two operators carry gradients in and out: `get_values`
takes a nested tensor's packed values, `from_values` puts packed values into the structure of another nested tensor.
An operator without a rule raises.
"""

from __future__ import annotations

from collections.abc import Callable

from ....core.geometry import wrap_dim, wrap_dims
from ....core.tensor import Tensor, view_of
from ...family.pointwise import POINTWISE
from ...system.dispatch import dispatch
from ...system.operator import LINEAR, Operator, exports, rule_of
from ..sparse.table import layout_operator
from .layouts import is_nested, wrap_nested


def nested_rule(*names: str) -> Callable:
    """Make `function(op, *args)` the nested rule of the operators named (all overloads)."""
    return rule_of("nested", *names)


# ---- in and out
get_values_op = layout_operator(
    "_nested_get_values(Tensor(a) self) -> Tensor(a)",
    run=lambda self: view_of(self.array.values, self.array.values.array, self.dtype, self.array.values.offset),
    vjp={"self": lambda g, self: from_values(g, self)},
    jvp=LINEAR,
)
from_values_op = layout_operator(
    "_nested_from_values(Tensor values, Tensor template) -> Tensor",
    run=lambda values, template: wrap_nested(values, template.array.structure),
    node="NestedViewFromJaggedBackward0",
    vjp={"values": lambda g: get_values(g)},
)


def get_values(t: Tensor) -> Tensor:
    """The packed values."""
    return dispatch(get_values_op, (t,))


def from_values(values: Tensor, template: Tensor) -> Tensor:
    """Packed values in the structure of `template`."""
    return dispatch(from_values_op, (values, template.detach() if template.requires_grad else template))


def components(t: Tensor) -> list[Tensor]:
    """The tensors that a nested tensor is made of."""
    values, structure = get_values(t), t.array.structure
    parts = [values.narrow(0, start, length) for start, length in structure.spans()]
    if structure.sizes is None:
        return parts
    return [p.reshape(s) for p, s in zip(parts, structure.sizes, strict=True)]


def rebuild(parts: list[Tensor], template: Tensor) -> Tensor:
    """A nested tensor from components; of the structure of `template` where their sizes are the same."""
    from .construct import pack

    a = template.array
    if a.structure.lengths is None and [p.shape for p in parts] == [c.shape for c in components(template.detach())]:
        flat = parts if a.structure.sizes is None else [p.reshape(-1) for p in parts]
        return from_values(exports["torch"]["cat"](flat), template) if parts else template
    return pack(parts, a.layout)


# ---- dispatch
def nested_layer(op: Operator, args: tuple):
    """An operator of which some argument is nested."""
    if op.inplace_of is not None:
        raise NotImplementedError(
            f"{op.display}_(): in-place operators on nested tensors are not implemented; use {op.display}()"
        )
    found = op.declared.nested or (pointwise if op.family is POINTWISE else None)
    if found is None:
        raise not_implemented(op, args)
    return found(op, *args)


def not_implemented(op: Operator, args: tuple) -> NotImplementedError:
    name = op.qualified_name
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the 'NestedTensorCPU' backend. This could be because the "
        f"operator doesn't exist for this "
        f"backend. '{name}' is only available for dense tensors: unbind() gives the components."
    )


def pointwise(op: Operator, *args):
    """Element by element on packed values; dense operands are broadcast to every component."""
    template = next(a for a in args if is_nested(a))
    result = [_operand(op, a, template) if isinstance(a, Tensor) else a for a in args]
    return from_values(dispatch(op, tuple(result)), template)


def _operand(op: Operator, t: Tensor, template: Tensor) -> Tensor:
    structure = template.array.structure
    if is_nested(t):
        if t.array.structure is not structure and not _alike(t, template):
            shapes = f"{_text(template)} and {_text(t)}"
            raise RuntimeError(
                f"cannot call binary pointwise function {op.name}.{op.overload} with inputs of shapes {shapes}"
            )
        return get_values(t)
    if not t.ndim:
        return t
    if structure.sizes is not None:
        raise RuntimeError(
            f"{op.name}: a dense tensor of shape {list(t.shape)} cannot be combined with a nested tensor of strided "
            f"layout"
        )
    rest = template.ndim - 2
    if t.ndim <= rest or t.ndim == rest + 1 and t.shape[0] == 1:
        return t
    if t.ndim == template.ndim and t.shape[1] == 1 and structure.lengths is None:  # one row per component
        if t.shape[0] == 1:
            return t[0]
        if t.shape[0] == structure.count:
            return t.squeeze(1).index_select(0, owners(template))
    raise RuntimeError(
        f"cannot call binary pointwise function {op.name}.{op.overload} with inputs of shapes {_text(template)} and "
        f"{tuple(t.shape)}"
    )


def _alike(a: Tensor, b: Tensor) -> bool:
    """Strided nested tensors meet where their components have one size; jagged ones only by a shared structure."""
    x, y = a.array.structure, b.array.structure
    return x.sizes is not None and x.sizes == y.sizes


def _text(t: Tensor) -> str:
    return f"({', '.join(map(str, t.array.shape))})"


def owners(t: Tensor) -> Tensor:
    """The component of each packed row."""
    offsets = t.array.structure.offsets
    lengths = offsets[1:] - offsets[:-1]
    return exports["torch"]["repeat_interleave"](lengths)


# ---- rules
@nested_rule(
    "clone",
    "_to_copy",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "rand_like",
    "randn_like",
    "alias",
    "native_dropout",
    "dropout",
)
def on_values(op: Operator, self, *rest):
    if op.name == "_to_copy" and rest[1] not in (None, self.layout):
        raise NotImplementedError("a nested tensor cannot change its layout by to()")
    result = dispatch(op, (get_values(self), *rest))
    return from_values(result, self) if isinstance(result, Tensor) else tuple(from_values(m, self) for m in result)


@nested_rule("detach")
def detach(op: Operator, self):
    return self.shallow()


@nested_rule("unbind")
def unbind(op: Operator, self, dim: int = 0):
    if wrap_dim(dim, self.ndim):
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0, got dimension {dim} instead.")
    return tuple(components(self))


@nested_rule("select")
def select(op: Operator, self, dim: int, index: int):
    if wrap_dim(dim, self.ndim) == 0:
        return components(self)[index]
    raise not_implemented(op, (self, dim, index))


def _require_inner(op: Operator, self: Tensor, dims) -> tuple:
    """Dimensions behind the ragged one, as dimensions of the packed values."""
    wrapped = wrap_dims(tuple(dims), self.ndim)
    if self.array.structure.sizes is not None:
        return wrapped
    if any(d < 2 for d in wrapped):
        raise RuntimeError(f"{op.name}(): not supported along the batch or the ragged dimension of a NestedTensor")
    return tuple(d - 1 for d in wrapped)


@nested_rule("sum", "mean")
def reduce(op: Operator, self, *rest):
    jagged = self.array.structure.sizes is None
    if not jagged:
        if op.name == "sum" and len(rest) == 3 and rest[0] == (-1,):
            return _map_strided(op, self, *rest)
        raise not_implemented(op, (self, *rest))
    source = self if self.array.structure.lengths is None else rebuild_packed(self)
    if len(rest) == 1:
        return dispatch(op, (get_values(source), *rest))
    dims, keepdim, dtype = rest
    wrapped = set(wrap_dims(dims or tuple(range(self.ndim)), self.ndim))
    if {0, 1} <= wrapped:
        result = dispatch(op, (get_values(source), tuple({max(d - 1, 0) for d in wrapped}), keepdim, dtype))
        return result.unsqueeze(0) if keepdim else result
    if wrapped == {1}:
        return _over_ragged(op, source, keepdim, dtype)
    return from_values(dispatch(op, (get_values(source), _require_inner(op, self, wrapped), keepdim, dtype)), source)


def _over_ragged(op: Operator, self: Tensor, keepdim: bool, dtype) -> Tensor:
    parts = [dispatch(op, (p, (0,), keepdim, dtype)) for p in components(self)]
    return exports["torch"]["stack"](parts)


def rebuild_packed(self: Tensor) -> Tensor:
    """Components without the gaps that `lengths` leave."""
    from .construct import pack

    return pack(components(self), self.layout)


def _map_strided(op: Operator, self: Tensor, *rest) -> Tensor:
    return rebuild([dispatch(op, (p, *rest)) for p in components(self)], self)


@nested_rule("_softmax", "_log_softmax")
def softmax(op: Operator, self, dim: int, *rest):
    d = wrap_dim(dim, self.ndim)
    if d == 0:
        raise RuntimeError("softmax(): not supported along the batch dimension of a NestedTensor")
    if d == 1 or self.array.structure.sizes is not None:
        return rebuild([dispatch(op, (p, d - 1, *rest)) for p in components(self)], self)
    return from_values(dispatch(op, (get_values(self), d - 1, *rest)), self)


@nested_rule("native_layer_norm", "layer_norm")
def layer_norm(op: Operator, self, normalized_shape, *rest):
    result = dispatch(op, (get_values(self), normalized_shape, *rest))
    return from_values(result, self) if isinstance(result, Tensor) else (from_values(result[0], self), *result[1:])


@nested_rule("transpose", "permute", "view", "unsqueeze", "squeeze", "reshape")
def reshaping(op: Operator, self, *rest):
    raise not_implemented(op, (self, *rest))


@nested_rule("matmul")
def matmul(op: Operator, self: Tensor, other: Tensor) -> Tensor:
    """A nested tensor times a matrix (or a nested tensor of the same structure, component by component)."""
    if is_nested(self) and not is_nested(other) and other.ndim <= 2:
        if self.array.structure.sizes is None and self.ndim >= 3:
            return from_values(get_values(self).matmul(other), self)
        return rebuild([p.matmul(other) for p in components(self)], self)
    if is_nested(self) and is_nested(other) and self.shape[0] == other.shape[0]:
        from .construct import pack

        return pack([a.matmul(b) for a, b in zip(components(self), components(other), strict=True)], self.layout)
    raise NotImplementedError(
        "matmul: nested tensors can be multiplied by a matrix, or with one another component by component"
    )


@nested_rule("linear")
def linear(op: Operator, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result = input.matmul(weight.t())
    return result if bias is None else result + bias
