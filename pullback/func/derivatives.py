"""Derivatives as function transforms: grad, vjp, jvp, jacrev, jacfwd, hessian, linearize.

Reverse mode takes a differentiable alias of each argument, runs the function and walks the graph back with
`create_graph`; the alias keeps the connection to whatever is being differentiated outside, so transforms nest. Inside
`vmap`, the graph is that of the batched values underneath; arguments that are not yet batched are expanded first, so
that each example has its own derivative. Results that depend on nothing outside are detached.
"""

from __future__ import annotations

import functools

from ..autograd.engine import run_graph
from ..autograd.forward import DualLevel, dual, parts
from ..batching.levels import batch_everywhere, graph_level, lower, raise_, rewrap, strip
from ..batching.vmap import vmap
from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import AccumulateGrad, Autograd, edge_of
from ..core.tensor import Tensor
from ..core.tree import tree_flatten, tree_map, tree_unflatten
from ..ops.shape.joining import stack as stack_all
from ..ops.shape.views import alias as alias_op
from ..ops.system.dispatch import dispatch


# ---- arguments
def _track(x):
    """A differentiable alias: a leaf of its own, connected to what `x` depends on."""
    if not isinstance(x, Tensor) or x.dtype.category < 2:
        return x
    with modes.masked(0, modes.GRAD):
        y = dispatch(alias_op, (batch_everywhere(x),))
        value, wraps = strip(y)
        if not value.requires_grad:
            tangents = value.autograd.tangents if value.autograd is not None else None
            value = value.shallow(Autograd(True))
            value.autograd.tangents = tangents
        elif value.is_leaf:
            value = value.view_as(value)
    return rewrap(value, wraps)


def _gradients(outputs: list, inputs: list, cotangents: list, levels: list) -> list:
    """Gradients of flat outputs with respect to tracked inputs, differentiable. `levels` were open when they were made."""
    roots, seeds = [], []
    for out, g in zip(outputs, cotangents, strict=True):
        if not isinstance(out, Tensor) or g is None:
            continue
        value, wraps = strip(out)
        edge = edge_of(value)
        if edge is not None:
            roots.append(edge)
            seeds.append(lower(g, wraps, levels))
    stripped = [strip(x) for x in inputs]
    wanted = [edge_of(v) for v, _ in stripped]
    if not roots:
        return [x.detach() * 0 for x in inputs]
    with graph_level(levels):
        got = run_graph(roots, seeds, True, True, wanted)
    return [
        x.detach() * 0 if got.get(edge) is None else raise_(got[edge], wraps, levels)
        for x, (_, wraps), edge in zip(inputs, stripped, wanted, strict=True)
    ]


def _settle(results: list, tracked: list) -> list:
    """Detach results whose history leads to nothing but the tracked arguments of this transform."""
    own = {id(strip(t)[0]) for t in tracked}
    return [_detach_if_own(r, own) if isinstance(r, Tensor) else r for r in results]


def _detach_if_own(r: Tensor, own: set) -> Tensor:
    value, wraps = strip(r)
    if not value.requires_grad or _reaches_outside(value, own):
        return r
    plain = value.shallow()
    if value.autograd.tangents:
        plain.autograd = Autograd()
        plain.autograd.tangents = {n: _detach_if_own(t, own) for n, t in value.autograd.tangents.items()}
    return rewrap(plain, wraps)


def _reaches_outside(value: Tensor, own: set) -> bool:
    edge = edge_of(value)
    stack, seen = [edge[0]], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad) and id(node.variable) not in own:
            return True
        stack.extend(e[0] for e in node.edges if e is not None)
    return False


def _recording():
    return modes.masked(0, modes.GRAD)


def _check_differentiable(name: str, flat: list) -> None:
    for x in flat:
        if isinstance(x, Tensor) and x.dtype.category < 2:
            raise RuntimeError(f"{name}: expected all inputs to be floating point or complex tensors, got {x.dtype}")


