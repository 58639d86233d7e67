"""What must hold for every operator on every sample: the checks of the operator table.

A sample is (operator, canonical arguments). Each check takes one and raises AssertionError with what differs. Numeric
derivatives are taken along one random direction (two evaluations), which finds any wrong entry with probability one.
"""

from __future__ import annotations

import numpy as np

import pullback as torch
from pullback.core.tensor import wrap_meta
from pullback.func import jvp, vjp, vmap
from pullback.ops.system.dispatch import dispatch
from pullback.ops.system.operator import Missing, Operator
from pullback.ops.system.record import plan_of
from tests.ops.samples.around import AFTER, BEFORE, FIXED, key_of

EPS = 1e-6


def tensors_in(value) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_in(v)]
    return []


def rebuild(args: tuple, replacements) -> tuple:
    """Arguments with each tensor replaced by the next of an iterator."""
    it = iter(replacements)

    def go(v):
        if isinstance(v, torch.Tensor):
            return next(it)
        return tuple(go(x) for x in v) if isinstance(v, tuple) else v

    return tuple(go(a) for a in args)


def results(out) -> list:
    return tensors_in(out)


def to_numpy(t) -> np.ndarray:
    t = t.detach().resolve_conj().resolve_neg()
    return t._array.astype(np.float32) if t._array.dtype.kind not in "biufc" else t._array


def same(a, b, what: str, tol: float = 1e-7) -> None:
    assert a.dtype is b.dtype, f"{what}: dtype {a.dtype} != {b.dtype}"
    assert tuple(a.shape) == tuple(b.shape), f"{what}: shape {tuple(a.shape)} != {tuple(b.shape)}"
    np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=tol, atol=tol, err_msg=what)


# ---- metadata
def check_meta(op: Operator, args: tuple) -> None:
    """What fake tensors say is what kernels produce: shape, dtype, strides."""
    real = results(dispatch(op, args))
    fakes = [wrap_meta(tuple(t.shape), t.dtype, t.stride()) for t in tensors_in(args)]
    fake = results(dispatch(op, rebuild(args, fakes)))
    assert len(real) == len(fake), f"{len(fake)} fake results, {len(real)} real ones"
    for i, (r, f) in enumerate(zip(real, fake, strict=True)):
        assert f.dtype is r.dtype, f"result {i}: fake dtype {f.dtype}, real {r.dtype}"
        assert tuple(f.shape) == tuple(r.shape), f"result {i}: fake shape {tuple(f.shape)}, real {tuple(r.shape)}"
        if r.numel() > 1:
            squeezed = [(a, b) for a, b, s in zip(f.stride(), r.stride(), r.shape, strict=True) if s != 1]
            assert all(a == b for a, b in squeezed), f"result {i}: fake strides {f.stride()}, real {r.stride()}"


# ---- derivatives
def differentiable_inputs(op: Operator, args: tuple) -> list:
    """Floating tensors in the arguments that the vjp covers; in a composite operator, all that are not FIXED."""
    fixed = FIXED.get(key_of(op), ())
    if op.body is not None:
        targets = {a.name for a in op.schema.arguments}
    elif op.differentiable:
        targets = {t for r in plan_of(op).rules if not isinstance(r.function, Missing) for t in r.targets}
    else:
        targets = set()
    found = []
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.name in targets and argument.name not in fixed:
            found += [t for t in tensors_in(value) if t.dtype in (torch.float64, torch.complex128)]
    return found


def has_gradients(op: Operator) -> bool:
    return op.differentiable and not any(isinstance(r.function, Missing) for r in plan_of(op).rules)


def as_function(op: Operator, args: tuple, inputs: list):
    """The function of the inputs alone that returns the floating results (see `samples.around` for what is around it)."""
    positions = {id(t): i for i, t in enumerate(inputs)}
    before, after = BEFORE.get(key_of(op), lambda *a: a), AFTER.get(key_of(op), lambda *r: r)

    def function(*values):
        given = rebuild(args, (values[positions[id(t)]] if id(t) in positions else t for t in tensors_in(args)))
        return tuple(r for r in after(*results(dispatch(op, before(*given)))) if r.dtype.category >= 2)

    return function


def random_like(rng, t):
    a = rng.standard_normal(tuple(t.shape))
    if t.dtype.is_complex:
        a = a + 1j * rng.standard_normal(tuple(t.shape))
    return torch.tensor(np.asarray(a), dtype=t.dtype)


def inner(xs, ys) -> float:
    """The real inner product that pairs tangents with cotangents."""
    return float(
        sum(
            np.sum(np.conj(to_numpy(x)) * to_numpy(y)).real
            for x, y in zip(xs, ys, strict=True)
            if x is not None and y is not None
        )
    )


