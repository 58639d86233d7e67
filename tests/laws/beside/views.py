"""Texts of views, of writes through them, and of functions of several statements.

Comes in: a generator of random numbers and the names that a program holds. Goes out: a statement. What always holds: the
statement names no tensor but those.
"""

from __future__ import annotations

import random

from tests.laws.beside.steps import ANY, BETWEEN, WRITES

VIEWS: tuple[str, ...] = (
    "[0]", "[..., 0]", "[..., ::2]", "[1:]", "[:1]", "[None]", "[..., None]", "[-1]", "[::2]", "[..., 1:]", ".t()", ".T", ".mT", ".H",
    ".transpose(0, -1)", ".transpose(-1, -2)", ".movedim(0, -1)", ".diagonal()", ".diagonal(0, -1, -2)", ".diagonal(1, 0, -1)", ".unfold(-1, 2, 2)",
    ".unfold(0, 1, 1)", ".view(-1)", ".flatten()", ".reshape(-1, 1)", ".unsqueeze(-1)", ".unsqueeze(0)", ".squeeze()", ".squeeze(0)",
    ".select(-1, -1)", ".narrow(-1, 0, 1)", ".real", ".imag", ".conj()", ".detach()", ".data", ".chunk(2, -1)[0]", ".split(1)[-1]", ".unbind()[0]",
    ".unbind(-1)[-1]", ".unflatten(-1, (-1, 1))", ".view(torch.int32)", ".view(torch.uint8)", ".view(torch.float32)", ".view(torch.int16)",
    ".swapaxes(0, 1)", ".as_strided((2,), (1,), 1)", ".tensor_split(2)[0]", ".hsplit(1)[0]", ".adjoint()", ".ravel()", ".contiguous()",
    ".resolve_conj()", ".positive()", ".expand(-1)", ".swapdims(0, -1)", ".to(torch.float32)", ".double()", ".mH",
)  # fmt: skip
INPLACE: tuple[str, ...] = (
    ".add_(1)", ".mul_(2)", ".mul_({y})", ".copy_({y})", ".zero_()", ".sin_()", ".clamp_(-0.5, 0.5)", ".fill_(2.5)", ".fill_({y}.sum())", ".cumsum_(0)",
    ".cumsum_(-1)", ".sigmoid_()", ".neg_()", ".pow_(2)", ".transpose_(0, -1)", ".square_()", ".exp_()", ".add_({y}, alpha=2)", ".sub_({y})", ".div_({y})",
    ".clamp_min_(0)", ".tril_()", ".triu_(1)", ".relu_()", ".logical_not_()", ".eq_({y})", ".tanh_()", ".abs_()", ".masked_fill_({x}{v} > 0, 2)",
    ".index_fill_(0, torch.tensor([0]), 1)", ".index_copy_(0, torch.tensor([0]), {x}{v}[:1] * 2)", ".addcmul_({y}, {y})", ".cumprod_(-1)", ".sgn_()",
    ".index_put_((torch.tensor([0, 0]),), {y}, accumulate=True)", "[...] = {y}", "[0] = 1.5", "[..., :1] = {y}", "[{x}{v} > 0] = 1", "[...] += {y}", "[:1] *= 2",
    ".erf_()", ".reciprocal_()", ".round_()", ".trunc_()", ".floor_()", ".sqrt_()", ".rsqrt_()", ".expm1_()", ".lerp_({y}, 0.5)", ".t_()", ".squeeze_()",
    ".unsqueeze_(0)", ".fmod_(2)", ".remainder_(1.5)", ".hardtanh_()" , ".random_(5)", ".set_({y})", ".resize_(2)", ".conj_physical_()", ".requires_grad_()",
    ".swapaxes_(0, -1)", ".as_strided_((2,), (1,))", ".detach_()", ".clamp_(max={y})", ".bernoulli_(0.5)", ".nan_to_num_()", ".rad2deg_()",
)  # fmt: skip
# Texts of steps that give no tensor, or that keep what they are given for later.
_UNLIKE = (
    "str(",
    "repr(",
    "len(",
    "int(",
    "float(",
    "bool(",
    "hook",
    "item()",
    "tolist()",
    ".shape",
    ".dtype",
    "numel()",
    "dim()",
    ".grad",
)
INNER: tuple[str, ...] = tuple(t for t in ANY + BETWEEN if not any(word in t for word in _UNLIKE))
INNER_WRITES: tuple[str, ...] = tuple(t for t in WRITES if not any(word in t for word in (*_UNLIKE, "requires_grad")))


INSIDE = ("torch.no_grad()", "torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(False)")


def write(rng: random.Random, x: str, y: str) -> str:
    """A write through one to three views of a tensor."""
    views = "".join(rng.choice(VIEWS) for _ in range(rng.choice((1, 1, 2, 2, 3))))
    return f"{x}{views}{rng.choice(INPLACE)}".format(x=x, y=y, v=views)


def view(rng: random.Random, x: str) -> str:
    """Some views of a tensor."""
    return x + "".join(rng.choice(VIEWS) for _ in range(rng.choice((1, 2, 2, 3))))


def _guarded(rng: random.Random, line: str) -> str:
    """A statement of a function, some with what switches recording around it."""
    if rng.random() > 0.2:
        return line
    return f"with {rng.choice(INSIDE)}:\n        {line}"


def function(rng: random.Random, name: str, others: list[str]) -> str:
    """A function of a tensor `v` that makes and writes tensors of its own, and may write what it is given."""
    names, lines = ["v"], []
    for made in "abcd"[: rng.choice((1, 2, 2, 3, 3, 4))]:
        x, y = rng.choice(names), rng.choice(names + others[:1])
        kind = rng.random()
        if kind < 0.25 and (x != "v" or rng.random() < 0.3):
            text = write(rng, x, y) if rng.random() < 0.5 else rng.choice(INNER_WRITES).format(x=x, y=y)
            lines.append(_guarded(rng, text))
            continue
        text = view(rng, x) if kind < 0.45 else rng.choice(INNER).format(x=x, y=y)
        lines.append(_guarded(rng, f"{made} = {text if kind < 0.45 else f'first({text})'}"))
        names.append(made)
        if rng.random() < 0.06:
            lines.append(f"{made}.requires_grad and {made}.register_hook(lambda g: g * 2)")
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}(v):\n{body}    return {names[-1]}"
