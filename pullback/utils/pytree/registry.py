"""The types that are inner nodes, and how each is taken apart and made again.

In: classes with functions that flatten and unflatten their instances. Out: `SUPPORTED_NODES`. What always holds: a class
that is registered here is an inner node for the rest of the package too (`core.tree`).
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

from ...core import tree as core_tree
from ...core.size import Size
from ...graph.immutable import immutable_dict, immutable_list
from ...ops.system.return_types import ResultTuple
from .keys import GetAttrKey, MappingKey, SequenceKey

Context = Any
PyTree = Any


class NodeDef(NamedTuple):
    """How the instances of a type are taken apart and made again."""

    type: type
    flatten_fn: Callable[[Any], tuple[list, Context]]
    unflatten_fn: Callable[[Iterable, Context], Any]
    flatten_with_keys_fn: Callable | None = None


class SerializedNode(NamedTuple):
    """How the structure of a type is written into a file."""

    typ: type
    serialized_type_name: str
    to_dumpable_context: Callable | None = None
    from_dumpable_context: Callable | None = None


SUPPORTED_NODES: dict[type, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[type, SerializedNode] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, type] = {}
CONSTANT_NODES: set[type] = set()
NAMEDTUPLE_NAMES: dict[type, str] = {}  # named tuples that may be written into files, and the names they have there
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})  # type: ignore[arg-type]
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
NO_NAME = "NO_SERIALIZED_TYPE_NAME_FOUND"


# ---- types
def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is a named tuple: a tuple with a tuple of field names."""
    names = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(names, tuple)
        and all(type(n) is str for n in names)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(value: Any) -> bool:
    return is_namedtuple_class(type(value))


def is_namedtuple(value: Any) -> bool:
    return is_namedtuple_class(value if isinstance(value, type) else type(value))


_MAY_BE_A_BASE = 1 << 10  # the flag of classes that others may be made of: named tuples of C have it not


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a named tuple of C, or of results (`torch.return_types`)."""
    if not isinstance(cls, type):
        return False
    return issubclass(cls, ResultTuple) or (
        cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
        and not cls.__flags__ & _MAY_BE_A_BASE
    )


def is_structseq_instance(value: Any) -> bool:
    return is_structseq_class(type(value))


def is_structseq(value: Any) -> bool:
    return is_structseq_class(value if isinstance(value, type) else type(value))


def _node_type(value: Any) -> type | None:
    """The registered type that takes a value apart; None for a leaf."""
    cls = type(value)
    if cls in SUPPORTED_NODES:
        return cls
    if issubclass(cls, ResultTuple):
        _know_results(cls)
        return cls
    return namedtuple if is_namedtuple_class(cls) else None  # type: ignore[return-value]


def _know_results(cls: type) -> None:
    """A class of named results, taken apart as a tuple; the rest of the package knows it from the start."""
    _register(cls, _tuple_flatten, lambda values, _: cls(values), with_keys=lambda t: (_sequence_keys(t), None))


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return bool(is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


# ---- registering
def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Make a class an inner node: `flatten_fn(x) -> (children, context)`, `unflatten_fn(children, context) -> x`."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
        flatten_with_keys_fn,
    )
    if cls is not namedtuple and cls not in core_tree.BUILT_IN:
        core_tree.register(cls, flatten_fn, unflatten_fn)


def _register(cls, flatten_fn, unflatten_fn, name=None, to_dumpable=None, from_dumpable=None, with_keys=None) -> None:
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered together."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, with_keys)
    SUPPORTED_SERIALIZED_TYPES[cls] = SerializedNode(cls, name or NO_NAME, to_dumpable, from_dumpable)
    if name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls: type) -> None:
    """Forget a class; for tests and reloads."""
    del SUPPORTED_NODES[cls]
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name, None)
    CONSTANT_NODES.discard(cls)
    core_tree.deregister(cls)


def _register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    to_str_fn: Callable | None = None,
    maybe_from_str_fn: Callable | None = None,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """The former name of `register_pytree_node`, which takes the place of an earlier registration."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. "
        "Please use `torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
            "`from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=2,
        )
    if cls in SUPPORTED_NODES:
        _overwriting(cls)
        _deregister_pytree_node(cls)
    register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _overwriting(cls: type) -> None:
    warnings.warn(
        f"{cls} is already registered as pytree node. Overwriting the previous registration.", UserWarning, stacklevel=3
    )


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Let the structure of a named tuple be written into files, under a name."""
    if not is_namedtuple_class(cls):
        raise TypeError(f"_register_namedtuple(cls): expected the class of a named tuple, got {cls!r}")
    if cls in NAMEDTUPLE_NAMES:
        _overwriting(cls)
    NAMEDTUPLE_NAMES[cls] = serialized_type_name


def _field_names(cls: type, field_names: Iterable[str] | None, dropped: set[str]) -> list[str]:
    """The fields of a class that are children: those given, which must be those that its instances are made of."""
    if not is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
            )
        return [n for n in field_names if n not in dropped]
    made_of = [f.name for f in fields(cls) if f.init]
    if field_names is None:
        return [n for n in made_of if n not in dropped]
    names = [n for n in field_names if n not in dropped]
    problems = ""
    if missing := {n for n in made_of if n not in dropped} - set(names):
        problems += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, "
            "please add them to `field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected := set(names) - set(made_of):
        problems += f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to `drop_field_names`.\n"
    if problems:
        raise ValueError(f"field_names does not include all dataclass fields.\n{problems}")
    return names


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a class an inner node whose children are its fields: those that `__init__` takes, unless they are named."""
    names = _field_names(cls, field_names, set(drop_field_names or ()))

    def flatten(value):
        present = [n for n in names if getattr(value, n) is not None]
        return [getattr(value, n) for n in present], [present, [n for n in names if n not in present]]

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    def with_keys(value):
        values, context = flatten(value)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], values, strict=True)], context

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


@dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: its value, compared by equality."""

    value: Any


def register_constant(cls: type) -> None:
    """Make instances of a class part of the structure: they have no leaves, and are compared by equality."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(
        cls, lambda x: ([], ConstantNode(x)), lambda _, c: c.value, flatten_with_keys_fn=lambda x: ([], ConstantNode(x))
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---- containers that are known
def _sequence_keys(values) -> list:
    return [(SequenceKey(i), v) for i, v in enumerate(values)]


def _tuple_flatten(d: tuple):
    return list(d), None


def _tuple_flatten_with_keys(d: tuple):
    return _sequence_keys(d), None


def _tuple_unflatten(values, context):
    return tuple(values)


def _list_flatten(d: list):
    return d, None


def _list_flatten_with_keys(d: list):
    return _sequence_keys(d), None


def _list_unflatten(values, context):
    return list(values)


def _dict_flatten(d: Mapping):
    return list(d.values()), list(d.keys())


def _dict_flatten_with_keys(d: Mapping):
    return [(MappingKey(k), v) for k, v in d.items()], list(d.keys())


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _ordereddict_flatten(d: OrderedDict):
    return list(d.values()), list(d.keys())


_ordereddict_flatten_with_keys = _dict_flatten_with_keys
_odict_flatten = _ordereddict_flatten


def _ordereddict_unflatten(values, context):
    return OrderedDict(zip(context, values, strict=True))


_odict_unflatten = _ordereddict_unflatten


def _defaultdict_flatten(d: defaultdict):
    return list(d.values()), [d.default_factory, list(d.keys())]


def _defaultdict_flatten_with_keys(d: defaultdict):
    return [(MappingKey(k), v) for k, v in d.items()], [d.default_factory, list(d.keys())]


def _defaultdict_unflatten(values, context):
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _deque_flatten(d: deque):
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque):
    return _sequence_keys(d), d.maxlen


def _deque_unflatten(values, context):
    return deque(values, maxlen=context)


def _namedtuple_flatten(d):
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d):
    return [(GetAttrKey(name), getattr(d, name)) for name in d._fields], type(d)


def _namedtuple_unflatten(values, context):
    return context(*values)


for _cls, _kind, _serialized in (
    (tuple, "tuple", "builtins.tuple"),
    (list, "list", "builtins.list"),
    (dict, "dict", "builtins.dict"),
    (namedtuple, "namedtuple", "collections.namedtuple"),
    (OrderedDict, "ordereddict", "collections.OrderedDict"),
    (defaultdict, "defaultdict", "collections.defaultdict"),
    (deque, "deque", "collections.deque"),
):
    _register(
        _cls,
        globals()[f"_{_kind}_flatten"],
        globals()[f"_{_kind}_unflatten"],
        _serialized,
        with_keys=globals()[f"_{_kind}_flatten_with_keys"],
    )
for _cls, _kind in ((immutable_list, "list"), (immutable_dict, "dict")):  # the arguments of a graph's nodes
    _register(
        _cls,
        globals()[f"_{_kind}_flatten"],
        lambda values, context, cls=_cls: cls(values if context is None else zip(context, values, strict=True)),
        f"torch.fx.immutable_collections.{_cls.__name__}",
        with_keys=globals()[f"_{_kind}_flatten_with_keys"],
    )
_register(
    Size, lambda d: (list(d), None), lambda values, _: Size(values), "torch.Size", with_keys=_tuple_flatten_with_keys
)
