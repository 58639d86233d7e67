"""Random programs of tensors: what runs on a CUDA device, compiled, is held to operators on the CPU.

`program(seed)` gives a function of tensors, which returns a tuple of floating tensors, and its arguments on the CPU. A function draws
its operations from a generator of its own, so that it is the same program on every call and device. Values stay of moderate size.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pullback as torch
import pullback.nn.functional as F

LENGTH = 9  # operations of a program
SIZES = (1, 3, 8, 16, 33)
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}


def _pick(r: random.Random, pool: list, keep: Callable = lambda t: True):
    return r.choice([t for t in pool if keep(t)] or pool[:1])


def _mixed(r, pool, a, b):
    """Two tensors that broadcast, by one operation."""
    how = r.choice((torch.add, torch.mul, torch.sub, torch.maximum, lambda x, y: torch.where(x > y, x, y)))
    return how(a, b)


def elementwise(r, pool):
    x = _pick(r, pool)
    chosen = r.choice(
        (torch.tanh, torch.sigmoid, F.gelu, torch.relu, torch.sin, lambda t: (t * 0.3).exp(), torch.square)
    )
    return chosen(x).clamp(-8, 8)


def joined(r, pool):
    x = _pick(r, pool)
    other = _pick(r, pool, lambda t: t.shape == x.shape)
    if other.shape != x.shape:
        other = x.flip(-1)
    return torch.cat([x, other], r.randrange(x.ndim)) if r.random() < 0.3 else _mixed(r, pool, x, other)


def broadcast(r, pool):
    x = _pick(r, pool)
    return _mixed(r, pool, x, x.mean(r.randrange(x.ndim), keepdim=True))


def reduced(r, pool):
    x, keep = _pick(r, pool, lambda t: t.ndim > 1), r.random() < 0.5
    dim = r.randrange(x.ndim)
    chosen = r.choice(("sum", "mean", "amax", "amin", "logsumexp", "var"))
    if chosen == "var":
        return x.var(dim, correction=0, keepdim=keep)
    result = getattr(x, chosen)(dim, keepdim=keep)
    return result / x.shape[dim] if chosen == "sum" else result


def rows(r, pool):
    x = _pick(r, pool)
    dim = r.randrange(x.ndim)
    chosen = r.choice((F.softmax, F.log_softmax, torch.cumsum, "norm"))
    return (
        F.layer_norm(x, x.shape[-1:]) if chosen == "norm" else chosen(x, dim) * (0.1 if chosen is torch.cumsum else 1)
    )


def moved(r, pool):
    x = _pick(r, pool)
    order = list(range(x.ndim))
    r.shuffle(order)
    chosen = r.choice(("permute", "flatten", "slice", "flip", "roll", "expand", "pad"))
    if chosen == "flatten":
        return x.permute(order).reshape(-1, x.shape[0])
    if chosen == "slice":
        return x.narrow(0, x.shape[0] // 2, x.shape[0] - x.shape[0] // 2)
    if chosen == "expand":
        return x.unsqueeze(1).expand(x.shape[0], 2, *x.shape[1:]).reshape(-1, *x.shape[1:])
    if chosen == "pad":
        return F.pad(x, (1, 2))
    return {"permute": lambda: x.permute(order), "flip": lambda: x.flip(0), "roll": lambda: x.roll(1, -1)}[chosen]()


def products(r, pool):
    x = _pick(r, pool, lambda t: t.ndim > 1)
    y = x.reshape(-1, x.shape[-1])
    chosen = r.choice(("square", "linear", "batch"))
    if chosen == "batch" and x.ndim > 2:
        return (x @ x.transpose(-1, -2)) / x.shape[-1]
    weight = torch.tanh(y[:16]) if chosen == "linear" else y
    bias = weight.mean(1)
    return F.linear(y, weight, bias) / y.shape[-1] if chosen == "linear" else (y.t() @ y) / y.shape[0]


def places(r, pool):
    x = _pick(r, pool)
    n = x.shape[0]
    at = torch.tensor([r.randrange(n) for _ in range(5)], device=x.device)
    chosen = r.choice(("index", "select", "gather", "add"))
    if chosen == "add":
        return torch.zeros_like(x).index_add(0, at, x[at]) * 0.3
    if chosen == "gather":
        return x.gather(0, at.view(-1, *[1] * (x.ndim - 1)).expand(5, *x.shape[1:]))
    return x[at] if chosen == "index" else x.index_select(0, at)


def _filled(x, count: int):
    """So many elements: a tensor's, and others of which no two are equal."""
    more = torch.sin(torch.arange(count, device=x.device, dtype=x.dtype) * 1.7)
    return torch.cat([x.reshape(-1), more])[:count]


