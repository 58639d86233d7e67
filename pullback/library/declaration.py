"""Schemas as text, read strictly: "f(Tensor(a!) x, int[] sizes, *, float eps=1e-5) -> (Tensor, int)".

In: what a user wrote. Out: the namespace, if one was written, and the same schema in the form in which PyTorch prints
it; or a RuntimeError with PyTorch's words that shows where reading stopped. `ops.schema` then reads the result without
having to doubt it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPES = frozenset((
    "Tensor", "int", "SymInt", "float", "SymFloat", "bool", "SymBool", "complex", "number", "Scalar", "str", "ScalarType", "Device", "DeviceIndex",
    "Layout", "MemoryFormat", "Generator", "Dimname", "QScheme", "Stream", "Storage", "Any",
))  # fmt: skip
_UNKNOWN = (
    "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, please see "
    "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :"
)
_INSTEAD = {"int64_t": "`SymInt` or `int`", "double": "`float`"}  # types of C++
_TOKEN = re.compile(
    r"""(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<ident>[A-Za-z_]\w*)|(?P<string>'[^']*'|"[^"]*")|(?P<arrow>->)|(?P<more>\.\.\.)|(?P<symbol>::|[()\[\],=*?!|.\-+])"""
)
_FLOATS = ("float", "SymFloat")


class Token(NamedTuple):
    """A word of the text: `kind` is its own text for symbols."""

    kind: str
    text: str
    start: int


class Declaration(NamedTuple):
    """A schema that was read: the namespace written in front (or None), the name, and all from the name on."""

    namespace: str | None
    name: str
    text: str


def read(text: str) -> Declaration:
    """Read a whole schema."""
    return _Reader(text).schema()


def _tokens(text: str) -> list[Token]:
    out, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuntimeError(f"expected a valid token but found '{text[at]}' here:\n{_marked(text, at, 1)}")
        kind = match[0] if match.lastgroup == "symbol" else match.lastgroup or ""
        out.append(Token(kind, match[0], at))
        at = match.end()
    return [*out, Token("eof", "", len(text))]


def _marked(text: str, start: int, length: int) -> str:
    return f"{text}\n{' ' * start}{'~' * length} <--- HERE\n" if length else text


