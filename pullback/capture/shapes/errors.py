"""What symbolic shapes can refuse, in the words PyTorch's users search for."""

from __future__ import annotations


class GuardOnDataDependentSymNode(RuntimeError):
    """A decision would hang on data that is not known while tracing. `cond` is the question."""

    def __init__(self, cond, *args):
        super().__init__(*args)
        self.cond = cond


class ConstraintViolationError(RuntimeError):
    """What the user promised of a dimension does not fit what the program needs."""


class PendingUnbackedSymbolNotFound(RuntimeError):
    """A data-dependent size was made that no output holds."""


def data_dependent(expr, original, size_like, location, is_question: bool) -> GuardOnDataDependentSymNode:
    """The error for a decision that no example value can take."""
    what = "guard on" if is_question else "extract specialized integer from"
    advice = (
        "consider using data-dependent friendly APIs such as guard_or_false, guard_or_true and statically_known_true."
        if is_question
        else "consider torch._check on its range, or keep it symbolic."
    )
    likes = ", ".join(sorted(map(str, size_like))) or "none"
    line = f"\nCaused by: {location.line}  # {location}" if location is not None else ""
    return GuardOnDataDependentSymNode(
        expr,
        f"Could not {what} data-dependent expression {expr} (unhinted: {original}).  (Size-like symbols: {likes})\n\n"
        f"{advice}{line}",
    )
