"""Derivatives as function transforms: grad, vjp, jvp, linearize. Jacobians are made of these, in `jacobians.py`.

Reverse mode opens a level (`levels.py`), takes a differentiable alias of each argument, runs the function and walks the
graph back with `create_graph`; the alias keeps the connection to whatever is being differentiated outside, so
transforms nest. Inside `vmap`, the graph is that of the batched values underneath; arguments that are not yet batched
are expanded first, so that each example has its own derivative. Results that depend on nothing outside are detached.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager

from ..autograd.engine import run_graph
from ..autograd.forward import DualLevel, dual, parts
from ..batching.levels import graph_level, lower, raise_, strip
from ..batching.made import remember
from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import edge_of
from ..core.tensor import Tensor
from ..core.tree import tree_flatten, tree_unflatten
from ..ops.make.like import ones_like, zeros_like
from .arguments import (
    Argnums,
    check_differentiable,
    check_outputs,
    check_scalar,
    check_tensors,
    map_aux,
    positions,
    split_aux,
    with_arguments,
)
from .levels import ReverseLevel

_JVP = "jvp(f, primals, tangents)"


# ---- reverse mode
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
        return [zeros_like(x.detach()) for x in inputs]
    if None in wanted:  # detached in place after results were made of it
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    with graph_level(levels):
        got = run_graph(roots, seeds, True, True, wanted)
    return [
        zeros_like(x.detach()) if g is None else raise_(g, wraps, levels)
        for x, (_, wraps), g in zip(inputs, stripped, got, strict=True)
    ]


def _track_all(level: ReverseLevel, flat: list) -> list:
    for x in flat:
        check_differentiable(x)
    return [level.track(x) for x in flat]


def grad(func, argnums: Argnums = 0, has_aux: bool = False):
    """The gradient of a scalar function with respect to argument(s) `argnums`."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        result = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (result[0], result[1][1]) if has_aux else result[0]

    wrapper.differentiates = True  # type: ignore[attr-defined]
    remember(wrapper, grad, argnums=argnums, has_aux=has_aux)
    return wrapper


def grad_and_value(func, argnums: Argnums = 0, has_aux: bool = False):
    """(gradient, value) of a scalar function; with `has_aux`, (gradient, (value, aux))."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if ambient.mode & modes.CAPTURE:
            options = {"argnums": argnums, "has_aux": has_aux}
            result = above.captured_transform("grad_and_value", func, options, args, kwargs)
            if result is not NotImplemented:
                return result
        numbers = positions(args, argnums)
        flat, spec = tree_flatten([args[n] for n in numbers])
        with ReverseLevel() as level:
            tracked = _track_all(level, flat)
            result = func(*with_arguments(args, numbers, tree_unflatten(tracked, spec)), **kwargs)
            out, aux = split_aux(result, has_aux, "grad_and_value(f)(*args)")
            check_scalar(out)
            grads = _gradients([out], tracked, [ones_like(out.detach())], ambient.transforms)
        gradient = tree_unflatten([level.settle(g) for g in grads], spec)
        gradient = gradient[0] if isinstance(argnums, int) else tuple(gradient)
        value = level.settle(out)
        return gradient, (value, map_aux(level.settle, aux)) if has_aux else value

    wrapper.differentiates = True  # type: ignore[attr-defined]
    remember(wrapper, grad_and_value, argnums=argnums, has_aux=has_aux)
    return wrapper


def vjp(func, *primals, has_aux: bool = False):
    """(output, vjp function[, aux]): the function maps cotangents of the output to those of the primals."""
    if ambient.mode & modes.CAPTURE:
        result = above.captured_transform("vjp", func, {"has_aux": has_aux}, primals, {})
        if result is not NotImplemented:
            return result
    flat, spec = tree_flatten(primals)
    levels = ambient.transforms
    with ReverseLevel() as level:
        tracked = _track_all(level, flat)
        out, aux = split_aux(func(*tree_unflatten(tracked, spec)), has_aux, "vjp(f, *primals)")
        flat_out, out_spec = tree_flatten(out)
        check_outputs(flat_out, "vjp(f, *primals)")
        flat_out = [level.kept(o) for o in flat_out]
    for o in flat_out:
        if o.dtype.category < 2:
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {o.dtype}"
            )

    def pull(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        flat_g, g_spec = tree_flatten(cotangents)
        if g_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: {g_spec}, primal output: {out_spec}"
            )
        recorded = bool(ambient.mode & modes.GRAD) if create_graph is None else create_graph
        level.resume()
        try:
            grads = _gradients(flat_out, tracked, flat_g, levels)
        finally:
            level.suspend()
        return tree_unflatten([level.settle(g, recorded) for g in grads], spec)

    pull.level = level  # type: ignore[attr-defined]
    result = tree_unflatten([level.settle(o) for o in flat_out], out_spec)
    return (result, pull, map_aux(level.settle, aux)) if has_aux else (result, pull)


# ---- forward mode
def jvp(func, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """(output, tangent of the output[, aux])."""
    return _jvp(func, primals, tangents, strict, has_aux, False)


def _jvp(func, primals: tuple, tangents: tuple, strict: bool, has_aux: bool, records: bool):
    """`jvp`; with `records`, what is computed of tangents is recorded under `no_grad` too."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = tree_flatten(primals)
    flat_t, spec_t = tree_flatten(tangents)
    if spec != spec_t:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {spec_t}"
        )
    check_tensors(flat, _JVP, "primals")
    check_tensors(flat_t, _JVP, "tangents")
    for p in flat:
        if p.dtype.category < 2:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {p.dtype}")
    if ambient.mode & modes.CAPTURE:
        options = {"strict": strict, "has_aux": has_aux}
        result = above.captured_transform("jvp", func, options, (primals, tangents), {})
        if result is not NotImplemented:
            return result
    with DualLevel(records) as level, transforming():
        duals = [dual(p, t, level) for p, t in zip(flat, flat_t, strict=True)]
        out, aux = split_aux(func(*tree_unflatten(duals, spec)), has_aux, _JVP)
        flat_out, out_spec = tree_flatten(out)
        check_outputs(flat_out, _JVP)
        pairs = [_parts(o, level, strict) for o in flat_out]
        aux = map_aux(lambda x: parts(x, level)[0], aux) if has_aux else None
    primal, tangent = tree_unflatten([p for p, _ in pairs], out_spec), tree_unflatten([t for _, t in pairs], out_spec)
    return (primal, tangent, aux) if has_aux else (primal, tangent)


