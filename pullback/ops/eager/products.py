"""The plain case of products of two matrices of one floating dtype, with or without an addend."""

from __future__ import annotations

import numpy as np

from ...core import dtype as dtypes
from .text import Call, all_of, block, finish, is_plain

__all__ = ["DIRECT", "LINES", "NAMES"]

DIRECT = frozenset((dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128))
NAMES = {"DIRECT": DIRECT, "add": np.add}
_MATRICES = "a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0]"


def _matmul_lines(call: Call) -> list[str]:
    x, y = call.values
    fits = all_of("mode < 2", f"d is {y}.dtype", "d in DIRECT", _MATRICES)
    return block(
        f"if {is_plain([x, y], *call.no_out)}:",
        f"a = {x}.array",
        f"b = {y}.array",
        f"d = {x}.dtype",
        "mode = ambient.mode",
        *block(f"if {fits}:", "r = a.dot(b)", *finish("d", [x, y], f"recorder.record(t, {x}, {y})")),
    )


def _addmm_lines(call: Call) -> list[str]:
    bias, x, y, beta, alpha = call.values
    ones = f"{beta}.__class__ is int and {alpha}.__class__ is int and {beta} == {alpha} == 1"
    addend = "(c.shape == b.shape[1:] or c.shape == (a.shape[0], b.shape[1]))"
    alike = all_of("mode < 2", f"d is {y}.dtype", f"d is {bias}.dtype", "d in DIRECT", ones, _MATRICES, addend)
    record = f"recorder.record(t, {call.given})"
    return block(
        f"if {is_plain([bias, x, y], *call.no_out)}:",
        f"a = {x}.array",
        f"b = {y}.array",
        f"c = {bias}.array",
        f"d = {x}.dtype",
        "mode = ambient.mode",
        *block(f"if {alike}:", "r = a.dot(b)", "add(r, c, r)", *finish("d", [bias, x, y], record)),
    )


LINES = {"matmul": _matmul_lines, "addmm": _addmm_lines}
