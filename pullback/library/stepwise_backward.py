"""Gradients by name: the Autograd kernel of an operator that is registered in steps (`stepwise`).

A call that wants gradients becomes one custom function: `save_for_backward(inputs, output)` says what is kept, and
`backward(ctx, saved, *grads)` gives a dictionary with a gradient, or None, for each argument that may be a tensor.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cached_property
from typing import Any

from ..autograd.function import Function
from ..core import modes
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import Tensor
from ..core.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from .dispatcher import AutoDispatchBelowAutograd


class Backward:
    """What stands at the Autograd key of one operator."""

    def __init__(self, definition: Any):
        self.definition = definition
        self.differentiable: list[bool] | None = None  # per result, whether it has a gradient
        self.registered = False

    def __call__(self, *args, **kwargs):
        given = self.definition._impls
        saves, backs = "save_for_backward" in given, "backward" in given
        if saves and backs:
            return self.record(self.definition._ophandle.bind(args, kwargs))
        if saves or backs:
            found, missing = ("save_for_backward", "backward") if saves else ("backward", "save_for_backward")
            raise RuntimeError(
                f"We found a '{found}' registration for {self.definition} at {given[found].location} but were unable to find a '{missing}' "
                "registration. Please provide both, via `impl_backward` and `impl_save_for_backward`."
            )
        if ambient.mode & modes.GRAD and any(
            isinstance(t, Tensor) and requires_grad(t) for t in tree_leaves((args, kwargs))
        ):
            raise RuntimeError(f"Autograd has not been implemented for operator {self.definition}")
        with AutoDispatchBelowAutograd():
            return self.definition._ophandle(*args, **kwargs)

    @cached_property
    def named(self) -> Any:
        """The arguments of a call as a tuple with their names."""
        names = [a.name for a in self.definition._schema.arguments]
        return namedtuple(f"{self.definition._opname}_args", names)  # type: ignore[misc]

    def record(self, args: tuple):
        """One call of the custom function, over all leaves of the arguments."""
        leaves, spec = tree_flatten(tuple(list(a) if isinstance(a, tuple) else a for a in args))
        shapes: list = []
        out = self.function.apply(spec, shapes, *leaves)
        return tree_unflatten(out if isinstance(out, tuple) else (out,), shapes[0])

    @cached_property
    def function(self) -> type[Function]:
        rule = self

        def forward(ctx, spec, shapes, *leaves):
            return rule.forward(ctx, spec, shapes, leaves)

        def backward(ctx, *grads):
            return (None, None, *rule.gradients(ctx, grads))

        body = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__}
        return type(Function)(f"{self.definition._opname}_customop", (Function,), body)

    def forward(self, ctx, spec, shapes: list, leaves: tuple):
        ctx.set_materialize_grads(True)
        definition = self.definition
        args = tree_unflatten(list(leaves), spec)
        schema = definition._schema.arguments
        with AutoDispatchBelowAutograd():
            out = definition._ophandle(
                *[v for v, a in zip(args, schema, strict=True) if not a.kwarg_only],
                **{a.name: v for v, a in zip(args, schema, strict=True) if a.kwarg_only},
            )
        saved, ctx.saved_spec = tree_flatten(definition._get_impl("save_for_backward").func(self.named(*args), out))
        ctx.save_for_backward(*[t for t in saved if isinstance(t, Tensor)])
        ctx.saved_others = [None if isinstance(t, Tensor) else (t,) for t in saved]
        ctx.kinds = self.named(*tree_map(type, args))
        self.mark(ctx, out)
        flat, ctx.result_spec = tree_flatten(out)
        shapes.append(ctx.result_spec)
        return tuple(flat)

    def mark(self, ctx, out) -> None:
        """Results without a gradient, where the user said which these are."""
        constant: list[Tensor] = []
        results = out if isinstance(out, tuple) else (out,)
        for i, (wanted, value) in enumerate(zip(self.differentiable or (), results, strict=False)):
            if isinstance(value, (Tensor, list)):
                constant.extend([] if wanted else value if isinstance(value, list) else [value])
            elif wanted:
                raise RuntimeError(
                    f"With output_differentiability={self.differentiable}. At idx {i}, we received an object of type {type(value)} that is not a "
                    "Tensor, so it cannot have be marked as differentiable in output_differentiability."
                )
        if constant:
            ctx.mark_non_differentiable(*constant)

    def gradients(self, ctx, flat_grads: tuple) -> list:
        """The user's gradients, one for each leaf of the arguments."""
        grads = tree_unflatten(list(flat_grads), ctx.result_spec)
        tensors = iter(ctx.saved_tensors)
        saved = tree_unflatten([next(tensors) if o is None else o[0] for o in ctx.saved_others], ctx.saved_spec)
        backward = self.definition._get_impl("backward").func
        result = backward(object(), saved, *(grads if isinstance(grads, tuple) else (grads,)))
        self.check(result, ctx.kinds)
        out: list = []
        for name, kind in ctx.kinds._asdict().items():
            found = result.get(name)
            out.extend(found or [None] * len(kind) if isinstance(kind, list) else [found])
        return out

    def fail(self, what: str):
        raise RuntimeError(
            f"In the backward function defined for {self.definition} at {self.definition._get_impl('backward').location} using the CustomOp API, {what}"
        )

    def check(self, result: Any, kinds: Any) -> None:
        """Refuse gradients of another form than the arguments."""
        if not isinstance(result, dict):
            self.fail(f"expected the output of the backward function to be a dict but got {type(result)}")
        expected = {a.name for a in self.definition._schema.arguments if a.is_tensor}
        if expected != result.keys():
            self.fail(
                f"expected the returned grad_input dict to have keys {expected} but got {result.keys()}. The backward function must return a gradient "
                "(can be None) for each arg to the CustomOp that may be a Tensor or Sequence[Tensor]. Args declared to be non-Tensor-like types "
                "should not appear in the grad_input dict"
            )
        for name, grad in result.items():
            kind = getattr(kinds, name)
            if isinstance(kind, list):
                self.check_list(name, grad, kind)
            elif grad is not None and not isinstance(grad, Tensor):
                self.fail(
                    f"got object of type {type(grad)} as the gradient for input '{name}', but expected the gradient to be either None or a Tensor"
                )
            elif grad is not None and not issubclass(kind, Tensor):
                self.fail(f"got a Tensor as the gradient for input '{name}', but expected None: it was of type {kind}.")

    def check_list(self, name: str, grads: Any, kinds: list) -> None:
        lead = f"for input '{name}' expected the grad_input dict to hold a list of "
        if not isinstance(grads, (tuple, list)):
            self.fail(f"{lead}gradients but got object of type {type(grads)}.")
        if len(grads) != len(kinds):
            self.fail(f"{lead}{len(kinds)} gradients but got {len(grads)}")
        for i, (g, kind) in enumerate(zip(grads, kinds, strict=True)):
            if g is not None and not isinstance(g, Tensor):
                self.fail(f"{lead}None or Tensor gradients but got object of {type(g)} at index {i}")
            if g is not None and not issubclass(kind, Tensor):
                self.fail(f"{lead}gradients with None at index {i}, where the argument is no Tensor (it was {kind})")
