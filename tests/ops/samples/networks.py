"""Samples of what neural networks are built of: losses, normalisation, attention, recurrence, activations."""

from __future__ import annotations

import pullback as torch

from .make import Make, call

REDUCTIONS = (0, 1, 2)


def _pairs(m: Make, first, second, *rest) -> list:
    return [call(first(2, 3), second(2, 3), *rest, reduction=r) for r in REDUCTIONS]


def _losses(m: Make) -> dict:
    real, unit, signs = m.real, (lambda *s: m.real(*s, low=0.1, high=0.9)), (lambda *s: m.mask(*s).double() * 2 - 1)
    bce = "binary_cross_entropy"
    found = {
        n: _pairs(m, real, real)
        for n in ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "l1_loss", "hinge_embedding_loss")
    }
    found["l1_loss"] += [call(m(2, 3), m(2, 3))] if m.is_complex else []
    found["hinge_embedding_loss"] = _pairs(m, real, signs)
    found["soft_margin_loss"] = _pairs(m, real, signs)
    for n in ("mse", "soft_margin"):
        found[f"{n}_loss_backward"] = [
            call(real(2, 3) if r == 0 else real(), real(2, 3), signs(2, 3), r) for r in REDUCTIONS
        ]
    for n in ("smooth_l1", "huber"):
        found[f"{n}_loss_backward"] = [
            call(real(2, 3) if r == 0 else real(), real(2, 3), real(2, 3), r, 0.7) for r in REDUCTIONS
        ]
    labels = torch.tensor([[2, 0, -1, 1], [1, -1, 0, 2]])
    found["rrelu_with_noise_backward"] = [
        call(real(2, 3), real(2, 3), unit(2, 3), 0.1, 0.3, training, False) for training in (True, False)
    ]
    return found | {
        bce: _pairs(m, unit, unit) + [call(unit(2, 3), unit(2, 3), unit(3))],
        f"{bce}_with_logits": _pairs(m, real, unit) + [call(real(2, 3), unit(2, 3), unit(3), unit(3)), call(real(2, 3), unit(2, 3), None, unit(3), 2)],
        "kl_div": _pairs(m, real, unit) + [call(real(2, 3), real(2, 3), log_target=True)],
        "poisson_nll_loss": [call(unit(2, 3), m.real(2, 3, low=1.5, high=3), log, full, 1e-8, 1) for log in (True, False) for full in (True, False)],
        "margin_ranking_loss": [call(real(4), real(4), signs(4), 0.3, r) for r in REDUCTIONS],
        "cosine_embedding_loss": [call(real(2, 3), real(2, 3), torch.tensor([1.0, -1.0], dtype=torch.float64), 0.1, r) for r in REDUCTIONS],
        "triplet_margin_loss": [call(real(2, 3), real(2, 3), real(2, 3), 3.0, 2.0, 1e-6, s, r) for s in (False, True) for r in REDUCTIONS],
        "multi_margin_loss": [call(real(2, 4), m.ints(4, 2), p, 1, w, r) for p, w, r in ((1, None, 1), (2, unit(4), 0), (1, unit(4), 2))],
        "_multi_margin_rows": [call(real(2, 4), m.ints(4, 2), margin, w) for margin, w in ((1, None), (0.5, unit(4)), (-2, None))],
        "_multilabel_margin_rows": [call(real(2, 4), torch.tensor(labels)) for labels in ([[2, 0, -1, 1], [1, -1, 0, 2]], [[-1] * 4, [3, 1, 0, 2]])],
        "multilabel_margin_loss_forward": [call(real(2, 4), labels, r) for r in REDUCTIONS] + [call(real(4), labels[0], 1), call(real(), labels[0, 1], 1)],
        "multilabel_margin_loss_backward": [call(real(2) if r == 0 else real(), real(2, 4), labels, r, unit(2, 4)) for r in REDUCTIONS],
        "multilabel_margin_loss": [call(real(2, 4), torch.tensor([[2, 0, -1, 1], [1, -1, 0, 2]]), r) for r in REDUCTIONS],
        "nll_loss_forward": [call(real(3, 4), m.ints(4, 3), w, r, -100) for w in (None, unit(4)) for r in REDUCTIONS] + [call(real(4), m.ints(4), None, 1, -100)],
        "nll_loss2d_forward": [call(real(2, 3, 2, 2), m.ints(3, 2, 2, 2), w, r, 1) for w in (None, unit(3)) for r in REDUCTIONS],
        "nll_loss_backward": [call(real() if r else real(3), real(3, 4), t := m.ints(4, 3), w := unit(4), r, -100, w[t].sum()) for r in REDUCTIONS],
        "nll_loss2d_backward": [call(real() if r else real(2, 2, 2), real(2, 3, 2, 2), t := m.ints(3, 2, 2, 2), w := unit(3), r, -100, w[t].sum()) for r in REDUCTIONS],
        **{n: [call(real(3, 4), m.ints(4, 3)), call(real(3, 4), m.ints(4, 3), unit(4), 2, 1)] for n in ("nll_loss", "nll_loss_nd")},
        "nll_loss2d": [call(real(2, 3, 2, 2), m.ints(3, 2, 2, 2))],
        "cross_entropy_loss": [call(real(3, 4), m.ints(4, 3), w, r, -100, s) for w in (None, unit(4)) for r in REDUCTIONS for s in (0.0, 0.1)]
        + [call(real(3, 4), unit(3, 4)), call(real(2, 3, 2), m.ints(3, 2, 2)), call(real(4), m.ints(4)), call(real(3, 4), unit(3, 4), unit(4), 2, -100, 0.2)],
    }  # fmt: skip


