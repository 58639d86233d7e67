"""What the names in the text of a program mean in a library: the library itself, inputs in every layout, transforms.

Comes in: a module of PyTorch's API and the arrays of a program. Goes out: the globals of its text. What always holds: only
public names of the library are used, the same ones for each.
"""

from __future__ import annotations

import importlib
import math
from types import ModuleType

import numpy as np

LAYOUTS = (
    "contiguous",
    "transposed",
    "reversed",
    "sliced",
    "offset",
    "channels_last",
    "expanded",
    "wide",
    "conjugate",
    "negative",
)


def _laid(torch, x, layout: str):
    """The numbers of x, lying in memory as a layout says; where it cannot, as they are."""
    if layout == "transposed" and x.ndim > 1:
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "sliced" and x.ndim:
        return torch.stack([x, x], -1).flatten(-2)[..., ::2]
    if layout == "wide" and x.ndim:
        return torch.cat([x, x])[: x.shape[0]]
    if layout == "offset":
        return torch.cat([x.new_zeros(3), x.reshape(-1)])[3:].view(x.shape)
    if layout == "channels_last" and x.ndim == 4:
        return x.contiguous(memory_format=torch.channels_last)
    if layout == "expanded" and x.ndim and x.shape[0]:
        return x[:1].expand(x.shape)
    if layout == "reversed" and x.ndim > 2:  # the first dimension lies densest
        return x.movedim(0, -1).contiguous().movedim(-1, 0)
    if layout == "conjugate" and x.is_complex():
        return x.conj().resolve_conj().conj()
    if layout == "negative" and x.dtype in (torch.float64, torch.float32):
        return torch.complex(x, -x).conj().imag
    return x


def _tensors(value) -> list:
    if isinstance(value, list | tuple):
        return [t for v in value for t in _tensors(v)]
    return [value] if hasattr(value, "is_floating_point") else []


def _flat(value) -> list:
    """The names, numbers and tensors of nested dictionaries, one after the other."""
    if isinstance(value, dict):
        return [part for k, v in value.items() for part in (str(k), *_flat(v))]
    return [part for v in value for part in _flat(v)] if isinstance(value, list | tuple) else [value]