class _Reader:
    """Reads from left to right; `now` is the next word."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.in_results = False
        self.fresh = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def take(self, kind: str) -> Token:
        token = self.now
        if token.kind != kind:
            raise RuntimeError(
                f"expected {kind} but found '{token.kind}' here:\n{_marked(self.text, token.start, len(token.text))}"
            )
        self.at += 1
        return token

    def have(self, kind: str) -> bool:
        if self.now.kind != kind:
            return False
        self.at += 1
        return True

    def schema(self) -> Declaration:
        namespace, name = None, self.take("ident").text
        if self.have("::"):
            namespace, name = name, self.take("ident").text
        if self.have("."):
            name = f"{name}.{self.take('ident').text}"
        if self.now.kind == "eof":
            raise RuntimeError("Tried to parse a function schema but only the operator name was given")
        self.take("(")
        arguments = self.items(self.argument)
        self.take("arrow")
        self.in_results = True
        results = self.results()
        self.take("eof")
        starred = [a for i, a in enumerate(arguments) if a != "*" or "*" not in arguments[:i]]
        return Declaration(namespace, name, f"{name}({', '.join(starred)}) -> {results}")

    def items(self, one) -> list[str]:
        """What stands between brackets, the first of which is read already."""
        out: list[str] = []
        if self.have(")"):
            return out
        while True:
            out.append(one())
            if not self.have(","):
                break
        self.take(")")
        return out

    def argument(self) -> str:
        if self.have("*"):
            return "*"
        if self.now.kind == "more":
            raise NotImplementedError(f"schemas with variable arguments (...) are not supported: {self.text}")
        kind, base, is_list, size = self.type()
        name = self.take("ident").text
        if not self.have("="):
            return f"{kind} {name}"
        return f"{kind} {name}={self.default(base, is_list, size)}"

    def results(self) -> str:
        if self.now.kind == "more":
            raise NotImplementedError(f"schemas with variable results (...) are not supported: {self.text}")
        if self.now.text in ("None", "NoneType"):
            self.at += 1
            return "()"
        if not self.have("("):
            return self.result()
        return f"({', '.join(self.items(self.result))})"

    def result(self) -> str:
        kind = self.type()[0]
        return f"{kind} {self.take('ident').text}" if self.now.kind == "ident" else kind

    def type(self) -> tuple[str, str, bool, str]:
        """(as written, base type, whether a list, its length)."""
        if self.now.kind == "(" or self.now.text in ("Dict", "Future", "Await"):
            return self.nested_type()
        token = self.take("ident")
        base = token.text
        if base not in TYPES:
            hint = _INSTEAD.get(base)
            words = f"\nUse {hint} instead of `{base}` in an operator's schema string:" if hint else _UNKNOWN
            raise RuntimeError(f"{words}\n{_marked(self.text, token.start, len(base))}")
        text = base + (self.alias() if self.now.kind == "(" else self.fresh_alias() if self.have("!") else "")
        is_list, size = False, ""
        while self.now.kind in ("[", "?"):
            if self.have("?"):
                text += "?"
                continue
            self.take("[")
            is_list, size = True, "" if self.now.kind == "]" else self.take("number").text
            self.take("]")
            text += f"[{size}]"
        return text, base, is_list, size

    def nested_type(self) -> tuple[str, str, bool, str]:
        """A tuple, which can only be a result; other containers are not supported."""
        if self.now.kind != "(" or not self.in_results:
            raise NotImplementedError(
                f"arguments of type {self.now.text or 'tuple'} are not supported in schemas: {self.text}"
            )
        self.take("(")
        text = f"({', '.join(self.items(lambda: self.type()[0]))})"
        return text, text, False, ""

    def alias(self) -> str:
        self.take("(")
        text = ""
        while self.now.kind in ("ident", "*"):
            text += self.tokens[self.at].text
            self.at += 1
            text += "!" if self.have("!") else ""
            if self.have("|"):
                text += "|"
            elif self.have("arrow"):
                text += " -> "
            else:
                break
        self.take(")")
        return f"({text})"

    def fresh_alias(self) -> str:
        """`Tensor!` is written and shares memory with nothing else: a set of its own, which has a number for a name."""
        self.fresh += 1
        return f"(${self.fresh - 1}! -> )"

    def default(self, base: str, is_list: bool, size: str) -> str:
        token = self.now
        if token.kind == "ident" and token.text in ("None", "True", "False"):
            self.at += 1
            return token.text
        if is_list and (not size or token.kind == "["):
            self.take("[")
            parts: list[str] = []
            while self.now.kind != "]":
                parts.append(self.value(base))
                if not self.have(","):
                    break
            self.take("]")
            return f"[{', '.join(parts)}]"
        return self.value(base)

    def value(self, base: str) -> str:
        token = self.now
        if token.kind == "string":
            self.at += 1
            return f'"{token.text[1:-1]}"'
        if token.kind == "ident":
            self.at += 1
            if token.text in ("True", "False"):
                return token.text
            if base in ("ScalarType", "Layout", "MemoryFormat") or token.text in ("Mean", "inf", "nan"):
                return token.text
            after = self.now if self.now.kind != "eof" else token
            raise RuntimeError(f"\ninvalid numeric default value:\n{_marked(self.text, after.start, 1)}")
        sign = "-" if self.have("-") else ""
        number = sign + self.take("number").text
        return _float(number) if base in _FLOATS else number


def _float(text: str) -> str:
    """A float as PyTorch prints it: `1.`, `1.0000000000000001e-05`."""
    shown = f"{float(text):.17g}"
    return shown if any(c in shown for c in ".en") else f"{shown}."
