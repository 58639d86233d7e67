"""What the tags `inplace` and `out` promise of a schema, checked when an operator is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .operator import LibraryOperator


def check_tagged(op: LibraryOperator) -> None:
    """Raise ValueError where a schema is not what its tags say."""
    schema = str(op.schema).partition("::")[2]
    if "inplace" in op.tags:
        reason = _inplace_fault(op)
        if reason:
            raise ValueError(f"Schema tagged with torch.Tag.inplace {reason}. Got: {schema}")
    if "out" in op.tags:
        reason = _out_fault(op)
        if reason:
            raise ValueError(f"{reason}. Got: {schema}")


def _inplace_fault(op: LibraryOperator) -> str:
    arguments, returns = op.schema.arguments, op.schema.returns
    if not arguments or arguments[0].kwarg_only:
        return "must have at least one positional argument"
    first = arguments[0]
    if not first.writes:
        return "requires the first positional argument to be mutable (e.g., Tensor(a!))"
    if first.type != "Tensor":
        return f"requires the first positional argument to be a Tensor. Got type '{first.type}' for arg '{first.name}'"
    if len(returns) != 1:
        return f"must return exactly one value (the first argument). Got {len(returns)} returns"
    given = returns[0]
    lead = "must return the first mutable argument "
    if given.type != "Tensor":
        return f"{lead}(return must be a Tensor, got type '{given.type}')"
    if given.alias is None:
        return f"{lead}(return must alias the first argument)"
    if "!" not in given.alias:
        return f"{lead}(return must be a mutable alias, e.g., Tensor(a!))"
    ours, theirs = given.alias_info.before_set, first.alias_info.before_set
    if ours != theirs:
        return f"{lead}(return aliases {ours} but first arg aliases {theirs})"
    others = [a.name for a in arguments[1:] if a.writes]
    return f"must only mutate the first positional argument. Found additional mutable args: {others}" if others else ""


def _out_fault(op: LibraryOperator) -> str:
    tagged = "Schema tagged with torch.Tag.out"
    written = [a for a in op.schema.arguments if a.writes]
    returns = op.schema.returns
    if not written:
        return f"{tagged} must have at least one mutable argument"
    positional = [a.name for a in written if not a.kwarg_only]
    if positional:
        return f"{tagged} requires all mutable arguments to be keyword-only (after the *). Found mutable positional args: {positional}"
    lists = [a.name for a in written if a.type != "Tensor"]
    if lists:
        return f"{tagged} only supports Tensor mutable arguments. Found unsupported mutable args: {lists}"
    if len(returns) != len(written):
        return (
            f"{tagged} must return all mutable arguments (got {len(written)} mutable args but {len(returns)} returns)"
        )
    for i, (given, a) in enumerate(zip(returns, written, strict=True)):
        if given.alias is None:
            return f"Return {i} of schema tagged with torch.Tag.out must alias mutable arg '{a.name}'"
        if "!" not in given.alias:
            return f"Return {i} of schema tagged with torch.Tag.out must be a mutable alias (e.g., Tensor(a!), not Tensor(a)) of arg '{a.name}'"
        ours, theirs = given.alias_info.before_set, a.alias_info.before_set
        if ours != theirs:
            return f"Return {i} of schema tagged with torch.Tag.out must alias mutable arg '{a.name}' (return aliases {ours} but arg aliases {theirs})"
    return ""