def images(r, pool):
    x = _filled(_pick(r, pool, lambda t: t.ndim > 1), 512).view(2, 4, 8, 8)
    weight = torch.tanh(x[:, :, :3, :3].reshape(2, 4, 3, 3))
    y = F.conv2d(x, weight, padding=1) / 6
    return F.max_pool2d(y, 2) if r.random() < 0.5 else F.avg_pool2d(y, 2)


def attention(r, pool):
    x = _filled(_pick(r, pool), 1536).view(1, 48, 2, 16).transpose(1, 2)
    return F.scaled_dot_product_attention(x, x.flip(2), x * 0.5, is_causal=r.random() < 0.5)


def converted(r, pool):
    x, kind = _pick(r, pool), r.choice((torch.bfloat16, torch.float16, torch.float32, torch.float64))
    pool.rounded.add(kind)
    return x.to(kind).to(x.dtype)


class Pool(list):
    """What a program has computed, and the dtypes that it has rounded something to."""

    def __init__(self, given):
        super().__init__(given)
        self.rounded: set = set()


KINDS = (elementwise, joined, broadcast, reduced, rows, moved, products, places, images, attention, converted)


def program(seed: int, d: torch.dtype = torch.float32) -> tuple[Callable, list]:
    """See the module's docstring."""
    r = random.Random(seed)
    torch.manual_seed(seed)
    shapes = [tuple(r.choice(SIZES) for _ in range(r.choice((2, 2, 3)))) for _ in range(2)]

    def f(*given):
        inside, pool = random.Random(seed + 1), Pool(given)
        for _ in range(LENGTH):
            result = inside.choice(KINDS)(inside, pool)
            if 0 < result.numel() < 1 << 15 and result.ndim:
                pool.append(result)
        f.rounded = pool.rounded
        return tuple(pool[-3:])

    return f, [torch.randn(s).to(d) for s in shapes]


def with_gradients(f: Callable) -> Callable:
    """A function that gives results and gradients of a weighted sum of them."""

    def g(*args):
        inputs = [a.detach().requires_grad_() for a in args]
        results = f(*inputs)
        g.rounded = f.rounded
        live = [t for t in results if t.requires_grad]
        if not live:
            return tuple(results)
        total = sum((t * t).mean() for t in live)
        return (
            *[t.detach() for t in results],
            *torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True),
        )

    return g


def differs(got: tuple, want: tuple, rounded: Iterable[torch.dtype] = ()) -> str | None:
    """What is wrong with results, compared with those in another place; None where nothing is. A number that is rounded to few bits on
    the way may fall to either side: what was `rounded` to counts."""
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        a = a.cpu()
        if a.dtype is not b.dtype or a.shape != b.shape:
            return f"result {n} is {a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        error = float((a.double() - b.double()).abs().max()) if a.numel() else 0.0
        scale = max(float(b.double().abs().max()) if b.numel() else 0.0, 0.1)
        if not error <= max(TOLERANCE[d] for d in (b.dtype, *rounded)) * scale:
            return f"result {n} is off by {error} of {scale}"
    return None