def numeric_directional(function, inputs: list, tangents: list) -> list:
    with torch.no_grad():
        up = function(*[x + EPS * t for x, t in zip(inputs, tangents, strict=True)])
        down = function(*[x - EPS * t for x, t in zip(inputs, tangents, strict=True)])
    return [(to_numpy(u) - to_numpy(d)) / (2 * EPS) for u, d in zip(up, down, strict=True)]


def check_gradient(op: Operator, args: tuple, seed: int = 0) -> None:
    """vjp against finite differences."""
    inputs = [t.detach() for t in differentiable_inputs(op, args)]
    if inputs:
        compare_gradient(as_function(op, args, differentiable_inputs(op, args)), inputs, seed, "gradient")


def compare_gradient(function, inputs: list, seed: int, what: str, tol: float = 1e-6) -> None:
    if not any(x.numel() for x in inputs):
        return
    rng = np.random.default_rng(seed)
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    outs = [o for o in function(*leaves) if o.requires_grad]
    if not outs:
        return
    cotangents = [random_like(rng, o) for o in outs]
    grads = torch.autograd.grad(outs, leaves, cotangents, allow_unused=True)
    tangents = [random_like(rng, x) for x in inputs]
    keep = [i for i, o in enumerate(function(*leaves)) if o.requires_grad]
    numeric = numeric_directional(function, inputs, tangents)
    got = inner([g if g is not None else torch.zeros_like(x) for g, x in zip(grads, inputs, strict=True)], tangents)
    want = float(sum(np.sum(np.conj(to_numpy(c)) * numeric[i]).real for c, i in zip(cotangents, keep, strict=True)))
    scale = max(1.0, abs(want))
    assert abs(got - want) <= tol * scale, f"{what}: {got} by the rule, {want} by differences"


def check_second_gradient(op: Operator, args: tuple) -> None:
    """The vjp differentiates again."""
    chosen = differentiable_inputs(op, args)
    if not chosen:
        return
    function = as_function(op, args, chosen)
    rng = np.random.default_rng(1)
    inputs = [t.detach() for t in chosen]
    cotangents = [
        random_like(rng, o) for o in function(*[x.clone().requires_grad_() for x in inputs]) if o.requires_grad
    ]
    if not cotangents:
        return

    def first(*values):
        xs, cs = list(values[: len(inputs)]), list(values[len(inputs) :])
        with torch.enable_grad():
            xs = [x if x.requires_grad else x.detach().requires_grad_() for x in xs]
            outs = [o for o in function(*xs) if o.requires_grad]
            got = torch.autograd.grad(outs, xs, cs, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)

    compare_gradient(first, [*inputs, *cotangents], 2, "second gradient", 1e-5)


def check_forward(op: Operator, args: tuple) -> None:
    """<jvp(t), c> = <t, vjp(c)>."""
    chosen = differentiable_inputs(op, args)
    if not chosen:
        return
    function = as_function(op, args, chosen)
    rng = np.random.default_rng(3)
    inputs = tuple(t.detach() for t in chosen)
    if not function(*inputs):  # no result can have a gradient
        return
    tangents = tuple(random_like(rng, x) for x in inputs)
    outs, pushed = jvp(function, inputs, tangents)
    cotangents = tuple(random_like(rng, o) for o in outs)
    _, pull = vjp(function, *inputs)
    pulled = pull(cotangents)
    if not any(x.numel() for x in inputs):
        return  # there is no direction to go in, and what a result of no elements (a mean, say) is need not be finite
    left, right = inner(cotangents, pushed), inner(pulled, tangents)
    assert abs(left - right) <= 1e-6 * max(1.0, abs(left)), f"<c, jvp> = {left}, <vjp, t> = {right}"


# ---- transforms and variants
def check_vmap(op: Operator, args: tuple, other: tuple | None = None) -> None:
    """vmap over two sets of numbers equals a loop over them, one argument at a time and all at once."""
    tensors, others = tensors_in(args), tensors_in(other if other is not None else args)
    if not tensors:
        return
    stacked = [torch.stack([a, b]) for a, b in zip(tensors, others, strict=True)]
    every = tuple(range(len(tensors)))
    for chosen in dict.fromkeys([(i,) for i in every][:4] + [every]):
        wanted = [_loop_step(op, args, tensors, others if k else tensors, chosen) for k in range(2)]

        def function(*values):
            return tuple(results(dispatch(op, rebuild(args, values))))

        values = [s if i in chosen else t for i, (s, t) in enumerate(zip(stacked, tensors, strict=True))]
        got = vmap(function, in_dims=tuple(0 if i in chosen else None for i in every))(*values)
        for k, row in enumerate(wanted):
            for g, w in zip(got, row, strict=True):
                same(g[k], w, f"vmap over arguments {chosen}, row {k}", 1e-6)


