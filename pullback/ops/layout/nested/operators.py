"""Operators on nested tensors, above autograd.

Comes in: an operator and its arguments, some of them nested. Goes out: what it gives, computed on the packed values (or
component by component) in ordinary differentiable operators. Three operators carry gradients in and out: `get_values`
views a nested tensor's packed values, `from_values` puts packed values into the structure of another nested tensor, and
`nest_on` makes a view of such values. An operator without a rule raises.
"""

from __future__ import annotations

from collections.abc import Callable

from ....core import device as devices
from ....core import modes
from ....core.layers import above
from ....core.modes import ambient, no_grad
from ....core.tensor import Tensor, view_of
from ...family.pointwise import POINTWISE
from ...system.dispatch import dispatch
from ...system.operator import LINEAR, Operator, exports, rule_of
from ..sparse.table import LAYOUT_VIEW, layout_operator
from .layouts import Structure, is_jagged, is_nested, wrap_nested


def nested_rule(*names: str) -> Callable:
    """Make `function(op, *args)` the nested rule of the operators named (all overloads)."""
    return rule_of("nested", *names)


def function(name: str, home: str = "torch") -> Callable:
    """A public function, which rules call by its name."""
    return exports[home][name]


# ---- in and out
get_values_op = layout_operator(
    "_nested_get_values(Tensor(a) self) -> Tensor(a)",
    run=lambda self: view_of(self._array.values, self._array.values._array, self.dtype, self._array.values._offset),
    family=LAYOUT_VIEW,
    vjp={"self": lambda g, self_info: nest(g, *self_info.form[:2])},
    jvp=LINEAR,
)


def _in_structure(values: Tensor, template: Tensor) -> Tensor:
    return wrap_nested(values, template._array.structure, template._array.ragged_idx)


_ON_VALUES = {
    "run": _in_structure,
    "node": "NestedViewFromJaggedBackward0",
    "vjp": {"values": lambda g, template_info: values_as(g, *template_info.form)},
}
from_values_op = layout_operator(
    "_nested_from_values(Tensor values, Tensor template) -> Tensor",
    **_ON_VALUES,
)
on_values_op = layout_operator(
    "_nested_on_values(Tensor(a) values, Tensor template) -> Tensor(a)",
    family=LAYOUT_VIEW,
    **_ON_VALUES,
)


def get_values(t: Tensor) -> Tensor:
    """The packed values."""
    return dispatch(get_values_op, (t,))


def from_values(values: Tensor, template: Tensor) -> Tensor:
    """Packed values in the structure of `template`."""
    return dispatch(from_values_op, (values, template.detach() if template.requires_grad else template))


def nest(values: Tensor, structure: Structure, ragged_idx: int = 1) -> Tensor:
    """A nested tensor of packed values, with their history."""
    return dispatch(from_values_op, (values, wrap_nested(values.detach(), structure, ragged_idx)))


def nest_on(values: Tensor, structure: Structure, ragged_idx: int = 1) -> Tensor:
    """A nested tensor that is a view of packed values."""
    return dispatch(on_values_op, (values, wrap_nested(values.detach(), structure, ragged_idx)))


def nest_view(values: Tensor, structure: Structure, ragged_idx: int = 1) -> Tensor:
    """A nested tensor on packed values, of whose memory it is a view where they are a view themselves."""
    return (nest_on if values._is_view() else nest)(values, structure, ragged_idx)


def components(t: Tensor) -> list[Tensor]:
    """The tensors that a nested tensor is made of."""
    values, structure = get_values(t), t._array.structure
    if is_jagged(t):
        along = t._array.ragged_idx - 1
        return [values.narrow(along, start, length) for start, length in structure.spans()]
    if structure.strides is not None:
        where = zip(structure.sizes, structure.strides, structure.starts, strict=True)
        return [values.as_strided(size, stride, values._offset + start) for size, stride, start in where]
    parts = [values.narrow(0, start, length) for start, length in structure.spans()]
    return [p.reshape(s) for p, s in zip(parts, structure.sizes, strict=True)]