@contextmanager
def transforming():
    """A transform that is no level of its own: results may be recorded later, so that inference mode is off in it."""
    ambient.function_levels += 1
    inference = ambient.change(modes.INFERENCE) & modes.INFERENCE
    try:
        yield
    finally:
        ambient.change(0, inference)
        ambient.function_levels -= 1


def _parts(out: Tensor, level: int, strict: bool) -> tuple[Tensor, Tensor]:
    """(primal, tangent) of an output; zeros where it depends on no input, unless that is an error."""
    primal, tangent = parts(out, level)
    if tangent is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."
        )
    return primal, zeros_like(primal.detach()) if tangent is None else tangent


def linearize(func, *primals):
    """(output, function that maps tangents of the primals to tangents of the output). The tangent of integers and truths is zero.

    The function runs once, as forward mode runs it; what that computes of tangents is recorded, and transposed twice.
    """
    flat, spec = tree_flatten(primals)
    found: list = []

    def run(*args):
        leaves, out_spec = tree_flatten(func(*args))
        check_outputs(leaves, "linearize(f, *primals)")
        found[:] = [out_spec]
        return leaves

    def moved(*tangents):
        copies = [t.clone() for t in tangents]  # the function may write what it is given
        leaves, pushed = _jvp(run, primals, tree_unflatten(copies, spec), False, False, True)
        smooth = [t for o, t in zip(leaves, pushed, strict=True) if o.dtype.category >= 2]
        return tuple(smooth or copies[:1]), leaves  # something must be given

    check_tensors(flat, "linearize(f, *primals)", "primals")
    for x in flat:
        check_differentiable(x)
    values, pull, leaves = vjp(moved, *[zeros_like(p.detach()) for p in flat], has_aux=True)

    def push(*tangents):
        flat_t, spec_t = tree_flatten(tangents)
        if spec_t != spec:
            raise RuntimeError(f"Expected the tangents {spec_t} to have the same argspec as the primals {spec}")
        for i, (p, t) in enumerate(zip(flat, flat_t, strict=True)):
            _check_tangent(i, p, t)
        seeds = [zeros_like(o.detach()) for o in values]
        _, transpose = vjp(lambda *cotangents: pull(cotangents), *seeds)
        pushed = iter([pull.level.settle(t, inner=transpose.level) for t in transpose(tuple(flat_t))])
        return tree_unflatten([next(pushed) if o.dtype.category >= 2 else zeros_like(o) for o in leaves], found[0])

    return tree_unflatten(leaves, found[0]), push


def _check_tangent(i: int, primal: Tensor, tangent: Tensor) -> None:
    facts = [(name, getattr(primal, name), getattr(tangent, name)) for name in ("shape", "device", "dtype")]
    for name, ours, given in facts:
        if ours != given:
            raise RuntimeError(
                f"tangent:{i} with {name} {given} in flattened pytree doesn't match the {name} {ours} of the corresponding primal."
            )
