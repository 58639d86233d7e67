"""Nested containers as flat lists and back, with PyTorch's interface (`torch.utils._pytree`).

In: any Python value. Out: its leaves and a `TreeSpec`, from which the value is made again. Inner nodes are the types in
`SUPPORTED_NODES`: tuples, lists, dicts (in the order of their keys' insertion), named tuples, and what users register.
What always holds: `tree_unflatten(*tree_flatten(x))` is like `x`.

keys         the steps of a path to a leaf
registry     the types that are inner nodes
structures   `TreeSpec`
files        structures in files
functions    flattening, mapping, asking
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .files import treespec_dumps, treespec_loads
from .functions import (  # noqa: F401
    _broadcast_to_and_flatten,
    _flatten,
    _paths,
    arg_tree_leaves,
    map_only,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_flatten_with_path,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
)
from .keys import (  # noqa: F401
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    SequenceKey,
    key_get,
    keystr,
)
from .registry import (  # noqa: F401
    BUILTIN_TYPES,
    CONSTANT_NODES,
    NAMEDTUPLE_NAMES,
    NO_NAME,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    NodeDef,
    PyTree,
    SerializedNode,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _node_type,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _register,
    _register_namedtuple,
    _register_pytree_node,
    _sequence_keys,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
    tree_is_leaf,
)
from .structures import (  # noqa: F401
    _LEAF_SPEC,
    LeafSpec,
    PyTreeSpec,
    TreeSpec,
    treespec_dict,
    treespec_leaf,
    treespec_pprint,
    treespec_tuple,
)

# Names by which programs reach the same.
_is_leaf = tree_is_leaf
_get_node_type = _node_type
_private_register_pytree_node = register_pytree_node
_is_namedtuple_instance = is_namedtuple_instance

# The types of the arguments of `register_pytree_node`.
FlattenFn = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = Callable[[Iterable, Context], PyTree]
DumpableContext = Any
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]

__all__ = [
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec",
    "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "register_pytree_node", "tree_all",
    "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip
