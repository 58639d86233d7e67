"""Tensor subclasses in traces.

A *wrapper* is a tensor made of other tensors, its parts (which may be wrappers too): its class has
`__torch_dispatch__`, `__tensor_flatten__`, which names the parts and gives a context, and `__tensor_unflatten__`, which
makes a wrapper of parts and context. `layout_of` says how a wrapper is built, `parts_of` gives the plain tensors it
comes down to, `rebuilt` makes one of such tensors again. What always holds: `rebuilt(layout_of(t), iter(parts_of(t)))`
is a wrapper like `t`, without history.

Modes that work on plain tensors leave an operator on wrappers to the wrappers' class (`taken_by_wrappers`), and see what
it calls. Classes that only have a `__torch_function__` need no layout: a fake of such a tensor has its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core import modes
from ...core.geometry import Geometry
from ...core.node import requires_grad
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, META, SUBCLASS, Tensor, stride_of, subclass_of, wrap_meta
from ...ops.system.inplace import bump
from ...ops.system.operator import Operator
from ...ops.system.overrides import TorchDispatchMode, call_subclasses, dispatch_args
from ..fake.conversion import OWN_ATTRIBUTES

if TYPE_CHECKING:
    from ..fake.mode import FakeTensorMode


@dataclass(frozen=True)
class Layout:
    """How a wrapper is built: one entry of `parts` for each name, None where that part is a plain tensor."""

    cls: type
    names: tuple[str, ...]
    context: Any
    shape: tuple
    stride: tuple
    parts: tuple[Layout | None, ...]

    @property
    def count(self) -> int:
        """How many plain tensors such a wrapper comes down to."""
        return sum(1 if p is None else p.count for p in self.parts)


def is_wrapper(value) -> bool:
    """Whether a value is a tensor of a class that says what it is made of."""
    if not isinstance(value, Tensor) or not value._keys & DISPATCH_SUBCLASS:
        return False
    return hasattr(type(value), "__tensor_flatten__") and hasattr(type(value), "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(cls: type) -> bool:
    """Whether tensors of a class are wrappers."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or not cls.class_keys & DISPATCH_SUBCLASS:
        return False
    return hasattr(cls, "__tensor_flatten__") and hasattr(cls, "__tensor_unflatten__")


def flattened(t: Tensor) -> tuple[list[tuple[str, Tensor]], Any]:
    """(name, part) for each part of a wrapper, and its context."""
    names, context = t.__tensor_flatten__()
    return [(name, getattr(t, name)) for name in names], context


def layout_of(value) -> Layout | None:
    """How a wrapper is built; None of any other value."""
    if not is_wrapper(value):
        return None
    parts, context = flattened(value)
    return Layout(
        type(value), tuple(n for n, _ in parts), context, tuple(value._array.shape), tuple(stride_of(value)),
        tuple(layout_of(p) for _, p in parts),
    )  # fmt: skip


def parts_of(value) -> list:
    """The plain tensors that a wrapper comes down to, in order; of any other value, the value alone."""
    if not is_wrapper(value):
        return [value]
    return [plain for _, part in flattened(value)[0] for plain in parts_of(part)]


def rebuilt(layout: Layout | None, plain: Iterator):
    """A value of a layout, of as many plain tensors as it takes."""
    if layout is None:
        return next(plain)
    parts = {name: rebuilt(part, plain) for name, part in zip(layout.names, layout.parts, strict=True)}
    with modes.masked(modes.CAPTURE):  # making it again is no step of the program
        return layout.cls.__tensor_unflatten__(parts, layout.context, layout.shape, layout.stride)


def transform_subclass(t: Tensor, callback, outer_size=None, outer_stride=None) -> Tensor:
    """A wrapper whose parts are `callback(name, part)` of another's."""
    parts, context = flattened(t)
    result = {name: callback(name, part) for name, part in parts}
    size = outer_size if outer_size is not None else t.size()
    stride = outer_stride if outer_stride is not None else t.stride()
    out = type(t).__tensor_unflatten__(result, context, size, stride)
    if tuple(out.shape) != tuple(size):
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, but got: {out.shape}"
        )
    return out


