"""`dynamic_shapes` as plain data and back.

In: dynamic shapes and the arguments they speak of. Out: a `DynamicShapesSpec` of names, numbers and hints, or its dict; or
the dynamic shapes again. What always holds: every name in the shapes is described among the dimensions.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..core import tree
from ..core.tensor import Tensor
from .constraints import leaf_specs
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _DerivedDim, _DimHint, _DimHintType, bad
from .suggestions import DERIVED


@dataclasses.dataclass
class RootDim:
    """The bounds of a named dimension, and what is made of it."""

    min: int
    max: int | None
    derived: list[str]


@dataclasses.dataclass
class DynamicShapesSpec:
    """Dynamic shapes in names, and what the names mean."""

    dynamic_shapes: Any
    dims: dict[str, RootDim]


def dump_dynamic_shapes(
    dynamic_shapes: Any, args: tuple, kwargs: dict | None = None, to_dict: bool = False
) -> DynamicShapesSpec | dict:
    """Dynamic shapes as plain data; tensors of which nothing is said are static."""
    kwargs = kwargs or {}
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        raise bad("dynamic shapes of a collection are written down as what its dynamic_shapes() gives")
    dims: dict[str, RootDim] = {}
    parts = list(dynamic_shapes.values() if isinstance(dynamic_shapes, dict) else dynamic_shapes or ())
    values = [*args, *kwargs.values()]
    parts = parts if parts else [None] * len(values)
    result = tuple(_written(v, s, f"[{i}]", dims) for i, (v, s) in enumerate(zip(values, parts, strict=True)))
    spec = DynamicShapesSpec(result, dims)
    return dataclasses.asdict(spec) if to_dict else spec


def _written(value: Any, said: Any, where: str, dims: dict[str, RootDim]) -> Any:
    if isinstance(value, Tensor):
        (spec,) = leaf_specs(value, said, where)
        return [_name(spec.get(d), dims) for d in range(value.ndim)]
    if tree.optree.tree_is_leaf(value, none_is_leaf=True, namespace="pullback"):
        (hint,) = leaf_specs(value, said, where)
        return None if hint is None else _name(hint, dims)
    leaf_specs(value, said, where)  # raises where the structures differ
    children, _, keys, _ = tree.optree.tree_flatten_one_level(value, none_is_leaf=True, namespace="pullback")
    pick = (lambda k, i: said[k]) if isinstance(said, dict) else (lambda k, i: list(said)[i])
    rows = [_written(v, None if said is None else pick(k, i), f"{where}[{k!r}]", dims) for i, (v, k) in enumerate(zip(children, keys, strict=True))]  # fmt: skip
    return dict(zip(keys, rows, strict=True)) if isinstance(value, dict) else type(value)(rows) if type(value) in (tuple, list) else rows  # fmt: skip


def _name(dim: Any, dims: dict[str, RootDim]) -> Any:
    if dim is None:
        return "_DimHint.STATIC"
    if isinstance(dim, _DimHint):
        return f"_DimHint.{dim.type.name}"
    if not isinstance(dim, Dim):
        return dim
    root = dim.root
    row = dims.setdefault(root.__name__, RootDim(int(root.min), None if root.max == math.inf else int(root.max), []))
    if isinstance(dim, _DerivedDim) and dim.__name__ not in row.derived:
        row.derived.append(dim.__name__)
    return dim.__name__


def load_dynamic_shapes(spec: DynamicShapesSpec | dict, from_dict: bool | None = False) -> Any:
    """The dynamic shapes that were written down."""
    if from_dict:
        if not isinstance(spec, dict):
            raise bad(f"With from_dict=True, expected `spec` to be a dict, got {type(spec)}")
        wanted = (("dynamic_shapes", "dims"), set(spec))
        if set(wanted[0]) - wanted[1]:
            raise bad(f"With from_dict=True, expected `spec` to have the keys {list(wanted[0])}, got {sorted(spec)}")
        rows = {name: _root(name, row) for name, row in spec["dims"].items()}
        spec = DynamicShapesSpec(spec["dynamic_shapes"], rows)
    elif not isinstance(spec, DynamicShapesSpec):
        raise bad(f"Expected `spec` to be a DynamicShapesSpec, got {type(spec)}")
    known: dict[str, Any] = {}
    for name, row in spec.dims.items():
        known[name] = Dim(name, min=row.min, max=row.max)
        for text in row.derived:
            known[text] = _derived(known[name], name, text)
    return tree.tree_map(lambda part: _read(part, known, spec.dims), spec.dynamic_shapes)


def _root(name: str, row: dict) -> RootDim:
    if not isinstance(row.get("min"), int):
        raise bad(f"Expected dims in `spec['dims']` to map `min` to an int, got {name}: {row.get('min')}")
    return RootDim(row["min"], row.get("max"), list(row.get("derived", ())))


def _derived(root: Dim, name: str, text: str) -> Dim:
    m = DERIVED.match(text)
    if m is None or m.group(2) != name:
        raise bad(f"Expected derived expressions in `spec['dims']` to be linear in their dimension, got {name}: {text}")
    factor, _, sign, offset = m.groups()
    result = root * int(factor) if factor else root
    return result + int(offset) * (1 if sign == "+" else -1) if sign else result


def _read(part: Any, known: dict[str, Any], dims: dict) -> Any:
    if part is None or isinstance(part, int):
        return part
    if not isinstance(part, str):
        raise bad(f"Expected leaves in `spec['dynamic_shapes']` to be names, ints or None, got {part!r}")
    if part.startswith("_DimHint."):
        kind = part.removeprefix("_DimHint.")
        if kind not in _DimHintType.__members__:
            raise bad(f"Expected dims in `spec['dynamic_shapes']` to be hints that there are, got {part}")
        return _DimHint(_DimHintType[kind])
    if part not in known:
        raise bad(f"Expected dims in `spec['dynamic_shapes']` to be tracked in `spec['dims']`, got {part} which is not in {dims.keys()}")  # fmt: skip
    return known[part]
