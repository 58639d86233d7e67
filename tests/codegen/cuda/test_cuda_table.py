"""A share of the operator table, compiled for a CUDA device and run by the emulator: what operators give.

The whole table runs on the CPU's loops (`tests/ops/test_compiled.py`), of which these are the same; here is what threads make of them.
"""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from pullback.codegen import Native
from tests.ops.test_compiled import CLAIMING, calls, difference, traced

SHARES = 8


@pytest.mark.parametrize(("d", "share"), [(torch.float32, 0), (torch.bfloat16, 3), (torch.int32, 5)], ids=str)
def test_compiled_is_eager(emulated, d, share: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph, tensors, some = traced(list(calls(sorted(CLAIMING)[share::SHARES], d)))
        result = Native(graph)
        result.build()
        got = result(*tensors)
    assert result.kernels
    wrong = [
        f"{call}: {different}"
        for call, outs in zip(some, got, strict=True)
        for g, w in zip(outs, call.expected, strict=True)
        if (different := difference(g, w))
    ]
    assert not wrong, "\n".join(wrong[:20])