def _ctc(m: Make) -> dict:
    probs = lambda: torch.log_softmax(m.real(5, 2, 4), 2)
    targets = lambda: m.ints(4, 2, 3, low=1)
    lengths = ((5, 4), (3, 1))
    result = [probs(), targets()]
    nll, alpha = torch.ops.aten._ctc_loss(*result, *lengths)
    return {
        "_ctc_loss": [call(probs(), targets(), *lengths), call(probs(), targets(), *lengths, 0, True)],
        "_ctc_loss.Tensor": [call(probs(), targets(), *map(torch.tensor, lengths))],
        "_ctc_loss_backward.Tensor": [call(m.real(2), *result, *map(torch.tensor, lengths), nll, alpha, 0)],
        "_ctc_loss_backward": [call(m.real(2), *result, *lengths, nll, alpha, 0)],
        "ctc_loss.IntList": [call(probs(), targets(), *lengths, 0, r) for r in REDUCTIONS],
        "ctc_loss.Tensor": [call(probs(), targets(), *map(torch.tensor, lengths))],
    }  # fmt: skip


def _normalisation(m: Make) -> dict:
    x, real, unit = (lambda: m.real(3, 2, 4)), m.real, (lambda *s: m.real(*s, low=0.3, high=2))
    stats = lambda: (real(2), unit(2))
    layer = [
        call(x(), (4,), unit(4), real(4), 1e-5),
        call(x(), (2, 4), None, None, 1e-5),
        call(x(), (4,), unit(4), None, 1e-5),
    ]
    batch = [(unit(2), real(2), None, None, True), (None, None, *stats(), False), (unit(2), real(2), *stats(), False)]
    mean = lambda a: a.mean((0, 2))
    return {
        "native_layer_norm": layer, "layer_norm": [call(x(), (4,)), *(call(*c[0][:4]) for c in layer)],
        "native_layer_norm_backward": [call(x(), x(), (4,), real(3, 2, 1), unit(3, 2, 1), unit(4), real(4), (True, True, True))],
        "rms_norm": [call(x(), (4,)), call(x(), (2, 4), unit(2, 4), 1e-3)],
        "native_batch_norm": [call(x(), *b, 0.1, 1e-5) for b in batch],
        "_native_batch_norm_legit.no_stats": [call(x(), unit(2), real(2), True, 0.1, 1e-5), call(x(), None, None, True, 0.1, 1e-5)],
        "_native_batch_norm_legit_no_training": [call(x(), unit(2), real(2), *stats(), 0.1, 1e-5)],
        "_native_batch_norm_legit_functional": [call(x(), unit(2), real(2), *stats(), t, 0.1, 1e-5) for t in (True, False)],
        "native_batch_norm_backward": [call(x(), x(), unit(2), *stats(), real(2), unit(2), t, 1e-5, (True, True, True)) for t in (True, False)],
        "batch_norm": [call(x(), *b, 0.1, 1e-5, False) for b in batch], "_batch_norm_impl_index": [call(x(), *b, 0.1, 1e-5, False) for b in batch],
        "instance_norm": [call(x(), unit(2), real(2), None, None, True, 0.1, 1e-5, False), call(x(), None, None, *stats(), False, 0.1, 1e-5, False)],
        "native_group_norm": [call(m.real(2, 4, 3), w, b, 2, 4, 3, 2, 1e-5) for w, b in ((unit(4), real(4)), (None, None))],
        "native_group_norm_backward": [call(m.real(2, 4, 3), m.real(2, 4, 3), real(2, 2), unit(2, 2), unit(4), 2, 4, 3, 2, (True, True, True))],
        "group_norm": [call(m.real(2, 4, 3), 2), call(m.real(2, 4, 3), 2, unit(4), real(4))],
        "batch_norm_stats": [call(x(), 1e-5)], "batch_norm_elemt": [call(a := x(), unit(2), real(2), mean(a), unit(2), 1e-5)],
        "batch_norm_gather_stats_with_counts": [call(x(), real(3, 2), unit(3, 2), None, None, 0.1, 1e-5, torch.tensor([3.0, 2.0, 4.0], dtype=torch.float64))],
        "batch_norm_gather_stats": [call(x(), real(3, 2), unit(3, 2), None, None, 0.1, 1e-5, 4)],
        "batch_norm_backward_reduce": [call(x(), x(), real(2), unit(2), unit(2), True, True, True)],
        "batch_norm_backward_elemt": [call(x(), x(), real(2), unit(2), unit(2), real(2), real(2), torch.tensor([12]))],
    }  # fmt: skip