def values_like(t: Tensor, template: Tensor) -> Tensor:
    """The values of `t` as those of `template` lie; zeros in its holes."""
    return values_as(t, *template._array.form)


def values_as(t: Tensor, structure: Structure, ragged_idx: int, shape: tuple) -> Tensor:
    """The values of `t` as those of a tensor of that form lie; zeros in its holes."""
    a = t._array
    if a.structure is structure and a.ragged_idx == ragged_idx:
        return get_values(t)
    parts, along = components(t), ragged_idx - 1
    if structure.sizes is None and structure.lengths is None:
        return function("cat")(parts, along)
    if not structure.has_holes:
        return function("cat")([p.reshape(-1) for p in parts]) if parts else get_values(t)
    whole = a.values.new_zeros(shape)
    if structure.sizes is None:
        for p, (start, length) in zip(parts, structure.spans(), strict=True):
            whole = whole.slice_scatter(p, along, start, start + length)
        return whole
    for p, size, stride, start in zip(parts, structure.sizes, structure.strides, structure.starts, strict=True):
        whole = whole.as_strided_scatter(p, size, stride, start)
    return whole


def own_memory(t: Tensor, structure: Structure, ragged_idx: int, stride: tuple) -> Tensor:
    """A copy of a nested tensor, in a structure and with strides of the values that are another's."""
    values = values_as(t, structure, ragged_idx, t._array.values._array.shape)
    return nest(values.new_empty_strided(values.shape, stride).copy_(values), structure, ragged_idx)


def cat_values(parts: list[Tensor], template: Tensor) -> Tensor:
    """Components, packed as the values of a tensor of that layout are."""
    if is_jagged(template):
        return function("cat")(parts, template._array.ragged_idx - 1)
    return function("cat")([p.reshape(-1) for p in parts]) if parts else template._array.values


def packed(t: Tensor) -> Tensor:
    """The same components without holes."""
    structure = t._array.structure
    if not structure.has_holes:
        return t
    return nest(cat_values(components(t), t), structure.packed(), t._array.ragged_idx)


def rebuild(parts: list[Tensor], template: Tensor, ragged_idx: int | None = 0) -> Tensor:
    """A tensor from what became of the components: nested, of the structure of `template` where lengths are the same.

    `ragged_idx` says where the ragged dimension of a jagged tensor went; None: it is gone, and the result is dense.
    """
    from .construct import pack

    if ragged_idx is None:
        return function("stack")(parts)
    structure = template._array.structure.packed()
    if not is_jagged(template):
        same = tuple(tuple(p.shape) for p in parts) == structure.sizes
        return nest(cat_values(parts, template), structure) if same and parts else pack(parts, template.layout)
    at = ragged_idx or template._array.ragged_idx
    if [p.shape[at - 1] for p in parts] == structure.component_lengths():
        return nest(function("cat")(parts, at - 1), structure, at)
    return pack(parts, template.layout, at)


# ---- dispatch
def nested_layer(op: Operator, args: tuple):
    """An operator of which some argument is nested."""
    functional = op.inplace_of or op
    found = functional.declared.nested or (pointwise if functional.family is POINTWISE else None)
    if found is None:
        raise not_implemented(op, args)
    if op.inplace_of is None:
        return found(op, *args)
    return written(args[0], found(functional, *args), op)


def written(target: Tensor, result: Tensor, op: Operator) -> Tensor:
    """The in-place form: the result's values in the memory of the target, and the target in the result's place."""
    if not is_nested(target):
        raise RuntimeError(
            f"{op.display}_(): cannot write a nested tensor into a dense one of shape {list(target.shape)}"
        )
    if not is_nested(result) or result._array.shape != target._array.shape:
        raise RuntimeError(
            f"output with shape {list(target._array.shape)} doesn't match the broadcast shape {list(result._array.shape)}"
        )
    if target.requires_grad and target.is_leaf and ambient.mode & modes.GRAD:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if target._is_view():
        store(target, result)
        return target
    recorded = result.requires_grad
    with no_grad():
        store(target, result)
    if recorded:
        above.rebase_history(target, result._autograd.edge)
    return target


