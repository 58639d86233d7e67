"""Jacobians and Hessians as function transforms: one vjp or jvp per basis vector, batched by `vmap`."""

from __future__ import annotations

import functools

from ..batching.made import remember
from ..batching.vmap import vmap
from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.tensor import TRANSFORMED, Tensor
from ..core.tree import tree_flatten, tree_map, tree_unflatten
from ..ops.shape.joining import stack
from ..ops.system.operator import exports
from .arguments import Argnums, check_real, positions, with_arguments
from .derivatives import jvp, vjp


def jacrev(
    func,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
):
    """The Jacobian by reverse mode: one row per output element."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        check_real("jacrev", args, "inputs")
        if ambient.mode & modes.CAPTURE:
            options = {"argnums": argnums, "has_aux": has_aux, "chunk_size": chunk_size}
            result = above.captured_transform("jacrev", func, options, args, kwargs)
            if result is not NotImplemented:
                return result
        numbers = positions(args, argnums)
        chosen = [args[n] for n in numbers]
        got = vjp(lambda *values: func(*with_arguments(args, numbers, values), **kwargs), *chosen, has_aux=has_aux)
        out, pull = got[0], got[1]
        check_real("jacrev", out, "outputs")
        flat_out, out_spec = tree_flatten(out)
        rows = _rows(flat_out, out_spec, pull, chunk_size)
        result = tree_unflatten([_pick(r, argnums) for r in rows], out_spec)
        return (result, got[2]) if has_aux else result

    wrapper.differentiates = True  # type: ignore[attr-defined]
    remember(wrapper, jacrev, argnums=argnums, has_aux=has_aux, chunk_size=chunk_size)
    return wrapper


def _pick(per_argument, argnums: Argnums):
    return per_argument[0] if isinstance(argnums, int) else per_argument


def _basis(flat: list[Tensor]) -> list[Tensor]:
    """For each tensor, one direction per element of all of them: shape (elements of all, *shape)."""
    total, at, result = sum(x.numel() for x in flat), 0, []
    for x in flat:
        n = x.numel()
        if x._keys & ~TRANSFORMED or ambient.mode & (modes.CAPTURE | modes.DISPATCH):
            basis = x.new_zeros((total, n))
            basis[at : at + n].fill_diagonal_(1)
        else:  # the same for every example of a transform, so none of them is asked
            whole = exports["torch"]["eye"](total, dtype=x.dtype, device=x.device)
            basis = whole if n == total else whole[:, at : at + n].contiguous()
        result.append(basis.view((total, *x.shape)))
        at += n
    return result


def _rows(flat_out: list, out_spec, pull, chunk_size) -> list:
    """For each output, per argument, gradients of all its elements: shape (*out.shape, *in.shape)."""
    bases = _basis(flat_out)
    per = vmap(lambda *g: pull(tree_unflatten(list(g), out_spec)), chunk_size=chunk_size)(*bases)
    flat_per, spec = tree_flatten(per)
    result, at = [], 0
    for o in flat_out:
        n = o.numel()
        result.append(tree_unflatten([p[at : at + n].reshape((*o.shape, *p.shape[1:])) for p in flat_per], spec))
        at += n
    return result


def jacfwd(func, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"):
    """The Jacobian by forward mode: one column per input element."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        check_real("jacfwd", args, "inputs")
        if ambient.mode & modes.CAPTURE:
            options = {"argnums": argnums, "has_aux": has_aux, "randomness": randomness}
            result = above.captured_transform("jacfwd", func, options, args, kwargs)
            if result is not NotImplemented:
                return result
        numbers = positions(args, argnums)
        chosen = tuple(args[n] for n in numbers)
        flat, spec = tree_flatten(chosen)

        def push(*basis):
            result = jvp(
                lambda *values: func(*with_arguments(args, numbers, values), **kwargs),
                chosen,
                tree_unflatten(list(basis), spec),
                has_aux=has_aux,
            )
            check_real("jacfwd", result[0], "outputs")
            return (result[1], result[2]) if has_aux else result[1]

        got = _pushed(push, _basis(flat), randomness)
        columns, aux = got if has_aux else (got, None)
        flat_out, out_spec = tree_flatten(columns)
        result = tree_unflatten([_columns(c, flat, spec, argnums) for c in flat_out], out_spec)
        return (result, tree_map(lambda x: x[0], aux)) if has_aux else result

    wrapper.differentiates = True  # type: ignore[attr-defined]
    remember(wrapper, jacfwd, argnums=argnums, has_aux=has_aux, randomness=randomness)
    return wrapper


def _pushed(push, bases: list[Tensor], randomness: str):
    try:
        return vmap(push, randomness=randomness)(*bases)
    except RuntimeError as error:
        if not getattr(error, "unbatched_write", False):
            raise
        # A new tensor takes on the argument's tangent in place: one direction after the other.
        return tree_map(lambda *each: stack(each), *[push(*[b[i] for b in bases]) for i in range(len(bases[0]))])


def _columns(c: Tensor, flat: list, spec, argnums: Argnums):
    pieces, at = [], 0
    for x in flat:
        part = c[at : at + x.numel()].movedim(0, -1)
        pieces.append(part.reshape((*part.shape[:-1], *x.shape)))
        at += x.numel()
    return _pick(tree_unflatten(pieces, spec), argnums)


def hessian(func, argnums: Argnums = 0):
    """Second derivatives: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def forward_over_reverse(func, inputs: tuple) -> tuple:
    """Second derivatives with respect to all inputs, for `autograd.functional.hessian`."""
    every = tuple(range(len(inputs)))
    return jacfwd(jacrev(func, every), every)(*inputs)