def _attention(m: Make) -> dict:
    q, kv = (lambda: m.real(2, 2, 3, 4)), (lambda: m.real(2, 2, 5, 4))
    causal = call(q(), m.real(2, 2, 3, 4), m.real(2, 2, 3, 4), is_causal=True)
    plain = [call(q(), kv(), kv()), call(q(), kv(), kv(), attn_mask=m.real(3, 5), scale=0.3), causal]
    flash = "_scaled_dot_product_flash_attention_for_cpu"
    return {
        flash: plain, "scaled_dot_product_attention": [*plain, call(q(), kv(), kv(), m.mask(3, 5)), call(m.real(2, 4, 3, 4), kv(), kv(), enable_gqa=True)],
        "_scaled_dot_product_attention_math": plain,
        f"{flash}_backward": [call(q(), a := q(), b := kv(), c := kv(), *torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(a, b, c), 0.0, False)],
    }  # fmt: skip


def _recurrence(m: Make) -> dict:
    found: dict = {}
    for name, gates in (("rnn_tanh", 1), ("rnn_relu", 1), ("lstm", 4), ("gru", 3)):
        weights = lambda n=1, g=gates: tuple(
            w for _ in range(n) for w in (m.real(g * 2, 3), m.real(g * 2, 2), m.real(g * 2), m.real(g * 2))
        )
        hidden = lambda n=1, lstm=name == "lstm": (m.real(n, 2, 2), m.real(n, 2, 2)) if lstm else m.real(n, 2, 2)
        found[f"{name}.input"] = [
            call(m.real(3, 2, 3), hidden(), weights(), True, 1, 0.0, False, False, False),
            call(m.real(2, 3, 3), hidden(2), weights(2), True, 1, 0.0, False, True, True),
        ]
        found[f"{name}.data"] = [
            call(m.real(5, 3), torch.tensor([2, 2, 1]), hidden(), weights(), True, 1, 0.0, False, False)
        ]
        cell = (m.real(2, 3), (m.real(2, 2), m.real(2, 2)) if name == "lstm" else m.real(2, 2), *weights())
        found[f"{name}_cell"] = [call(*cell), call(*cell[:4])]
    return found


def _activations(m: Make) -> dict:
    return {
        "glu": [call(m.real(2, 4)), call(m.real(4, 3), 0)], "glu_backward": [call(m.real(2, 2), m.real(2, 4), 1), call(m.real(2, 3), m.real(4, 3), 0)], "relu6": [call(m.real(2, 3))], "_add_relu.Tensor": [call(m.real(2, 3), m.real(3), alpha=2)], "selu": [call(m.real(2, 3))],
        "prelu": [call(m.real(2, 3), m.real(1)), call(m.real(2, 3, 2), m.real(3))], "frexp.Tensor": [call(m.real(2, 3))],
        "square": [call(m(2, 3)), call(m())], "logit_backward": [call(m.real(2, 3), m.real(2, 3, low=0.1, high=0.9)), call(m.real(2, 3), m.real(2, 3, low=0.1, high=0.9), 0.2)],
        "native_dropout_backward": [call(m(2, 3), m.mask(2, 3), 2.0)],
        **{n: [call(m.real(2, 3), 0.5, False)] for n in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")},
        "_dirichlet_grad": [call(m.real(2, 3, low=0.1, high=0.9), m.real(2, 3, low=0.5, high=2), m.real(2, 3, low=3, high=5))],
        "_standard_gamma_grad": [call(m.real(2, 3, low=0.5, high=2), m.real(2, 3, low=0.5, high=2))],
    }  # fmt: skip


def _special(m: Make) -> dict:
    positive, unit = (lambda: m.real(2, 3, low=0.5, high=3)), (lambda: m.real(2, 3, low=0.1, high=0.9))
    found = {
        f"special_{n}": [call(m.real(2, 3))] for n in ("erf", "erfc", "exp2", "expit", "expm1", "i0", "sinc", "round")
    }
    found |= {f"special_{n}": [call(positive())] for n in ("digamma", "psi", "gammaln", "log1p")}
    found |= {f"special_{n}": [call(unit())] for n in ("erfinv", "logit")}
    found |= {f"special_{n}": [call(positive(), positive())] for n in ("gammainc", "gammaincc", "xlogy")}
    return found | {"special_multigammaln": [call(positive() + 2, 2)], "special_polygamma": [call(1, positive())]}


def table(m: Make) -> dict:
    return _losses(m) | _ctc(m) | _normalisation(m) | _attention(m) | _recurrence(m) | _activations(m) | _special(m)
