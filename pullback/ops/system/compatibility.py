"""Whether programs that were written for one version of a schema still run with another.

In: two schemas. Out: yes, or the reason why not. Always: a call in the old form means the same in the new one where it is backward
compatible; one in the new form, with defaults left out, runs in the old one where it is forward compatible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .schema import Argument, Schema


def backward(new: Schema, old: Schema) -> bool:
    """Arguments may have grown at the end, with defaults, and their types wider; results may have become narrower."""
    if not _same_form(new, old) or len(new.arguments) < len(old.arguments):
        return False
    if any(
        (a.name, a.alias) != (b.name, b.alias) or not a.type.isSubtypeOf(b.type)
        for a, b in zip(new.returns, old.returns, strict=True)
    ):
        return False
    before, added, outs = _paired(new, old)
    return (
        all(_same_place(a, b) and b.type.isSubtypeOf(a.type) and _keeps_default(a, b) for a, b in before + outs)
        and len(outs) == len(old.arguments) - _first_out(old)
        and all(a.has_default for a in added)
    )


def why_not_forward(new: Schema, old: Schema) -> str:
    """Why programs for the new schema may not run with the old one; nothing where they do."""
    if not _same_form(new, old):
        return "Function schemas differ in their names or in how many results they have."
    before, added, outs = _paired(new, old)
    if len(new.arguments) - _first_out(new) != len(old.arguments) - _first_out(old):
        return "Function schema should have the same number of out arguments"
    for a, b in before:
        if not _runs_with(a, b):
            return f"'{a.name}' is not forward compatible with the older version of the schema"
    for a in added:
        said = f"Function schema is not forward compatible since the new argument '{a.name}' of type {a.type.str()}"
        if not a.has_default:
            return f"{said} did not provide a default value."
        if isinstance(a.default_value, (list, tuple)):
            return f"{said} has a container type as its default value."
    for a, b in outs:
        if not _runs_with(a, b):
            return f"Out argument '{a.name}' is not FC with the older version of the schema"
    return ""


def _same_form(new: Schema, old: Schema) -> bool:
    return (new.name, new.overload_name, len(new.returns)) == (old.name, old.overload_name, len(old.returns))


def _first_out(schema: Schema) -> int:
    return next((i for i, a in enumerate(schema.arguments) if a.is_out), len(schema.arguments))


def _paired(new: Schema, old: Schema) -> tuple[list, list, list]:
    """Arguments that both have, side by side; those that are new; those for results that both have."""
    ours, theirs = _first_out(new), _first_out(old)
    before = list(zip(new.arguments[:ours], old.arguments[:theirs], strict=False))
    outs = list(zip(new.arguments[ours:], old.arguments[theirs:], strict=False))
    return before, list(new.arguments[theirs:ours]), outs


def _same_place(a: Argument, b: Argument) -> bool:
    return (a.name, a.N, a.alias) == (b.name, b.N, b.alias) and (b.kwarg_only or not a.kwarg_only)


def _keeps_default(a: Argument, b: Argument) -> bool:
    return not b.has_default or a.has_default and a.default == b.default


def _runs_with(a: Argument, b: Argument) -> bool:
    narrower = _same_place(a, b) and a.type.isSubtypeOf(b.type)
    return narrower and _keeps_default(a, b) and (b.has_default or not a.has_default)
