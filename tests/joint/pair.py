"""A wrapper class for tests: two tensors, on both of which each operator runs."""

from __future__ import annotations

import pullback as torch
from pullback.core import tree


class Pair(torch.Tensor):
    """`Pair(a, b, tag)`: shape and dtype of `a`; the tag is its context, and results take the first argument's."""

    @staticmethod
    def __new__(cls, a, b, tag="plain", size=None, stride=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.shape if size is None else size, strides=a.stride() if stride is None else stride, dtype=a.dtype,
            device=a.device,
        )  # fmt: skip

    def __init__(self, a, b, tag="plain", size=None, stride=None):
        self.a, self.b, self.tag = a, b, tag

    def __repr__(self) -> str:
        return f"Pair({self.a!r}, {self.b!r}, {self.tag!r})"

    def __tensor_flatten__(self):
        return ["a", "b"], self.tag

    @staticmethod
    def __tensor_unflatten__(inner, tag, size, stride):
        return Pair(inner["a"], inner["b"], tag, size, stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        given = (args, kwargs or {})
        tag = next(t.tag for t in tree.tree_leaves(given) if isinstance(t, Pair))
        result = []
        for name in ("a", "b"):
            inner_args, inner_kwargs = tree.tree_map_only(Pair, lambda t, n=name: getattr(t, n), given)
            result.append(func(*inner_args, **inner_kwargs))
        if func.schema.arguments and func.schema.arguments[0].writes:
            return args[0]
        (left, spec), right = tree.tree_flatten(result[0]), tree.tree_leaves(result[1])
        both = [cls(x, y, tag) if isinstance(x, torch.Tensor) else x for x, y in zip(left, right, strict=True)]
        return tree.tree_unflatten(both, spec)


def numbers(value):
    """The class, the tag and the numbers of a tensor, all the way down."""
    if isinstance(value, Pair):
        return ("Pair", value.tag, numbers(value.a), numbers(value.b))
    if isinstance(value, torch.Tensor):
        return (type(value).__name__, value.detach().tolist())
    return value


def pair(*shape: int, seed: int = 0, tag: str = "plain", requires_grad: bool = True) -> Pair:
    torch.manual_seed(seed)
    return Pair(torch.randn(shape), torch.randn(shape), tag).requires_grad_(requires_grad)


def nested(*shape: int, seed: int = 0) -> Pair:
    inner = pair(*shape, seed=seed, tag="inner", requires_grad=False)
    return Pair(inner, pair(*shape, seed=seed + 1, tag="inner", requires_grad=False), "outer").requires_grad_()
