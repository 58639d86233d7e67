"""What `help` says of public operators: a sentence and an example for each, kept as text beside this file.

In: the files of this folder, and the public functions by namespace and name (`exports`). Out: their docstrings: what a function does
(the docstring of one that was written by hand stays), an example, the schemas of its operators. An entry begins with `## ` and the
names it is for. The example of the first holds for the others with the name exchanged; that of a function for the method and the
in-place form of the same name, where they have no entry of their own, with `x` before the point.

What always holds: `tests/ops/test_texts.py` runs every example, and writes the outputs when it is run as a script.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Mapping

__all__ = ["attach", "entries"]

Entry = tuple[str, str]  # what it does, which may be empty; an example, as in an interactive session


def entries() -> dict[str, Entry]:
    """All entries, by public name ("torch.abs", "Tensor.copy_", "linalg.inv")."""
    result: dict[str, Entry] = {}
    folder = os.path.dirname(__file__)  # every import reads this: pathlib would double what it costs
    for file in sorted(os.listdir(folder)):
        if file.endswith(".txt"):
            with open(f"{folder}/{file}", encoding="utf-8") as text:
                parts = text.read()[3:].rstrip("\n").split("\n\n## ")
            for part in parts:
                header, _, body = part.partition("\n")
                start = body.index(">>> ")
                says, example = body[: max(start - 2, 0)], body[start:]
                if " " in header:
                    header, *others = header.split()
                    for other in others:
                        result[other] = says, example.replace(_call(header), _call(other))
                result[header] = says, example
    return result


def _call(name: str) -> str:
    return f"{name}(" if name.startswith("torch.") else f"torch.{name}("


def attach(exports: dict[str, dict[str, Callable]], members: Mapping[str, object]) -> None:
    """Give every public function its docstring, under the first of its names; and members of `Tensor` theirs, which no function exports."""
    known = entries()
    seen: set[Callable] = set()
    for namespace, functions in exports.items():
        for name, function in functions.items():
            if type(function) is types.FunctionType and function not in seen:
                seen.add(function)
                entry = known.get(f"{namespace}.{name}") or _derived(name, known)
                if entry is not None:
                    function.__doc__ = f"{_said(function, entry[0])}\n\n{entry[1]}"
    for name, member in members.items():
        entry = known.get(f"Tensor.{name}")
        if entry is not None and isinstance(member, (types.FunctionType, property)):
            member.__doc__ = f"{member.__doc__ or entry[0]}\n\n{entry[1]}"


def _derived(name: str, known: dict[str, Entry]) -> Entry | None:
    """The entry of a method, or of an in-place form, by that of the function."""
    function = name.removesuffix("_")
    if name != function and f"torch.{name}" in known:
        return known[f"torch.{name}"]
    entry = known.get(f"torch.{function}")
    if entry is None:
        return None
    says = entry[0] if name == function else f"`{function}` in place: the tensor itself is written, and returned."
    example = entry[1].replace(f"torch.{function}(x, ", f"x.{name}(").replace(f"torch.{function}(x)", f"x.{name}()")
    return says, example


def _said(function: types.FunctionType, says: str) -> str:
    own = function.__doc__
    if own and says and "__signature__" in function.__dict__:  # its docstring is made of schemas
        return f"{says}\n\n{own}"
    return own or says
