"""Custom functions (`autograd.Function`) inside vmap.

A function says how it is batched (`vmap`), or that its own methods may be run on batched tensors
(`generate_vmap_rule`). For the latter a new Function is made whose forward, backward and jvp take whole batches: they
wrap their arguments, call the user's methods one level further in, and unwrap what comes out. It is applied outside
the level, so recording and forward mode see an ordinary function of the values underneath.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..autograd.function import Function
from ..batching.batched import BatchLevel, make_batched, outside, unwrap
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..core.tree import tree_flatten, tree_unflatten

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a function's own `vmap` is told."""

    batch_size: int
    randomness: str


def apply_batched(cls: type[Function], args: tuple, kwargs: dict):
    """Apply a function where the innermost transform is a vmap."""
    level = ambient.transforms[-1]
    flat, spec = tree_flatten(args)
    pairs = [unwrap(a, level) for a in flat]
    dims = [d for _, d in pairs]
    values = tree_unflatten([v for v, _ in pairs], spec)
    if all(d is None for d in dims):
        with outside(level):
            return cls.apply(*args, **kwargs)
    own, generated = cls.vmap is not Function.vmap, cls.generate_vmap_rule or level.transparent
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {_MORE}"
        )
    if cls.setup_context is Function.setup_context and not generated:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod. {_MORE}"
        )
    if not own and not generated:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            f"the vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )
    with outside(level):
        if own:
            info = VmapInfo(level.size, level.randomness)
            out, out_dims = _by_own_rule(cls, info, tree_unflatten(dims, spec), values, kwargs)
        else:
            result = batched_function(cls, tuple(dims) if len(flat) == len(args) else None, level, kwargs)
            out = result.apply(*values)
            out_dims = result.out_dims
    return _wrapped(out, out_dims, level)


def _by_own_rule(cls: type[Function], info: VmapInfo, dims, values: tuple, kwargs: dict) -> tuple:
    """(outputs, their batch dimensions), from the function's own `vmap`."""
    if any(isinstance(leaf, Tensor) for leaf in tree_flatten(kwargs)[0]):
        raise NotImplementedError(
            f"Run vmap over autograd.Function with kwarg-only Tensor args: {cls.__name__} got {sorted(kwargs)}. "
            "Please pass them by position"
        )
    result = cls.vmap(info, dims, *values, **kwargs)
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to have two returns, outputs and out_dims, got {got}. {_MORE}"
        )
    out, out_dims = result
    single = not isinstance(out, tuple)
    fits = out_dims is None or isinstance(out_dims, int)
    if not fits and not single:
        fits = isinstance(out_dims, tuple) and len(out_dims) == len(out)
    if not fits:
        raise RuntimeError(
            f"The vmap staticmethod of {cls.__name__} returned an incompatible (outputs, out_dims): "
            f"{'one output' if single else f'{len(out)} outputs'} with out_dims={out_dims}. {_MORE}"
        )
    return out, out_dims


def _wrapped(out, dims, level: BatchLevel):
    """Outputs at a level, from their values and batch dimensions; one dimension may serve all."""
    if not isinstance(out, tuple):
        return make_batched(out, dims, level) if isinstance(out, Tensor) and dims is not None else out
    each = dims if isinstance(dims, (tuple, list)) else (dims,) * len(out)
    return tuple(_wrapped(o, d, level) for o, d in zip(out, each, strict=True))


class _Inner:
    """The `ctx` that the user's methods see inside the level: tensors saved and read are batched there."""

    def __init__(self, ctx) -> None:
        self.__dict__["outer"] = ctx
        self.__dict__["level"] = None

    def enter(self, level: BatchLevel) -> _Inner:
        self.__dict__["level"] = level
        return self

    def __getattr__(self, name: str):
        return getattr(self.outer, name)

    def _split(self, tensors: tuple) -> tuple[list, list]:
        pairs = [unwrap(t, self.level) for t in tensors]
        return [v for v, _ in pairs], [d for _, d in pairs]

    def save_for_backward(self, *tensors) -> None:
        values, self.outer.saved_dims = self._split(tensors)
        self.outer.save_for_backward(*values)

    def save_for_forward(self, *tensors) -> None:
        values, self.outer.forward_dims = self._split(tensors)
        self.outer.save_for_forward(*values)

    def mark_dirty(self, *tensors) -> None:
        self.outer.mark_dirty(*self._split(tensors)[0])

    def mark_non_differentiable(self, *tensors) -> None:
        self.outer.mark_non_differentiable(*self._split(tensors)[0])

    def set_materialize_grads(self, value: bool) -> None:
        self.outer.set_materialize_grads(value)

    @property
    def saved_tensors(self) -> tuple:
        tensors = self.outer.saved_tensors
        forward = self.outer.saved_for_forward is not None
        dims = self.outer.__dict__.get("forward_dims" if forward else "saved_dims", [None] * len(tensors))
        return tuple(_at(t, d, self.level) for t, d in zip(tensors, dims, strict=True))