def namespace(name: str, arrays: list[np.ndarray], compiles: bool, device: str = "cpu") -> dict:
    """The globals of a program's text in the library of that name; `compiles` is whether `compiled` compiles there; `device`: where inputs are."""
    torch: ModuleType = importlib.import_module(name)
    func, functional = torch.func, torch.nn.functional
    checkpoint = importlib.import_module(f"{name}.utils.checkpoint").checkpoint
    log: list[str] = []

    def given(i: int, dtype: str, layout: str = "contiguous", grad: bool = False):
        a = arrays[i]  # one without elements has strides of its own in NumPy
        x = torch.from_numpy(a.copy()) if a.size else torch.zeros(a.shape, device="cpu")
        x = _laid(
            torch, x.to(getattr(torch, dtype)) if device == "cpu" else x.to(device, getattr(torch, dtype)), layout
        )
        return x.requires_grad_() if grad else x

    def first(value):
        """The first tensor of a result that a gradient can be asked of."""
        found = [t for t in _tensors(value) if t.is_floating_point() or t.is_complex()]
        return found[0] if found else _tensors(value)[0]

    def total(value):
        """A real number of everything that a gradient can be asked of."""
        parts = [t for t in _tensors(value) if t.is_floating_point() or t.is_complex()]
        sums = [(torch.view_as_real(t.resolve_conj()) if t.is_complex() else t).sum() for t in parts]
        return sum(sums[1:], sums[0])

    def weights(t):
        """A constant as large as a tensor, no two elements of which are the same."""
        return torch.tensor([math.cos(i + 0.5) for i in range(t.numel())], dtype=t.dtype).reshape(t.shape)

    def weighted(value):
        """A real number to which every element adds a share of its own, so that no slope vanishes by symmetry."""
        parts = [t for t in _tensors(value) if t.is_floating_point() or t.is_complex()]
        real = [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in parts]
        sums = [(t * weights(t)).sum() for t in real]
        return sum(sums[1:], sums[0])

    def blank(value, size, layout="contiguous"):
        """What a result can be written to: as large as it is, lying as a layout says, or of a size that must change."""
        made = [
            _laid(torch, torch.zeros(t.shape if size is None else size, dtype=t.dtype), layout) for t in _tensors(value)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def pulled(by):
        def transform(f):
            def run(v):
                out, pull = func.vjp(f, v)
                return pull(by(out))[0]

            return run

        return transform

    def dual(f):
        """The tangent of a function, by dual numbers of the outermost level."""

        def run(v):
            with torch.autograd.forward_ad.dual_level():
                made = torch.autograd.forward_ad.make_dual(v, weights(v))
                return torch.autograd.forward_ad.unpack_dual(f(made)).tangent

        return run

    def bent(f):
        """The second gradient of a function: of its first one, which autograd records."""

        def run(v):
            (g,) = torch.autograd.grad(weighted(f(v)) + 0 * weighted(v), v, create_graph=True)
            return torch.autograd.grad(weighted(g) + 0 * weighted(v), v)[0]

        return own(run)

    def steep(f):
        """What trains a penalty on gradients: a function, and the square of its slope."""

        def run(v):
            out = weighted(f(v)) + 0 * weighted(v)
            (g,) = torch.autograd.grad(out, v, create_graph=True)
            return torch.autograd.grad(out + (g * g.conj()).real.sum() + 0 * weighted(v), v)[0]

        return own(run)

    def own(run):
        return lambda v: run((v * 1).detach().requires_grad_())

    def along(f):
        """The tangent of a function; of linearized ones too, which PyTorch runs twice, and of which it loses the derivatives."""
        return lambda v: func.jvp(f, (v,), (weights(v),))[1]

    def packed(f):
        """A function whose saved tensors go through hooks."""

        def run(v):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
                return f(v)

        return run

    def held(context, f):
        def run(v):
            with context():
                return f(v)

        return run

    def noted(what):
        """A hook that notes that it ran, and doubles what it is given."""

        def hook(g):
            log.append(what)
            return g * 2

        return hook

    return {
        "torch": torch, "F": functional, "given": given, "first": first, "total": total, "blank": blank, "noted": noted,
        "weights": weights, "weighted": weighted, "pulled": pulled(torch.ones_like), "pulled_by": pulled(weights), "dual": dual, "packed": packed,
        "pushed_along": along, "bent": bent, "steep": steep,
        "compiled_bent": lambda f: bent(torch.compile(f) if compiles else f), "compiled_steep": lambda f: steep(torch.compile(f) if compiles else f),
        "linearized": (lambda f: lambda v: func.linearize(f, v)[1](weights(v))) if name == "pullback" else along,
        "chunked": lambda f: lambda v: func.vmap(f, chunk_size=1)(torch.stack([v, v])),
        "batched_out": lambda f: lambda v: func.vmap(f, in_dims=0, out_dims=-1)(torch.stack([v, v])),
        "curved": lambda f: func.hessian(lambda v: weighted(f(v))),
        "valued": lambda f: lambda v: func.grad_and_value(lambda u: weighted(f(u)))(v)[0],
        "aside": lambda f: lambda v: func.grad(lambda u: (weighted(f(u)), u), has_aux=True)(v)[0],
        "pushed": lambda f: lambda v: func.jvp(f, (v,), (torch.ones_like(v),))[1],
        "twice": lambda v: torch.stack([v, v]),
        "batched": lambda f: lambda v: func.vmap(f)(torch.stack([v, v])),
        "batched_last": lambda f: lambda v: func.vmap(f, in_dims=-1, out_dims=-1)(torch.stack([v, v], -1)),
        "slope": lambda f: func.grad(lambda v: weighted(f(v))),
        "rows": func.jacrev, "columns": func.jacfwd, "functional": func.functionalize,
        "untracked": lambda f: held(torch.no_grad, f), "inferred": lambda f: held(torch.inference_mode, f),
        "recomputed": lambda f: lambda v: checkpoint(f, v, use_reentrant=False),
        "compiled": torch.compile if compiles else lambda f: f,
        "flat": _flat, "noting": lambda what: lambda *_: log.append(what), "log": log, "inf": float("inf"), "nan": float("nan"),
    }  # fmt: skip
