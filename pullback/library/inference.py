"""`infer_schema`: the schema of a Python function, read off its type annotations.

In: a function with annotated parameters, and which of them it writes. Out: the schema's text, "(Tensor x, SymInt n=2) ->
Tensor". Anything a schema cannot say raises a ValueError that shows the signature.
"""

from __future__ import annotations

import collections.abc
import inspect
import sys
import typing
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any

from ..core.device import device
from ..core.dtype import dtype
from ..core.tensor import Tensor

Number = int | float | bool
# (Python type, schema type, whether lists of it, lists of optional ones, optional lists)
_BASES: tuple[tuple[Any, str, bool, bool, bool], ...] = (
    (Tensor, "Tensor", True, True, False),
    (int, "SymInt", True, False, True),
    (float, "float", True, False, True),
    (bool, "bool", True, False, True),
    (str, "str", False, False, False),
    (Number, "Scalar", True, False, False),
    (dtype, "ScalarType", False, False, False),
    (device, "Device", False, False, False),
)


def _sequences(of) -> tuple:
    return (
        typing.Sequence[of],  # noqa: UP006
        typing.List[of],  # noqa: UP006
        GenericAlias(collections.abc.Sequence, (of,)),
        GenericAlias(list, (of,)),
    )


def _parameter_types() -> dict:
    table: dict = {}
    for base, name, lists, of_optionals, optional_lists in _BASES:
        optional = typing.Optional[base]  # noqa: UP045
        table[base], table[optional] = name, f"{name}?"
        for sequence in _sequences(base) if lists else ():
            table[sequence] = f"{name}[]"
        for sequence in _sequences(optional) if of_optionals else ():
            table[sequence] = f"{name}?[]"
        for sequence in _sequences(base) if optional_lists else ():
            table[typing.Optional[sequence]] = f"{name}[]?"  # noqa: UP045
    return table


PARAMETERS = _parameter_types()
RETURNS = {
    Tensor: "Tensor",
    typing.List[Tensor]: "Tensor[]",  # noqa: UP006
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    Number: "Scalar",
}


def infer_schema(
    prototype_function: Callable, /, *, mutates_args: str | Iterable[str], op_name: str | None = None, tags=()
) -> str:
    """The schema of a function. `mutates_args` names the arguments that it writes, or is "unknown"."""
    tags = (tags,) if isinstance(tags, str) else tuple(tags or ())
    return _Inference(prototype_function, mutates_args, tags).schema(op_name)


