"""`ops.aten.add.Tensor`: operators by namespace, name and overload, as callable objects."""

from __future__ import annotations

from ...core.layers import above
from ...core.modes import FUNCTION, LISTENING, ambient
from ...core.tensor import Tensor
from .dispatch import dispatch
from .operator import Operator, exports, packet_key, packets
from .overrides import any_overridden, call_overridden


class OpOverloadPacket:
    """All overloads of one name. Called directly, it takes the first overload that the arguments fit."""

    def __init__(self, namespace: str, name: str):
        self.namespace = namespace
        self._name = name
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._found: dict[str, Operator] = {}  # the overloads, as the registry keeps them
        self._forms: dict[str, Operator] = {}  # those that write their results to tensors that they are given

    def _overloads(self) -> dict[str, Operator]:
        found = dict(packets.get(packet_key(self.namespace, self._name), {}))
        if self.namespace == "aten" and not found and self._name.endswith("_"):
            for op in list(packets.get(self._name[:-1], {}).values()):
                if op.inplace is not None:
                    found[op.overload] = op.inplace
        if self.namespace == "aten" and not found and (name := _other_name(self._name)) is not None:
            return packet("aten", name)._overloads()
        return found

    def _look_up(self) -> dict[str, Operator]:
        self._found = packets.get(packet_key(self.namespace, self._name), {})
        return self._found or self._overloads()

    def overloads(self) -> list[str]:
        return list(self._overloads())

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("__"):
            raise AttributeError(overload)
        found = self._found or self._look_up()
        if overload in found:
            if (
                type(found[overload]) is Operator
            ):  # it stays what it is: the next time, no function of Python's is asked
                self.__dict__[overload] = found[overload]
            return found[overload]
        if overload in _SYNONYMS and len(found) >= 1 and self.namespace == "aten":
            return next(iter(found.values()))
        if self.namespace == "aten":
            from ..family.out_forms import out_form

            form = self._forms.get(overload) or out_form(self._name, dict(found), overload)
            if form is not None:
                self._forms[overload] = form
                return form
        raise AttributeError(f"The underlying op of '{self.namespace}.{self._name}' has no overload name '{overload}'")

    def __call__(self, *args, **kwargs):
        found = self._found or self._look_up()
        if len(found) == 1 and ambient.mode < LISTENING:
            for op in found.values():
                result = op.quick(args, kwargs)
                if result is not NotImplemented:
                    return result
        if ambient.mode & FUNCTION or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
            return call_overridden(self, args, kwargs)
        out = kwargs.pop("out") if "out" in kwargs and self.namespace == "aten" else None
        errors: list[Exception] = []
        fitting = [op for op in found.values() if len(args) <= op.schema.positional]
        for op in fitting or list(found.values()):
            try:
                bound = op.convert(op.bind(args, kwargs))
            except (TypeError, RuntimeError) as e:
                errors.append(e)
                continue
            if out is not None:
                from .general import write_out

                return write_out(op, bound, out)
            return dispatch(op, bound)
        for op in found.values():
            if (listed := _by_rows(op, args)) is not None:
                return self(*listed, **kwargs)
        raise self._mismatch(errors)

    def _mismatch(self, errors: list[Exception]) -> Exception:
        if not errors:
            return AttributeError(f"'{self.namespace}' has no operator '{self._name}'")
        if self.namespace == "aten" or len(errors) == 1:
            return errors[0]
        each = "".join(f"{e}\n\n" for e in errors)
        return RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{each}")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self._name}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._name}"


def _by_rows(op: Operator, args: tuple) -> list | None:
    """The arguments where a tensor that stands for a list of indices is taken for its rows; None where none does."""
    out = list(args)
    for i, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=False)):
        if argument.is_list and argument.base == "Tensor?" and isinstance(value, Tensor) and value.ndim:
            out[i] = list(value)
    return out if any(new is not old for new, old in zip(out, args, strict=True)) else None


# operators under names that their public functions do not tell
_SPELLED = {"true_divide": "div", "true_divide_": "div_", "conj_physical_": "_conj_physical_"}


def _other_name(alias: str) -> str | None:
    """The name of the operator that a public function or method of this name is another name of."""
    function = exports["torch"].get(alias) or exports["Tensor"].get(alias)
    name = _SPELLED.get(alias) or getattr(function, "__name__", alias)
    source = name.removesuffix("_") if alias.endswith("_") else name
    return name if name != alias and source in packets else None


# Overloads that differ from another only in taking a number where it takes a tensor: one operator serves both.
_SYNONYMS = frozenset(("Scalar", "Tensor", "default", "int", "dim_IntList", "Tensor_Scalar", "Tensor_Tensor"))

_packets: dict[tuple[str, str], OpOverloadPacket] = {}


def packet(namespace: str, name: str) -> OpOverloadPacket:
    """The one packet of a name."""
    result = _packets.get((namespace, name))
    if result is None:
        result = _packets[namespace, name] = OpOverloadPacket(namespace, name)
        if not result._overloads():
            del _packets[namespace, name]
            raise AttributeError(f"'_OpNamespace' '{namespace}' object has no attribute '{name}'")
    return result


def forget(namespace: str, name: str) -> None:
    """Drop the packet of a name whose operators are gone."""
    if packet_key(namespace, name) not in packets:
        _packets.pop((namespace, name), None)
        vars(getattr(ops, namespace)).pop(name, None)


class OpNamespace:
    """`ops.aten`: operators of one library."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        result = packet(self.name, name)
        setattr(self, name, result)
        return result

    def __iter__(self):
        return iter(self.__dir__())

    @property
    def _dir(self) -> list[str]:
        """The names that were looked up so far, and whose operators are still there."""
        return [name for name, value in vars(self).items() if isinstance(value, OpOverloadPacket)]

    def __dir__(self):
        prefix = f"{self.name}::"
        return (
            sorted(k for k in packets if "::" not in k)
            if self.name == "aten"
            else sorted(k[len(prefix) :] for k in packets if k.startswith(prefix))
        )


class HigherOrderNamespace(OpNamespace):
    """`ops.higher_order`: operators that take functions. Each sets itself here when its layer is loaded."""

    def __getattr__(self, name: str):
        if not name.startswith("__"):
            above.load_higher_order()
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"'_HigherOrderNamespace' 'higher_order' object has no attribute '{name}'")

    def __dir__(self):
        return sorted(set(vars(self)) - {"name"})


class Ops:
    """`torch.ops`: libraries of operators."""

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        result = HigherOrderNamespace(name) if name == "higher_order" else OpNamespace(name)
        setattr(self, name, result)
        return result

    def load_library(self, path) -> None:
        """Load a shared library for the operators that its TORCH_LIBRARY blocks register."""
        above.load_library(path)

    def __init__(self) -> None:
        self.loaded_libraries: set[str] = set()  # paths of the libraries that were loaded so


ops = Ops()
above.packet = packet
