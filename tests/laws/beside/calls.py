"""What a program may call: the samples of the operator table, each in every form in which PyTorch offers the operator.

Comes in: the operator table. Goes out: `Call`s, of which arguments are Python values or NumPy arrays, and the texts of their
forms: `torch.ops.aten`, a function of a public namespace, a method, in place, of `nn.functional`. What always holds: a form is
offered only where pullback has the name, so what the other library lacks is seen.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from dataclasses import dataclass
from types import ModuleType

import numpy as np

import pullback
from pullback.ops.family.pointwise import Pointwise
from tests.laws.beside.choices import EXCLUDED
from tests.ops.samples import functional_operators, key_of, samples_of

SPACES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}
# Names that are pullback's own: parts of rules that the other library does not have, or has inside its kernels.
PRIVATE = (
    "_slope", "_as_strided_read", "_as_strided_backward", "_as_strided_write", "_affine_scan", "_rrelu_noise", "_rrelu_leak",
    "_margin_rows", "_kron_matrices", "_block_diag",
)  # fmt: skip
REDUCTIONS = ("none", "mean", "sum")


@dataclass(frozen=True)
class Call:
    """One call of an operator: its name, overload, and (name, by keyword only, value, may be left out) of each argument."""

    name: str
    overload: str
    arguments: tuple
    pointwise: bool = False

    @property
    def internal(self) -> bool:
        """Whether programs do not call it: what kernels and rules of gradients are made of."""
        name = self.name
        return name.startswith(("_", "native_", "unsafe_")) or "_backward" in name

    @property
    def key(self) -> str:
        return self.name if self.overload == "default" else f"{self.name}.{self.overload}"


def _plain(value):
    """A value of a sample, with arrays in the place of tensors."""
    if isinstance(value, pullback.Tensor):
        return value.detach().resolve_conj().resolve_neg().numpy().copy()
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    return value


def _same(value, default) -> bool:
    return type(value) is type(default) and not isinstance(value, np.ndarray | tuple) and value == default


@functools.cache
def table() -> tuple[tuple[Call, ...], ...]:
    """The calls of each operator that has samples and stands in both libraries."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in functional_operators():
            if op.name.endswith(PRIVATE) or op.name in PRIVATE or key_of(op) in EXCLUDED:
                continue
            calls = [_call(op, args) for pair in samples_of(op) for args in pair]
            if calls:
                found.append(tuple(calls))
    return tuple(found)


def _call(op, args) -> Call:
    schema = [a for a in op.schema.arguments if not a.is_out]
    given = []
    for a, value in zip(schema, args, strict=False):
        value = _plain(value)
        given.append((a.name, a.kwarg_only, value, a.has_default and a.name != "reduction" and _same(value, a.default)))
    return Call(op.name, op.overload, tuple(given), isinstance(op.family, Pointwise))


# ---- forms
def forms_of(call: Call, other: ModuleType) -> tuple[str, ...]:
    """In which forms both libraries offer the operator of a call."""
    return _forms(call.name, call.arguments[0][0] if call.arguments else "", other)


@functools.cache
def _forms(name: str, first: str, other: ModuleType) -> tuple[str, ...]:
    has = lambda *path: all(_has(library, path) for library in (pullback, other))
    space, short = place_of(name)
    forms = ["aten"]
    if not name.startswith("_"):
        if has(*[space] * bool(space), short):
            forms += ["function", "function"]
            forms += ["out"] * any("out" in o for o in getattr(other.ops.aten, name).overloads())
        if first == "self":
            forms += ["method", "method"] * has("Tensor", name) + ["inplace", "inplace"] * has("Tensor", f"{name}_")
        forms += ["functional", "functional"] * has("nn", "functional", name)
    return tuple(forms)


def _has(library, path: tuple[str, ...]) -> bool:
    for name in path:
        library = getattr(library, name, None)
    return library is not None


def place_of(name: str) -> tuple[str, str]:
    """The namespace below `torch` ("" for itself) and the name there of an operator's public function."""
    for start, space in SPACES.items():
        if name.startswith(start):
            return space, name[len(start) :]
    return "", name


def public(name: str) -> str:
    space, short = place_of(name)
    return f"torch.{space}.{short}" if space else f"torch.{short}"


@functools.cache
def functional_parameters(name: str) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(getattr(pullback.nn.functional, name)).parameters)
    except (TypeError, ValueError):
        return ()


def text_of(call: Call, form: str, texts: list[str]) -> str | None:
    """The call in one form; `texts` has the arguments' own. None where the form does not take these arguments."""
    if form in ("method", "inplace") and not isinstance(call.arguments[0][2], np.ndarray):
        return None
    parts, by_name = [], False
    for (name, keyword, value, default), text in zip(call.arguments, texts, strict=True):
        if form == "functional":
            known = functional_parameters(call.name)
            name = "input" if name == "self" else name
            if name not in known:
                if default:
                    continue
                return None
            if name == "reduction" and isinstance(value, int):
                text = repr(REDUCTIONS[value])
            by_name = by_name or known.index(name) != len(parts)
        if default:
            by_name = True
            continue
        parts.append(f"{name}={text}" if keyword or by_name else text)
    if form == "aten":
        overload = "" if call.overload == "default" else f".{call.overload}"
        return f"torch.ops.aten.{call.name}{overload}({', '.join(parts)})"
    if form == "functional":
        return f"F.{call.name}({', '.join(parts)})"
    if form in ("method", "inplace"):
        return f"{texts[0]}.{call.name}{'_' * (form == 'inplace')}({', '.join(parts[1:])})"
    return f"{public(call.name)}({', '.join(parts)})"
