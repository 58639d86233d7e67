"""Programs that between them use every way in which loops are shared among threads: run by the emulator, and by devices that are there.

`PROGRAMS[name]()` gives a function of tensors, which returns a tuple, and its arguments on the CPU. Tensors that a function makes are
made on the device of its arguments.
"""

from __future__ import annotations

import pullback as torch
import pullback.nn.functional as F

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
# A part of a warp, a warp, registers, blocks of all sizes, loops over long rows; with and without vectors.
LENGTHS = (1, 3, 8, 33, 60, 256, 1000, 1025, 4100, 40000)


def same(got, want) -> None:
    """Results on the CPU are those that were expected, in value, dtype, shape and strides."""
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype is w.dtype and g.shape == w.shape and g.stride() == w.stride(), number
        scale = max(float(w.detach().nan_to_num(0.0, 0.0, 0.0).abs().max()), 1e-3) if w.dtype.is_floating_point else 0
        tolerance = TOLERANCE.get(w.dtype, 0) * scale
        assert torch.allclose(g.double(), w.double(), rtol=0, atol=tolerance, equal_nan=True), (number, g, w)


def rows():
    xs = [torch.randn(r, n) for r, n in zip((3, 40, 2, 5) * 3, LENGTHS, strict=False)]

    def f(*xs):
        return tuple(
            y for x in xs for y in (F.softmax(x * 0.5, -1), F.layer_norm(x, x.shape[-1:]), x.sum(-1), x.amax(-1))
        )

    return f, xs


def columns():
    xs = [torch.randn(*s) for s in ((100, 60), (3, 33), (1000, 9), (7, 40, 11), (2000, 64))]

    def f(*xs):
        return tuple(y for x in xs for y in (x.sum(0), x.exp().mean(0), F.softmax(x, 0), x.amin(0), (x > 0).any(0)))

    return f, xs


def everything():
    xs = [torch.randn(300, 700), torch.randn(4, 30000)]
    return (lambda x, y: (x.sum(), (x * x).mean(), y.sum(1), y.prod(1))), xs


def elements():
    x, b, whole = torch.randn(60, 100), torch.randn(100), torch.randn(7, 40, 12)
    views = (whole[:, ::2], whole.permute(2, 0, 1), whole[..., 1:], torch.randn(5), torch.randn(()))

    def f(x, b, *views):
        return (torch.relu(x * 2 + b).t(), x.t().contiguous(), *[v.sin() * 2 for v in views], views[0] + views[3][:1])

    return f, [x, b, *views]


def many_elements():
    return (lambda x: (x * 2 + 1, x[1:] - x[:-1])), [torch.randn(5_000_001)]


def places():
    table, at = torch.randn(50, 24), torch.randint(0, 50, (9, 4))
    counts, where, values = torch.zeros(6, dtype=torch.int64), torch.randint(0, 6, (40,)), torch.randn(40)

    def f(table, at, counts, where, values, small):
        zeros = counts.to(values.dtype)
        return (
            F.embedding(at, table),
            table.index_select(1, at[0] % 24),
            torch.zeros_like(table).index_add(0, at.flatten(), table[:36]),
            counts.scatter_add(0, where, torch.ones_like(where)),
            small.scatter_add(0, where, torch.ones_like(where).to(torch.int8)),
            zeros.scatter_reduce(0, where, values, "amax"),
            (zeros + 1).scatter_reduce(0, where, values, "prod"),
        )

    return f, [table, at, counts, where, values, torch.zeros(6, dtype=torch.int8)]


def running_sums():
    xs = [torch.randn(5, 100), torch.randn(3, 1000), torch.rand(40, 33)]

    def f(*xs):
        return tuple(
            y for x in xs for y in (x.cumsum(1), x.cumsum(0), x.cumprod(0), x.logcumsumexp(1), (x > 0.5).cumsum(-1))
        )

    return f, xs