# ---- fakes
def fake_of_subclass(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    """A new tensor of the same class around fakes: for a wrapper, around new objects for the fakes of its parts."""
    layout = layout_of(tensor)
    if layout is None:
        return in_class(mode.from_tensor(tensor), type(tensor))
    return rebuilt(layout, iter([mode.from_tensor(p, static_shapes=True).shallow() for p in parts_of(tensor)]))


def in_class(t: Tensor, cls: type) -> Tensor:
    """A tensor as one of a class that has its own `__torch_function__` alone: the same value, the same history."""
    if type(t) is cls or not cls.class_keys & SUBCLASS or cls.class_keys & DISPATCH_SUBCLASS:
        return t
    result = subclass_of(cls, t)
    result._autograd, result._view_info = t._autograd, t._view_info
    return result


def has_class_alone(t: Tensor) -> bool:
    """Whether a tensor is of a class with its own `__torch_function__` and no `__torch_dispatch__`."""
    return bool(t._keys & SUBCLASS and not t._keys & DISPATCH_SUBCLASS)


def like_original(t: Tensor, original: Tensor) -> Tensor:
    """A stand-in for a tensor, in the class of that one, and with its attributes, where the class is all it has of its own."""
    if not has_class_alone(original):
        return t
    result = in_class(t, type(original))
    result.__dict__.update(attributes_of(original))
    return result


def attributes_of(t: Tensor) -> dict:
    """What a program put on a tensor."""
    return {k: v for k, v in t.__dict__.items() if k not in OWN_ATTRIBUTES}


class Rebuild:
    """Makes a wrapper of its parts: a target of graph nodes."""

    def __init__(self, layout: Layout):
        self.layout = layout
        self.__name__ = self.__qualname__ = layout.cls.__name__
        self.__module__ = "rebuild"

    def __call__(self, *plain):
        return rebuilt(self.layout, iter(plain))


# ---- operators on wrappers
def taken_by_wrappers(mode: TorchDispatchMode, op: Operator, args: tuple):
    """What the classes of an operator's wrappers make of it, with a mode that stepped aside in force again for what they
    call; NotImplemented where there are none."""
    for t in op.tensors(args):
        if t._keys & DISPATCH_SUBCLASS:
            break
    else:
        return NotImplemented
    if not dispatch_args(op, args):
        return NotImplemented
    with mode:
        return call_subclasses(op, args)


# ---- what a graph depends on
class Same:
    """A value that cannot be hashed, as a key: equal to itself alone, and kept alive."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other) -> bool:
        return isinstance(other, Same) and other.value is self.value


def as_key(value):
    """A value as part of a key: containers by what they hold."""
    if isinstance(value, dict):
        return (type(value), tuple((as_key(k), as_key(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple, set)):
        return (type(value), tuple(as_key(v) for v in value))
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return Same(value) if isinstance(value, Tensor) else value  # tensors are not compared as a whole


def description(t: Tensor) -> tuple:
    """The class's context and the metadata of all parts of a wrapper, as a key; of a tensor of another class with its own
    `__torch_function__`, its attributes; empty for any other tensor."""
    if not t._keys & (SUBCLASS | DISPATCH_SUBCLASS):
        return ()
    if not is_wrapper(t):
        return as_key(attributes_of(t))
    parts, context = flattened(t)
    return (
        as_key(context),
        tuple(
            (
                name, type(p), p.dtype, p.device, p._keys & ~(FAKE | META), requires_grad(p), tuple(p._array.shape),
                tuple(stride_of(p)), description(p),
            )
            for name, p in parts
        ),
    )  # fmt: skip


# ---- for the classes' own rules
def return_and_correct_aliasing(func: Operator, args: tuple, kwargs: dict | None, out):
    """What `__torch_dispatch__` gives for an operator: where the operator returns an argument that it wrote, that very one, and where it
    changed the shape of that, the wrapper has it too.

    Which wrapper is a view of which is noted by autograd, so there is nothing to do for views."""
    given = dict(zip((a.name for a in func.schema.arguments), args, strict=False)) | (kwargs or {})
    written = {alias: given.get(a.name) for a in func.schema.arguments if a.writes for alias in _aliases(a)}
    if not written:
        return out
    if _changes_shape(func) and args[0]._keys & DISPATCH_SUBCLASS:
        _reshape(func, args, kwargs or {})
    many = isinstance(out, (tuple, list))
    results = list(out) if many else [out]
    for i, returned in enumerate(func.schema.returns[: len(results)]):
        found = [written[alias] for alias in _aliases(returned) if alias in written]
        if found and found[0] is not None:
            results[i] = found[0]
    return type(out)(results) if many and not hasattr(out, "_fields") else tuple(results) if many else results[0]


def _changes_shape(func: Operator) -> bool:
    """Whether an operator gives its first argument another shape."""
    return func.name in ("resize_", "resize_as_", "set_") or func.inplace_of is not None and func.inplace_of.is_view


def _reshape(func: Operator, args: tuple, kwargs: dict) -> None:
    """Give a wrapper the shape that an operator gives it in place, found out on tensors without data."""

    def bare(value):
        if not isinstance(value, Tensor):
            return value
        result = wrap_meta(tuple(value._array.shape), value.dtype, stride_of(value))
        result._offset = value._offset
        return result

    target = args[0]
    with modes.masked(modes.GRAD | modes.DISPATCH):
        done = func(*[bare(a) for a in args], **{k: bare(v) for k, v in kwargs.items()})
    if target._array.__class__ is Geometry:
        target._array, target._offset = done._array, done._offset
    bump(target)


def _aliases(value) -> set[str]:
    info = value.alias_info
    return set() if info is None else info.before_set