def _loop_step(op: Operator, args: tuple, tensors: list, row: list, chosen: tuple) -> list:
    return results(dispatch(op, rebuild(args, (row[i] if i in chosen else t for i, t in enumerate(tensors)))))


def reversed_memory(t):
    """The same numbers with the first dimension innermost in memory."""
    order = tuple(reversed(range(t.ndim)))
    return t.detach().permute(order).contiguous().permute(order)


def stepped_memory(t):
    """The same numbers at every second place of a larger memory, not at its start."""
    room = torch.zeros((*(2 * s for s in t.shape[:-1]), 2 * t.shape[-1] + 1) if t.ndim else (3,), dtype=t.dtype)
    window = room[(*(slice(None, None, 2) for _ in t.shape[:-1]), slice(1, None, 2))] if t.ndim else room[1]
    return window.copy_(t.detach())


def check_layout(op: Operator, args: tuple) -> None:
    """Numbers do not depend on how the arguments lie in memory, and metadata follow it as they do without data."""
    wanted = results(dispatch(op, args))
    for lay in (reversed_memory, stepped_memory):
        laid = rebuild(args, map(lay, tensors_in(args)))
        for g, w in zip(results(dispatch(op, laid)), wanted, strict=True):
            same(g, w, f"with {lay.__name__}")
        check_meta(op, laid)


def check_batched_gradient(op: Operator, args: tuple) -> None:
    """The vjp of a batch of cotangents equals a loop over them."""
    chosen = differentiable_inputs(op, args)
    if not chosen:
        return
    rng = np.random.default_rng(4)
    function, inputs = as_function(op, args, chosen), [t.detach() for t in chosen]
    if not function(*inputs):  # no result can have a gradient
        return
    outs, pull = vjp(function, *inputs)
    rows = [tuple(random_like(rng, o) for o in outs) for _ in range(2)]
    got = vmap(pull)(tuple(torch.stack(pair) for pair in zip(*rows, strict=True)))
    for k, row in enumerate(rows):
        for g, w in zip(got, pull(row), strict=True):
            same(g[k], w, f"gradient of cotangent {k}", 1e-6)


def check_inplace(op: Operator, args: tuple) -> None:
    """The in-place form stores what the functional form returns, and gradients agree."""
    inplace = op.inplace
    if inplace is None:
        return
    wanted = dispatch(op, args)
    if not isinstance(wanted, torch.Tensor) or wanted.shape != args[0].shape or wanted.dtype is not args[0].dtype:
        return
    target = args[0].detach().clone()
    version = target._version
    got = dispatch(inplace, (target, *args[1:]))
    assert got is target and target._version > version
    same(target, wanted, "in place")
    if has_gradients(op) and args[0].dtype in (torch.float64, torch.complex128):
        chosen = [args[0]]
        leaf, other = (args[0].detach().clone().requires_grad_() for _ in range(2))
        out = dispatch(op, (leaf, *args[1:]))
        if not out.requires_grad:
            return
        written = dispatch(inplace, (other.clone(), *args[1:]))
        c = torch.ones_like(out)
        (a,), (b,) = (
            torch.autograd.grad(out, leaf, c, allow_unused=True),
            torch.autograd.grad(written, other, c, allow_unused=True),
        )
        assert (a is None) == (b is None) and chosen
        if a is not None:
            same(a, b, "gradient in place")


def check_out(op: Operator, args: tuple) -> None:
    """`out=` receives the result, resized."""
    function = getattr(op, "function", None)
    if function is None or op.is_view or not op.declared.out or op.declared.variadic:
        return
    wanted = dispatch(op, args)
    if not isinstance(wanted, torch.Tensor):
        return
    target = torch.empty(0, dtype=wanted.dtype)
    schema = op.schema.arguments
    positional = [v for a, v in zip(schema, args, strict=True) if not a.kwarg_only]
    keywords = {a.name: v for a, v in zip(schema, args, strict=True) if a.kwarg_only}
    got = function(*positional, **keywords, out=target)
    assert got is target
    same(target, wanted, "out=")


CHECKS = {
    "meta": check_meta,
    "gradient": check_gradient,
    "second_gradient": check_second_gradient,
    "forward": check_forward,
    "vmap": check_vmap,
    "layout": check_layout,
    "batched_gradient": check_batched_gradient,
    "inplace": check_inplace,
    "out": check_out,
}
