"""What functions may give that an operator takes; and that one step of a loop gives what the next one takes.

What is refused here is refused wherever the operator is called, by the same error: who traces the call and who only makes it
catch the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.tensor import Tensor
from ..trace.program import RefusedByOperator


def refusal(operator: str, words: str) -> RefusedByOperator:
    """The error for a function that an operator cannot run, or an operand that it cannot take."""
    return RefusedByOperator(f"{words}\n  Higher Order Operator: {operator}")


def check_same(operator: str, left: Sequence, right: Sequence, left_name: str, right_name: str) -> None:
    """Refuse values that differ in number, kind, shape, dtype or device."""
    if len(left) != len(right):
        raise refusal(
            operator,
            f"Expected {left_name} and {right_name} to have same number of outputs but got lhs:{list(left)} and "
            f"rhs:{list(right)}",
        )
    found = []
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        differences = _differences(a, b)
        if differences:
            found.append(f"pair[{i}] differ in {differences}, where lhs is {_short(a)} and rhs is {_short(b)}")
    if found:
        lines = "\n".join(found)
        raise refusal(operator, f"Expected {left_name} and {right_name} to have same metadata but found:\n{lines}")


def _differences(a, b) -> str:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        both = not isinstance(a, Tensor) and not isinstance(b, Tensor)
        return "" if both and (a is None) == (b is None) else f"type: {_short(a)} vs {_short(b)}"
    pairs = [("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype), ("device", a.device, b.device)]
    return ", ".join(f"'{name}: {x} vs {y}'" for name, x, y in pairs if x != y)


def _short(v) -> str:
    return f"a tensor of shape {list(v.shape)}, {v.dtype}" if isinstance(v, Tensor) else repr(v)
