"""The types of public functions, as text: what a stub says of one function.

In: a public function (generated from a schema, choosing between several operators, or hand-written). Out: its
signatures, `(self, dim: _int = 0) -> _Tensor`, one for each way to call it. What always holds: names, order, kinds and
defaults of a generated function's parameters are read from the very source that it is compiled from; and what has no
stated type is `Any`, never a guess. The names with an underscore are those of the stubs' header.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from .calls import default_names, public_defaults, wrapper_source
from .operator import Operator, packets
from .schema import Argument
from .spelling import RENAMED

__all__ = ["BY_ATTRIBUTE", "Results", "annotation_text", "argument_type", "signatures"]

Results = dict[str, list[str]]  # classes of named results that signatures mention: name -> lines of its body
Parameters = list[inspect.Parameter]
EMPTY = inspect.Parameter.empty
POSITIONAL, STARRED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
KEYWORD, KEYWORDS = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD


# ------------------------------------------------------------------------------------------------------- types as text
TYPES = {
    "Tensor": "_Tensor", "int": "_int", "SymInt": "_int", "float": "_float", "bool": "_bool", "str": "_str",
    "Scalar": "_Number | _Tensor", "ScalarType": "_dtype", "Device": "_DeviceLike", "Layout": "_layout",
    "MemoryFormat": "_memory_format", "Generator": "_Generator", "Dimname": "_str",
}  # fmt: skip
RETURNS = {**TYPES, "Scalar": "_Number"}
# What a hand-written annotation may be made of, and how the stub spells it.
KNOWN = {
    "int": "_int", "float": "_float", "bool": "_bool", "str": "_str", "complex": "_complex", "Sequence": "_Sequence",
    "Callable": "_Callable", "Any": "_Any", "dtype": "_dtype", "None": "None", "Tensor": "_Tensor", "tuple": "tuple",
    "list": "list", "dict": "dict",
}  # fmt: skip


# Parameters that mean the same wherever they stand, for hand-written functions that do not say.
BY_NAME = {
    "dtype": "_dtype | None", "layout": "_layout | None", "device": "_DeviceLike | None", "requires_grad": "_bool",
    "pin_memory": "_bool | None", "memory_format": "_memory_format | None", "generator": "_Generator | None",
}  # fmt: skip

# What the language's own operators and a tensor's properties give, where their functions do not say.
_BINARY = "add sub mul div truediv floordiv mod pow matmul and or xor lshift rshift".split()
BY_ATTRIBUTE = {
    **{f"__{r}{name}__": "_Tensor" for name in _BINARY for r in ("", "r")},
    **{f"__i{name}__": "_Self" for name in _BINARY},
    **{f"__{name}__": "_Tensor" for name in "eq ne lt le gt ge neg pos abs invert getitem reversed".split()},
    **dict.fromkeys("T H mT mH real imag data".split(), "_Tensor"),
    **{f"new_{name}": "_Tensor" for name in "empty empty_strided full ones zeros".split()},
    "grad": "_Tensor | None", "__float__": "_float", "__int__": "_int", "__complex__": "_complex",
    "item": "_int | _float", "retains_grad": "_bool", "is_nonzero": "_bool", "__str__": "_str",
}  # fmt: skip


def argument_type(argument: Argument, number_too: bool = False) -> str:
    """The type that a parameter takes; `number_too` where a Python number stands for a tensor."""
    base = argument.base.removesuffix("?")
    text = TYPES.get(base, "_Any")
    if argument.is_list:
        inner = f"{text} | None" if argument.base.endswith("?") else text
        text = "_Ints" if inner == "_int" else f"_Sequence[{inner}]"
        if argument.list_size is not None and base != "Tensor":
            text = f"{TYPES[base]} | {text}"
    elif number_too and base == "Tensor":
        text = "_Tensor | _Number"
    if argument.optional or (argument.has_default and argument.default is None):
        text += " | None"
    return text


def result_type(op: Operator, results: Results) -> str:
    """The type of an operator's result; named results are noted in `results`, as classes to write."""
    returns = op.schema.returns
    kinds = [RETURNS.get(kind.removesuffix("?").partition("[")[0], "_Any") for kind, _ in returns]
    kinds = [f"_Sequence[{text}]" if "[" in kind else text for text, (kind, _) in zip(kinds, returns, strict=True)]
    if not kinds:
        return "None"
    if len(kinds) == 1:
        return kinds[0]
    names = [name for _, name in returns]
    if all(names) and op.declared.named:
        result = f"{op.name}_result"
        results[result] = [f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True)]
        return result
    return f"tuple[{', '.join(kinds)}]"


