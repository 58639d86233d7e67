"""`ops.aten.add.Tensor`: operators by namespace, name and overload, as callable objects."""

from __future__ import annotations

from .operator import Operator, packets


class OpOverloadPacket:
    """All overloads of one name. Called directly, it takes the first overload that the arguments fit."""

    def __init__(self, namespace: str, name: str):
        self.namespace = namespace
        self._name = name
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"

    def _overloads(self) -> dict[str, Operator]:
        key = self._name if self.namespace == "aten" else f"{self.namespace}::{self._name}"
        found = dict(packets.get(key, {}))
        if self.namespace == "aten" and not found and self._name.endswith("_"):
            for op in list(packets.get(self._name[:-1], {}).values()):
                if op.inplace is not None:
                    found[op.overload] = op.inplace
        return found

    def overloads(self) -> list[str]:
        return list(self._overloads())

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self._overloads()
        if overload in found:
            return found[overload]
        if overload in _SYNONYMS and len(found) >= 1:
            return next(iter(found.values()))
        raise AttributeError(f"The underlying op of '{self.namespace}.{self._name}' has no overload name '{overload}'")

    def __call__(self, *args, **kwargs):
        overloads = list(self._overloads().values())
        error: Exception | None = None
        for op in overloads:
            try:
                bound = op.convert(op.bind(args, kwargs))
            except (TypeError, RuntimeError) as e:
                error = error or e
                continue
            from .dispatch import dispatch

            return dispatch(op, bound)
        raise error or AttributeError(f"'{self.namespace}' has no operator '{self._name}'")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self._name}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._name}"


# Overloads that differ from another only in taking a number where it takes a tensor: one operator serves both.
_SYNONYMS = frozenset(("Scalar", "Tensor", "default", "int", "dim_IntList", "Tensor_Scalar", "Tensor_Tensor"))

_packets: dict[tuple[str, str], OpOverloadPacket] = {}


def packet(namespace: str, name: str) -> OpOverloadPacket:
    """The one packet of a name."""
    made = _packets.get((namespace, name))
    if made is None:
        made = _packets[namespace, name] = OpOverloadPacket(namespace, name)
        if not made._overloads():
            del _packets[namespace, name]
            raise AttributeError(f"'_OpNamespace' '{namespace}' object has no attribute '{name}'")
    return made


class OpNamespace:
    """`ops.aten`: operators of one library."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        made = packet(self.name, name)
        setattr(self, name, made)
        return made

    def __dir__(self):
        prefix = f"{self.name}::"
        return (
            sorted(k for k in packets if "::" not in k)
            if self.name == "aten"
            else sorted(k[len(prefix) :] for k in packets if k.startswith(prefix))
        )


class Ops:
    """`torch.ops`: libraries of operators."""

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        made = OpNamespace(name)
        setattr(self, name, made)
        return made


ops = Ops()