class _Inference:
    """Reads one signature."""

    def __init__(self, function: Callable, mutates_args: str | Iterable[str], tags: tuple):
        self.function = function
        self.signature = inspect.signature(function)
        if isinstance(mutates_args, str) and mutates_args != "unknown":
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
            )
        self.mutates = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
        self.given = mutates_args
        self.is_inplace, self.is_out = "inplace" in tags, "out" in tags
        self.first: tuple[str, str, str] | None = None  # name, type, alias of the first positional argument
        self.outs: list[tuple[str, str]] = []  # (name, alias) of written keyword-only arguments

    def fail(self, what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {self.signature})")

    def schema(self, name: str | None) -> str:
        parts: list[str] = []
        for i, parameter in enumerate(self.signature.parameters.values()):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                self.fail("We do not support positional-only args, varargs, or varkwargs.")
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            parts.append(self.parameter(parameter, i))
        self.check_mutated()
        returned = self.evaluate(self.signature.return_annotation)
        return f"{name or ''}({', '.join(parts)}) -> {self.results(returned)}"

    def parameter(self, parameter: inspect.Parameter, i: int) -> str:
        if parameter.annotation is parameter.empty:
            self.fail(f"Parameter {parameter.name} must have a type annotation.")
        annotation = self.evaluate(parameter.annotation)
        kind = _lookup(PARAMETERS, annotation)
        if kind is None:
            self.fail(self.unsupported(parameter, annotation))
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and self.first is None:
            self.first = (parameter.name, kind, f"a{i}")
        kind = self.with_alias(parameter, kind, f"a{i}")
        if parameter.default is parameter.empty:
            return f"{kind} {parameter.name}"
        return f"{kind} {parameter.name}={self.default(parameter)}"

    def with_alias(self, parameter: inspect.Parameter, kind: str, alias: str) -> str:
        """The type of an argument, marked if it is written."""
        if self.mutates == "unknown":
            written = kind.startswith("Tensor")
        else:
            written = parameter.name in self.mutates
        if not written:
            return kind
        if not kind.startswith("Tensor"):
            self.fail(
                f"Parameter {parameter.name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
            )
        if self.is_out:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self.fail("torch.Tag.out requires mutable arguments to be keyword-only.")
            if kind != "Tensor":
                self.fail("torch.Tag.out only supports mutable keyword-only Tensor arguments.")
            self.outs.append((parameter.name, alias))
        return f"Tensor({alias}!){kind[len('Tensor') :]}"

    def unsupported(self, parameter: inspect.Parameter, annotation) -> str:
        lead = f"Parameter {parameter.name} has unsupported type {parameter.annotation}. "
        valid = f"The valid types are: {PARAMETERS.keys()}."
        if typing.get_origin(annotation) is not tuple:
            return lead + valid
        listed = tuple_to_list(annotation)
        example = f"For example, {listed}.\n\n" if _lookup(PARAMETERS, listed) else "\n\n"
        return f"{lead}We do not support Tuple inputs in schema. As a workaround, please try to use List instead. {example}{valid}"

    def default(self, parameter: inspect.Parameter) -> str:
        value = parameter.default
        if value is None or isinstance(value, (int, float, bool)):
            return str(value)
        if isinstance(value, (str, device)):
            return f'"{value}"'
        if isinstance(value, dtype):
            return str(value).rpartition(".")[2]
        self.fail(
            f"Parameter {parameter.name} has an unsupported default value type {type(value)}. Please file an issue on GitHub so we can prioritize this."
        )

    def check_mutated(self) -> None:
        if self.mutates != "unknown":
            absent = set(self.mutates) - set(self.signature.parameters)
            if absent:
                self.fail(
                    f"{absent} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all args that "
                    "the custom op mutates, or just the string 'unknown' if you don't know."
                )
        if self.is_inplace:
            if self.first is None:
                self.fail("torch.Tag.inplace requires a positional Tensor argument.")
            if self.first[1] != "Tensor":
                self.fail("torch.Tag.inplace requires the first positional argument to be a Tensor.")
            if self.mutates == "unknown" or set(self.mutates) != {self.first[0]}:
                self.fail(
                    f"torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got {self.given}."
                )
        if self.is_out and not self.outs:
            self.fail("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")

    def results(self, annotation) -> str:
        if self.is_out:
            return self.out_results(annotation)
        text = self.plain_results(annotation)
        if not self.is_inplace:
            return text
        if text != "Tensor":
            self.fail("torch.Tag.inplace requires the return annotation to be torch.Tensor.")
        return f"Tensor({self.first[2]}!)"  # type: ignore[index]

    def plain_results(self, annotation) -> str:
        if annotation is None or annotation is type(None):
            return "()"
        if annotation is inspect.Signature.empty:
            self.fail("No return type annotation was provided. Please add one.")
        several = typing.get_origin(annotation) is tuple
        kinds = [_lookup(RETURNS, a) for a in (typing.get_args(annotation) if several else (annotation,))]
        if any(k is None for k in kinds):
            self.fail(f"Return has unsupported type {annotation}. The valid types are: {RETURNS}.")
        if not several:
            return typing.cast(str, kinds[0])
        text = ", ".join(typing.cast(list[str], kinds))
        return f"(({text}))" if len(kinds) == 1 else f"({text})"

    def out_results(self, annotation) -> str:
        expected: Any = Tensor if len(self.outs) == 1 else (Tensor,) * len(self.outs)
        found: Any = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else annotation
        if found != expected:
            self.fail(
                f"torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments {tuple(n for n, _ in self.outs)}."
            )
        marked = [f"Tensor({alias}!)" for _, alias in self.outs]
        return marked[0] if len(marked) == 1 else f"({', '.join(marked)})"

    # ---- annotations that are strings
    def evaluate(self, annotation):
        """An annotation as a type, also where it, or a part of it, is written as a string."""
        if isinstance(annotation, str):
            return self.from_text(annotation)
        parts = typing.get_args(annotation)
        origin = typing.get_origin(annotation)
        if origin is not None and any(isinstance(p, str) for p in parts):
            return GenericAlias(origin, tuple(self.evaluate(p) for p in parts))
        return annotation

    def from_text(self, text: str):
        module = sys.modules.get(getattr(self.function, "__module__", None) or "")
        names = {**(vars(module) if module is not None else {}), **getattr(self.function, "__globals__", {})}
        try:
            return eval(text, names)
        except NameError as e:
            self.fail(
                f"Unsupported type annotation {text}. It is not a type. ({e}). If you are using 'from __future__ import annotations', note that "
                "annotations are evaluated lazily as strings; make sure all types referenced in annotations are importable at module scope, not "
                "only inside a local function."
            )
        except Exception as e:  # noqa: BLE001 - whatever evaluating it does
            self.fail(f"Unsupported type annotation {text}. It is not a type. ({type(e).__name__}: {e})")


def _lookup(table: dict, annotation) -> str | None:
    try:
        return table.get(annotation)
    except TypeError:  # not hashable, so not a type
        return None


def tuple_to_list(annotation):
    """`list[int]` for `Tuple[int, int]`."""
    parts = [p for p in typing.get_args(annotation) if p is not Ellipsis]
    if not parts:
        return list
    return list[parts[0]] if len(set(parts)) == 1 else list[typing.Union[tuple(parts)]]  # type: ignore[misc,valid-type]  # noqa: UP007
