"""Attention with functions of one's own, as one operator in a graph."""

from __future__ import annotations

import math

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

DOUBLE = {"dtype": torch.float64}


def causal(b, h, i, j):
    return i >= j


def attention(q, k, v, bias, block_mask=None, aux=None):
    def score_mod(score, b, h, i, j):
        return score + bias[i, j] * h

    return flex_attention(q, k, v, score_mod=score_mod, block_mask=block_mask, return_aux=aux)


def reference(q, k, v, bias):
    heads = torch.arange(q.shape[1]).reshape(-1, 1, 1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + bias * heads
    hidden = ~torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1), scores.amax(-1)


def inputs():
    return [torch.randn(1, 2, 5, 4, **DOUBLE) for _ in range(3)] + [torch.randn(5, 5, **DOUBLE)]


@pytest.mark.parametrize("mode", ["eager", "real", "fake"])
def test_values(mode):
    mask, args = create_block_mask(causal, None, None, 5, 5), inputs()

    def f(*args):
        out, aux = attention(*args, mask, AuxRequest(lse=True, max_scores=True))
        return out, aux.lse, aux.max_scores

    run = f if mode == "eager" else make_fx(f, tracing_mode=mode)(*inputs())
    for got, want in zip(run(*args), reference(*args), strict=True):
        assert torch.allclose(got, want)


@pytest.mark.parametrize("mode", ["eager", "real", "fake"])
def test_gradients_also_of_captured_tensors(mode):
    mask, args = create_block_mask(causal, None, None, 5, 5), inputs()

    def gradients(f):
        def run(*args):
            args = [t.detach().requires_grad_() for t in args]
            out, lse, largest = f(*args)
            return torch.autograd.grad(out.sin().sum() + (lse * lse).sum() + largest.sum(), args)

        return run

    def f(*args):
        out, aux = attention(*args, mask, AuxRequest(lse=True, max_scores=True))
        return out, aux.lse, aux.max_scores

    run = gradients(f)
    run = run if mode == "eager" else make_fx(run, tracing_mode=mode)(*inputs())
    for got, want in zip(run(*args), gradients(reference)(*args), strict=True):
        assert torch.allclose(got, want)


def test_the_functions_are_graphs_of_single_elements():
    graph = make_fx(lambda *args: attention(*args))(*inputs())
    (node,) = [n for n in graph.graph.nodes if n.target is torch.ops.higher_order.flex_attention]
    assert str(node.args[3]) == "sdpa_score0" and str(node.args[4][-1]) == "sdpa_mask0"
    assert node.args[7] == (graph.graph.find_nodes(op="placeholder")[3],) and node.args[8] == ()
    shapes = [n.meta["val"].shape for n in graph.sdpa_score0.graph.find_nodes(op="placeholder")]
    assert shapes == [(), (), (), (), (), (5, 5)]


def test_rows_that_see_nothing():
    q, k, v, _ = inputs()
    mask = create_block_mask(lambda b, h, i, j: i > 2, None, None, 5, 5)

    def f(q, k, v):
        q = q.detach().requires_grad_()
        out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True))
        return out, aux.lse, torch.autograd.grad(out.sum(), q)[0]

    for got, want in zip(make_fx(f)(q, k, v)(q, k, v), f(q, k, v), strict=True):
        assert torch.allclose(got, want)
    assert torch.equal(f(q, k, v)[0][:, :, :3], torch.zeros(1, 2, 3, 4, **DOUBLE))


def test_half_precision_is_summed_in_single():
    q, k, v, _ = (t.to(torch.bfloat16) for t in inputs())
    out, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
    want = flex_attention(q.float(), k.float(), v.float())
    assert out.dtype == torch.bfloat16 and aux.lse.dtype == torch.float32
    assert torch.equal(out, want.to(torch.bfloat16))
