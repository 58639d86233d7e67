"""What function transforms are given and what functions return: chosen, checked, put back, in PyTorch's words."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..core.tree import tree_flatten, tree_map

Argnums = int | tuple[int, ...]


def slice_argnums(args: tuple, argnums: Argnums) -> tuple:
    """The arguments with these numbers."""
    return tuple(args[n] for n in positions(args, argnums))


def positions(args: tuple, argnums: Argnums) -> tuple[int, ...]:
    """Positions that `argnums` names, counted from the front."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    found = tuple(_position(n, len(args)) for n in (argnums if isinstance(argnums, tuple) else (argnums,)))
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {found}")
    return found


def _position(n, count: int) -> int:
    if not isinstance(n, int):
        raise RuntimeError(f"argnum must be int, got: {type(n)}")
    if not -count <= n < count:
        raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    return n % count


def with_arguments(args: tuple, numbers: tuple[int, ...], values) -> tuple:
    """`args` with other values at some positions."""
    replaced = list(args)
    for n, v in zip(numbers, values, strict=True):
        replaced[n] = v
    return tuple(replaced)


def check_differentiable(x) -> None:
    """Refuse an argument that has no derivative."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    if x.dtype.category < 2:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")


def check_tensors(flat: list, lead: str, name: str) -> None:
    if not flat:
        raise RuntimeError(f"{lead}: Expected {name} to contain at least one Tensor.")
    for x in flat:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{lead}: Expected {name} to only contain Tensors, got {type(x)}")


def check_outputs(flat: list, lead: str) -> None:
    if not flat or len(flat) == 1 and flat[0] is None:
        raise RuntimeError(
            f"{lead}: Expected f to be a function that has non-empty output (got output = {flat if flat else '()'})"
        )
    for o in flat:
        if not isinstance(o, Tensor):
            raise RuntimeError(f"{lead}: expected f(*primals) to return only tensors, got unsupported type {type(o)}")


def check_scalar(out) -> None:
    lead = "grad_and_value(f)(*args): Expected f(*args) to return a "
    if not isinstance(out, Tensor):
        raise RuntimeError(f"{lead}Tensor, got {type(out)}")
    if out.ndim:
        raise RuntimeError(
            f"{lead}scalar Tensor, got tensor with {out.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def check_real(lead: str, tree, kind: str) -> None:
    for i, x in enumerate(tree_flatten(tree)[0]):
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise RuntimeError(
                f"{lead}: Expected all {kind} to be real but received complex tensor at flattened input idx: {i}"
            )


def split_aux(result, has_aux: bool, lead: str):
    """(output, auxiliary results) of a function's result."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{lead}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def map_aux(function, aux):
    """Auxiliary results, each changed; they are tensors."""

    def change(x):
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return function(x)

    return tree_map(change, aux)
