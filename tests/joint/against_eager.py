"""A function compiled ahead of time, against itself: all that a caller can see of a call must be the same.

In: a function and a function that makes its arguments anew: `make() -> (arguments, leaves)`, where gradients are looked
at in the leaves. `assert_same` compiles it, calls both forms on arguments of their own, and compares results, what the
arguments hold and share afterwards, versions, and gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback.core import tree
from pullback.joint.aot import aot_function

from .compare import facts, is_differentiable, memory, unequal


def unchanged(graph, inputs):
    """The compiler that leaves graphs as they are."""
    return graph


def aot(f: Callable, **options) -> Callable:
    return aot_function(f, unchanged, unchanged, **options)


def backward(heads: list, leaves: list, times: int = 1) -> list:
    """What is in `.grad` after one or more backwards from all heads at once."""
    torch.manual_seed(7)
    given = [torch.randn(tuple(h.shape), dtype=h.dtype) for h in heads]
    for k in range(times):
        if heads:
            torch.autograd.backward(heads, given, retain_graph=k + 1 < times)
    return [None if t.grad is None else t.grad.detach().numpy().copy() for t in leaves]


def seen(f: Callable, make: Callable, times: int = 1) -> dict[str, Any]:
    """What a caller sees of one call."""
    args, leaves = make()
    given = [a for a in tree.tree_leaves(args) if isinstance(a, torch.Tensor)]
    versions = [a._version for a in given]
    torch.manual_seed(11)
    out, spec = tree.tree_flatten(f(*args))
    tensors = [o for o in out if isinstance(o, torch.Tensor)]
    found = {
        "structure": str(spec),
        "others": [None if isinstance(o, torch.Tensor) else o for o in out],
        "results": [facts(t) for t in tensors],
        "arguments": [facts(a) for a in given],
        "written": [a._version > v for a, v in zip(given, versions, strict=True)],
        "memory": memory([*given, *tensors]),
        "identity": [[o is a for a in given] for o in tensors],
    }
    heads = list({id(t): t for t in [*tensors, *given] if is_differentiable(t)}.values())
    found["gradients"] = backward(heads, leaves, times)
    return found


def assert_same(f: Callable, make: Callable, times: int = 1, form: Callable = aot, **options) -> None:
    """Compare a function with its compiled form, at the first call and at a later one."""
    compiled = form(f, **options)
    expected = seen(f, make, times)
    for call in ("first", "second"):
        actual = seen(compiled, make, times)
        for part, values in expected.items():
            assert not (wrong := unequal(values, actual[part])), f"{call} call, {part}: {wrong}"


def leaves(*shapes: tuple, seed: int = 3, **options) -> Callable:
    """Makes arguments: a leaf that requires grad for each shape."""

    def make():
        torch.manual_seed(seed)
        result = [torch.randn(s, requires_grad=True, **options) for s in shapes]
        return result, result

    return make


def inner(*shapes: tuple, seed: int = 3) -> Callable:
    """Makes arguments that require grad and are results of earlier calls."""

    def make():
        torch.manual_seed(seed)
        result = [torch.randn(s, requires_grad=True) for s in shapes]
        return [t * 1.0 for t in result], result

    return make


def plain(*shapes: tuple, seed: int = 3) -> Callable:
    """Makes arguments that require no grad."""

    def make():
        torch.manual_seed(seed)
        return [torch.randn(s) for s in shapes], []

    return make
