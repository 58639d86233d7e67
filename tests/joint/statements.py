"""The statements that random programs are made of.

Each function takes the generator, asks it for operands that suit (by what the tensors hold at this point of the program)
and gives the text of a statement, or None where nothing suits. `KINDS` says how often each is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .generator import Generator

UNARY = (
    "torch.sin({})", "torch.cos({})", "torch.tanh({})", "torch.sigmoid({})", "-{}", "{}.abs()", "torch.relu({})", "{} + 1", "{} * 0.5", "2 - {}",
    "torch.exp(-{}.abs())", "{}.clone()", "{}.sign()", "torch.sqrt({}.abs() + 1)", "{}.square()", "torch.nn.functional.gelu({})", "torch.erf({})",
    "torch.nn.functional.leaky_relu({}, 0.1)", "{}.contiguous()", "torch.atan({})", "{}.clamp(-0.5, 0.5)", "{} / 3", "1 / ({}.abs() + 1)",
    "torch.zeros_like({})", "torch.ones_like({}) * {}", "torch.full_like({}, 0.5)", "{}.new_zeros(2, 2)", "torch.empty_like({}).fill_(0.25)",
)  # fmt: skip
ANY_UNARY = (
    "{} + 1",
    "{} * 2",
    "{}.clone()",
    "{}.contiguous()",
    "{} * {}",
    "{} != 0",
    "{}.sum()",
    "torch.zeros_like({})",
)
BINARY = (
    "{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.minimum({}, {})", "torch.atan2({}, {})", "torch.add({}, {}, alpha=0.5)",
    "torch.lerp({}, {}, 0.25)", "{} / (1 + {}.abs())", "torch.where({} > 0, {}, 0.5)", "{}.addcmul({}, {}, value=0.5)", "{} * ({} > 0)",
)  # fmt: skip
REDUCTIONS = (
    "{}.sum()", "{}.mean()", "{}.sum({d})", "{}.mean({d}, keepdim=True)", "{}.sum({d}, keepdim=True)", "{}.amax({d})", "{}.var({d}, unbiased=False)",
    "{}.logsumexp({d})", "torch.softmax({}, {d})", "{}.cumsum({d})", "torch.log_softmax({}, {d})", "{}.argmax({d})", "torch.linalg.vector_norm({} + 2)",
    "{}.prod({d})", "{}.max({d})[0]", "{}.sort({d})[0]", "{}.norm({d}) + 0", "{}.flip({d})", "{}.roll(1, {d})", "{}.topk(1, {d})[0]",
)  # fmt: skip
INPLACE = (
    "{}.add_(1)", "{}.mul_(2)", "{}.fill_(0.5)", "{}.zero_()", "{}.clamp_(-0.5, 0.5)", "{}.neg_()", "{}.sin_()", "{}.tanh_()", "{}.sigmoid_()",
    "{}.sub_(0.25)", "{}.abs_()", "{}.relu_()", "{}.div_(2)", "torch.nn.functional.relu({}, inplace=True)", "{}.exp_().mul_(0.1)", "{}.round_()",
    "{}.masked_fill_({} > 0, 0.5)", "{}.index_fill_(0, torch.tensor([0]), 0.75)", "{}.add_({})", "{}.mul_({})", "{}.copy_({} + 1)", "{}.cumsum_(0)",
    "{}.t_()", "{}.transpose_(0, -1)", "{}.unsqueeze_(0)", "{}.squeeze_()", "{}.squeeze_(0)", "{}.add_({}.sum())", "{}.sub_({}.detach())",
    "{}.swapaxes_(0, -1)", "{}.triu_()", "{}.add_(1).mul_(2)", "torch._foreach_add_([{}], 1)",
)  # fmt: skip
CONTEXTS = (
    "torch.no_grad()",
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.set_grad_enabled(False)",
    "torch.set_grad_enabled(True)",
)


def fill(template: str, *names: str, **extra) -> str:
    """A template with its `{}` filled by names, the last one repeated as often as needed."""
    count = template.count("{}")
    return template.format(*(names + names[-1:] * max(0, count - len(names)))[:count], **extra)


def unary(g: Generator) -> str | None:
    if g.rng.random() < 0.15:
        a = g.pick()
        return a and g.assign(fill(g.choice(ANY_UNARY), a))
    a = g.pick(g.is_float)
    return a and g.assign(fill(g.choice(UNARY), a))


def binary(g: Generator) -> str | None:
    a, b = g.pair()
    return a and g.assign(fill(g.choice(BINARY), a, b))


def reduction(g: Generator) -> str | None:
    a = g.pick(lambda t: g.is_float(t) and t.dim() > 0)
    return a and g.assign(fill(g.choice(REDUCTIONS), a, d=g.dim(a)))


def contraction(g: Generator) -> str | None:
    a = g.pick(lambda t: g.is_float(t) and t.dim() == 2)
    if a is None:
        return None
    size, dtype = g.tensor(a).shape[1], g.tensor(a).dtype
    b = g.pick(lambda t: t.dtype == dtype and t.dim() == 2 and t.shape[0] == size)
    if b is None or g.rng.random() < 0.3:
        return g.assign(f"{a} @ {a}.t()" if g.rng.random() < 0.5 else f"torch.nn.functional.linear({a}, {a}) * 0.5")
    return g.assign(
        g.choice(
            (
                f"{a} @ {b}",
                f"torch.mm({a}, {b}) * 0.5",
                f'torch.einsum("ij,jk->ki", {a}, {b})',
                f"torch.mv({a}, {b}[:, 0])",
            )
        )
    )


def join(g: Generator) -> str | None:
    a = g.pick(lambda t: t.dim() > 0)
    if a is None:
        return None
    shape, dtype = g.tensor(a).shape, g.tensor(a).dtype
    b = g.pick(lambda t: t.shape == shape and t.dtype == dtype)
    form = g.choice(
        ("torch.cat([{a}, {b}], {d})", "torch.stack([{a}, {b}], {d})", "torch.cat([{a}, {a} * 2, {b}], {d})")
    )
    return g.assign(form.format(a=a, b=b, d=g.dim(a)))


def several_views(g: Generator) -> str | None:
    a = g.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if a is None:
        return None
    d = g.dim(a)
    n = g.tensor(a).shape[d]
    kind = g.choice(("unbind", "chunk", "split", "sizes", "tensor_split"))
    text = {
        "unbind": f"{a}.unbind({d})", "chunk": f"{a}.chunk(2, {d})", "split": f"{a}.split(2, {d})", "sizes": f"{a}.split([1, {n - 1}], {d})",
        "tensor_split": f"torch.tensor_split({a}, 2, {d})",
    }[kind]  # fmt: skip
    count = {"unbind": n, "chunk": min(2, n), "split": -(-n // 2), "sizes": 2, "tensor_split": 2}[kind]
    return g.assign(text, count)


def view(g: Generator) -> str | None:
    a = g.pick()
    return a and g.assign(a + view_of(g, a))


def view_of(g: Generator, a: str) -> str:
    """A random view of a tensor, as what follows its name."""
    t = g.tensor(a)
    choices = [
        ".unsqueeze(0)",
        ".unsqueeze(-1)",
        ".squeeze()",
        ".view(-1)",
        ".reshape(-1)",
        ".detach()",
        ".data",
        ".flatten()",
        "[...]",
        ".view_as({a})",
        ".expand(2, *{a}.shape)",
    ]
    if t.dim():
        d, n = g.dim(a), t.shape[g.dim(a)]
        choices += [
            f".transpose({d}, -1)", f".squeeze({d})", f".unfold({d}, {min(2, n)}, 1)", f".narrow({d}, 0, {n})", ".movedim(0, -1)",
            f".permute({', '.join(map(str, g.shuffled(range(t.dim()))))})", "[:0]", "[::2]", "[..., 1:]", "[None, ..., 0:1]",
            f".view({', '.join(map(str, t.shape))})", f".flatten(0, {d})", ".mT" if t.dim() > 1 else ".view(-1, 1)", ".T" if t.dim() == 2 else "[-1:]",
        ]  # fmt: skip
        if n:
            choices += [
                f".select({d}, {g.rng.randrange(n)})",
                "[0]",
                "[-1]",
                "[..., 0]",
                f".narrow({d}, {g.rng.randrange(n)}, 1)",
                "[:-1]",
                "[1:]",
                "[0:2]",
            ]
            choices += [f"[{g.rng.randrange(t.shape[0])}]" if t.shape[0] else "[:]"] * 2
        if t.numel() and (t.is_contiguous() or t.dim() == 2 and t.t().is_contiguous()):  # what it spans is its own
            choices += [strided(g, a), ".as_strided((2,), (0,))"]
    if t.dim() >= 2:
        choices += [
            ".diagonal()",
            ".t()" if t.dim() == 2 else ".transpose(0, 1)",
            f".diagonal({g.choice((-1, 0, 1))}, 0, -1)",
        ]
    if t.dtype.is_complex:
        choices += [".real", ".imag", ".conj()"] * 3
        choices += ["#torch.view_as_real"] * 3
    elif t.dim() and t.shape[-1] == 2 and t.stride()[-1] == 1 and g.is_float(t) and t.numel():
        choices += ["#torch.view_as_complex"] * 2
    return g.choice(choices).format(a=a)


def strided(g: Generator, a: str) -> str:
    """An `as_strided` inside what the tensor spans."""
    t = g.tensor(a)
    room = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1
    size, step = g.rng.randint(1, min(3, room)), 1
    offset = t.storage_offset() + g.rng.randrange(room - size + 1)
    return f".as_strided(({size},), ({step},), {offset})"


def inplace(g: Generator) -> str | None:
    a = g.pick(g.is_float) if g.rng.random() < 0.85 else g.pick()
    if a is None:
        return None
    b = g.fitting(a) or a
    return fill(g.choice(INPLACE), a, b)


def inplace_on_view(g: Generator) -> str | None:
    """A write through a view that has no name."""
    a = g.pick(g.is_float)
    if a is None:
        return None
    part = view_of(g, a)
    if part.startswith("#"):
        return None
    if g.rng.random() < 0.3:
        part += g.choice(("[0:1]", "[..., 0]", ".view(-1)", ".detach()", ".unsqueeze(0)"))
    return f"{a}{part}{g.choice(('.add_(1)', '.mul_(0.5)', '.zero_()', '.fill_(0.5)', '.copy_(torch.tensor(0.25))', '.neg_()', '.sin_()', '.add_(torch.ones(()))'))}"


def setitem(g: Generator) -> str | None:
    a = g.pick(lambda t: g.is_float(t) and t.dim() > 0 and t.numel() > 0)
    if a is None:
        return None
    n = g.tensor(a).shape[0]
    i = g.rng.randrange(n)
    where = g.choice(
        (
            str(i),
            f"{i}:",
            "::2",
            "..., 0",
            "-1",
            f"{a} > 0",
            f"torch.tensor([{i}, 0])",
            f"[{i}]",
            f"torch.arange({n}) == {i}",
            "...",
            ":0",
            "None",
            "0:1, ..., torch.tensor([0])",
        )
    )
    value = (
        g.choice(("0.5", "0.5", f"{a}[{where}].clone() * 2", "torch.tensor(0.75)", "value"))
        if " > " not in where and "==" not in where
        else g.choice(("0.5", "torch.tensor(0.5)"))
    )
    if value == "value":
        b = g.pick(g.is_float)
        value = f"{b}.mean()" if g.rng.random() < 0.5 else f"{b}"
    if (
        g.rng.random() < 0.2 and value == "0.5" and " > " not in where and "==" not in where
    ):  # that would read by a mask
        return f"{a}[{where}] {g.choice(('+=', '*=', '-='))} {value}"
    return f"{a}[{where}] = {value}"


def indexed(g: Generator) -> str | None:
    a = g.pick(lambda t: t.dim() > 0 and t.shape[0] > 0)
    if a is None:
        return None
    n = g.tensor(a).shape[0]
    i = g.rng.randrange(n)
    form = g.choice(
        (
            "{a}[torch.tensor([{i}, 0])]",
            "{a}.index_select(0, torch.tensor([{i}]))",
            "{a}[[{i}, 0, {i}]]",
            "torch.take({a}, torch.tensor([0]))",
        )
    )
    return g.assign(form.format(a=a, i=i))


def scatter(g: Generator) -> str | None:
    """In-place writes that take an index."""
    a = g.pick(lambda t: g.is_float(t) and t.dim() > 0 and t.shape[0] > 0)
    if a is None:
        return None
    i = g.rng.randrange(g.tensor(a).shape[0])
    form = g.choice((
        "{a}.index_put_((torch.tensor([{i}]),), torch.tensor(0.5, dtype={a}.dtype))", "{a}.index_add_(0, torch.tensor([{i}]), {a}[0:1].clone())",
        "{a}.index_put_((torch.tensor([{i}, {i}]),), torch.tensor(0.5, dtype={a}.dtype), accumulate=True)", "{a}.index_copy_(0, torch.tensor([{i}]), {a}[0:1] * 2)",
        "{a}.scatter_(0, torch.zeros_like({a}, dtype=torch.int64), 0.5)", "{a}.scatter_add_(0, torch.zeros_like({a}, dtype=torch.int64), {a}.clone())",
        "{a}.masked_scatter_({a} > 0, {a}.detach().clone())",
    ))  # fmt: skip
    return form.format(a=a, i=i)


def augmented(g: Generator) -> str | None:
    if g.in_function:  # there, the name would be a local one
        return None
    a = g.pick(g.is_float)
    b = a and (g.fitting(a) if g.rng.random() < 0.5 else None)
    return a and f"{a} {g.choice(('+=', '-=', '*='))} {b or '0.5'}"


def into_out(g: Generator) -> str | None:
    out = g.pick(lambda t: g.is_float(t) and not t.requires_grad)
    b = out and g.pick(lambda t: t.dtype == g.tensor(out).dtype and t.shape == g.tensor(out).shape)
    return b and g.choice(
        (
            f"torch.add({b}.detach(), 1, out={out})",
            f"torch.mul({b}.detach(), {out}, out={out})",
            f"torch.sin({out}, out={out})",
        )
    )


def random(g: Generator) -> str | None:
    a = g.pick(g.is_float)
    if a is None:
        return None
    form = g.choice(
        (
            "{new}torch.nn.functional.dropout({a}, 0.5)",
            "{new}torch.rand_like({a})",
            "{new}torch.bernoulli(torch.full_like({a}, 0.5))",
            "{a}.uniform_()",
            "{a}.normal_()",
            "{new}torch.nn.functional.dropout({a}, 0.3, True)",
            "{a}.bernoulli_(0.5)",
            "{new}torch.randn(2, 2) + {a}.mean()",
        )
    )
    return g.assign(form[5:].format(a=a)) if form.startswith("{new}") else form.format(a=a)


def batch_norm(g: Generator) -> str | None:
    x = g.pick(lambda t: g.is_float(t) and t.dim() in (2, 3) and t.shape[1] > 0 and t.shape[0] > 1)
    if x is None:
        return None
    t = g.tensor(x)
    fits = lambda s: s.dtype == t.dtype and tuple(s.shape) == (t.shape[1],) and not g.shares(s, t)  # noqa: E731
    mean = g.pick(lambda s: fits(s) and not s.requires_grad)
    var = g.pick(lambda s: fits(s) and not s.requires_grad and not g.shares(s, g.tensor(mean))) if mean else None
    training = g.rng.random() < 0.8
    if var is None:
        return (
            g.assign(f"torch.nn.functional.layer_norm({x}, ({t.shape[-1]},))")
            if not training
            else g.assign(f"torch.nn.functional.batch_norm({x}, None, None, training=True)")
        )
    return g.assign(
        f"torch.nn.functional.batch_norm({x}, {mean}, {var}{'' if training else '.abs() + 1'}, training={training})"
    )


def write_alias(g: Generator) -> str | None:
    """A write that autograd does not see, to memory that it may follow."""
    a = g.pick(g.is_float)
    return a and f"{a}.{g.choice(('detach()', 'data'))}{g.choice(('.mul_(2)', '.add_(1)', '.zero_()', '[...] = 0.5'))}"


KINDS: tuple[tuple[Callable, int], ...] = (
    (unary, 10), (binary, 10), (reduction, 5), (contraction, 3), (join, 3), (several_views, 3), (view, 16), (inplace, 14), (inplace_on_view, 8),
    (setitem, 7), (indexed, 2), (scatter, 3), (augmented, 4), (into_out, 2), (random, 3), (batch_norm, 2), (write_alias, 2),
)  # fmt: skip
