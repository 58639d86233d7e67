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

Entry = str  # what it does, which may be empty; then an example, as in an interactive session


def entries() -> dict[str, Entry]:
    """All entries, by public name ("torch.abs", "Tensor.copy_", "linalg.inv")."""
    result: dict[str, Entry] = {}
    folder = os.path.dirname(__file__)  # every import reads this: pathlib would double what it costs
    for file in os.listdir(folder):
        if file.endswith(".txt"):
            with open(f"{folder}/{file}", "rb") as text:
                parts = text.read().decode()[3:].rstrip("\n").split("\n\n## ")
            for part in parts:
                header, _, body = part.partition("\n")
                if " " in header:
                    header, *others = header.split()
                    for other in others:
                        result[other] = body.replace(_call(header), _call(other))
                result[header] = body
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
                    # A docstring beside a signature of ours is made of schemas: it comes last. One that was written stands for what an entry says.
                    schemas = "__signature__" in function.__dict__
                    function.__doc__ = f"{entry}\n\n{function.__doc__}" if schemas else _after(function.__doc__, entry)
    for name, member in members.items():
        entry = known.get(f"Tensor.{name}")
        if entry is not None and isinstance(member, (types.FunctionType, property)):
            member.__doc__ = _after(member.__doc__, entry)


def _derived(name: str, known: dict[str, Entry]) -> Entry | None:
    """The entry of a method, or of an in-place form, by that of the function."""
    function = name.removesuffix("_")
    if name != function and f"torch.{name}" in known:
        return known[f"torch.{name}"]
    entry = known.get(f"torch.{function}")
    if entry is None:
        return None
    if name != function:
        entry = _after(f"`{function}` in place: the tensor itself is written, and returned.", entry)
    return entry.replace(f"torch.{function}(x, ", f"x.{name}(").replace(f"torch.{function}(x)", f"x.{name}()")


def _after(says: str | None, entry: Entry) -> str:
    """The example of an entry behind what is said; what the entry says where nothing is."""
    return f"{says}\n\n{entry[entry.index('>>> ') :]}" if says else entry
