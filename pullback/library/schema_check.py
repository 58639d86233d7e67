"""`SchemaCheckMode`: does every operator do to its arguments what its schema says?

In: a block of calls. What always holds inside: an operator that writes an argument which its schema does not mark, gives a result on the
memory of an argument or of another result that it does not declare shared, or gives an argument itself without writing it, raises
RuntimeError. An argument that shares memory with one that may be written may be, too. Out: the names of the operators (`ops`), what was
written (`mutated`) and what was shared (`aliasing`). Wrappers are looked into: what counts is the memory that they hold.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

from ..core.tensor import DISPATCH_SUBCLASS, FAKE, LAYOUTS, Tensor
from ..ops.system.operator import Operator
from ..ops.system.overrides import TorchDispatchMode
from .aliasing import flat_tensors, shares_memory

_UNSAFE = ("aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes")  # which say so by their names
_GIVE_INPUTS = ("aten::lift", "aten::lift_fresh")


class Mutation(NamedTuple):
    """An argument that an operator wrote."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """An argument on whose memory a result of an operator is."""

    op_name: str
    arg_name: str
    output_number: str


class SchemaCheckMode(TorchDispatchMode):
    """A block in which every operator is held to its schema."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[Mutation] = []
        self.aliasing: list[Aliasing] = []

    def reset_cache(self) -> None:
        """Forget what was called."""
        for kept in (self.ops, self.mutated, self.aliasing):
            kept.clear()  # type: ignore[attr-defined]

    def display_ops(self) -> None:
        """Print the names of the operators that were called."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Operator, types, args=(), kwargs=None):
        bound = func.convert(func.bind(args, kwargs or {}))
        held = [_held(v) for v in bound]
        before = [[_state(t) for t in tensors] for tensors in held]
        arguments = func.schema.arguments
        written = [t for a, tensors in zip(arguments, held, strict=True) if a.writes for t in tensors]
        if func.declared.writes_unseen:  # which its schema cannot say
            written += [
                t for a, tensors in zip(arguments, held, strict=True) if a.name.startswith("running_") for t in tensors
            ]
        reached = [any(shares_memory(t, w) for t in tensors for w in written) for tensors in held]
        self.ops.append(func.full_name)
        out = func(*args, **(kwargs or {}))
        results = list(out) if len(func.schema.returns) > 1 else [out]
        for argument, value, old, may_change in zip(arguments, bound, before, reached, strict=True):
            name = "input" if argument.name == "self" else argument.name
            self._check_sharing(func, argument, name, value, results, may_change)
            if not _is_unchanged(value, old):
                if not may_change:
                    raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
                self.mutated.append(Mutation(func.full_name, name))
        _check_results(func, results)
        return out

    def _check_sharing(
        self, op: Operator, argument: Any, name: str, value: Any, results: list, may_change: bool
    ) -> None:
        """Raise where a result is on the memory of an argument, and the schema does not say so."""
        for number, (result, declared) in enumerate(zip(results, op.schema.returns, strict=False)):
            if op.full_name not in _UNSAFE and _share(result, value):
                if declared.alias is None or argument.alias is None and not may_change:
                    raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
                self.aliasing.append(Aliasing(op.full_name, name, f"output_{number}"))
            if result is value and isinstance(value, Tensor) and not may_change and op.full_name not in _GIVE_INPUTS:
                raise RuntimeError(
                    "Dispatcher operators below autograd are not allowed to directly return inputs.\n"
                    f"However, we found that `outputs[{number}] is {name}"
                )


def _check_results(op: Operator, results: list) -> None:
    returns = op.schema.returns
    for i, j in combinations(range(len(results)), 2):
        if _share(results[i], results[j]) and (returns[i].alias is None or returns[j].alias is None):
            raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")


def _share(a: Any, b: Any) -> bool:
    return any(shares_memory(s, t) for s in _held(a) for t in _held(b))


def _held(value: Any) -> list[Tensor]:
    """The tensors with memory in a value: those that a wrapper holds in its place."""
    out: list[Tensor] = []
    for t in flat_tensors((value,)):
        if not t._keys & DISPATCH_SUBCLASS or t._keys & FAKE:
            out.append(t)
        elif isinstance(inner := getattr(t, "elem", None), Tensor):
            out += _held(inner)
        elif hasattr(t, "__tensor_flatten__"):
            out += [part for name in t.__tensor_flatten__()[0] for part in _held(getattr(t, name))]
        else:
            out.append(t)
    return out


def _state(t: Tensor) -> tuple | None:
    """What a write to a tensor would change; None where it has no memory to look at."""
    if type(t) is not Tensor or t._keys & (LAYOUTS | FAKE) or t.device.type == "meta":
        return None
    return tuple(t.shape), t.stride(), t.detach().resolve_conj().resolve_neg().cpu().numpy().tobytes()


def _is_unchanged(value: Any, before: list[tuple | None]) -> bool:
    """Whether the tensors in a value, which may hold others now, are what they were."""
    now = _held(value)
    return len(now) == len(before) and all(old is None or _state(t) == old for t, old in zip(now, before, strict=True))
