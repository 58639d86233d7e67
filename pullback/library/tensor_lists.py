"""`supports_tensorlist`: custom functions whose arguments and results may be lists of tensors.

In: a class of `autograd.Function`. Out: the same class, whose `forward`, `backward` and `needs_input_grad` see lists where the caller gave
lists, while the graph sees one tensor after the other. What always holds: a backward gives one entry for each tensor of a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from ..core.tensor import Tensor

_DIRECT = "NYI: calling supports_tensorlist autograd.Function.{} directly. {}"


Lengths = list[int | None]  # of the lists among values, None for what is no list of tensors


class _Shape:
    """How the arguments and results of one call are nested."""

    def __init__(self, inputs: Lengths):
        self.inputs = inputs
        self.outputs: Lengths = []
        self.alone = False  # whether there is one result, outside any tuple


def supports_tensorlist(cls: Any) -> Any:
    """Let a custom function take and give lists of tensors."""
    forward, backward, apply = cls.forward, cls.backward, cls.apply

    def flat_forward(ctx, *args):
        if not args or not isinstance(args[-1], _Shape):
            raise NotImplementedError(_DIRECT.format("forward", "You should probably be calling .apply instead."))
        ctx._pt_metadata = shape = args[-1]
        out = forward(ctx, *_grouped(args[:-1], shape.inputs))
        shape.alone = not isinstance(out, tuple)
        flat, shape.outputs = _spread((out,) if shape.alone else out, Tensor)
        return tuple(flat)

    def flat_backward(ctx, *grads):
        if not hasattr(ctx, "_pt_metadata"):
            raise NotImplementedError(_DIRECT.format("backward", "This will automatically get called by autograd."))
        shape, wanted = ctx._pt_metadata, ctx.needs_input_grad
        try:
            ctx.needs_input_grad = _grouped(wanted[:-1], shape.inputs)
            out = backward(ctx, *_grouped(grads, shape.outputs))
        finally:
            ctx.needs_input_grad = wanted
        flat, given = _spread(out if isinstance(out, tuple) else (out,), (Tensor, type(None)))
        if given != shape.inputs:
            raise RuntimeError(
                f"Expected the return from backward to be of the same structure as the inputs. Got lists of lengths {given} (return "
                f"from backward), {shape.inputs} (inputs); None stands for what is no list of tensors"
            )
        return (*flat, None)

    def nested_apply(*args):
        flat, inputs = _spread(args, Tensor)
        shape = _Shape(inputs)
        out = _grouped(apply(*flat, shape), shape.outputs)
        return out[0] if shape.alone else out

    cls.forward, cls.backward, cls.apply = flat_forward, flat_backward, nested_apply
    return cls


def _spread(values: Iterable, kinds: type | tuple[type, ...]) -> tuple[list, Lengths]:
    """Values with lists of some kinds spread out, and the length of each such list."""
    flat: list = []
    lengths: Lengths = []
    for value in values:
        if isinstance(value, list) and value and all(isinstance(v, kinds) for v in value):
            flat.extend(value)
            lengths.append(len(value))
        else:
            flat.append(value)
            lengths.append(None)
    return flat, lengths


def _grouped(flat: Iterable, lengths: Lengths) -> tuple:
    """Values as they were before they were spread out."""
    rest = iter(flat)
    return tuple([next(rest) if n is None else list(islice(rest, n)) for n in lengths])
