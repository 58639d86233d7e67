"""Named results: `sort` returns `torch.return_types.sort(values=..., indices=...)`, a tuple with names."""

from __future__ import annotations

from ...core.tree import tuple_types
from .operator import Operator, registry

_made: dict[str, type] = {}


class ResultTuple(tuple):
    """A tuple whose fields have names, printed one per line; no named tuple: it is made of one sequence, not of its fields."""

    __slots__ = ()
    field_names: tuple[str, ...] = ()
    n_fields = n_sequence_fields = n_unnamed_fields = 0

    def __repr__(self) -> str:
        body = ",\n".join(f"{n}={v!r}" for n, v in zip(self.field_names, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{body})"

    def __reduce__(self):
        return (_rebuild, (type(self).__name__, self.field_names, tuple(self)))

    def _asdict(self) -> dict:
        return dict(zip(self.field_names, self, strict=True))


def result_type_named(name: str, fields: tuple[str, ...]) -> type:
    """The tuple class of an operator's results."""
    result = _made.get(name)
    if result is None:
        body: dict = {"__slots__": (), "field_names": fields, "n_fields": len(fields), "n_sequence_fields": len(fields)}
        for i, f in enumerate(fields):
            body[f] = property(lambda self, i=i: self[i])
        result = _made[name] = type(name, (ResultTuple,), body)
        tuple_types.append(result)
    return result


def _rebuild(name: str, fields: tuple, values: tuple):
    return result_type_named(name, fields)(values)


def pack_results(op: Operator, values):
    """Several results as the tuple that the schema's result names call for."""
    kind = op.__dict__.get("result_class")
    if kind is None:
        names = tuple(n for _, n in op.schema.returns)
        named = len(names) > 1 and all(names) and op.declared.named
        kind = op.__dict__["result_class"] = result_type_named(op.name, names) if named else tuple
    return kind(values)


def __getattr__(name: str):
    """The class of the results of the operator of that name."""
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    for op in registry.values():
        if op.name != name:  # schemas are read at first use: ask for no other
            continue
        names = tuple(n for _, n in op.schema.returns)
        if len(names) > 1 and all(names) and op.declared.named:
            return result_type_named(name, names)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
