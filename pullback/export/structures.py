"""Classes of users as containers of inputs and outputs, and structures as plain data.

In: dataclasses. Out: inner nodes of trees, and encodings of trees of which files are made. What always holds: a class is
registered once, and has the same fields in a file and in the program that reads it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core import tree
from ..ops.system.return_types import ResultTuple, result_type_named

registered: dict[str, type] = {}  # name in files -> class


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be inputs and outputs of exported programs."""
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    if registered.get(name) is cls:
        return
    fields = [f.name for f in dataclasses.fields(cls) if f.init]

    def flatten(value: Any):
        present = tuple(f for f in fields if getattr(value, f) is not None)
        return [getattr(value, f) for f in present], present, present

    tree.optree.register_pytree_node(
        cls, flatten, lambda present, values: cls(**dict.fromkeys(fields) | dict(zip(present, values, strict=True))), namespace="pullback",
    )  # fmt: skip
    registered[name] = cls


def encoded(value: Any) -> Any:
    """A tree of leaves that are plain data, as data that JSON can hold."""
    if dataclasses.is_dataclass(value) and type(value) in registered.values():
        name = next(n for n, c in registered.items() if c is type(value))
        return {
            "dataclass": name,
            "fields": {f.name: encoded(getattr(value, f.name)) for f in dataclasses.fields(value)},
        }
    if isinstance(value, ResultTuple):
        return {
            "results": type(value).__name__,
            "fields": list(type(value).field_names),
            "values": [encoded(v) for v in value],
        }
    if type(value) in (tuple, list):
        return {type(value).__name__: [encoded(v) for v in value]}
    if type(value) is dict:
        if not all(isinstance(k, (str, int)) for k in value):
            raise NotImplementedError("save: dicts whose keys are no strings or ints are not implemented")
        return {"dict": [[k, encoded(v)] for k, v in value.items()]}
    if isinstance(value, (int, str, type(None))):
        return value
    raise NotImplementedError(f"save: a {type(value).__name__} among inputs or outputs is not implemented")


def decoded(data: Any) -> Any:
    """The tree that `encoded` was given."""
    if not isinstance(data, dict):
        return data
    if "results" in data:
        return result_type_named(data["results"], tuple(data["fields"]))([decoded(v) for v in data["values"]])
    ((kind, parts),) = data.items() if "dataclass" not in data else (("dataclass", data),)
    if kind == "dataclass":
        if parts["dataclass"] not in registered:
            raise RuntimeError(
                f"load: the dataclass {parts['dataclass']} is not registered: call torch.export.register_dataclass"
            )
        return registered[parts["dataclass"]](**{k: decoded(v) for k, v in parts["fields"].items()})
    if kind == "dict":
        return {k: decoded(v) for k, v in parts}
    return (tuple if kind == "tuple" else list)(decoded(v) for v in parts)
