"""Nested containers as flat lists and back, with PyTorch's interface (`torch.utils._pytree`).

In: any Python value. Out: its leaves and a `TreeSpec`, from which the value is made again. Inner nodes are the types in
`SUPPORTED_NODES`: tuples, lists, dicts (in the order of their keys' insertion), named tuples, and what users register.
What always holds: `tree_unflatten(*tree_flatten(x))` is like `x`. A class that is registered here is an inner node for the
rest of the package too (`core.tree`).
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ..core import tree as core_tree
from ..core.size import Size
from ..ops.system.return_types import ResultTuple

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
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})  # type: ignore[arg-type]
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
NO_NAME = "NO_SERIALIZED_TYPE_NAME_FOUND"


# ---------------------------------------------------------------------------------------------------------------- keys
@dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple


def keystr(path: Iterable) -> str:
    """A path as Python would write it: `[0]['a'].b`."""
    return "".join(str(key) for key in path)


def key_get(obj: Any, path: Iterable) -> Any:
    for key in path:
        obj = key.get(obj)
    return obj


# --------------------------------------------------------------------------------------------------------------- types
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


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a named tuple of C, or of results (`torch.return_types`)."""
    if isinstance(cls, type) and issubclass(cls, ResultTuple):
        return True
    return (
        isinstance(cls, type) and cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_sequence_fields", None), int)
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
    return namedtuple if is_namedtuple_class(cls) else None  # type: ignore[return-value]


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return bool(is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


# ------------------------------------------------------------------------------------------------------------- registry
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


def register_dataclass(cls: type, *, field_names=None, drop_field_names=None, serialized_type_name=None) -> None:
    """Make a dataclass an inner node whose children are its fields."""
    dropped = set(drop_field_names or ())
    names = [n for n in (field_names or [f.name for f in fields(cls)]) if n not in dropped]

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


# ----------------------------------------------------------------------------------------------------- containers known
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
_register(
    Size, lambda d: (list(d), None), lambda values, _: Size(values), "torch.Size", with_keys=_tuple_flatten_with_keys
)


# --------------------------------------------------------------------------------------------------------------- specs
class TreeSpec:
    """The structure of a value: its type, its context, and the structures of its children."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Context = None, children_specs: list[TreeSpec] | None = None):
        self.type, self._context, self._children = type, context, list(children_specs or ())
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
        self.num_leaves = sum(c.num_leaves for c in self._children)

    @property
    def context(self) -> Context:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return False

    def unflatten(self, leaves: Iterable) -> PyTree:
        """The value with this structure and these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._fill(iter(leaves))

    def _fill(self, leaves) -> PyTree:
        return SUPPORTED_NODES[self.type].unflatten_fn([c._fill(leaves) for c in self._children], self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of a value that stand where this structure has leaves."""
        found: list[PyTree] = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: PyTree, found: list) -> None:
        kind = _node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind is None or (kind is not self.type and not both_dicts):
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        if both_dicts:
            expected = self._context[1] if self.type is defaultdict else self._context
            if set(tree) != set(expected):
                raise ValueError(f"Node keys mismatch; expected keys {list(expected)}, but got {list(tree)}.")
            children = [tree[key] for key in expected]
        else:
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            children = list(children)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if kind is not deque and context != self._context:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for child, spec in zip(children, self._children, strict=True):
            spec._collect(child, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self._context, self._children) == (other.type, other._context, other._children)

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in (dict, OrderedDict):
            context = tuple(context)
        return hash((self.type, repr(context), tuple(map(hash, self._children))))

    def __repr__(self, indent: int = 0) -> str:
        name = getattr(self.type, "__name__", str(self.type))
        if not self._children:
            return f"TreeSpec({name}, {self._context}, [])"
        inner = indent + 2
        children = f",\n{' ' * inner}".join(c.__repr__(inner) for c in self._children)
        return f"TreeSpec({name}, {self._context}, [{children}])"

    __str__ = __repr__


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def _fill(self, leaves) -> PyTree:
        return next(leaves)

    def _collect(self, tree: PyTree, found: list) -> None:
        found.append(tree)

    def __repr__(self, indent: int = 0) -> str:
        return "*"

    __str__ = __repr__


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Mapping | Iterable = (), **kwargs: TreeSpec) -> TreeSpec:
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


# ------------------------------------------------------------------------------------------------------------ functions
def _flatten(tree: PyTree, leaves: list, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """The leaves of a value, in order, and its structure."""
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The value with a structure and leaves."""
    if isinstance(treespec, TreeSpec):
        return treespec.unflatten(leaves)
    if core_tree.is_spec(treespec):
        return core_tree.tree_unflatten(leaves, treespec)
    raise TypeError(
        f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}."
    )


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None):
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """A value with `func` applied to each leaf (and to what stands in the same place of `rests`)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """`tree_map` for what `func` does: the value itself is returned."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def map_only(kinds, /) -> Callable:
    """A decorator: the function is applied to values of some types, or where a predicate holds; others stay."""
    test = kinds if callable(kinds) and not isinstance(kinds, type) else lambda x: isinstance(x, kinds)

    def decorate(func):
        return lambda x: func(x) if test(x) else x

    return decorate


def tree_map_only(kinds, /, func: Callable, tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds, /, func: Callable, tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of a call's arguments."""
    leaves: list = []
    for value in (*args, *kwargs.values()):
        _flatten(value, leaves, None)
    return leaves


def _paths(path: tuple, tree: PyTree, is_leaf) -> Iterable[tuple[tuple, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf=None) -> list[tuple[tuple, Any]]:
    return list(_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf=None) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf=None) -> PyTree:
    """`tree_map` where `func` gets the path of each leaf first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = list(zip(*pairs)) or [(), ()]
    return spec.unflatten(map(func, *columns, *(spec.flatten_up_to(rest) for rest in rests)))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf=None) -> list | None:
    """One value for each leaf of a structure, where a value may stand for a whole part of it; None if it does not fit."""
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        found += flat
    return found


# --------------------------------------------------------------------------------------------------------------- files
_PROTOCOL = 1


def _plain(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name == NO_NAME:
        raise NotImplementedError(
            f"Serializing {spec.type} in pytree is not registered: pass serialized_type_name to register_pytree_node."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec.context)
    elif spec.type is namedtuple:
        context = f"{spec.context.__module__}.{spec.context.__qualname__}"
    else:
        context = spec.context
    return {
        "type": known.serialized_type_name,
        "context": context,
        "children_spec": [_plain(c) for c in spec.children_specs],
    }


def _from_plain(data: dict) -> TreeSpec:
    if data["type"] is None:
        return _LEAF_SPEC
    if data["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[data["type"]]
    known, context = SUPPORTED_SERIALIZED_TYPES[kind], data["context"]
    if known.from_dumpable_context is not None:
        context = known.from_dumpable_context(context)
    elif kind is namedtuple:
        context = _class_named(context)
    return TreeSpec(kind, context, [_from_plain(c) for c in data["children_spec"]])


def _class_named(name: str) -> type:
    """A named tuple's class by its full name, if its module is already loaded: a structure never imports code."""
    import sys

    module, _, last = name.rpartition(".")
    found = getattr(sys.modules.get(module), last, None)
    if not (isinstance(found, type) and is_namedtuple_class(found)):
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple {name}: no such class is loaded.")
    return found


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}."
        )
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps([_PROTOCOL, _plain(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, data = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _from_plain(data)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure with a star for each leaf, as Python would print the value."""

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(tree_unflatten([Star() for _ in range(treespec.num_leaves)], treespec))


_is_leaf = tree_is_leaf
_get_node_type = _node_type
_private_register_pytree_node = _register_pytree_node = register_pytree_node
_is_namedtuple_instance = is_namedtuple_instance
_register_namedtuple = register_pytree_node