class CtxWithSavedTensors:
    """A `ctx` that is another one, but for its saved tensors; what is set on it is set on the other."""

    _pt_reserved_attrs = ("_pt_inner_ctx", "_pt_new_saved_tensors")

    def __init__(self, ctx, tensors) -> None:
        taken = [n for n in self._pt_reserved_attrs if not isinstance(ctx, CtxWithSavedTensors) and hasattr(ctx, n)]
        if taken:
            raise RuntimeError(f"name collision: the ctx of {type(ctx).__name__} already has {', '.join(taken)}")
        self.__dict__.update(_pt_inner_ctx=ctx, _pt_new_saved_tensors=tensors)

    @property
    def saved_tensors(self):
        return self._pt_new_saved_tensors

    def __getattr__(self, name: str):
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._pt_inner_ctx, name, value)


def _at(t, dim: int | None, level: BatchLevel):
    return make_batched(t, dim, level) if isinstance(t, Tensor) and dim is not None else t


def batched_function(cls: type[Function], dims: tuple | None, level: BatchLevel, kwargs: dict) -> type[Any]:
    """A Function of whole batches, from one of single examples."""
    if dims is None:
        raise NotImplementedError("vmap over an autograd.Function with nested arguments needs a vmap of its own")
    size, randomness = level.size, level.randomness
    separate = cls.setup_context is not Function.setup_context

    def new_level() -> BatchLevel:
        result = BatchLevel(size, randomness)
        result.transparent = level.transparent
        return result

    class Batched(Function):
        out_dims: tuple | int | None = None
        generate_vmap_rule = True  # an outer vmap wraps once more

        @staticmethod
        def forward(ctx, *values):
            ctx.inner = _Inner(ctx)
            with new_level() as here:
                args = tuple(_at(v, d, here) for v, d in zip(values, dims, strict=True))
                inner = ctx.inner.enter(here)
                out = cls.forward(*args, **kwargs) if separate else cls.forward(inner, *args, **kwargs)
                if separate:
                    cls.setup_context(inner, args, out)
                many = isinstance(out, tuple)
                pairs = [unwrap(o, here) for o in (out if many else (out,))]
            ctx.shapes = [_example_shape(v, d) for v, d in zip(values, dims, strict=True)]
            ctx.dims = Batched.out_dims = tuple(d for _, d in pairs)
            if not many:
                Batched.out_dims = pairs[0][1]
            return tuple(v for v, _ in pairs) if many else pairs[0][0]

        @staticmethod
        def backward(ctx, *gs):
            user = cls.vjp if cls.vjp is not Function.vjp else cls.backward
            with new_level() as here:
                given = [_at(g, d, here) for g, d in zip(gs, ctx.dims, strict=True)]
                result = user(ctx.inner.enter(here), *given)
                pairs = [unwrap(g, here) for g in (result if isinstance(result, tuple) else (result,))]
            rest = [None] * len(pairs)
            places = zip(pairs, (*dims, *rest), (*ctx.shapes, *rest), strict=False)
            return tuple(reduced_gradient(g, at, d, size, shape) for (g, at), d, shape in places)

        @staticmethod
        def jvp(ctx, *tangents):
            with new_level() as here:
                given = [_at(t, d, here) for t, d in zip(tangents, dims, strict=True)]
                result = cls.jvp(ctx.inner.enter(here), *given)
                pairs = [unwrap(t, here) for t in (result if isinstance(result, tuple) else (result,))]
            moved = [_placed(t, at, d, size) for (t, at), d in zip(pairs, ctx.dims, strict=True)]
            return tuple(moved) if isinstance(result, tuple) else moved[0]

    Batched.__name__ = f"Vmapped{cls.__name__}"
    Batched._backward_cls.__name__ = f"Vmapped{cls.__name__}Backward"
    return Batched


def _example_shape(value, dim: int | None) -> tuple | None:
    """The shape of one example of an argument that is batched."""
    return (
        tuple(n for i, n in enumerate(value.shape) if i != dim)
        if isinstance(value, Tensor) and dim is not None
        else None
    )


def _placed(t, at: int | None, dim: int | None, size: int):
    """A tensor with its batch dimension where it is wanted; one that has none is repeated."""
    if not isinstance(t, Tensor) or dim is None:
        return t
    if at is None:
        t, at = t.unsqueeze(0).expand(size, *t.shape), 0
    return t.movedim(at, dim) if at != dim else t


def reduced_gradient(g, at: int | None, dim: int | None, size: int, shape: tuple | None = None):
    """A gradient for an argument, whose batch is at `dim`: where the argument was not batched, examples add up. An example of the argument
    has this `shape`, and the function may have broadcast it."""
    if not isinstance(g, Tensor):
        return g
    if dim is None:
        return g if at is None else g.sum(at)
    example = tuple(n for i, n in enumerate(g.shape) if i != at)
    if shape is not None and example != shape:
        g = _placed(g, at, 0, size)
        g, at = _summed_to(g, example, shape), 0
    return _placed(g, at, dim, size)


def _summed_to(g: Tensor, example: tuple, shape: tuple) -> Tensor:
    """Gradients of examples of one shape as those of the shape that was broadcast to it; the batch comes first."""
    extra = len(example) - len(shape)
    if extra < 0 or any(s not in (1, n) for s, n in zip(shape, example[extra:], strict=True)):
        raise RuntimeError(
            f"a custom function inside vmap gave an invalid gradient: of shape {list(example)} for each example, which is no shape that "
            f"an argument of shape {list(shape)} is broadcast to"
        )
    added = [i + 1 for i, n in enumerate(example) if i < extra or shape[i - extra] != n]
    return g.sum(added).reshape(g.shape[0], *shape)