def annotation_text(annotation: Any) -> str:
    """A hand-written annotation as the stub spells it, `_Any` where it names what the stub does not know."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    if annotation is EMPTY or not words <= KNOWN.keys() or re.search(r"['\"]", text):
        return "_Any"
    return re.sub(r"[A-Za-z_]\w*", lambda word: KNOWN[word[0]], text)


def default_text(value: Any) -> str:
    return repr(value) if value is None or type(value) in (bool, int, str) else "..."


# ---------------------------------------------------------------------------------------------------------- parameters
def generated_parameters(name: str, op: Operator) -> Parameters:
    """The parameters of a generated function, as its own source states them, with the schema's types."""
    result = ast.parse(wrapper_source(name, op, stated=True)).body[0]
    assert isinstance(result, ast.FunctionDef)
    public = {f"default_{argument}": value for argument, value in public_defaults(op).items()}
    values = {**default_names(op), **public, "UNSET": ...}
    numbers_too = type(op.family).__name__ == "Pointwise"
    types = {a.name: argument_type(a, numbers_too and a.position > 1) for a in op.schema.arguments}
    types.setdefault("input", types.get("self", "_Any"))
    types |= {alias: types.get(name, "_Any") for name, alias in RENAMED.items()}
    types["out"] = "_Tensor | _Sequence[_Tensor] | None" if len(op.schema.returns) > 1 else "_Tensor | None"

    def parameter(arg: ast.arg, kind: Any, default: ast.expr | None) -> inspect.Parameter:
        value: Any = EMPTY
        if isinstance(default, ast.Name):
            value = values[default.id]
        elif isinstance(default, ast.Constant):
            value = default.value
        text = "_int | _Ints" if kind is STARRED else types.get(arg.arg, types.get(arg.arg.rstrip("_"), "_Any"))
        return inspect.Parameter(arg.arg, kind, default=value, annotation=text)

    spec = result.args
    missing = [None] * (len(spec.args) - len(spec.defaults))
    out = [parameter(arg, POSITIONAL, d) for arg, d in zip(spec.args, [*missing, *spec.defaults], strict=True)]
    if spec.vararg and spec.vararg.arg != "old":  # deprecated forms are taken, and not shown
        out.append(parameter(spec.vararg, STARRED, None))
    return out + [parameter(arg, KEYWORD, d) for arg, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]


def call_signature(function: Callable, operators: tuple[Operator, ...], inplace: bool) -> inspect.Signature:
    """What `inspect.signature` says of a generated function: one way to call it that covers those of all its operators."""
    targets = [op.inplace or op for op in operators] if inplace else list(operators)
    ways = [next(variants(generated_parameters(function.__name__, op))) for op in targets]
    ways = [[p for p in way if p.name not in RENAMED.values() or p.default is not ...] for way in ways]
    returns = {result_type(op, {}) for op in targets}
    shown = [_spelled(p) for p in joined(ways)]
    stated = _plain_words(returns.pop()) if len(returns) == 1 else EMPTY
    return inspect.Signature(shown, return_annotation=stated)


def _plain_words(annotation: str) -> str:
    return re.sub(r"\b_(?=[A-Za-z])", "", annotation)


def _spelled(p: inspect.Parameter) -> inspect.Parameter:
    """A parameter with its type in words of its own, where a stub's have underscores."""
    return p if p.annotation is EMPTY else p.replace(annotation=_plain_words(p.annotation))


def joined(ways: list[Parameters]) -> Parameters:
    """Parameters that cover several ways to call: shared ones by name, `*args` and `**kwargs` where they part."""
    if len(ways) == 1:
        return ways[0]
    places = [[p for p in way if p.kind is POSITIONAL] for way in ways]
    out: Parameters = []
    for at in range(max(map(len, places))):
        here = [way[at] for way in places if at < len(way)]
        if len({p.name for p in here}) > 1:
            rest = [inspect.Parameter(name, kind) for name, kind in (("args", STARRED), ("kwargs", KEYWORDS))]
            return [*out, *rest]
        optional = len(here) < len(ways) or any(p.default is not EMPTY for p in (*here, *out[-1:]))
        given = next((p for p in here if p.default is not EMPTY), here[0])
        out.append(given.replace(default=None) if optional and given.default is EMPTY else given)
    named = {p.name for p in out}
    keywords = {p.name: p for way in ways for p in way if p.kind is KEYWORD and p.name not in named}
    return out + [p.replace(default=None) if p.default is EMPTY else p for p in keywords.values()]


