"""The text of a masked tensor: its elements in brackets, `--` for those that are missing."""

from __future__ import annotations

from .core import MaskedTensor
from .rules import dense

MISSING = "      --"


def _text(value, there: bool) -> str:
    if not there:
        return MISSING.rjust(8)
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _rows(data: list, mask: list, depth: int) -> str:
    """A list of lists, one line for each innermost one."""
    space = "  " * depth
    if not isinstance(data[0], list) if data else True:
        return f"{space}[{', '.join(map(_text, data, mask))}]"
    inner = ",\n".join(_rows(d, m, depth + 1) for d, m in zip(data, mask, strict=True))
    return f"{space}[\n{inner}\n{space}]"


def masked_repr(t: MaskedTensor) -> str:
    """`MaskedTensor(` and the elements."""
    data, mask = (part.detach().tolist() for part in dense(t))
    if not isinstance(data, list):
        return f"MaskedTensor({_text(data, mask) if mask else '--'}, {mask})"
    return f"MaskedTensor(\n{_rows(data, mask, 1)}\n)"