# ---- reverse mode
def grad(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """The gradient of a scalar function with respect to argument(s) `argnums`."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        made = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (made[0], made[1][1]) if has_aux else made[0]

    return wrapper


def grad_and_value(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """(gradient, value) of a scalar function; with `has_aux`, (gradient, (value, aux))."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        chosen = [args[n] for n in numbers]
        flat, spec = tree_flatten(chosen)
        with _recording():
            tracked = [_track(x) for x in flat]
            replaced = list(args)
            for n, v in zip(numbers, tree_unflatten(tracked, spec), strict=True):
                replaced[n] = v
            result = func(*replaced, **kwargs)
            out, aux = _split_aux(
                result,
                has_aux,
                "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True",
            )
            if not isinstance(out, Tensor):
                raise RuntimeError(
                    f"Expected f(*args) to return a scalar tensor, got output of type {type(out)}. Did you mean to set has_aux?"
                )
            if out.ndim or out.dtype.category < 2:
                raise RuntimeError(
                    f"Expected f(*args) to return a scalar tensor, got tensor with {out.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            grads = _gradients([out], tracked, [out.detach() * 0 + 1], ambient.transforms)
        settled = _settle([*grads, out], tracked)
        gradient = tree_unflatten(settled[:-1], spec)
        gradient = gradient[0] if isinstance(argnums, int) else tuple(gradient)
        value = settled[-1]
        return gradient, (value, tree_map(lambda x: _settle([x], tracked)[0], aux)) if has_aux else value

    return wrapper


def _split_aux(result, has_aux: bool, message: str):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(message)
    return result


def vjp(func, *primals, has_aux: bool = False):
    """(output, vjp function[, aux]): the function maps cotangents of the output to those of the primals."""
    flat, spec = tree_flatten(primals)
    levels = ambient.transforms
    with _recording():
        tracked = [_track(x) for x in flat]
        out, aux = _split_aux(
            func(*tree_unflatten(tracked, spec)),
            has_aux,
            "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True",
        )
    flat_out, out_spec = tree_flatten(out)

    def pull(*cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        flat_g, g_spec = tree_flatten(given)
        if g_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: {g_spec}, primal output: {out_spec}"
            )
        with _recording():
            grads = _gradients(flat_out, [t for t in tracked if isinstance(t, Tensor)], flat_g, levels)
        made = tree_unflatten(_settle(grads, tracked), spec)
        return tuple(made)

    pull.tracked = tracked  # type: ignore[attr-defined]
    result = tree_unflatten(_settle(flat_out, tracked), out_spec)
    return (result, pull, tree_map(lambda x: _settle([x], tracked)[0], aux)) if has_aux else (result, pull)


def jacrev(
    func,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
):
    """The Jacobian by reverse mode: one row per output element."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

        def of_chosen(*chosen):
            replaced = list(args)
            for n, v in zip(numbers, chosen, strict=True):
                replaced[n] = v
            return func(*replaced, **kwargs)

        got = vjp(of_chosen, *[args[n] for n in numbers], has_aux=has_aux)
        out, pull = got[0], got[1]
        flat_out, out_spec = tree_flatten(out)
        rows = _rows(flat_out, out_spec, pull, chunk_size)
        made = tree_unflatten([_pick(r, argnums) for r in rows], out_spec)
        return (made, got[2]) if has_aux else made

    return wrapper


def _pick(per_argument, argnums):
    return per_argument[0] if isinstance(argnums, int) else per_argument


def _rows(flat_out: list, out_spec, pull, chunk_size) -> list:
    """For each output, per argument, gradients of all its elements: shape (*out.shape, *in.shape)."""
    sizes = [o.numel() for o in flat_out]
    total = sum(sizes)
    bases, at = [], 0
    for o, n in zip(flat_out, sizes, strict=True):
        basis = o.new_zeros((total, n))
        basis[at : at + n].fill_diagonal_(1)
        bases.append(basis.view(total, *o.shape))
        at += n
    per = vmap(lambda *g: pull(tree_unflatten(list(g), out_spec)), chunk_size=chunk_size)(*bases)
    flat_per, spec = tree_flatten(per)
    made, at = [], 0
    for o, n in zip(flat_out, sizes, strict=True):
        made.append(tree_unflatten([p[at : at + n].reshape(*o.shape, *p.shape[1:]) for p in flat_per], spec))
        at += n
    return made


# ---- forward mode
def jvp(func, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """(output, tangent of the output[, aux])."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = tree_flatten(primals)
    flat_t, spec_t = tree_flatten(tangents)
    if spec != spec_t:
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {spec_t}"
        )
    with DualLevel() as level:
        duals = [dual(p, t, level) for p, t in zip(flat, flat_t, strict=True)]
        out, aux = _split_aux(
            func(*tree_unflatten(duals, spec)),
            has_aux,
            "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux is True",
        )
        flat_out, out_spec = tree_flatten(out)
        pairs = [parts(o, level) for o in flat_out]
        aux = tree_map(lambda x: parts(x, level)[0] if isinstance(x, Tensor) else x, aux)
    primal, tangent = tree_unflatten([p for p, _ in pairs], out_spec), tree_unflatten([t for _, t in pairs], out_spec)
    return (primal, tangent, aux) if has_aux else (primal, tangent)


def jacfwd(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"):
    """The Jacobian by forward mode: one column per input element."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        chosen = tuple(args[n] for n in numbers)
        flat, spec = tree_flatten(chosen)

        def of_chosen(*values):
            replaced = list(args)
            for n, v in zip(numbers, values, strict=True):
                replaced[n] = v
            return func(*replaced, **kwargs)

        def push(*basis):
            made = jvp(of_chosen, chosen, tree_unflatten(list(basis), spec), has_aux=has_aux)
            return (made[1], made[2]) if has_aux else made[1]

        total = sum(x.numel() for x in flat)
        bases, at = [], 0
        for x in flat:
            basis = x.new_zeros((total, x.numel()))
            basis[at : at + x.numel()].fill_diagonal_(1)
            bases.append(basis.view(total, *x.shape))
            at += x.numel()
        try:
            got = vmap(push, randomness=randomness)(*bases)
        except RuntimeError as error:
            if not getattr(error, "unbatched_write", False):
                raise
            # A new tensor takes on the argument's tangent in place: one direction after the other.
            got = tree_map(lambda *each: stack_all(each), *[push(*[b[i] for b in bases]) for i in range(total)])
        columns, aux = got if has_aux else (got, None)
        flat_out, out_spec = tree_flatten(columns)
        made = tree_unflatten([_columns(c, flat, spec, argnums) for c in flat_out], out_spec)
        return (made, tree_map(lambda x: x[0], aux)) if has_aux else made

    return wrapper


def _columns(c: Tensor, flat: list, spec, argnums):
    pieces, at = [], 0
    for x in flat:
        part = c[at : at + x.numel()].movedim(0, -1)
        pieces.append(part.reshape(*part.shape[:-1], *x.shape))
        at += x.numel()
    return _pick(tree_unflatten(pieces, spec), argnums)


def hessian(func, argnums: int | tuple[int, ...] = 0):
    """Second derivatives: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """(output, function that maps tangents of the primals to tangents of the output)."""
    out, pull = vjp(func, *primals)
    flat_out, out_spec = tree_flatten(out)

    def push(*tangents):
        if tree_flatten(tangents)[1] != tree_flatten(primals)[1]:
            raise RuntimeError(
                f"linearize: expected tangents of the structure of the primals, {tree_flatten(primals)[1]}, got {tree_flatten(tangents)[1]}"
            )
        seeds = [o.detach() * 0 for o in flat_out]
        _, transpose = vjp(lambda *cotangents: pull(tree_unflatten(list(cotangents), out_spec)), *seeds)
        return tree_unflatten(_settle(list(transpose(tuple(tangents))), pull.tracked), out_spec)

    return out, push


def forward_over_reverse(func, inputs: tuple) -> tuple:
    """Second derivatives with respect to all inputs, for `autograd.functional.hessian`."""
    every = tuple(range(len(inputs)))
    return jacfwd(jacrev(func, every), every)(*inputs)


above.forward_over_reverse = forward_over_reverse