def variants(parameters: Parameters) -> Iterator[Parameters]:
    """The ways to call a generated function: where `dim` is required, either by that name or by NumPy's, never both."""
    required = {p.name for p in parameters if p.kind is POSITIONAL and p.default is ...}
    if not required:
        yield parameters
        return
    aliases = {RENAMED[name] for name in required & RENAMED.keys()}
    plain = [p.replace(default=EMPTY) if p.name in required else p for p in parameters if p.name not in aliases]
    yield plain
    if aliases:
        first = next(i for i, p in enumerate(plain) if p.name in required)
        names = {p: RENAMED.get(p.name, p.name) if p.name in required else p.name for p in plain[first:]}
        yield plain[:first] + [p.replace(name=name, kind=KEYWORD) for p, name in names.items() if p.kind is not STARRED]


def written_parameters(function: Callable) -> Parameters:
    """The parameters of a hand-written function, with those of its annotations that the stub can spell."""
    parameters = inspect.signature(function).parameters.values()
    known = [
        BY_NAME.get(p.name, "_Any") if p.annotation is EMPTY else annotation_text(p.annotation) for p in parameters
    ]
    return [p.replace(annotation=text) for p, text in zip(parameters, known, strict=True)]


def parameters_text(parameters: Parameters, method: bool) -> str:
    """A parameter list; a method's first parameter is `self`, by position alone."""
    parts, starred = [], False
    for i, p in enumerate(parameters):
        if method and i == 0 and p.kind is POSITIONAL:
            parts.append("self")
            continue
        if p.kind is KEYWORD and not starred:
            parts.append("*")
        starred = starred or p.kind in (KEYWORD, STARRED)
        mark = {STARRED: "*", KEYWORDS: "**"}.get(p.kind, "")
        default = "" if p.default is EMPTY else f" = {default_text(p.default)}"
        parts.append(f"{mark}{p.name}: {p.annotation}{default}")
    return ", ".join(parts)


# ---------------------------------------------------------------------------------------------------------- signatures
def written_result(function: Callable, space: str, name: str) -> str:
    """The result of a hand-written function: as annotated, or as all operators of its name agree."""
    stated = getattr(function, "__annotations__", {}).get("return", EMPTY)
    if stated is not EMPTY:
        return annotation_text(stated)
    if space == "Tensor" and name in BY_ATTRIBUTE:
        return BY_ATTRIBUTE[name]
    behind = packets.get(name if space in ("torch", "Tensor") else f"{space}_{name}", {})
    kinds = {tuple(kind for kind, _ in op.schema.returns) for op in behind.values()}
    known = {("Tensor",): "_Tensor", ("Tensor[]",): "_Sequence[_Tensor]"}
    return known.get(kinds.pop(), "_Any") if len(kinds) == 1 else "_Any"


def signatures(space: str, name: str, function: Callable, results: Results) -> list[str]:
    """Each way to call a public function, or a method (`space` is then "Tensor"), as `(...) -> ...`."""
    method = space == "Tensor"
    operators: tuple[Operator, ...] = getattr(function, "operators", ())
    if (op := getattr(function, "operator", None)) is not None:
        is_inplace = function.__name__.endswith("_") and not op.name.endswith("_")
        operators = (op.inplace,) if is_inplace and op.inplace is not None else (op,)
    if not operators:
        body = inspect.unwrap(function)
        return [f"({parameters_text(written_parameters(body), method)}) -> {written_result(body, space, name)}"]
    out = []
    for op in operators:
        returns = "_Self" if method and op.inplace_of is not None else result_type(op, results)
        for parameters in variants(generated_parameters(function.__name__, op)):
            out.append(f"({parameters_text(parameters, method)}) -> {returns}")
    return list(dict.fromkeys(out))
