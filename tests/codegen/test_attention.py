"""Attention in native graphs: loops for short sequences, the operator that never holds all scores for long ones."""

from __future__ import annotations

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import compile_graph

F = torch.nn.functional


def test_long_sequences_are_left_to_the_operator():
    for length, native in ((32, True), (600, False)):
        q = torch.randn(1, 2, length, 4)
        f = lambda q: F.scaled_dot_product_attention(q * 2, q, q, is_causal=True) + 1
        result = compile_graph(make_fx(f, tracing_mode="fake")(q))
        assert result.native is native
        torch.testing.assert_close(result(q), f(q))
        if not native:
            assert "never holds all scores" in " ".join(result.reasons.values())
