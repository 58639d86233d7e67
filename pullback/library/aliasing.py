"""What the results of a custom operator may share with its inputs: nothing, unless the schema says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.arrays import library
from ..core.tensor import Tensor

_WORDS = (
    "{} (with implementation in {}): The output of this custom operator (1) must not also be an input to this custom operator and (2) may "
    "not alias any inputs to this custom operator or other returns. The most common way to trigger this error is if we have y = "
    "custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return "
    "x.clone()) or refactor the custom operator to not return y."
)


def flat_tensors(values: Iterable) -> list[Tensor]:
    """The tensors among values, lists of them spread out."""
    out: list[Tensor] = []
    for v in values:
        if isinstance(v, Tensor):
            out.append(v)
        elif isinstance(v, (tuple, list)):
            out.extend(flat_tensors(v))
        elif isinstance(v, dict):
            out.extend(flat_tensors(v.values()))
    return out


def shares_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are one, or live on one storage; arrays that came in from outside are asked for their bounds."""
    if a is b or a._memory is not None and a._memory is b._memory or a._array is b._array:
        return True
    if getattr(a._array, "base", None) is None or not hasattr(b._array, "base"):
        return False
    return bool(library(a.device).may_share_memory(a._array, b._array))


def is_alias_of(a, b) -> bool:
    """Whether two tensors, or lists of tensors, have memory in common."""
    return any(shares_memory(s, t) for s in flat_tensors((a,)) for t in flat_tensors((b,)))


def overlaps(a, b) -> bool:
    """Whether two tensors, or lists of tensors, may have elements in common, and not their memory alone."""
    pairs = [(s, t) for s in flat_tensors((a,)) for t in flat_tensors((b,)) if shares_memory(s, t)]
    return any(s is t or library(s.device).may_share_memory(s._array, t._array) for s, t in pairs)


def check_results(name: str, inputs: tuple, keywords: dict, out, module: Callable[[], object]) -> None:
    """Raise where a result is an input, or shares memory with one or with another result."""
    if out is None:
        return
    given = flat_tensors(inputs) if not keywords else flat_tensors((*inputs, keywords))
    if isinstance(out, Tensor):
        bad = any(shares_memory(out, t) for t in given)
    else:
        results = flat_tensors((out,))
        bad = any(shares_memory(r, t) for i, r in enumerate(results) for t in (*given, *results[:i]))
    if bad:
        raise RuntimeError(_WORDS.format(name, module()))