def narrow(d):
    def f(x, w, b):
        return (F.gelu(F.linear(x, w, b)), F.layer_norm(x, (64,)), F.softmax(x, -1), x.sum(0), x * 1.1, x.float() + 1)

    return lambda: (f, [torch.randn(*s).to(d) for s in ((12, 64), (40, 64), (40,))])


def products():
    a, b, c = torch.randn(3, 4, 5, 6), torch.randn(3, 4, 6, 7), torch.randn(7, 6)

    def f(a, b, c, d):
        heads = a.transpose(1, 2)
        return (a @ b, c @ b, a @ c.t(), heads @ c.t(), d @ d.t(), a[0, 0] @ b[1, 2], a.mT @ a, torch.bmm(a[0], b[1]))

    return f, [a, b, c, torch.randn(5, 6, dtype=torch.float64)]


def orders():
    """Rows in order, and what is read off an order: with ties, NaN, zeros of both signs, several dtypes and dimensions."""
    torch.manual_seed(3)
    few = torch.randint(-3, 3, (7, 33))
    floats = few.to(torch.float32) * torch.tensor([1.0, -0.0, 1.0] * 11)
    floats[2, 5], floats[3, 1:4] = torch.inf, torch.nan
    args = [
        torch.randn(5, 1000),
        floats,
        few,
        few.to(torch.int8),
        floats.double(),
        floats.bfloat16(),
        few > 0,
        torch.rand(3, 2048),
    ]

    def f(x, y, *rest):
        turned = y.sort(0, descending=True)
        whole = [t for z in (x, y, *rest) for t in (*z.sort(), z.argsort(1, descending=True))]
        return (*whole, *turned, *x.topk(5), *x.topk(3, largest=False), *x.kthvalue(40), *x.median(1))

    return f, args


def biased(d):
    """Rows that are added to products: by the product where all sides are even, else by a loop; operands that are turned and cut out."""

    def f(x, w, b, v, c):
        turned = torch.addmm(b, x.t()[:16, :8], w[:, :8].t())
        return F.linear(x, w, b), turned, F.linear(x, v, c), torch.addmm(b, x, w.t(), alpha=2), F.linear(x[1:], w, b)

    return lambda: (f, [torch.randn(*s).to(d) for s in ((16, 24), (40, 24), (40,), (5, 24), (5,))])


def attention(d):
    def f(x):
        q, k, v = x.view(2, 16, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (mixed.transpose(1, 2).reshape(2, 16, 32) * 2,)

    return lambda: (f, [torch.randn(2, 16, 3 * 4 * 8).to(d)])


def convolutions(d):
    def f(x, w, b, across):
        return F.conv2d(x, w, b, 2, 1, 1, 2), F.conv_transpose2d(x, across, None, 2, 1)

    return lambda: (f, [torch.randn(*s).to(d) for s in ((3, 4, 9, 9), (6, 2, 3, 3), (6,), (4, 3, 3, 3))])


PROGRAMS = {
    "rows": rows, "columns": columns, "everything": everything, "elements": elements, "many_elements": many_elements,
    "places": places, "running_sums": running_sums, "products": products, "bfloat16": narrow(torch.bfloat16),
    "float16": narrow(torch.float16), "attention": attention(torch.float32), "attention_bfloat16": attention(torch.bfloat16),
    "orders": orders, "biased": biased(torch.float32), "biased_bfloat16": biased(torch.bfloat16), "biased_float16": biased(torch.float16),
    "convolutions": convolutions(torch.float32), "convolutions_bfloat16": convolutions(torch.bfloat16),
}  # fmt: skip


def loss(x, target, w1, b1, scale, w2):
    """Of a small network, for a step of training."""
    hidden = F.layer_norm(F.gelu(F.linear(x, w1, b1)), (32,), scale)
    return F.cross_entropy(hidden @ w2, target)


def loss_arguments() -> tuple:
    x, target = torch.randn(100, 60), torch.randint(0, 10, (100,))
    return x, target, *[torch.randn(*s, requires_grad=True) for s in ((32, 60), (32,), (32,), (32, 10))]
