"""The plain case of operators of no family: a kernel that makes all checks itself, or a function of the declaration."""

from __future__ import annotations

from .text import Call, all_of, block, is_plain, live

__all__ = ["shortcut_lines", "straight_lines"]


def shortcut_lines(call: Call) -> list[str]:
    """Ask the declaration's `shortcut`, which gives the result, or None where it takes more than it does."""
    asked = [f"t = shortcut({call.given})", *block("if t is not None:", "return t")]
    return block(f"if {all_of(*call.no_out)}:", *asked) if call.has_out else asked


def straight_lines(call: Call) -> list[str]:
    """Plain tensors, ints and bools go straight to the kernel."""
    others = []
    for v, a in call.arguments:
        if a.is_list or a.optional or a.base not in ("Tensor", "int", "SymInt", "bool"):
            return []
        if a.base != "Tensor":
            others.append(f"{v}.__class__ is {'bool' if a.base == 'bool' else 'int'}")
    arrays = ", ".join(f"{v}.array" if v in call.tensors else v for v in call.values)
    run = block(
        "if mode < 2:",
        f"t = wrap_array(kernel(np, {arrays}), cpu)",
        *block(f"if {live(call.tensors)}:", f"return op.record(t, {call.given})"),
        "return t",
    )
    return block(f"if {is_plain(call.tensors, *others, *call.no_out)}:", "mode = ambient.mode", *run)