def store(target: Tensor, result: Tensor) -> None:
    """Write components into those of a nested tensor of the same sizes; what lies between them stays as it is."""
    a, b = target._array, result._array
    if a.structure is b.structure and a.ragged_idx == b.ragged_idx and not a.structure.has_holes:
        get_values(target).copy_(get_values(result))
    else:
        for mine, other in zip(components(target), components(result), strict=True):
            mine.copy_(other)


def not_implemented(op: Operator, args: tuple) -> NotImplementedError:
    name = op.qualified_name
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the 'NestedTensorCPU' backend. This could be because the "
        f"operator doesn't exist for this "
        f"backend. '{name}' is only available for dense tensors: unbind() gives the components."
    )


# ---- element by element
def pointwise(op: Operator, *args):
    """Element by element on packed values; dense operands are broadcast to every component."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    template = max((t for t in tensors if is_nested(t)), key=lambda t: t.ndim)
    alike = all(t._array.structure is template._array.structure for t in tensors if is_nested(t))
    if not alike or template._array.has_strangers:
        template = packed(template)
    result = dispatch(op, tuple(_operand(op, a, template) if isinstance(a, Tensor) else a for a in args))
    if isinstance(result, Tensor):
        return _placed(result, template)
    return type(result)([_placed(r, template) for r in result])


def _placed(values: Tensor, template: Tensor) -> Tensor:
    return from_values(values, template)


def _refused(op: Operator, t: Tensor, template: Tensor) -> RuntimeError:
    return RuntimeError(
        f"cannot call binary pointwise function {op.name}.{op.overload} with inputs of shapes {_text(template)} and "
        f"{_text(t)}"
    )


def _operand(op: Operator, t: Tensor, template: Tensor) -> Tensor:
    if is_nested(t):
        return _nested_operand(op, t, template)
    if not t.ndim:
        return t
    if not is_jagged(template):
        return _dense_in_strided(op, t, template)
    a = template._array
    if t.ndim > template.ndim:
        raise _refused(op, t, template)
    full = t.reshape((1,) * (template.ndim - t.ndim) + tuple(t.shape))
    if full.shape[0] not in (1, a.structure.count):
        raise _refused(op, t, template)
    if full.shape[a.ragged_idx] != 1:
        return _rows(op, full, t, template)
    if full.shape[0] == 1:
        return full.squeeze(0)
    return full.squeeze(a.ragged_idx).index_select(0, owners(template)).movedim(0, a.ragged_idx - 1)


def _rows(op: Operator, full: Tensor, t: Tensor, template: Tensor) -> Tensor:
    """A padded dense operand: where all components are as long as it is, each has its row."""
    a = template._array
    if any(n != full.shape[a.ragged_idx] for n in a.structure.component_lengths()):
        raise _refused(op, t, template)
    whole = full.expand((a.structure.count, *full.shape[1:]))
    return cat_values([whole[i] for i in range(a.structure.count)], template)


def _nested_operand(op: Operator, t: Tensor, template: Tensor) -> Tensor:
    a, b = t._array, template._array
    if (a.structure.sizes is None) != (b.structure.sizes is None):
        raise _refused(op, t, template)
    if is_jagged(t):
        if a.structure.ragged != b.structure.ragged or a.ragged_idx - a.ndim != b.ragged_idx - b.ndim:
            raise _refused(op, t, template)
        return get_values(t) if a.structure is b.structure else values_like(t, template)
    if a.structure.sizes != b.structure.sizes:
        raise RuntimeError(
            f"{op.name} does not support broadcasting when given a NestedTensor: sizes are {list(b.structure.sizes)} "
            f"and {list(a.structure.sizes)}"
        )
    return values_like(t, template)


def _dense_in_strided(op: Operator, t: Tensor, template: Tensor) -> Tensor:
    """A dense operand of one value, or with a row for each component."""
    parts = components(template.detach())
    batched = t.ndim == template.ndim and t.shape[0] == len(parts)
    if not batched and t.numel() != 1:
        raise RuntimeError(
            f"Expected both self and other to be nested, but got a nested self and non-nested other for {op.name} "
            f"(a dense tensor of shape {list(t.shape)})"
        )
    if t.numel() == 1:
        if op.name in ("add", "sub"):
            raise RuntimeError("Expected both self and other to be nested, but got a nested self and non-nested other")
        return t.reshape(())
    return cat_values([t[i].expand(p.shape) for i, p in enumerate(parts)], template)


def _text(t: Tensor) -> str:
    return f"({', '.join(map(str, t._array.shape))})"


def owners(t: Tensor) -> Tensor:
    """The component of each packed row; rows in holes go with the component before."""
    offsets = t._array.structure.offsets
    lengths = offsets[1:] - offsets[:-1]
    return function("repeat_interleave")(lengths)


# ---- on the values, whatever their structure
@nested_rule(
    "clone",
    "_to_copy",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "alias",
    "native_dropout",
    "dropout",
    "fill",
    "zero",
    "bernoulli",
    "uniform",
    "normal_functional",
)
def on_values(op: Operator, self, *rest):
    if op.name == "_to_copy" and rest[1] not in (None, self.layout):
        raise RuntimeError(f"Converting between nested tensor layouts is not supported: {self.layout} to {rest[1]}")
    if any(is_nested(r) for r in rest):
        rest = tuple(values_like(r, self) if is_nested(r) else r for r in rest)
    if op.name == "fill" and isinstance(rest[0], Tensor) and rest[0].ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {rest[0].ndim} dimensions."
        )
    if op.name == "clone" and rest[0] not in (None, devices.preserve_format, devices.contiguous_format):
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: "
            + "".join(w.capitalize() for w in rest[0].name.split("_"))
        )
    copied = op.name.endswith("_like") or op.name == "clone" and rest[0] is not None
    if copied and self._array.structure.strides is not None or op.name == "clone" and rest[0] is not None:
        self = packed(self)
    result = dispatch(op, (get_values(self), *rest))
    return from_values(result, self) if isinstance(result, Tensor) else tuple(from_values(m, self) for m in result)


def _lies_alike(t: Tensor, other: Tensor) -> bool:
    """Whether a jagged tensor has components of the sizes of another's, ragged by whichever offsets."""
    if not is_jagged(other):
        return False
    a, b = t._array, other._array
    if a.shape == b.shape:
        return True
    if a.ragged_idx != b.ragged_idx or a.structure.component_lengths() != b.structure.component_lengths():
        return False
    return [s for i, s in enumerate(a.shape) if i != a.ragged_idx] == [
        s for i, s in enumerate(b.shape) if i != b.ragged_idx
    ]


@nested_rule("copy")
def copy(op: Operator, self: Tensor, source: Tensor, *rest) -> Tensor:
    if not is_nested(source) or not is_nested(self):
        raise RuntimeError("copy_ only supports Nested source and destination for Nested implementations")
    if is_jagged(self) and not _lies_alike(self, source):
        raise RuntimeError(
            f"copy_(): expected compatible input and src shapes, but got: {_text(self)} and {_text(source)}"
        )
    if not is_jagged(self) and source._array.structure.sizes != self._array.structure.sizes:
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    return from_values(values_like(source, self).to(self.dtype), self)


@nested_rule("detach")
def detach(op: Operator, self):
    return self.shallow()
