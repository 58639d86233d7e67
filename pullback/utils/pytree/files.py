"""Structures in files: JSON in PyTorch's form, so each library reads what the other wrote.

In: a `TreeSpec`. Out: text. The context of a node is JSON text inside the JSON, unless its type was registered with functions
that write it. What always holds: reading a structure imports no code; a class that it names must be loaded already.
"""

from __future__ import annotations

import enum
import json
import sys
from collections import defaultdict, namedtuple
from typing import Any

from .registry import (
    NAMEDTUPLE_NAMES,
    NO_NAME,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    Context,
)
from .structures import _LEAF_SPEC, TreeSpec

_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}."
        )
    _check_protocol(_PROTOCOL if protocol is None else protocol)
    return json.dumps([_PROTOCOL, _plain(treespec)], default=_plain_enum)


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, data = json.loads(serialized, object_hook=_enum_of)
    _check_protocol(protocol)
    return _from_plain(data)


def _check_protocol(protocol: Any) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")


def _plain(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name == NO_NAME:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. "
            "Please update your _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    write = known.to_dumpable_context or _CONTEXTS.get(spec.type, (_context_text,))[0]
    return {
        "type": known.serialized_type_name,
        "context": write(spec.context),
        "children_spec": [_plain(c) for c in spec.children_specs],
    }


def _from_plain(data: dict) -> TreeSpec:
    if data["type"] is None:
        return _LEAF_SPEC
    if data["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[data["type"]]
    read = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context or _CONTEXTS.get(kind, (None, _context_of))[1]
    return TreeSpec(kind, read(data["context"]), [_from_plain(c) for c in data["children_spec"]])


# ---- contexts
def _context_text(context: Context) -> str:
    try:
        return json.dumps(context, default=_plain_enum)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
            "_register_pytree_node."
        ) from error


def _context_of(text: str) -> Context:
    return json.loads(text, object_hook=_enum_of)


def _namedtuple_text(cls: type) -> str:
    if cls not in NAMEDTUPLE_NAMES:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return NAMEDTUPLE_NAMES[cls]


def _namedtuple_named(name: str) -> type:
    for cls, known in NAMEDTUPLE_NAMES.items():
        if known == name:
            return cls
    raise NotImplementedError(
        f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name."
    )


def _defaultdict_plain(context: Context) -> dict:
    factory, keys = context
    return {
        "default_factory_module": getattr(factory, "__module__", None),
        "default_factory_name": getattr(factory, "__qualname__", None),
        "dict_context": keys,
    }


def _defaultdict_context(data: dict) -> list:
    module, name = data["default_factory_module"], data["default_factory_name"]
    factory = None if module is None and name is None else _loaded(module, name)
    return [factory, data["dict_context"]]


_CONTEXTS: dict[Any, tuple] = {
    namedtuple: (_namedtuple_text, _namedtuple_named),
    defaultdict: (_defaultdict_plain, _defaultdict_context),
}


# ---- members of enumerations, and what is named
def _plain_enum(value: Any) -> dict:
    if isinstance(value, enum.Enum):
        return {"__enum__": True, "fqn": f"{type(value).__module__}:{type(value).__qualname__}", "name": value.name}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _enum_of(data: dict) -> Any:
    if "__enum__" not in data:
        return data
    module, _, name = data["fqn"].partition(":")
    found = _loaded(module, name)
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise NotImplementedError(f"Can't deserialize a member of {data['fqn']}: it is no enumeration.")
    return found[data["name"]]


def _loaded(module: str, name: str) -> Any:
    """What a module that is already loaded calls by a (dotted) name: a structure never imports code."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise NotImplementedError(f"Can't deserialize TreeSpec: {module}.{name} is not loaded.")
    return found
